"""The part of each head in each predicate, in layers that hold their database.

    python -m experiments.held_layers.heads --run     (a minute on one core)
    python -m experiments.held_layers.heads --plot

Wong 2025 supposes that each head contributes to at least one predicate, and to how many may differ
from head to head (before (9)); and that the values of one slice of D may be spread over several
heads and the embedding circuit (Remark 3.4). The logits of a fact are a sum of the embedding's term
and one term of each head (`capacity.evaluator.layer_terms`). For each head and predicate, over the
predicate's facts and in logits less their mean over tokens:

* the *weight* of a head is the squared norm of its term less its mean over the predicate's facts:
  what distinguishes subjects. The participation ratio of weights w is (sum w)^2 / sum w^2, between
  one and the number of heads;
* a head *contributes* to a predicate if without its term the layer misses some fact of the
  predicate by argmax; beside it, if the term is replaced by its mean over the predicate's facts;
* a head recalls *alone* what the embedding's term and its own put first.

Fixed before the run, of the layers of `layers.fresh_pairs` with two heads or more and databases
with two predicates or more; a predicate has two facts or more:

* H1: (participation ratio - 1) / (heads - 1), the mean over a layer's predicates, is above
  `SPREAD` in the mean over layers;
* H2: of a predicate, the best head alone recalls every fact in less than half of the cases;
* H3: more than `ALL` of the heads contribute to a predicate;
* H4: in more than half of the layers two heads contribute to different numbers of predicates.

A hypothesis *holds here* if the whole interval lies on its side; intervals are over databases and
layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from capacity.evaluator import layer_terms
from capacity.layer import AttentionLayer
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.sweep import Run
from experiments.common.conclusions import verdict, with_mean
from experiments.common.drawing import estimates, headline, percent, told
from experiments.common.harness import Tables, main
from experiments.held_layers.layers import counts, fresh_pairs, held, measured

SPREAD, ALL = 0.5, 0.95
Floats = NDArray[np.float64]


def run(smoke: bool) -> Tables:
    """A row for each pair, of layers with several heads."""
    runs = [
        run for run in fresh_pairs(smoke) if run.layer.n_heads > 1 and run.database.shape[1] > 1
    ]
    return {"layers": measured("heads", runs, terms_of)}


def terms_of(run: Run, layer: AttentionLayer) -> dict[str, Any]:
    """Measure the heads: means over the layer's predicates, and numbers of each head."""
    db = run.database
    facts = db.token_triples
    terms = layer_terms(layer, facts[:, :2])
    heads = _centred(terms.subject + terms.predicate)
    embedding = _centred(terms.embedding)
    of_predicate = [np.flatnonzero(facts[:, 1] == q) for q in db.predicate_ids]
    several = [rows for rows in of_predicate if len(rows) > 1]
    cells = [_of_predicate(heads[:, rows], embedding[rows], facts[rows, 2]) for rows in several]
    return {
        "predicates": len(several),
        **{
            name: float(np.mean([cell[name] for cell in cells]))
            for name in ("participation", "alone", "alone_all", "without", "embedding")
        },
        "contributes": np.sum([cell["contributes"] for cell in cells], axis=0).tolist(),
        "distinguishes": np.sum([cell["distinguishes"] for cell in cells], axis=0).tolist(),
    }


def _centred(logits: Floats) -> Floats:
    return logits - logits.mean(axis=-1, keepdims=True)


def _of_predicate(heads: Floats, embedding: Floats, objects: NDArray[Any]) -> dict[str, Any]:
    """Measure the facts of one predicate; `heads` has the shape (n_heads, n_facts, n_tokens)."""
    logits, mean = embedding + heads.sum(axis=0), heads.mean(axis=1, keepdims=True)
    weights = ((heads - mean) ** 2).sum(axis=(1, 2))
    alone = _recalled(embedding + heads, objects)
    without = _recalled(logits - heads, objects)
    return {
        "participation": weights.sum() ** 2 / (weights**2).sum(),
        "alone": alone.max(),
        "alone_all": alone.max() == 1,
        "without": without.mean(),
        "embedding": _recalled(embedding, objects),
        "contributes": without < 1,
        "distinguishes": _recalled(logits - heads + mean, objects) < 1,
    }


def _recalled(logits: Floats, objects: NDArray[Any]) -> Any:
    """Share of facts whose object alone has the largest logit; over leading axes."""
    largest = logits.max(axis=-1, keepdims=True)
    right = np.take_along_axis(
        logits, np.broadcast_to(objects[:, None], (*logits.shape[:-1], 1)), axis=-1
    )
    return ((right == largest)[..., 0] & ((logits == largest).sum(axis=-1) == 1)).mean(axis=-1)


def numbers(tables: Tables) -> dict[str, Any]:
    """Means over layers, and a verdict for each hypothesis."""
    layers = held(tables["layers"])
    layers = layers[layers["predicates"] > 0].reset_index(drop=True)
    spread = (layers["participation"] - 1) / (layers["n_heads"] - 1)
    heads = layers.explode(["contributes", "distinguishes"], ignore_index=True)
    differ = pd.Series([len({*of}) > 1 for of in layers["contributes"]])
    found = {
        "spread": with_mean(spread, layers),
        "alone_all": with_mean(layers["alone_all"], layers),
        "contribute": with_mean(heads["contributes"] > 0, heads),
        "differ": with_mean(differ, layers),
    }
    return {
        **counts(tables["layers"]),
        **found,
        "layers": len(layers),
        "heads": len(heads),
        "predicates": int(layers["predicates"].sum()),
        "participation": with_mean(layers["participation"], layers),
        "alone": with_mean(layers["alone"], layers),
        "without": with_mean(layers["without"], layers),
        "embedding": with_mean(layers["embedding"], layers),
        "contribute_to_all": with_mean(heads["contributes"] == heads["predicates"], heads),
        "share_of_predicates": with_mean(heads["contributes"] / heads["predicates"], heads),
        "distinguish": with_mean(heads["distinguishes"] > 0, heads),
        "by_heads": {
            str(n): {
                "participation": with_mean(part["participation"], part),
                "alone": with_mean(part["alone"], part),
                "without": with_mean(part["without"], part),
            }
            for n, part in layers.groupby("n_heads")
        },
        "hypotheses": {
            "H1": verdict(found["spread"]["interval"][0] > SPREAD),
            "H2": verdict(found["alone_all"]["interval"][1] < 0.5),
            "H3": verdict(found["contribute"]["interval"][0] > ALL),
            "H4": verdict(found["differ"]["interval"][0] > 0.5),
        },
    }


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Participation, and what heads recall, by the number of heads."""
    figure = Figure(figsize=(WIDTH, 3.4))
    left, right = figure.subplots(1, 2)
    by = found["by_heads"]
    heads = [int(n) for n in by]
    estimates(
        left, heads, [one["participation"] for one in by.values()], colour=COLOURS[0],
        marker=MARKERS[0],
    )  # fmt: skip
    left.plot(heads, heads, color="0.7", lw=0.8, label="all equally")
    left.set(xlabel="heads", ylabel="participation ratio of heads", xticks=heads)
    left.set_title("values of a predicate", fontsize=9)
    left.legend()
    for name, what, colour, marker in (
        ("alone", "best head alone, with E", COLOURS[1], MARKERS[1]),
        ("without", "all but a head", COLOURS[2], MARKERS[2]),
    ):
        of = [one[name] for one in by.values()]
        estimates(right, heads, of, colour=colour, marker=marker, label=what)
    right.set(
        xlabel="heads", ylabel="share of a predicate's facts recalled", ylim=(0, 1.02),
        xticks=heads,
    )  # fmt: skip
    right.set_title("recall by some heads", fontsize=9)
    right.legend()
    headline(
        figure,
        f"A head alone recalls {percent(found['alone'])} of a predicate's facts, all but one "
        f"{percent(found['without'])};\nthe values of a predicate are on "
        f"{told(found['participation'], 1)} heads (participation ratio)",
    )
    return {"shares": figure}


if __name__ == "__main__":
    main("heads", run, numbers, plot)
