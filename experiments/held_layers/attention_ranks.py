"""Ranks of the attention tensors A^h of layers that hold their database, beside those of W_QK.

    python -m experiments.held_layers.attention_ranks --run     (a minute on one core)
    python -m experiments.held_layers.attention_ranks --plot

After (9) Wong 2025 argues that rank(A^h) can be much higher than rank(W_QK^h), so that d_head_qk
doesn't affect capacity much. The exact rank is a theorem (`capacity.evaluator.attention_ranks`):
|K| + |Q| less a number of components, whatever W_QK is. Measured of the layers of
`layers.fresh_pairs` are that rank, of the weights as they are stored; the numerical rank of A^h,
singular values above `THRESHOLD` of the largest; and that of the *gates*, the matrix over all
subjects and predicates of the attention to the subject, which is a function of each entry of a
matrix of rank d_head_qk + 1 at most. Fixed before the run:

* H1: in the mean over heads the exact rank is at least `TIMES` times that of W_QK;
* H2: it doesn't depend on d_head_qk: the slope of rank(A^h) / (|K| + |Q|) a dimension of d_head_qk
  is within `SLOPE`;
* H3: gates have a rank above d_head_qk + 1 in more than half of the heads for which min(|K|, |Q|)
  allows it, so that what attention can distinguish isn't limited by d_head_qk.

A hypothesis *holds here* if the whole interval lies on its side. Intervals are over databases and
layers; a row is a head, and heads of a layer aren't independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import expit

from capacity.evaluator import attention_ranks
from capacity.layer import AttentionLayer, layer_tensor
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.sweep import Run
from experiments.common.conclusions import slopes_of, verdict, with_mean
from experiments.common.drawing import REFERENCE, estimates, headline, told
from experiments.common.harness import Tables, main
from experiments.held_layers.layers import counts, fresh_pairs, held, measured

THRESHOLD, TIMES, SLOPE = 1e-2, 2.0, 0.005


def run(smoke: bool) -> Tables:
    """A row for each pair, with lists of the ranks of its heads."""
    return {"layers": measured("attention_ranks", fresh_pairs(smoke), ranks_of)}


def ranks_of(run: Run, layer: AttentionLayer) -> dict[str, Any]:
    """Ranks of each head: of A exactly and numerically, of W_QK and of the gates."""
    db = run.database
    A = layer_tensor(layer, db).A.numpy()
    k, q = (ids.astype(np.int64) for ids in (db.subject_ids, db.predicate_ids))
    scores = layer.W_QK.numpy()[:, q]
    own = scores[:, np.arange(len(q)), q]
    gates = expit(scores[:, :, k] - own[:, :, None])
    return {
        "attention": attention_ranks(layer, db).tolist(),
        "attention_numerical": [_rank(of.reshape(-1, of.shape[-1])) for of in A],
        "query_key": [_rank(of[:, np.union1d(k, q)]) for of in scores],
        "gates": [_rank(of) for of in gates],
    }


def _rank(matrix: np.ndarray[Any, Any]) -> int:
    values = np.linalg.svd(matrix, compute_uv=False)
    return int((values > THRESHOLD * values[0]).sum())


def numbers(tables: Tables) -> dict[str, Any]:
    """Ranks over those of W_QK and over what is possible, and a verdict for each hypothesis."""
    heads = _heads(tables["layers"])
    some = heads[heads["least_side"] > heads["d_head_qk"] + 1].reset_index(drop=True)
    times = with_mean(heads["attention"] / heads["query_key"], heads)
    above = with_mean(some["gates"] > some["d_head_qk"] + 1, some)
    ready = heads.assign(qk=heads["d_head_qk"])
    slope = slopes_of(ready, "share ~ qk", ["qk"])["qk"]
    return {
        **counts(tables["layers"]),
        "threshold": THRESHOLD,
        "heads": len(heads),
        "attention_over_query_key": times,
        "of_what_is_possible": with_mean(heads["share"], heads),
        "full": with_mean(heads["share"] == 1, heads),
        "numerical": with_mean(heads["attention_numerical"] / heads["possible"], heads),
        "gates_above_d_head_qk": above,
        "by_d_head_qk": {
            str(qk): {
                "exact": with_mean(part["share"], part),
                "gates": with_mean(part["gates"], part),
                "query_key": with_mean(part["query_key"], part),
            }
            for qk, part in heads.groupby("d_head_qk")
        },
        "slope": slope,
        "hypotheses": {
            "H1": verdict(times["interval"][0] >= TIMES),
            "H2": verdict(max(map(abs, slope["interval"])) <= SLOPE),
            "H3": verdict(above["mean"] is not None and above["interval"][0] > 0.5),
        },
    }


def _heads(layers: pd.DataFrame) -> pd.DataFrame:
    """A row for each head of a layer that holds its database."""
    columns = ["attention", "attention_numerical", "query_key", "gates"]
    heads = held(layers).explode(columns, ignore_index=True)
    heads[columns] = heads[columns].astype(np.int64)
    possible = heads["n_subjects"] + heads["n_predicates"]
    return heads.assign(
        possible=possible,
        share=heads["attention"] / possible,
        least_side=heads[["n_subjects", "n_predicates"]].min(axis=1),
    )


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """The ranks of A and of the gates by d_head_qk."""
    figure = Figure(figsize=(WIDTH, 3.4))
    left, right = figure.subplots(1, 2)
    by = found["by_d_head_qk"]
    sizes = [int(qk) for qk in by]
    estimates(
        left, sizes, [one["exact"] for one in by.values()], colour=COLOURS[0], marker=MARKERS[0]
    )
    left.set(title="exact rank of A", xlabel="d_head_qk", ylabel="over |K| + |Q|", ylim=(0, 1.05))
    for name, what, colour, marker in (
        ("gates", "gates", COLOURS[1], MARKERS[1]),
        ("query_key", "W_QK", COLOURS[2], MARKERS[2]),
    ):
        of = [one[name] for one in by.values()]
        estimates(right, sizes, of, colour=colour, marker=marker, label=what)
    right.plot(sizes, [qk + 1 for qk in sizes], color=REFERENCE, lw=0.8, label="d_head_qk + 1")
    right.set(title=f"numerical ranks at {found['threshold']:g}", xlabel="d_head_qk", ylabel="rank")
    right.legend()
    headline(
        figure,
        f"Of {found['heads']} heads of layers that hold their database the attention tensor has\n"
        f"{told(found['attention_over_query_key'], 1)} times the rank of W_QK",
    )
    return {"ranks": figure}


if __name__ == "__main__":
    main("attention_ranks", run, numbers, plot)
