"""Conclusions about decoders that are trained here, and the verdicts on hypotheses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from capacity.evaluator import mean_interval
from experiments.common.conclusions import verdict
from experiments.knows.smollm2_numbers import WITHIN, share

LESS, LEAST = 0.1, 20
CELL = ["size", "people", "start"]


def numbers(tables: dict[str, pd.DataFrame]) -> dict[str, Any]:
    """Conclude which facts each decoder knows, its bits and components, and the verdicts."""
    cells: dict[str, Any] = {}
    for of_cell, answers in tables["answers"].groupby(CELL, sort=False):
        key: Any = of_cell
        own = {name: _of(table, key) for name, table in tables.items()}
        cells["{}, {} people, start {}".format(*key)] = {
            "people": int(key[1]),
            "parameters": int(answers["n_parameters"].iloc[0]),
            "stores": {
                str(store): _of_store(str(store), of, own)
                for store, of in answers.groupby("store", sort=False)
            },
            "bits": {row["store"]: _bits(row) for row in own["bits"].to_dict("records")},
        }
    return {"cells": cells, "hypotheses": dict(_hypotheses(cells))}


def _of(table: pd.DataFrame, key: Any) -> pd.DataFrame:
    """The rows of one cell."""
    return table[(table[CELL] == list(key)).all(axis=1)]


def _of_store(store: str, answers: pd.DataFrame, own: dict[str, pd.DataFrame]) -> dict[str, Any]:
    held_out = answers[~answers["open"].astype(bool)]
    by = {"first": held_out["first"], "last": held_out["last"]}
    less = by["last"].astype(float) - by["first"].astype(float)
    course = own["course"]
    sums = own["sums"][own["sums"]["store"] == store]
    return {
        "known": share(answers["first"], answers["subject"]),
        "taught_by_three": {
            **{name: share(values, held_out["subject"]) for name, values in by.items()},
            "last_less_first": share(less, held_out["subject"]),
        },
        "course": [_step(row) for row in course[course["store"] == store].to_dict("records")],
        "sums": _motif(sums[sums["candidates"] == "all"]),
        **_parts(sums[sums["candidates"] == "predicate"]),
    }


def _step(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the number of known facts after some steps, and their size."""
    length, random = row.get("description_length"), row.get("random_description_length")
    return {
        **{name: row[name] for name in ("step", "exposures", "facts", "known", "rank_lower",
                                        "rank_upper", "random_rank_lower")},
        "length": length,
        "length_ratio": length / random if random else None,
    }  # fmt: skip


def _motif(sums: pd.DataFrame) -> dict[str, Any]:
    """Shares of facts that sums bring among all objects, and both parts less the better one."""
    wide = sums.astype({"right": float}).pivot_table(
        index=["subject", "predicate"], columns="sum", values="right"
    )
    subjects = wide.index.get_level_values("subject").to_series(index=wide.index)
    better = max(("subject", "predicate"), key=lambda name: wide[name].mean())
    return {
        **{str(name): share(wide[name], subjects) for name in wide},
        "both_less_better": share(wide["subject + predicate"] - wide[better], subjects),
    }


def _parts(sums: pd.DataFrame) -> dict[str, Any]:
    """Mean parts of known facts' logits over the best wrong one."""
    wide = sums.pivot_table(index=["subject", "predicate"], columns="sum", values="part")
    right = sums[sums["sum"] == "model"].set_index(["subject", "predicate"])["right"]
    wide = wide[right.reindex(wide.index).astype(bool)]
    if wide.empty:
        return {"parts": None}
    subjects = wide.index.get_level_values("subject").to_series(index=wide.index)
    names = ("model", "embedding", "heads", "feed_forward")
    of = {name: _mean(wide[name], subjects) for name in names}
    more = _mean(wide["feed_forward"] - wide["heads"], subjects)
    return {"parts": {**of, "feed_forward_less_heads": more}}


def _mean(values: pd.Series[Any], groups: pd.Series[Any]) -> dict[str, Any]:
    return {"mean": values.mean(), "interval": mean_interval(values, groups), "n": len(values)}


def _bits(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Bits per parameter, and the share of the content."""
    return {
        "content": row["content"] / row["n_parameters"],
        "averaged": row["averaged"] / row["n_parameters"],
        "clipped": row["clipped"] / row["n_parameters"],
        "share": row["averaged"] / row["content"],
    }


def _hypotheses(cells: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Verdicts by the rules that were fixed before the run."""
    most = {240} & {cell["people"] for cell in cells.values()} or {12}
    chosen = {name: cell for name, cell in cells.items() if cell["people"] in most}
    small = [cell["stores"]["people"] for name, cell in chosen.items() if name.startswith("small")]
    yield (
        "T1",
        verdict(
            all(of["taught_by_three"]["last_less_first"]["interval"][0] >= -LESS for of in small)
        ),
    )
    ratios = [
        step["length_ratio"]
        for cell in cells.values() for of in cell["stores"].values() for step in of["course"]
        if LEAST <= step["known"] < step["facts"]
    ]  # fmt: skip
    yield "T2", verdict(bool(ratios) and max(abs(np.array(ratios) - 1)) <= WITHIN)
    for name, what in (("T3", "sums"), ("T4", "parts")):
        of_all = [of[what] for cell in chosen.values() for of in cell["stores"].values()]
        key = "both_less_better" if what == "sums" else "feed_forward_less_heads"
        lows = [-np.inf if each is None else each[key]["interval"][0] for each in of_all]
        yield name, verdict(min(lows) > 0)
