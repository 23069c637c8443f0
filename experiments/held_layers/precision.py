"""Ranks of one tensor of logits, of its argmax and of its softmax, in five number formats.

    python -m experiments.held_layers.precision --run     (five minutes on one core)
    python -m experiments.held_layers.precision --plot

After Propositions 3.6 and 3.7 Wong 2025 argues that limited precision reduces the largest possible
rank of argmax(M), for points too close can't be distinguished, and that softmax doesn't increase
ranks much in practice. The first is a count: of a product U V of rank r in numbers that are one of
N, argmax depends on a row of U, so that it has at most N^r different rows. How far the construction
of Proposition 3.6, n points of a circle, comes is computed: the largest n for which each row of the
matrix of cosines, rounded to the format, still has one largest entry.

Of the layers of `layers.fresh_pairs` that hold their database, the logits of the forward pass after
every pair of a subject and a predicate, over all tokens (a tensor K x Q x T, in float64), are
rounded to each of `FORMATS`; in 8 bits there is one scale for the tensor. Measured are the
numerical rank (singular values above a share of the largest, from both sides) of the tensor and of
its softmax, and the rank of argmax as (11) has it, all largest entries, a 0/1 tensor, by certified
intervals (unfoldings and slices; of every `SEARCHED`th layer by a search). Fixed before the run:

* H1: rounding to bfloat16, and to float8, certainly lowers the rank of argmax (upper end below the
  lower end in float64) in more than half of the searched layers;
* H2: softmax doesn't increase ranks much: the upper estimate of the rank of softmax is at most
  `TIMES` times the lower estimate of the logits' at `THRESHOLD`, in the mean over layers, float64.

A hypothesis *holds here* if the whole interval lies on its side; intervals are over databases and
layers.
"""

from __future__ import annotations

from itertools import product
from typing import Any, cast, get_args

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from capacity.evaluator import pair_logits
from capacity.layer import AttentionLayer, NumberFormat
from capacity.layer.model.rounding import rounded
from capacity.plots.theme import COLOURS, MARKERS, WIDTH
from capacity.rank import numerical_rank_estimates, rank_interval
from capacity.sweep import Run
from experiments.common.conclusions import verdict, with_mean
from experiments.common.drawing import estimates, headline, percent, told
from experiments.common.harness import Tables, main
from experiments.held_layers.layers import counts, fresh_pairs, held, measured

FORMATS = ("float64", "float32", "bfloat16", "float8_e4m3fn", "int8")
ROUNDED = ("bfloat16", "float8_e4m3fn")
THRESHOLD, THRESHOLDS = 1e-4, (1e-2, 1e-4, 1e-6)
SEARCHED, TIMES = 6, 2.0
Floats = NDArray[np.float64]


def run(smoke: bool) -> Tables:
    """A row for each pair, and the largest circle of each format."""
    runs = fresh_pairs(smoke)[:: 4 if smoke else 1]
    searched = {run.key for run in runs[::SEARCHED]}
    layers = measured("precision", runs, lambda one, of: ranks_of(one, of, one.key in searched))
    circles = [{"format": name, "points": largest_circle(name)} for name in FORMATS]
    return {"layers": layers, "circles": pd.DataFrame(circles)}


def in_format(x: Floats, name: str) -> Floats:
    """A matrix in the numbers of a format, with one scale for all of it in 8 bits.

    That of float8 is the power of two that brings the largest number between 1 and 2.
    """
    if name == "float64":
        return x
    assert name in get_args(NumberFormat)
    scale = 2.0 ** np.floor(np.log2(np.abs(x).max())) if name.startswith("float8") else 1.0
    return scale * rounded("The tensor", x / scale, cast(NumberFormat, name))


def largest_circle(name: str) -> int:
    """The most points of a circle whose cosines, rounded, still put each point first in its row.

    All rows have the same entries, cos(2 pi j / n); rounding keeps their order, so that the first
    is the only largest one exactly if it is above the second.
    """

    def are_distinct(n: int) -> bool:
        first, second = in_format(np.array([[1.0, np.cos(2 * np.pi / n)]]), name)[0]
        return bool(first > second)

    low, high = 3, 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if are_distinct(middle) else (low, middle)
    return low


def ranks_of(run: Run, layer: AttentionLayer, is_searched: bool) -> dict[str, Any]:
    """Ranks of the logits, of their argmax and of their softmax in each format."""
    db = run.database
    k, q = (ids.astype(np.int64) for ids in (db.subject_ids, db.predicate_ids))
    shape = (len(k), len(q), db.n_tokens)
    pairs = np.stack(np.meshgrid(k, q, indexing="ij"), axis=-1).reshape(-1, 2)
    whole = pair_logits(layer, pairs)
    facts = (*db.triples[:, :2].T, db.token_triples[:, 2])
    found: dict[str, Any] = {"searched": is_searched}
    for name in FORMATS:
        z = in_format(whole, name).reshape(shape)
        largest = z == z.max(axis=-1, keepdims=True)
        unique = largest & (largest.sum(axis=-1, keepdims=True) == 1)
        powers = np.exp(z - z.max(axis=-1, keepdims=True))
        softmax = powers / powers.sum(axis=-1, keepdims=True)
        said = rank_interval(
            largest.astype(np.int64), effort="quick", methods=None if is_searched else []
        )
        found |= {
            f"recalled_{name}": float(unique[facts].mean()),
            f"tied_{name}": float((largest.sum(axis=-1) > 1).mean()),
            f"argmax_lower_{name}": said.lower,
            f"argmax_upper_{name}": said.upper,
        }
        for threshold, (what, tensor) in product(THRESHOLDS, (("logits", z), ("softmax", softmax))):
            lower, upper = numerical_rank_estimates(tensor, threshold=threshold)
            found[f"{what}_lower_{threshold:g}_{name}"] = lower
            found[f"{what}_upper_{threshold:g}_{name}"] = upper
    return found


def numbers(tables: Tables) -> dict[str, Any]:
    """Ranks by format, the circles, and a verdict for each hypothesis."""
    layers = held(tables["layers"])
    some = layers[layers["searched"].astype(bool)].reset_index(drop=True)
    lowered = {name: _lowered(some, name) for name in FORMATS[1:]}
    softmax = {f"{threshold:g}": _softmax(layers, threshold) for threshold in THRESHOLDS}
    decided = softmax[f"{THRESHOLD:g}"]["at_most"]["interval"]
    return {
        **counts(tables["layers"]),
        "searched": len(some),
        "circles": dict(zip(*tables["circles"][["format", "points"]].to_numpy().T, strict=True)),
        "formats": {name: _of_format(layers, name) for name in FORMATS},
        "argmax_certainly_lower": lowered,
        "argmax_certainly_higher": {name: _raised(some, name) for name in FORMATS[1:]},
        "softmax_over_logits": softmax,
        "hypotheses": {
            "H1": {name: verdict(lowered[name]["interval"][0] > 0.5) for name in ROUNDED},
            "H2": verdict(decided[1] <= TIMES),
        },
    }


def _lowered(table: pd.DataFrame, name: str) -> dict[str, Any]:
    return with_mean(table[f"argmax_upper_{name}"] < table["argmax_lower_float64"], table)


def _raised(table: pd.DataFrame, name: str) -> dict[str, Any]:
    return with_mean(table[f"argmax_lower_{name}"] > table["argmax_upper_float64"], table)


def _softmax(table: pd.DataFrame, threshold: float) -> dict[str, Any]:
    """The rank of softmax over that of the logits, from both sides and by unfoldings."""
    lower, upper = (
        {what: table[f"{what}_{end}_{threshold:g}_float64"] for what in ("logits", "softmax")}
        for end in ("lower", "upper")
    )
    return {
        "at_most": with_mean(upper["softmax"] / lower["logits"], table),
        "at_least": with_mean(lower["softmax"] / upper["logits"], table),
        "unfoldings": with_mean(lower["softmax"] / lower["logits"], table),
        "certainly_above": with_mean(lower["softmax"] > upper["logits"], table),
    }


def _of_format(table: pd.DataFrame, name: str) -> dict[str, Any]:
    """Recall, ties and ranks after rounding, over the number of objects or those in float64."""
    columns = {
        "argmax_lower": f"argmax_lower_{name}", "argmax_upper": f"argmax_upper_{name}",
        "logits_lower": f"logits_lower_{THRESHOLD:g}_{name}",
        "softmax_lower": f"softmax_lower_{THRESHOLD:g}_{name}",
    }  # fmt: skip
    return {
        "recalled": with_mean(table[f"recalled_{name}"], table),
        "tied": with_mean(table[f"tied_{name}"], table),
        **{what: with_mean(table[column], table) for what, column in columns.items()},
    }


def plot(_tables: Tables, found: dict[str, Any]) -> dict[str, Figure]:
    """Ranks by format, and the rank of softmax over that of the logits by threshold."""
    figure = Figure(figsize=(WIDTH, 3.6))
    left, right = figure.subplots(1, 2)
    places = range(len(FORMATS))
    for number, (name, what) in enumerate(
        (
            ("argmax_upper", "argmax, at most"), ("argmax_lower", "argmax, at least"),
            ("logits_lower", "logits"), ("softmax_lower", "softmax"),
        )
    ):  # fmt: skip
        of = [found["formats"][kind][name] for kind in FORMATS]
        at = [place + 0.1 * (number - 1.5) for place in places]
        estimates(left, at, of, colour=COLOURS[number], marker=MARKERS[number], label=what)
    left.set(ylabel="rank, mean over layers", ylim=(0, None))
    left.set_xticks(places, [kind.replace("_", "\n") for kind in FORMATS], fontsize=7)
    left.set_title("ranks by format", fontsize=9)
    left.legend()
    softmax = found["softmax_over_logits"]
    for number, (name, what) in enumerate(
        (("at_most", "at most"), ("unfoldings", "of unfoldings"), ("at_least", "at least"))
    ):
        at = [place + 0.1 * (number - 1) for place in range(len(softmax))]
        of = [each[name] for each in softmax.values()]
        estimates(right, at, of, colour=COLOURS[number], marker=MARKERS[number], label=what)
    right.axhline(1, color="0.7", lw=0.8, label="equal")
    right.set_title("softmax by threshold", fontsize=9)
    right.set(xlabel="threshold on singular values", ylabel="rank of softmax / of logits")
    right.set_xticks(range(len(softmax)), list(softmax))
    right.legend()
    ratio = softmax[f"{THRESHOLD:g}"]["unfoldings"]
    headline(
        figure,
        f"The unfoldings of softmax have {told(ratio, 1)} times the rank of the logits';\nfloat8 "
        f"leaves {percent(found['formats']['float8_e4m3fn']['recalled'])} of the facts first",
    )
    return {"ranks": figure}


if __name__ == "__main__":
    main("precision", run, numbers, plot)
