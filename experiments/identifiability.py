"""Is attention unique, and what does that cost? The claims of Bhardwaj et al. (2021).

    python experiments/identifiability.py --run     (17 minutes on two busy cores)
    python experiments/identifiability.py --plot

For IMDB and nine other sets stand tweets of three classes: one by one for Table 1; put together, to
documents of one class, for ranks, which need long texts. Encoders for ranks have the paper's sizes
(d_model 512, 8 heads, d_head_qk 64), those for Table 1 a quarter of it (d_model 128). MiniLM, 6
layers of 12 heads with d_head_qk = d_head_vo = 32, is a pretrained model beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
import torch
from encoders import (
    COMBINE,
    distinct_tweets,
    documents,
    papers_accuracies,
    sentences,
    trained,
)
from experiment import Tables, main
from identifiability_figures import SIZES, plot
from identifiability_measures import boundary, defects, first_head, logits, ranks, stages, witness
from pretrained import minilm
from scipy import stats

from capacity.cli.output import bar
from capacity.evaluator import mean_interval
from capacity.transformer import Captured, EncoderClassifier, capture
from capacity.transformer.classify import accuracy

LENGTHS = {
    "Con": (16, 32, 48, 64, 65, 66, 80, 96, 128, 192, 256, 384, 512),
    "Add": (16, 32, 64, 66, 96, 128, 192, 256, 320, 384, 448, 480, 496, 512),
    "MiniLM": (8, 16, 24, 32, 33, 34, 48, 64, 96, 128, 192, 256),
    "small Con": (18, 20, 24, 32, 40),
}
# for Figure 5: of more than d_head_vo + 1 tokens
LONGER = {"Con": (66, 72, 80, 96, 112, 128), "MiniLM": (34, 40, 48, 64, 96, 128)}
QUERY_KEY = (1, 2, 4, 8, 16, 32, 64, 128)
# near the boundary that is counted for d_head_vo = 16
NEAR = (2, 4, 6, 8, 9, 10, 11, 12, 13, 14, 16)
SEEDS = range(5)
EPOCHS = 8


def run(smoke: bool) -> Tables:
    """Ranks and P4 of trained encoders and of MiniLM, and Table 1."""
    jobs: list[Callable[[], Tables]] = [partial(of_large, name, smoke) for name in COMBINE]
    jobs += [partial(of_minilm, smoke)]
    jobs += [partial(of_small, d, smoke) for d in (NEAR[::7] if smoke else NEAR)]
    jobs += [
        partial(one_accuracy, name, d, seed, smoke)
        for seed in (SEEDS[:2] if smoke else SEEDS)
        for d in (QUERY_KEY[::7] if smoke else QUERY_KEY)
        for name in COMBINE
    ]
    parts: dict[str, list[pd.DataFrame]] = {"boundary": [boundary()]}
    with bar() as tell:
        for done, tables in enumerate(_results(jobs, in_process=smoke), start=1):
            for key, table in tables.items():
                parts.setdefault(key, []).append(table)
            tell("trainings and analyses", done, len(jobs))
    return {key: pd.concat(of, ignore_index=True) for key, of in parts.items()}


def _results(jobs: Sequence[Callable[[], Tables]], *, in_process: bool) -> Iterator[Tables]:
    if in_process:
        yield from map(_call, jobs)
        return
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_call, jobs)


def _call(job: Callable[[], Tables]) -> Tables:
    torch.set_num_threads(1)
    return job()


def of_large(name: str, smoke: bool) -> Tables:
    """Ranks in an encoder of the paper's sizes; if heads are concatenated, P4 as well."""
    texts = documents(smoke)
    d, epochs = (64, 1) if smoke else (512, 4)
    model, training = trained(texts, name, d // 8, d, epochs=epochs, seed=0)
    tokens = texts.test[0]
    lengths = LENGTHS[name][:: 6 if smoke else 1]
    best = max(training.validation_accuracies)
    tables = {
        "documents": pd.DataFrame([{"model": name, "validation_accuracy": best}]),
        "ranks": pd.concat(
            ranks(name, first_head(model.capture(part[:, :n])), first=4 * i)
            for n in lengths
            for i, part in enumerate(tokens.split(4))
        ),
        "heads": pd.concat(ranks(name, model.capture(tokens[:4, :n])) for n in lengths),
    }
    if name == "Add":
        before = EncoderClassifier(model.config, seed=0)
        tables["stages"] = pd.concat(
            stages(of.capture(tokens[i : i + 4, :n])).assign(weights=weights)
            for weights, of in (("trained", model), ("initial", before))
            for n in lengths
            for i in range(0, 4 if smoke else 20, 4)
        )
        return tables
    tables["logits"] = pd.concat(
        logits(name, model.capture(tokens[i : i + 1, :n]), i, [(0, 0)], draws=5)
        for n in LONGER[name][:: 6 if smoke else 1]
        for i in range(1 if smoke else 20)
    )
    if not smoke:
        longer = model.capture(tokens[:1, : LONGER[name][0]])
        tables["witnesses"] = witness(name, longer, 0, 0, steps=3)
    return tables


def of_minilm(smoke: bool) -> Tables:
    """Ranks in all 72 heads, ranks of logits, and other attention in one head of each layer."""
    name, (model, tokenizer) = "MiniLM", minilm()
    texts = distinct_tweets()["text"].sample(frac=1, random_state=1).tolist()

    def caught(i: int, n: int) -> Captured:
        text = " ".join(texts[25 * i : 25 * i + 25])
        return capture(
            model, dict(tokenizer(text, return_tensors="pt", truncation=True, max_length=n))
        )

    n_texts, n_layers = (1, 1) if smoke else (20, 6)
    lengths, longer = (of[name][:: 6 if smoke else 1] for of in (LENGTHS, LONGER))
    some = [(layer, head) for layer in range(6) for head in range(12)][:: 12 if smoke else 1]
    return {
        "heads": pd.concat(
            ranks(name, caught(i, n), first=i) for n in lengths for i in range(n_texts)
        ),
        "logits": pd.concat(
            logits(name, caught(i, n), i, some, draws=1)
            for n in longer
            for i in range(min(n_texts, 5))
        ),
        "witnesses": pd.concat(
            witness(name, caught(0, 40), layer, 0, steps=1 if smoke else 6)
            for layer in range(n_layers)
        ),
        "defects": defects(name, caught(0, 40), some[::9]),
    }


def of_small(d_head_qk: int, smoke: bool) -> Tables:
    """P4 in a small Con encoder, d_head_vo = 16, in heads that training made."""
    name, texts = "small Con", sentences(0, smoke)
    model, _ = trained(texts, "Con", d_head_qk, 128, epochs=1 if smoke else 3, seed=0)
    tokens, _, mask = texts.test
    rows = tokens[mask][:80].view(2, 40)
    heads = [(0, head) for head in range(1 if smoke else 4)]
    tables = {
        "defects": pd.concat(
            defects(name, model.capture(rows[i : i + 1, :n]), heads)
            for n in LENGTHS[name][:: 4 if smoke else 1]
            for i in range(len(rows))
        )
    }
    if d_head_qk == max(NEAR):
        at = model.capture(rows[:1, :24])
        tables["witnesses"] = pd.concat(witness(name, at, 0, head, steps=30) for head in range(8))
    return tables


def one_accuracy(name: str, d_head_qk: int, seed: int, smoke: bool) -> Tables:
    """One run of Table 1."""
    texts = sentences(seed, smoke)
    epochs = 2 if smoke else EPOCHS
    model, training = trained(texts, name, d_head_qk, 128, epochs=epochs, seed=seed)
    tokens, labels, mask = texts.test
    row = {
        "heads": name,
        "d_head_qk": d_head_qk,
        "seed": seed,
        "n_parameters": model.config.n_parameters,
        "accuracy": accuracy(model, tokens, labels, mask),
        "best_epoch": training.best_epoch,
        "epochs": epochs,
        "majority": float((labels == texts.train[1].mode().values).float().mean()),
    }
    return {"accuracy": pd.DataFrame([row])}


def numbers(tables: Tables) -> dict[str, Any]:
    """How often theory holds, what P4 decides, and slopes of accuracy."""
    first, heads = tables["ranks"], tables["heads"]
    return {
        "validation_accuracy_on_documents": dict(tables["documents"].to_numpy().tolist()),
        "figure_2": {
            "Con": _of_ranks(first[first["model"] == "Con"], SIZES["Con"][0]),
            "MiniLM": _of_ranks(heads[heads["model"] == "MiniLM"], SIZES["MiniLM"][0]),
        },
        "figure_6": {
            **_of_ranks(first[first["model"] == "Add"], SIZES["Add"][0]),
            "at_512_tokens": _of_stages(tables["stages"]),
        },
        "joint_nullity": {name: _of_joint(name, heads[heads["model"] == name]) for name in SIZES},
        "figure_5": {
            str(name): _of_logits(table) for name, table in tables["logits"].groupby("model")
        },
        "p4": {
            "largest_identifiable_d_head_qk": {
                str(d): _of_boundary(int(d), table)  # type: ignore[call-overload]
                for d, table in tables["boundary"].groupby("d_head_vo")
            },
            "least_excess_at_d_head_qk_equal_to_d_head_vo": int(
                tables["boundary"]["excess_at_equal_sizes"].min()
            ),
            "defects": _of_defects(tables["defects"]),
            "witnesses": {
                str(name): _of_witnesses(table)
                for name, table in tables["witnesses"].groupby("model")
            },
        },
        "table_1": _of_accuracy(tables["accuracy"]),
    }


def _of_ranks(table: pd.DataFrame, d: int) -> dict[str, Any]:
    n = table["n_tokens"]
    largest = table.groupby("n_tokens")["nullity"].max()
    means = table.groupby("n_tokens")[["rank_values", "nullity"]].mean()
    return {
        "share_with_rank_min_n_d_head_vo": (table["rank_values"] == n.clip(upper=d)).mean(),
        "share_with_simplex_nullity_n_less_d_head_vo_less_1": (
            table["nullity_simplex"] == (n - d - 1).clip(lower=0)
        ).mean(),
        "largest_n_with_nullity_0_throughout": max(
            (int(m) for m in largest.index if not largest.loc[:m].any()), default=0
        ),
        "means": {str(m): row.to_dict() for m, row in means.iterrows()},
        "n_matrices": len(table),
    }


def _of_stages(table: pd.DataFrame) -> dict[str, Any]:
    longest = table[table["n_tokens"] == table["n_tokens"].max()]
    return {
        f"{weights}, {stage}": {
            "mean_rank": part["rank"].mean(),
            "median_smallest_singular_value_over_largest": part["smallest"].median(),
        }
        for (weights, stage), part in longest.groupby(["weights", "stage"])  # type: ignore[misc]
    }


def _of_joint(name: str, table: pd.DataFrame) -> dict[str, Any]:
    _, n_heads, d_model = SIZES[name]
    layers = table[table["head"] == 0]
    formula = (n_heads * layers["n_tokens"] - d_model - n_heads).clip(lower=0)
    means = table.groupby("n_tokens")[["nullity_simplex", "joint_nullity"]].mean()
    return {
        "share_equal_to_formula": (layers["joint_nullity"] == formula).mean(),
        "largest_difference": int((layers["joint_nullity"] - formula).abs().max()),
        "means": {str(n): row.to_dict() for n, row in means.iterrows()},
        "n_layers_times_texts": len(layers),
    }


def _of_logits(table: pd.DataFrame) -> dict[str, Any]:
    shares = {
        "constructed_of_rank_n_less_1": table["constructed"] == table["n_tokens"] - 1,
        "constructed_above_d_head_qk": table["constructed"] > table["d_head_qk"],
    }
    means = table.groupby("n_tokens")[["own", "constructed"]].mean()
    return {
        **{
            name: {"mean": of.mean(), "interval": mean_interval(of, table["sentence"])}
            for name, of in shares.items()
        },
        "largest_rank_of_own_logits": int(table["own"].max()),
        "mean_ranks": {str(n): row.to_dict() for n, row in means.iterrows()},
        "median_relative_change": table["relative_change"].median(),
        "n": len(table),
    }


def _of_boundary(d: int, table: pd.DataFrame) -> dict[str, int]:
    largest = table.set_index("n_tokens")["largest"]
    return {str(n): int(largest[n]) for n in (d + 2, 2 * d, 4 * d, 512)}


def _of_defects(table: pd.DataFrame) -> dict[str, int]:
    excess = table["excess"] > 0
    return {
        "n": len(table),
        "equal_to_the_excess_or_0": int((table["defect"] == table["excess"].clip(lower=0)).sum()),
        "with_an_excess": int(excess.sum()),
        "not_unique_with_an_excess": int((table.loc[excess, "defect"] > 0).sum()),
        "not_unique_without_an_excess": int((table.loc[~excess, "defect"] > 0).sum()),
    }


def _of_witnesses(table: pd.DataFrame) -> dict[str, Any]:
    return {
        **{name: int(table[name].iloc[0]) for name in ("n_tokens", "d_head_qk")},
        **{
            name: [table[name].min(), table[name].max()]
            for name in ("relative_change", "largest_change", "rows_with_another_largest")
        },
        "largest_residual": table["residual"].max(),
        "largest_logit_rank": int(table["logit_rank"].max()),
        "n_heads": len(table),
    }


def _of_accuracy(table: pd.DataFrame) -> dict[str, Any]:
    wide = table.pivot(index="seed", columns=["heads", "d_head_qk"], values="accuracy")
    of = {name: pd.DataFrame(wide[name]) for name in COMBINE}
    difference = of["Add"] - of["Con"]
    sizes = difference.columns
    slopes = {name: _slopes(part) for name, part in of.items()}
    ends = {name: part[sizes[-1]] - part[sizes[0]] for name, part in of.items()}
    parameters = table.groupby(["heads", "d_head_qk"])["n_parameters"].first()
    return {
        "majority": _over_seeds(table.groupby("seed")["majority"].first()),
        "accuracy": {
            name: {str(d): _over_seeds(part[d]) for d in sizes} for name, part in of.items()
        },
        "add_less_con": {str(d): _over_seeds(difference[d]) for d in sizes},
        "add_less_con_over_all": _over_seeds(difference.mean(axis=1)),
        "largest_less_smallest_d_head_qk": {n: _over_seeds(end) for n, end in ends.items()},
        "slope_for_each_doubling": {n: _over_seeds(slope) for n, slope in slopes.items()},
        "slope_of_add_less_that_of_con": _over_seeds(slopes["Add"] - slopes["Con"]),
        "slopes_of_the_paper": {
            name: dict(zip(rows.index, _slopes(rows[sizes]), strict=True))
            for name, rows in ((name, papers_accuracies(name)) for name in of)
        },
        "n_parameters": {
            name: {str(d): int(parameters[name, d]) for d in (sizes[0], sizes[-1])} for name in of
        },
        "best_epoch": {
            "median": table["best_epoch"].median(),
            "share_in_the_last": (table["best_epoch"] == table["epochs"]).mean(),
            "of": int(table["epochs"].max()),
        },
        "n_seeds": len(wide),
    }


def _slopes(accuracies: pd.DataFrame) -> np.ndarray:
    """Slopes over log2(d_head_qk), by least squares, one a seed."""
    return np.polyfit(np.log2(accuracies.columns.to_numpy(float)), accuracies.to_numpy().T, 1)[0]


def _over_seeds(values: np.ndarray | pd.Series) -> dict[str, Any]:
    """Mean over seeds with Student's interval: too few of them to be drawn again."""
    v = np.asarray(values, dtype=np.float64)
    half = stats.t.ppf(0.975, len(v) - 1) * v.std(ddof=1) / np.sqrt(len(v))
    return {"mean": v.mean(), "interval": [v.mean() - half, v.mean() + half]}


if __name__ == "__main__":
    main("identifiability", run, numbers, plot)
