"""Conclusions from the tables of `experiments.identifiability.run`.

Intervals are over texts and heads, resampled independently, where a table has several of both, and
over texts where it has one head. Those of accuracy are Student's over seeds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from capacity.evaluator import mean_interval
from experiments.common.conclusions import adjusted, over_few
from experiments.common.harness import Tables
from experiments.identifiability.encoders import COMBINE, papers_accuracies
from experiments.identifiability.plots import SIZES


def numbers(tables: Tables) -> dict[str, Any]:
    """Shares of cases in which theory holds, what P4 decides, and slopes of accuracy."""
    first, heads = tables["ranks"], tables["heads"]
    return {
        "settings": _settings(tables),
        "validation_accuracy_on_documents": dict(tables["documents"].to_numpy().tolist()),
        "figure_2": {
            "Con": _of_ranks(first[first["model"] == "Con"], SIZES["Con"][0]),
            "MiniLM": _of_ranks(heads[heads["model"] == "MiniLM"], SIZES["MiniLM"][0]),
        },
        "figure_6": {
            **_of_ranks(first[first["model"] == "Add"], SIZES["Add"][0]),
            "longest_texts": _of_stages(tables["stages"]),
        },
        "joint_nullity": {name: _of_joint(name, heads[heads["model"] == name]) for name in SIZES},
        "figure_5": {
            _key(name): _of_logits(table) for name, table in tables["logits"].groupby("model")
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
            "largest_residual_of_witnesses": tables["witnesses"]["residual"].max(),
            "witnesses": {
                _key(name): _of_witnesses(table)
                for name, table in tables["witnesses"].groupby("model")
            },
        },
        "table_1": _of_accuracy(tables["accuracy"]),
    }


def _key(name: Any) -> str:
    return str(name).replace(" ", "_")


def _settings(tables: Tables) -> dict[str, Any]:
    first, heads, logits = tables["ranks"], tables["heads"], tables["logits"]
    bert = heads[heads["model"] == "MiniLM"]
    return {
        "texts_a_length": {
            "Con": int(first["sentence"].nunique()),
            "MiniLM": int(bert["sentence"].nunique()),
        },
        "heads_of_MiniLM": len(bert[["layer", "head"]].drop_duplicates()),
        "lengths": {
            **{str(name): int(part["n_tokens"].nunique()) for name, part in first.groupby("model")},
            "MiniLM": int(bert["n_tokens"].nunique()),
        },
        "texts_of_stages": _texts_of(tables["stages"]),
        "logits": len(logits),
        "witnesses": len(tables["witnesses"]),
        "heads_of_defects": len(
            tables["defects"][["model", "layer", "head", "d_head_qk"]].drop_duplicates()
        ),
    }


def _texts_of(stages: pd.DataFrame) -> int:
    return int(stages.groupby(["weights", "stage", "n_tokens"]).size().iloc[0])


def _over_texts(values: pd.Series, table: pd.DataFrame) -> dict[str, Any]:
    """A mean, and its interval over texts and heads; lengths are as they were chosen."""
    # as many lengths and draws for each
    of = (
        values.astype(float).groupby([table[name] for name in ("sentence", "layer", "head")]).mean()
    )
    cells = of.rename("value").reset_index()
    heads = cells.groupby(["layer", "head"]).ngroup()
    shared = pd.DataFrame({"text": cells["sentence"], "head": heads})
    return {"mean": values.mean(), "interval": mean_interval(cells["value"], shared)}


def _of_ranks(table: pd.DataFrame, d: int) -> dict[str, Any]:
    n = table["n_tokens"]
    largest = table.groupby("n_tokens")["nullity"].max()
    means = table.groupby("n_tokens")[["rank_values", "nullity"]].mean()
    last = table[n == n.max()]
    return {
        "share_with_rank_min_n_d_head_vo": _over_texts(
            table["rank_values"] == n.clip(upper=d), table
        ),
        "share_with_simplex_nullity_n_less_d_head_vo_less_1": _over_texts(
            table["nullity_simplex"] == (n - d - 1).clip(lower=0), table
        ),
        "longest": int(n.max()),
        "nullity_of_the_longest": _over_texts(last["nullity"], last),
        "largest_n_with_nullity_0_throughout": max(
            (int(m) for m in largest.index if not largest.loc[:m].any()), default=0
        ),
        "means": {str(m): row.to_dict() for m, row in means.iterrows()},
        "n_matrices": len(table),
    }


def _of_stages(table: pd.DataFrame) -> dict[str, Any]:
    longest = table[table["n_tokens"] == table["n_tokens"].max()]
    texts = range(_texts_of(longest))
    found: dict[str, Any] = {"n_tokens": int(longest["n_tokens"].iloc[0])}
    for (weights, stage), part in longest.groupby(["weights", "stage"]):  # type: ignore[misc]
        found.setdefault(str(weights), {})[str(stage)] = {
            "mean": part["rank"].mean(),
            "interval": mean_interval(part["rank"], texts),
            "median_smallest_singular_value_over_largest": part["smallest"].median(),
        }
    return found


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
        **{name: _over_texts(of, table) for name, of in shares.items()},
        "largest_rank_of_own_logits": int(table["own"].max()),
        "furthest_below_n_less_1": int((table["n_tokens"] - 1 - table["constructed"]).max()),
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
    # what the page compares
    family = {
        "slope_of_con": _tested(slopes["Con"]),
        "slope_of_add": _tested(slopes["Add"]),
        "slope_of_add_less_that_of_con": _tested(slopes["Add"] - slopes["Con"]),
        "add_less_con_over_all": _tested(difference.mean(axis=1)),
    }
    adjusted(list(family.values()))
    parameters = table.groupby(["heads", "d_head_qk"])["n_parameters"].first()
    return {
        "majority": over_few(table.groupby("seed")["majority"].first()),
        "accuracy": {name: {str(d): over_few(part[d]) for d in sizes} for name, part in of.items()},
        "add_less_con": {str(d): over_few(difference[d]) for d in sizes},
        "compared": family,
        "largest_less_smallest_d_head_qk": {n: over_few(end) for n, end in ends.items()},
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


def _tested(values: np.ndarray | pd.Series) -> dict[str, Any]:
    """The same, and the p-value of a mean of 0."""
    return {**over_few(values), "p": float(stats.ttest_1samp(values, 0)[1])}
