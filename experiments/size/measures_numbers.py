"""Conclusions of the factorial of databases: shares memorised, and the effect of each measure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.evaluator import simultaneous_intervals
from experiments.common.conclusions import with_mean
from experiments.common.regressions import held_out_scores, resampled_coefficients

# name -> its column; triples are the same in a block
MEASURES = {
    "Proposition 2.1": "database_rank_bound",
    "certified rank, lower end": "database_rank_lower",
    "certified rank, upper end": "database_rank_upper",
    "entropy of the objects": "entropy",
    "description length": "description_length",
}
OUTCOMES = {"argmax": "accuracy_argmax", "0.95": "accuracy_p95"}
RESAMPLES = 300


def conclusions(runs: pd.DataFrame, databases: pd.DataFrame) -> dict[str, Any]:
    """Cells, and effects of measures in each block."""
    joined = runs.merge(databases, on="database_id")
    return {
        "runs": len(runs), "databases": len(databases),
        "cells": _cells(joined, databases),
        "effects": {
            str(block): {
                str(kind): {name: _effects(part, column) for name, column in OUTCOMES.items()}
                for kind, part in of.groupby("kind")
            }
            for block, of in joined.groupby("block")
        },
    }  # fmt: skip


def _cells(joined: pd.DataFrame, databases: pd.DataFrame) -> list[dict[str, Any]]:
    keys = ["block", "structure", "copies"]
    rows: list[dict[str, Any]] = []
    for key, of in databases.groupby(keys, sort=False):
        part = joined[(joined[keys] == list(key)).all(axis=1)]  # type: ignore[arg-type]
        rows.append({
            **dict(zip(keys, key, strict=True)),  # type: ignore[arg-type]
            "triples": of["n_triples"].mean(),
            "measures": {name: of[column].mean() for name, column in MEASURES.items()},
            "memorised": {
                str(kind): {
                    name: with_mean(each[column] == 1, each[["database_id"]])
                    for name, column in OUTCOMES.items()
                }
                for kind, each in part.groupby("kind")
            },
        })  # fmt: skip
    return rows


def _effects(part: pd.DataFrame, outcome: str) -> dict[str, Any]:
    """Logistic regressions of the share of starts that memorise, with a constant for each layer."""
    ready = part.assign(done=part[outcome] == 1)
    grouped = ready.groupby(["database_id", "layer_id"], sort=True)
    table = grouped["done"].agg(["sum", "size"]).reset_index()
    known = ready.drop_duplicates("database_id").set_index("database_id")
    varied: dict[str, NDArray[np.float64]] = {}
    for name, column in MEASURES.items():
        logs = np.log(known[column].astype(float))
        # equal in all databases of a block, as the rank is with own objects
        if logs.std() > 1e-9:
            of_database = (logs - logs.mean()) / logs.std()
            varied[name] = of_database.loc[table["database_id"]].to_numpy()
    databases = table["database_id"]
    of_layer, layers = pd.factorize(table["layer_id"])
    constants = np.eye(len(layers))[of_layer]
    done, tried = table["sum"].to_numpy(float), table["size"].to_numpy(float)
    alone = {
        name: _described(np.column_stack([values, constants]), [name], done, tried, table)[name]
        for name, values in varied.items()
    }
    held_out = {name: held_out_scores(np.column_stack([values, constants]), done, tried, databases)
                for name, values in varied.items()}  # fmt: skip
    none = held_out_scores(constants, done, tried, databases)
    everything = np.column_stack([*varied.values(), constants])
    runs = pd.DataFrame({"database_id": table["database_id"]})
    return {
        "memorised": done.sum() / tried.sum(),
        "alone": alone,
        "together": _described(everything, list(varied), done, tried, table),
        # nats a run, beside constants of the layers alone
        "gain_alone": {name: with_mean((scores - none) / tried, runs)
                       for name, scores in held_out.items()},
        "gain_together": with_mean(
            (held_out_scores(everything, done, tried, databases) - none) / tried, runs
        ),
    }  # fmt: skip


def _described(
    design: NDArray[np.float64],
    names: list[str],
    done: NDArray[np.float64],
    tried: NDArray[np.float64],
    table: pd.DataFrame,
) -> dict[str, Any]:
    """Effects of a standard deviation on log odds, with intervals of all at once."""
    whole, drawn = resampled_coefficients(design, done, tried, table["database_id"], RESAMPLES)
    n = len(names)
    ends = simultaneous_intervals(whole[:n], drawn[:, :n])
    return {name: {"value": value, "interval": interval}
            for name, value, interval in zip(names, whole, ends, strict=False)}  # fmt: skip
