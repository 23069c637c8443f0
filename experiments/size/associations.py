"""The task of Dana, Pydi and Chevaleyre (2411.10115), as they set it, and our layers on it.

    python -m experiments.size.associations --run     (a quarter of an hour on two cores)
    python -m experiments.size.associations --plot

50 tokens; each of the 2,500 pairs has a next token, drawn at random; what is measured is the share
of pairs that are predicted. Their layer has as many modules of attention as heads, each with
queries, keys, values and outputs of d_h x d_h and a scale of 1 / sqrt(d_h), beside one another on a
linear map of the embeddings to d_h, with positions added there, and another one back; Adam at 0.001
for 10,000 batches of 1,024 pairs (read in their code, leodana2000/Transformer_Attentional_Memory,
expe_dim.py and models.py). `THEIRS` is what their committed tables hold. They report that the share
grows linearly with heads, with d_h squared, and as H d^3 where d_h = d; they prove H d_h + d.

Here: their layer at `SETTINGS`, two databases each, to see that their numbers come out; then plain
layers of ours with d_head_qk = d_head_vo = d_h, by the best recipe, with all pairs in each epoch.
The exponents of the share above chance, where it is below `SATURATED`, are by least squares on
logarithms; settings were fixed before the run.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from capacity import Database, LayerConfig, Recipe
from capacity.evaluator import evaluate
from capacity.layer import AttentionLayer, train
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.progress import bar
from experiments.common.harness import BEST, Tables, main, rows_of

TOKENS, BATCH, STEPS, RATE, SATURATED = 50, 1024, 10_000, 1e-3, 0.95
# (d, heads, d_h)
WIDE = [(d, heads, d) for d, heads in product((5, 7, 10), (1, 11, 21, 31))]
NARROW = [(10, 20, d_h) for d_h in (1, 2, 4, 6, 8, 10)]
SETTINGS = [*WIDE, *NARROW]
# means of their repetitions, Data_exp_1_5.csv, Data_exp_1_7.csv, Data_exp_1_10.csv, Data_exp_2.csv
THEIRS = {
    (5, 1, 5): 0.0738, (5, 11, 5): 0.1582, (5, 21, 5): 0.2248, (5, 31, 5): 0.2936,
    (7, 1, 7): 0.1005, (7, 11, 7): 0.2634, (7, 21, 7): 0.4313, (7, 31, 7): 0.5913,
    (10, 1, 10): 0.1298, (10, 11, 10): 0.5063, (10, 21, 10): 0.8608, (10, 31, 10): 0.9974,
    (10, 20, 1): 0.0815, (10, 20, 2): 0.1096, (10, 20, 4): 0.2094, (10, 20, 6): 0.3567,
    (10, 20, 8): 0.5457, (10, 20, 10): 0.8044,
}  # fmt: skip
SEEDS = (0, 1)
KINDS = ("theirs", "ours")


def run(smoke: bool) -> Tables:
    """A row for each setting, layer and database."""
    settings, steps = ([(5, 1, 5), (10, 20, 2)], 20) if smoke else (SETTINGS, STEPS)
    tasks = [(*setting, kind, seed, steps) for setting, kind, seed
             in product(settings[::-1], KINDS, SEEDS[: 1 if smoke else None])]  # fmt: skip
    with bar() as tell:
        rows = rows_of("associations", row_of, tasks, tell, in_process=smoke)
    return {"runs": pd.DataFrame(rows)}


def row_of(task: tuple[int, int, int, str, int, int]) -> dict[str, Any]:
    """One training and the share of pairs that it predicts."""
    d, heads, d_h, kind, seed, steps = task
    torch.set_num_threads(1)
    share = (
        their_share(following_of(seed), d, heads, d_h, seed, steps)
        if kind == "theirs"
        else our_share(database_of(seed), d, heads, d_h, seed, steps)
    )
    return {"d": d, "heads": heads, "d_h": d_h, "layer": kind, "database_id": f"{seed}",
            "share": share}  # fmt: skip


def following_of(seed: int) -> np.ndarray[Any, Any]:
    """The next token of each pair, shape (TOKENS, TOKENS)."""
    return np.random.default_rng([2411, seed]).integers(TOKENS, size=(TOKENS, TOKENS))


def database_of(seed: int) -> Database:
    """The pairs and their next tokens as facts."""
    following = following_of(seed)
    pairs = np.indices(following.shape).reshape(2, -1)
    facts = np.stack([*pairs, following.ravel()], axis=1)
    return Database.from_triples([tuple(f"t{i:02}" for i in fact) for fact in facts.tolist()])


def our_share(db: Database, d: int, heads: int, d_h: int, seed: int, steps: int) -> float:
    """Share of pairs that a plain layer of this library predicts, by the best recipe."""
    layer = AttentionLayer(LayerConfig(d, heads, d_h, d_h), db.n_tokens, seed=seed)
    recipe = Recipe(**{**BEST, "epochs": 2000 if steps == STEPS else steps})
    train(layer, db, recipe)
    return evaluate(layer, db).argmax


def their_share(
    following: np.ndarray[Any, Any], d: int, heads: int, d_h: int, seed: int, steps: int
) -> float:
    """Share of pairs that their layer predicts: the mean of its last hundred batches."""
    generator = torch.Generator().manual_seed(seed)
    weights = their_weights(d, heads, d_h, generator)
    optimiser = torch.optim.Adam(weights.values(), lr=RATE, fused=True)
    target = torch.from_numpy(following).ravel()
    shares: list[float] = []
    for step in range(steps):
        # a batch of pairs drawn evenly, as the number of times that each is drawn
        drawn = torch.randint(len(target), (BATCH,), generator=generator)
        times = torch.bincount(drawn, minlength=len(target)).float()
        logits = their_logits(weights).flatten(0, 1)
        log_p = torch.log_softmax(logits, dim=1).gather(1, target[:, None])[:, 0]
        loss = -(log_p @ times) / BATCH
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step >= steps - 100:
            right = logits.detach().argmax(dim=1) == target
            shares.append(float(right.float() @ times) / BATCH)
    return float(np.mean(shares))


def their_weights(d: int, heads: int, d_h: int, generator: torch.Generator) -> dict[str, Tensor]:
    """Weights as torch draws them for their modules."""

    def even(bound: float, *shape: int) -> Tensor:
        return (torch.rand(*shape, generator=generator) * 2 - 1) * bound

    linear, small = 1 / math.sqrt(d), 1 / math.sqrt(d_h)
    # Xavier's bound for the three matrices of a module together, (3 d_h, d_h)
    inside = math.sqrt(6 / (4 * d_h))
    weights = {
        "E": even(linear, TOKENS, d), "U": even(linear, d, TOKENS),
        "P": even(small, 2, d_h), "compress": even(linear, d, d_h),
        "back": even(small, d_h, d), "Q": even(inside, heads, d_h, d_h),
        "K": even(inside, heads, d_h, d_h), "V": even(inside, heads, d_h, d_h),
        "O": even(small, heads, d_h, d_h),
    }  # fmt: skip
    return {name: weight.requires_grad_() for name, weight in weights.items()}


def their_logits(w: dict[str, Tensor]) -> Tensor:
    """Logits after each pair, (first token, second token, next token)."""
    inside = w["E"] @ w["compress"]
    first, second = inside + w["P"][0], inside + w["P"][1]
    queries = second @ w["Q"] / math.sqrt(w["Q"].shape[1])
    to_first = (first @ w["K"]) @ queries.mT
    to_second = ((second @ w["K"]) * queries).sum(-1)
    # (heads, first token, second token)
    gates = torch.sigmoid(to_first - to_second[:, None])
    of_first, of_second = (x @ w["V"] @ w["O"] for x in (first, second))
    seen = gates.permute(1, 2, 0) @ of_first.transpose(0, 1)
    own = (1 - gates).permute(2, 1, 0) @ of_second.transpose(0, 1)
    mixed = seen + own.transpose(0, 1)
    return (w["E"] + mixed @ w["back"]) @ w["U"]


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares of each setting, beside theirs, and the exponents of each layer."""
    runs = tables["runs"]
    found: dict[str, Any] = {}
    for kind, of in runs.groupby("layer"):
        means = of.groupby(["d", "heads", "d_h"])["share"].mean()
        found[str(kind)] = {
            "shares": [
                {"d": d, "heads": heads, "d_h": d_h, "share": share,
                 "theirs": THEIRS.get((d, heads, d_h))}
                for (d, heads, d_h), share in means.items()  # type: ignore[misc]
            ],
            "exponents": _exponents(of),
        }  # fmt: skip
    both = [row for row in found["theirs"]["shares"] if row["theirs"] is not None]
    found["largest_difference"] = max(abs(row["share"] - row["theirs"]) for row in both)
    return found


def _exponents(of: pd.DataFrame) -> dict[str, Any]:
    """Exponents of heads and d where d_h = d, and of d_h alone, of the share above chance."""
    below = of[(of["share"] < SATURATED) & (of["share"] > 1.2 / TOKENS)]
    wide, narrow = below[below["d"] == below["d_h"]], below[(below["heads"] == 20)]
    return {
        "where d_h = d": _slopes(wide, ["heads", "d"]),
        "at d = 10, 20 heads": _slopes(narrow, ["d_h"]),
    }


def _slopes(part: pd.DataFrame, names: list[str]) -> dict[str, float] | None:
    if len(part) <= len(names):
        return None
    design = np.column_stack([np.ones(len(part)), *(np.log(part[name]) for name in names)])
    slopes = np.linalg.lstsq(design, np.log(part["share"] - 1 / TOKENS), rcond=None)[0]
    return dict(zip(names, slopes[1:].tolist(), strict=True))


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Shares of pairs by heads, and by d_h."""
    figure = Figure(figsize=(WIDTH, 0.45 * WIDTH), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for kind, line in zip(KINDS, ("-", "--"), strict=True):
        rows = found[kind]["shares"]
        for d, colour, marker in zip((5, 7, 10), COLOURS, MARKERS, strict=False):
            of = [row for row in rows if row["d"] == row["d_h"] == d and row["heads"] != 20]
            axes[0].plot([row["heads"] for row in of], [row["share"] for row in of], ls=line,
                         color=colour, marker=marker, ms=4, label=f"{kind}, d = {d}")  # fmt: skip
        of = [row for row in rows if row["heads"] == 20]
        axes[1].plot([row["d_h"] for row in of], [row["share"] for row in of], ls=line,
                     color=COLOURS[2], marker=MARKERS[2], ms=4, label=kind)  # fmt: skip
    told = list(THEIRS.items())
    axes[0].plot([h for (d, h, e), _ in told if h != 20], [s for (_, h, _), s in told if h != 20],
                 ls="none", marker="x", color="0.2", label="as they report")  # fmt: skip
    axes[1].plot([e for (_, h, e), _ in told if h == 20], [s for (_, h, _), s in told if h == 20],
                 ls="none", marker="x", color="0.2", label="as they report")  # fmt: skip
    axes[0].set_xlabel("heads")
    axes[0].set_title("d_h = d")
    axes[1].set_xlabel("d_h")
    axes[1].set_title("d = 10, 20 heads")
    axes[0].set_ylabel("pairs of 2,500 predicted")
    axes[0].legend(frameon=False, fontsize="small")
    return {"shares": figure}


if __name__ == "__main__":
    main("associations", run, numbers, plot)
