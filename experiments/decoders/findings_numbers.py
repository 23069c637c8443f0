"""Conclusions about decoders: values, logits and frozen weights, by architecture, and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from experiments.common.conclusions import with_mean
from experiments.common.harness import Tables
from experiments.decoders.cells import PLAIN_LAYER
from experiments.decoders.comparisons import geometric, half_of

WITH_MLP = ("MLP of 4 d_model", "all", "two layers, MLPs")
ASKED = (PLAIN_LAYER, "layer norm", *WITH_MLP)
# by which recall may be less: of the additive part, and of decoders with frozen weights
LESS, LITTLE = 0.1, 0.05


def numbers(tables: Tables) -> dict[str, Any]:
    """Each finding by architecture, and the verdicts."""
    values, logits = _values(tables["splits"]), _of_logits(tables["logits"])
    frozen = costs_of_freezing(tables["frozen"])
    costs = frozen["with an MLP"]
    return {
        "cpu_seconds": float(tables["costs"]["cpu_seconds"].sum()),
        "values": values,
        "logits": logits,
        "frozen": frozen,
        "verdicts": {
            "values matter more": {
                name: _verdict(one["interval"][0] > 1) for name, one in values.items()
            },
            "the additive motif survives": _verdict(
                logits["with an MLP"]["recalled_by_sum_less_plain"]["interval"][0] >= -LESS
            ),
            "argmax has the larger rank": {
                name: _verdict(one["argmax_over_logits"]["interval"][0] > 1)
                for name, one in logits.items()
            },
            "the MLP holds the facts": _verdict(costs["MLP less attention"]["interval"][0] > 0),
            "frozen queries and keys cost little": _verdict(
                costs["queries and keys"]["interval"][1] <= LITTLE
            ),
            "values or an MLP suffice": _verdict(
                all(costs[name]["interval"][1] <= LITTLE for name in ("values", "MLP"))
            ),
        },
    }


def _verdict(is_so: bool) -> str:
    return "holds here" if is_so else "not seen here"


def _together(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the rows of each architecture, and of those with an MLP."""
    for name in ASKED:
        part = table[table["architecture"] == name]
        if len(part):
            yield name, part
    yield "with an MLP", table[table["architecture"].isin(WITH_MLP)]


def _values(splits: pd.DataFrame) -> dict[str, Any]:
    """Ratio of the reach of a layer with more values to that of one with more queries and keys."""
    by = ["architecture", "layer_id", "database_id"]
    split = np.where(splits["d_head_vo"] > splits["d_head_qk"], "values", "queries")
    logarithms = {
        key: np.log(half_of(runs)[0]) for key, runs in splits.groupby([*by, pd.Series(split)])
    }
    index = pd.MultiIndex.from_tuples(logarithms, names=[*by, "split"])
    wide = pd.Series(list(logarithms.values()), index=index).unstack("split").reset_index()
    return {
        name: geometric(part["values"] - part["queries"], part) for name, part in _together(wide)
    }


def _of_logits(logits: pd.DataFrame) -> dict[str, Any]:
    table = logits.merge(
        logits[logits["architecture"] == PLAIN_LAYER][
            ["layer_id", "database_id", "recalled_by_sum"]
        ].rename(columns={"recalled_by_sum": "of_plain"}),
        on=["layer_id", "database_id"],
    )
    # nothing may reach tau
    ranks = {"argmax_over_logits": "argmax_rank_lower", "tau_over_logits": "tau_rank_lower"}
    found: dict[str, Any] = {}
    for name, part in _together(table):
        means = {
            column: with_mean(part[column], part)
            for column in (
                "held", "recalled", "recalled_by_sum", "additive_share", "logits_rank_from_below",
                "logits_rank_from_above", "argmax_rank_lower", "argmax_rank_upper",
                "tau_rank_lower", "tau_rank_upper",
            )
        }  # fmt: skip
        less = part["recalled_by_sum"] - part["of_plain"]
        found[name] = {
            **means,
            "recalled_by_sum_less_plain": with_mean(less, part),
            **{
                ratio: with_mean(part[lower] / part["logits_rank_from_above"], part)
                for ratio, lower in ranks.items()
            },
        }
    return found


def costs_of_freezing(frozen: pd.DataFrame) -> dict[str, Any]:
    """Compute how much less the best start recalls with each group frozen, and the reliability."""
    index = ["architecture", "layer_id", "database_id"]
    # of no diverged start is anything recalled
    given = frozen.assign(recalled=frozen["accuracy_p95"].fillna(0.0))
    recalled = given.pivot_table(index=index, columns="frozen", values="recalled")
    shares = frozen.pivot_table(index=index, columns="frozen", values="share_of_starts")
    costs = recalled.rsub(recalled["nothing"], axis=0).reset_index()
    shares = shares.reset_index()
    found: dict[str, Any] = {}
    for name, part in _together(costs):
        of_name = {
            group: with_mean(part[group].dropna(), part[part[group].notna()])
            for group in recalled
            if group != "nothing" and part[group].notna().any()
        }
        if "MLP" in of_name:
            both = part[part["MLP"].notna()]
            of_name["MLP less attention"] = with_mean(both["MLP"] - both["attention"], both)
        found[name] = of_name
    for name, part in _together(shares):
        found[name]["reliability"] = {
            group: with_mean(part[group], part)
            for group in recalled
            if group in part and part[group].notna().any()
        }
    return found
