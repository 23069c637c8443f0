"""Conclusions of the factorial of databases: shares memorised, and the effect of each measure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from capacity.evaluator import cluster_bootstrap, simultaneous_intervals
from capacity.evaluator.law import maximum_likelihood
from experiments.common.conclusions import with_mean

# name -> its column; triples are the same in a block
MEASURES = {
    "Proposition 2.1": "database_rank_bound",
    "certified rank, lower end": "database_rank_lower",
    "certified rank, upper end": "database_rank_upper",
    "entropy of the objects": "entropy",
    "description length": "description_length",
}
OUTCOMES = {"argmax": "accuracy_argmax", "0.95": "accuracy_p95"}
RESAMPLES, FOLDS = 300, 10


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
    of_layer, layers = pd.factorize(table["layer_id"])
    constants = np.eye(len(layers))[of_layer]
    done, tried = table["sum"].to_numpy(float), table["size"].to_numpy(float)
    alone = {
        name: _described(np.column_stack([values, constants]), [name], done, tried, table)[name]
        for name, values in varied.items()
    }
    held_out = {name: _held_out(np.column_stack([values, constants]), done, tried, table)
                for name, values in varied.items()}  # fmt: skip
    none = _held_out(constants, done, tried, table)
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
            (_held_out(everything, done, tried, table) - none) / tried, runs
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
    whole = _fit(design, done, tried)
    drawn = np.array([
        _fit(design, done * weights, tried * weights, whole)[: len(names)]
        for weights in cluster_bootstrap(table[["database_id"]], RESAMPLES)
    ])  # fmt: skip
    ends = simultaneous_intervals(whole[: len(names)], drawn)
    return {name: {"value": value, "interval": interval}
            for name, value, interval in zip(names, whole, ends, strict=False)}  # fmt: skip


def _fit(
    design: NDArray[np.float64],
    done: NDArray[np.float64],
    tried: NDArray[np.float64],
    start: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Logistic regression on counts; databases that aren't drawn have none."""
    begin = [0.0] * design.shape[1] if start is None else start.tolist()
    return np.array(maximum_likelihood(design.T, done / np.maximum(tried, 1), begin, tried))


def _held_out(
    design: NDArray[np.float64],
    done: NDArray[np.float64],
    tried: NDArray[np.float64],
    table: pd.DataFrame,
) -> NDArray[np.float64]:
    """Log-likelihood of each database and layer, by fits to the databases of other folds."""
    of, names = pd.factorize(table["database_id"])
    fold = np.random.default_rng(0).permutation(len(names))[of] % FOLDS
    scores = np.zeros(len(table))
    for part in range(FOLDS):
        inside = fold == part
        beta = _fit(design[~inside], done[~inside], tried[~inside])
        p = np.clip(expit(design[inside] @ beta), 1e-9, 1 - 1e-9)
        scores[inside] = done[inside] * np.log(p) + (tried - done)[inside] * np.log(1 - p)
    return scores
