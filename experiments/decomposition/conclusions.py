"""Conclusions from the tables of `experiments.decomposition.run`.

Intervals of points of a figure, and of comparisons, hold all at once (sup-t bands over groups of
texts). What is averaged over layers is resampled over groups and layers both. Of the classifiers
there are few splits: Student's t, and Holm over all of their comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from capacity.evaluator import cluster_bootstrap, percentile_interval, simultaneous_intervals
from experiments.common.conclusions import adjusted
from experiments.common.harness import Tables
from experiments.decomposition.measures import AFTER, BEFORE, EPOCHS, LETTERS, SEEDS, SIZES

RESAMPLES = 2000
# what the paper says of BERT-base
PAPER = {
    "unexplained": [0.3, 0.6], "i_at_the_end": 0.045, "h_at_most": 0.3, "f_at_least": 0.4,
    "c_at_the_end": 0.23, "dimensions_of_c": 50, "f_by_its_own_head": 0.0136,
    "gain_of_its_own_head": 0.02,
}  # fmt: skip
# sums whose accuracies the paper compares: the first minus the second
ADDING_C = [(f"{of} + c", of) for of in ("f", "i + f", "h + f", "i + h + f")]
PAIRS = [
    *ADDING_C,
    ("f", "h"),
    ("h + f", "f"),
    ("i + h + f + c", "i + h + c"),
    ("i + h + f + c", "h + f + c"),
]
FREQUENT = "c minus the most frequent token"
Found = dict[str, Any]
Draws = NDArray[np.float64]


def numbers(tables: Tables) -> Found:
    """The paper's claims, asked of each model and text."""
    importance = tables["importance"]
    groups, size, asked = SIZES
    return {
        "paper": PAPER,
        "settings": {
            "groups": groups,
            "tweets": groups * size,
            "reactions": groups * size // 4,
            "asked": {"reactions": asked, "molecules": 2 * asked},
            "splits": len(SEEDS),
            "epochs": EPOCHS,
        },
        "r2_of_feed_forwards": _of_each(tables["linear"], "model", _of_linear),
        "importance": _of_each(importance, "model", _of_importance),
        "finetuned_minus_pretrained": _of_change(importance),
        "spearman_of_pretrained_and_finetuned": _of_finetuning(tables["correlation"]),
        "accuracy_of_sums": _of_sums(tables["default"], tables["learned"]),
        "rank_of_c": _of_each(tables["ranks"], "model", _of_ranks),
        "heads_in_the_last_embedding": _of_each(tables["heads"], "model", _of_heads),
    }


def _of_each(table: pd.DataFrame, key: str, of: Callable[[pd.DataFrame], Found]) -> Found:
    return {str(name): of(part) for name, part in table.groupby(key, sort=False)}


def _together(wide: Any) -> Found:
    """Means of columns over rows, groups of texts, and intervals that hold all at once."""
    x = wide.to_numpy(np.float64)
    weights = np.stack(list(cluster_bootstrap(wide.index, RESAMPLES)))
    draws = weights @ x / weights.sum(1, keepdims=True)
    return _nested(wide.columns, x.mean(0), simultaneous_intervals(x.mean(0), draws))


def _nested(columns: pd.Index[Any], means: Draws, intervals: list[tuple[float, float]]) -> Found:
    """A dictionary for each level of the columns."""
    found: Found = {}
    for column, mean, interval in zip(columns, means, intervals, strict=True):
        *outer, last = map(str, column if isinstance(column, tuple) else (column,))
        place = found
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = {"mean": mean, "interval": interval}
    return found


def _over_layers(wide: pd.DataFrame, of: Callable[[Draws, Draws], Draws], together: bool) -> Found:
    """Apply `of` to columns and weights; rows are drawn by groups and by layers."""
    keys, x = wide.index.to_frame(index=False), wide.to_numpy(np.float64)
    weights = np.stack(list(cluster_bootstrap(keys[["group", "layer"]], RESAMPLES)))
    draws = of(x, weights)
    # a draw may leave out all layers of a half
    draws = draws[np.isfinite(draws).all(1)]
    value = of(x, np.ones((1, len(x))))[0]
    intervals = (
        simultaneous_intervals(value, draws)
        if together
        else [percentile_interval(draw) for draw in draws.T]
    )
    return _nested(wide.columns, value, intervals)


def _mean(x: Draws, weights: Draws) -> Draws:
    return weights @ x / weights.sum(1, keepdims=True)


def _of_linear(table: pd.DataFrame) -> Found:
    by = _together(table.pivot_table(index="group", columns=["scored", "layer"], values="r2"))
    held, inside = ([one["mean"] for one in by[key].values()] for key in ("held out", "in sample"))
    low, high = PAPER["unexplained"]
    return {
        **by,
        "unexplained_held_out": [1 - max(held), 1 - min(held)],
        "layers": len(held),
        "layers_in_the_paper's_range": sum(low <= 1 - r2 <= high for r2 in held),
        "layers_above_0.95": sum(r2 > 0.95 for r2 in held),
        "largest_gain_in_sample": max(np.subtract(inside, held)),
        "tokens_fitted": int(table["tokens_fitted"].min()),
    }


def _of_importance(table: pd.DataFrame) -> Found:
    """By term and layer, and what the paper says of Figure 3a."""
    wide = table.pivot_table(index="group", columns=["term", "layer"], values="importance")
    mean = wide.mean().unstack()
    # of the embeddings' norm, layer 0, h and f know nothing
    after = mean.drop(columns=0)
    h, f, c = (after.loc[term].to_numpy() for term in "hfc")
    most = mean.idxmax()
    by_layer = _together(wide)
    gaps = (wide["h"] - wide["c"]).drop(columns=0)
    return {
        "by_layer": by_layer,
        "last": {term: list(by.values())[-1] for term, by in by_layer.items()},
        "most_important_by_layer": most.tolist(),
        "layers": len(h),
        **{f"layers_where_{term}_leads": int((most[1:] == term).sum()) for term in LETTERS},
        "layers_where_i_shrinks": int((np.diff(mean.loc["i"].to_numpy()) < 0).sum()),
        "layers_where_f_is_at_least_0.4": int((f >= PAPER["f_at_least"]).sum()),
        "layers_where_h_exceeds_c": int((h > c).sum()),
        "layers_where_h_exceeds_0.3": int((h > PAPER["h_at_most"]).sum()),
        "largest_h": h.max(),
        "largest_c": c.max(),
        "h_minus_c_over_layers": _over_layers(
            gaps.stack().to_frame("gap"), _mean, together=False
        )["gap"],
        "tokens": int(table.query("layer == 0 and term == 'i'")["tokens"].sum()),
    }  # fmt: skip


def _of_change(table: pd.DataFrame) -> Found:
    """Compute what finetuning adds to the importance of each term, by layer and in the last."""
    keys = ["group", "layer", "term"]
    both = table[table["layer"] > 0].pivot_table(index=keys, columns="model", values="importance")
    change = (both[AFTER] - both[BEFORE]).unstack("term")[list(LETTERS)]
    by_layer = _together(change.unstack("layer"))
    ends = {term: [one["interval"] for one in by.values()] for term, by in by_layer.items()}
    return {
        "by_layer": by_layer,
        "last": {term: list(by.values())[-1] for term, by in by_layer.items()},
        "mean_over_layers": _over_layers(change, _mean, together=True),
        "layers_that_fall": {term: sum(b < 0 for _, b in of) for term, of in ends.items()},
        "layers_that_rise": {term: sum(a > 0 for a, _ in of) for term, of in ends.items()},
        "layers": len(ends["i"]),
        "comparisons": sum(map(len, ends.values())),
    }


def _of_finetuning(table: pd.DataFrame) -> Found:
    rho = table.pivot_table(index=["group", "layer"], columns="term", values="rho")[list(LETTERS)]
    others = rho.drop(columns="h")
    over = others.sub(rho["h"], axis=0)
    last = int(table["layer"].max())
    is_upper = (rho.index.get_level_values("layer") > last / 2).astype(float)

    def difference(x: Draws, weights: Draws) -> Draws:
        with np.errstate(invalid="ignore"):
            return _mean(x, weights * is_upper) - _mean(x, weights * (1 - is_upper))

    by_layer, means = _together(rho.unstack("layer")), rho.groupby("layer").mean()
    gaps = _together(over.unstack("layer"))
    least = means.idxmin(axis=1)
    final = means.loc[last - 1 :]
    return {
        "by_layer": by_layer,
        "last": {term: list(by.values())[-1] for term, by in by_layer.items()},
        "range_of_the_last_two_layers": [final.min().min(), final.max().max()],
        "least_before_the_last_two_layers": means.loc[: last - 2].min().min(),
        "terms_least_in_the_last_two_layers": int(
            (final.max() < means.loc[: last - 2].min()).sum()
        ),
        "least_correlated_by_layer": least.tolist(),
        "layers": last,
        "layers_where_least": {term: int((least == term).sum()) for term in LETTERS},
        # below each of the others, by intervals that hold at once
        "layers_where_h_is_least_for_certain": sum(
            all(gaps[term][str(layer)]["interval"][0] > 0 for term in "ifc")
            for layer in means.index
        ),
        "gaps": len(over.columns) * last,
        "mean_over_layers": _over_layers(rho, _mean, together=True),
        "mean_over_layers_above_that_of_h": _over_layers(over, _mean, together=True),
        "upper_half_minus_lower_half": _over_layers(rho, difference, together=True),
    }  # fmt: skip


def _of_sums(default: pd.DataFrame, learned: pd.DataFrame) -> Found:
    """Accuracies by text; each family of comparisons is that of both texts."""
    accuracy: Any = default.assign(accuracy=default["hits"] / default["n"]).pivot_table(
        index="group", columns=["text", "places", "sum"], values="accuracy", sort=False
    )
    texts = list(accuracy.columns.unique("text"))
    chosen = accuracy.xs("chosen", axis=1, level="places")
    gains = pd.DataFrame(
        {(text, f"{a} minus {b}"): chosen[text, a] - chosen[text, b]
         for text in texts for a, b in PAIRS}
    )  # fmt: skip
    differences = _together(gains)
    runs = {
        text: table.pivot_table(index="seed", columns="sum", values="accuracy", sort=False)
        for text, table in learned.groupby("text")
    }
    frequent = learned.groupby(["text", "seed"])["most_frequent"].first()
    told = {
        (text, pair): _student(of)
        for text in texts
        for pair, of in {
            **{f"{a} minus {b}": runs[text][a] - runs[text][b] for a, b in PAIRS},
            FREQUENT: runs[text]["c"] - frequent[text],
        }.items()
    }
    adjusted(list(told.values()))
    return {
        text: {
            "default": _together(accuracy[text, "chosen"]),
            "default_at_really_masked": _together(accuracy[text, "masked"]),
            "largest_change_at_really_masked": (
                (accuracy[text, "chosen"] - accuracy[text, "masked"]).mean().abs().max()
            ),
            "default_differences": differences[text],
            "comparisons": gains.shape[1],
            "best_by_default": chosen[text].mean().idxmax(),
            "learned": {name: _student(of) for name, of in runs[text].items()},
            "learned_differences": {pair: one for (of, pair), one in told.items() if of == text},
            "most_frequent_token": frequent[text].mean(),
            **_of_questions(
                default.query("text == @text and places == 'chosen' and sum == 'i'"),
                learned.query("text == @text"),
            ),
        }
        for text in texts
    }


def _of_questions(default: pd.DataFrame, learned: pd.DataFrame) -> Found:
    return {
        "questions": int(default["n"].sum()),
        "splits": learned["seed"].nunique(),
        "questions_trained_on": int(learned["n_train"].min()),
        "questions_of_a_test": int(learned["n_test"].min()),
        "words_among_the_questions": int(learned["n_words"].max()),
        "share_of_classifiers_best_at_the_last_epoch": (
            learned["epoch"] == learned["epoch"].max()
        ).mean(),
    }


def _student(of: pd.Series[float]) -> Found:
    """Mean over splits, Student's interval, and the probability of it if the true one is 0."""
    values = of.to_numpy(np.float64)
    error, freedom = stats.sem(values), len(values) - 1
    half = float(stats.t.ppf(0.975, freedom) * error)
    mean = values.mean()
    p = 2 * stats.t.sf(abs(mean) / error, freedom) if error > 0 else float(math.isclose(mean, 0))
    return {"mean": mean, "interval": [mean - half, mean + half], "runs": values.tolist(), "p": p}


def _of_ranks(table: pd.DataFrame) -> Found:
    return {
        **{key: table[key].tolist() for key in ("rank", "bound", "paper")},
        "last": {key: int(table[key].iloc[-1]) for key in ("rank", "bound", "paper")},
        "layers": len(table) - 1,
        "layers_where_the_paper's_is_exceeded": int((table["rank"] > table["paper"]).sum()),
        "layers_where_the_bound_is_exceeded": int((table["rank"] > table["bound"]).sum()),
        "layers_where_the_bound_is_met": int((table["rank"] == table["bound"]).sum()),
        "relative_error_of_the_sum": table["error"].max(),
        "tokens": int(table["tokens"].max()),
    }


def _of_heads(table: pd.DataFrame) -> Found:
    by_layer = table.groupby("layer")["importance"].sum()
    return {
        "sum": by_layer.sum(),
        "by_layer": by_layer.tolist(),
        "last_layer": by_layer.iloc[-1],
        "heads_a_layer": int(table["head"].nunique()),
        "largest": table.nlargest(3, "importance").drop(columns="model").to_dict("records"),
        "negative": int((table["importance"] < 0).sum()),
        "heads": len(table),
    }
