"""Conclusions of `failures`: gates of failed starts, starting weights, release, and storing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.evaluator import cluster_bootstrap, percentile_interval, reach_and_reliability
from experiments.common.conclusions import CLUSTERS, with_mean

# a difference of reliabilities that counts as none
MARGIN = 0.05
START = ["layer_id", "database_id", "start"]
PAIR = ("layer_id", "database_id")
ALL = "all layers"
MANY_HEADS = 8
AS_DRAWN = "times 1"
# ways at the limit of frozen layers -> going on frozen as long, at the same learning rate
GAINS = {
    "released": "frozen",
    "released, gently": "frozen, gently",
    "W_Q and W_K alone, gently": "frozen, gently",
}


def conclusions(tables: Mapping[str, pd.DataFrame]) -> dict[str, Any]:
    """The four parts, and the verdicts."""
    found = {
        "gates": _gates(tables["gates"]),
        "weights": _weights(tables["weights"]),
        "release": _release(tables["release"]),
        "limit": _limit(tables["limit"]),
    }
    gates, weights, release = found["gates"], found["weights"], found["release"]
    foretold = gates["foretold"][ALL]
    second, last = list(foretold)[1], list(foretold)[-1]
    early = foretold.get("200", foretold[last])
    gained = found["limit"]["gained"]["released, gently"]
    return {
        **found,
        "verdicts": {
            "saturated gates of epoch 200 foretell failure": _above(early["gates"], 0.5),
            "they come before what is lost": _above(foretold[second]["difference"], 0),
            "smaller starting weights help trained starts": _above(
                weights["differences"][ALL]["trained"]["times 0.25"], 0
            ),
            "larger starting weights harm frozen starts": _below(
                weights["differences"][ALL]["frozen"]["times 4"], 0
            ),
            "the scale helps trained starts": _above(weights["scale_where_d_head_qk_above_1"], 0),
            "release is above training": _above(release["differences"][ALL]["trained"], 0),
            "release does as well as freezing": _above(
                release["differences"][ALL]["frozen"], -MARGIN
            ),
            "W_QK stores": _stores(gained[ALL]),
            "W_QK stores, eight heads": _stores(gained["eight heads"]),
        },
    }


def _above(one: Mapping[str, Any], limit: float) -> str:
    return "holds here" if one["interval"][0] > limit else "not seen here"


def _below(one: Mapping[str, Any], limit: float) -> str:
    return "holds here" if one["interval"][1] < limit else "not seen here"


def _stores(gained: Mapping[str, Any]) -> str:
    both = {_above(gained[at]["facts"], 0) for at in ("argmax", "p95")}
    return "holds here" if both == {"holds here"} else "not seen here"


def _by_layer(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each layer, and of all."""
    return {**{str(n): of for n, of in table.groupby("layer_id", sort=False)}, ALL: table}


def _by_training(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of starts whose W_Q and W_K are trained, and of frozen ones."""
    frozen = table["is_frozen"]
    return {"trained": table[~frozen], "frozen": table[frozen]}


def _gates(table: pd.DataFrame) -> dict[str, Any]:
    """Saturated gates by epoch and outcome, and how far they foretell it."""
    end = table[table["epoch"] == table["epoch"].max()]
    trained = _by_training(table)["trained"]
    failed = trained[~trained["held"]].dropna(subset=["saturated_missed", "saturated_recalled"])
    return {
        "reliability": {
            name: {way: with_mean(of["held"], of) for way, of in _by_training(part).items()}
            for name, part in _by_layer(end).items()
        },
        "by_epoch": {
            name: {
                outcome: {
                    str(epoch): {of: with_mean(some[of], some) for of in ("saturated", "recalled")}
                    for epoch, some in each.groupby("epoch")
                }
                for outcome, each in _by_outcome(part).items()
            }
            for name, part in _by_layer(table).items()
        },
        "foretold": {
            name: {str(epoch): foretold(of) for epoch, of in part.groupby("epoch")}
            for name, part in _by_layer(trained).items()
        },
        "missed_less_recalled": {
            str(epoch): with_mean(of["saturated_missed"] - of["saturated_recalled"], of)
            for epoch, of in failed.groupby("epoch")
        },
        "all_recalled_at": {
            str(epoch): with_mean(of["recalled"] == 1, of) for epoch, of in trained.groupby("epoch")
        },
    }


def _by_outcome(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of trained starts that hold or fail, and of all frozen ones."""
    trained, frozen = _by_training(table).values()
    return {"held": trained[trained["held"]], "failed": trained[~trained["held"]], "frozen": frozen}


def foretold(starts: pd.DataFrame) -> dict[str, Any]:
    """Areas under the curve, over pairs of a failed and a held start of a layer and a database."""
    cells, wins, counts = [], [], []
    for cell, of in starts.groupby(list(PAIR), sort=False):
        held, failed = of[of["held"]], of[~of["held"]]
        if len(held) and len(failed):
            cells.append(cell)
            counts.append(len(held) * len(failed))
            wins.append(
                (
                    _wins(failed["saturated"].to_numpy(), held["saturated"].to_numpy()),
                    _wins(held["recalled"].to_numpy(), failed["recalled"].to_numpy()),
                )
            )
    n, w = np.array(counts, dtype=float), np.array(wins, dtype=float).reshape(-1, 2)
    if not len(n):
        none = {"value": None, "interval": (np.nan, np.nan)}
        return {"gates": none, "recalled": none, "difference": none, "databases": 0}
    groups = pd.DataFrame(cells, columns=list(PAIR))[list(CLUSTERS)]
    drawn = np.array([of @ w / (of @ n) for of in cluster_bootstrap(groups, 1000)])
    values = w.sum(axis=0) / n.sum()
    return {
        **{
            name: {"value": values[i], "interval": percentile_interval(drawn[:, i])}
            for i, name in enumerate(("gates", "recalled"))
        },
        "difference": {
            "value": values[0] - values[1],
            "interval": percentile_interval(drawn[:, 0] - drawn[:, 1]),
        },
        "databases": len(n),
    }


def _wins(larger: NDArray[Any], smaller: NDArray[Any]) -> float:
    """Number of pairs in which the first is larger; ties count one half."""
    apart = larger[:, None] - smaller[None]
    return float((apart > 0).sum() + 0.5 * (apart == 0).sum())


def _weights(table: pd.DataFrame) -> dict[str, Any]:
    """Reliability by starting weights, and paired differences to the weights as drawn."""
    parts = {name: _by_training(part) for name, part in _by_layer(table).items()}
    several = table[~table["is_frozen"] & (table["d_head_qk"] > 1)]
    return {
        "cells": {
            name: {
                way: {
                    str(scaling): {
                        "reliability": with_mean(some["held"], some),
                        "saturated": with_mean(some["saturated"], some),
                    }
                    for scaling, some in of.groupby("scaling", sort=False)
                }
                for way, of in ways.items()
            }
            for name, ways in parts.items()
        },
        "differences": {
            name: {
                way: {
                    scaling: difference(of, "scaling", scaling, AS_DRAWN)
                    for scaling in of["scaling"].unique()
                    if scaling != AS_DRAWN
                }
                for way, of in ways.items()
            }
            for name, ways in parts.items()
        },
        "scale_where_d_head_qk_above_1": difference(several, "scaling", "scaled", AS_DRAWN),
    }


def difference(
    table: pd.DataFrame, column: str, one: str, other: str, of: str = "held"
) -> dict[str, Any]:
    """Mean of one way less another, over the same starts."""
    pair = paired(table, column, one, other)
    return with_mean(pair[f"{of}_one"].astype(float) - pair[f"{of}_other"].astype(float), pair)


def paired(table: pd.DataFrame, column: str, one: str, other: str) -> pd.DataFrame:
    """The starts of two ways side by side."""
    sides = [table[table[column] == way] for way in (one, other)]
    return sides[0].merge(sides[1], on=START, suffixes=("_one", "_other"), validate="1:1")


def _release(table: pd.DataFrame) -> dict[str, Any]:
    """Reach and reliability by way, and what release changes."""
    others = [way for way in table["way"].unique() if way != "released"]
    return {
        "cells": {name: _reached(part) for name, part in _by_layer(table).items()},
        # release less each other way
        "differences": {
            name: {way: difference(part, "way", "released", way) for way in others}
            for name, part in _by_layer(table).items()
        },
    }


def _reached(table: pd.DataFrame) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for way, of in table.groupby("way", sort=False):
        found = reach_and_reliability(of, pair=PAIR)
        cells[str(way)] = {
            "reliability": {"mean": found.reliability, "interval": found.reliability_interval},
            "reach": {"mean": found.reach, "interval": found.reach_interval},
            "starts": found.of,
        }
    return cells


def _limit(table: pd.DataFrame) -> dict[str, Any]:
    """Facts that W_Q and W_K gain at the limit of frozen layers."""
    table = table.assign(
        argmax=table["accuracy_argmax"] * table["n_triples"],
        p95=table["accuracy_p95"] * table["n_triples"],
        query_key=2 * table["n_heads"] * table["d_model"] * table["d_head_qk"],
        others=2 * table["d_model"] * (table["n_tokens"] + table["n_heads"] * table["d_head_vo"]),
    )
    cells = {
        f"{name}, {size} triples": part
        for (name, size), part in table.groupby(["layer_id", "n_asked"], sort=False)
    }
    parts = {
        **cells,
        "few heads": table[table["n_heads"] < MANY_HEADS],
        "eight heads": table[table["n_heads"] == MANY_HEADS],
        ALL: table,
    }
    return {
        "cells": {name: _reached(part) for name, part in parts.items()},
        "gained": {
            way: {name: _gained(part, way, frozen) for name, part in parts.items()}
            for way, frozen in GAINS.items()
        },
        # asked after the run: facts more than before the second leg
        "since_before": {
            name: {way: _since(of) for way, of in part.groupby("way", sort=False)}
            for name, part in parts.items()
        },
        "frozen_facts_a_parameter": {
            name: {at: with_mean(of[at] / of["others"], of) for at in ("argmax", "p95")}
            for name, of in parts.items()
            for of in [of[of["way"] == "frozen, gently"]]
        },
    }


def _since(table: pd.DataFrame) -> dict[str, Any]:
    """Facts more than at the end of the first leg."""
    return {
        at: with_mean(table[at] - table[f"{at}_before"] * table["n_triples"], table)
        for at in ("argmax", "p95")
    }


def _gained(table: pd.DataFrame, way: str, frozen: str) -> dict[str, Any]:
    """Facts gained over going on frozen, and for each parameter of W_Q and W_K."""
    pair = paired(table, "way", way, frozen)
    gained: dict[str, Any] = {}
    for at in ("argmax", "p95"):
        facts = pair[f"{at}_one"] - pair[f"{at}_other"]
        gained[at] = {
            "facts": with_mean(facts, pair),
            "a_parameter": with_mean(facts / pair["query_key_one"], pair),
        }
    gained["reliability"] = with_mean(
        pair["held_one"].astype(float) - pair["held_other"].astype(float), pair
    )
    return gained
