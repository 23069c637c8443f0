"""Conclusions from the tables of `experiments.decomposition.run`.

Intervals of points of a figure, and of comparisons, hold all at once (sup-t bands over groups of
texts). What is averaged over layers is resampled over groups and layers both. Of the classifiers
there are few splits: Student's t, and Holm over all of their comparisons.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from experiments.common.harness import Tables
from experiments.decomposition.intervals import Draws, Found, over_layers, together, weighted_mean
from experiments.decomposition.measures import AFTER, BEFORE, EPOCHS, LETTERS, SEEDS, SIZES
from experiments.decomposition.sums import of_sums

# what the paper says of BERT-base
PAPER = {
    "unexplained": [0.3, 0.6], "i_at_the_end": 0.045, "h_at_most": 0.3, "f_at_least": 0.4,
    "c_at_the_end": 0.23, "dimensions_of_c": 50, "f_by_its_own_head": 0.0136,
    "gain_of_its_own_head": 0.02,
}  # fmt: skip


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
        "accuracy_of_sums": of_sums(tables["default"], tables["learned"]),
        "rank_of_c": _of_each(tables["ranks"], "model", _of_ranks),
        "heads_in_the_last_embedding": _of_each(tables["heads"], "model", _of_heads),
    }


def _of_each(table: pd.DataFrame, key: str, of: Callable[[pd.DataFrame], Found]) -> Found:
    return {str(name): of(part) for name, part in table.groupby(key, sort=False)}


def _of_linear(table: pd.DataFrame) -> Found:
    by = together(table.pivot_table(index="group", columns=["scored", "layer"], values="r2"))
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
    by_layer = together(wide)
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
        "h_minus_c_over_layers": over_layers(
            gaps.stack().to_frame("gap"), weighted_mean, together=False
        )["gap"],
        "tokens": int(table.query("layer == 0 and term == 'i'")["tokens"].sum()),
    }  # fmt: skip


def _of_change(table: pd.DataFrame) -> Found:
    """Compute what finetuning adds to the importance of each term, by layer and in the last."""
    keys = ["group", "layer", "term"]
    both = table[table["layer"] > 0].pivot_table(index=keys, columns="model", values="importance")
    change = (both[AFTER] - both[BEFORE]).unstack("term")[list(LETTERS)]
    by_layer = together(change.unstack("layer"))
    ends = {term: [one["interval"] for one in by.values()] for term, by in by_layer.items()}
    return {
        "by_layer": by_layer,
        "last": {term: list(by.values())[-1] for term, by in by_layer.items()},
        "mean_over_layers": over_layers(change, weighted_mean, together=True),
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
            return weighted_mean(x, weights * is_upper) - weighted_mean(x, weights * (1 - is_upper))

    by_layer, means = together(rho.unstack("layer")), rho.groupby("layer").mean()
    gaps = together(over.unstack("layer"))
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
        "mean_over_layers": over_layers(rho, weighted_mean, together=True),
        "mean_over_layers_above_that_of_h": over_layers(over, weighted_mean, together=True),
        "upper_half_minus_lower_half": over_layers(rho, difference, together=True),
    }  # fmt: skip


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
