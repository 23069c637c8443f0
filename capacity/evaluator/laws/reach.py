"""Reach and reliability: whether a layer can hold a database, and how often training finds it.

A *start* is one draw of initial weights and of the order of facts, trained to its end. A layer
**reaches** a database if some start holds it: every fact passes the threshold. That is a lower end
of capacity, since more starts, or better training, may hold more. Its **reliability** is the share
of starts that hold the database. One start decides neither, and how often a start fails depends on
the very sizes of a layer that are compared.

With c of n starts that hold, the share of the sets of k starts in which some start holds is
1 - C(n - c, k) / C(n, k), an unbiased estimate of the reach of k starts for k <= n. Where training
ended with the first start that holds, k starts reach exactly if that was among the first k. The
reliability is the reach of one start.

References
----------
M. Chen et al., Evaluating large language models trained on code (2107.03374), section 2.1: the
estimate, as pass@k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import Seed, require_integer
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import accuracy_column, with_current_names
from capacity.evaluator.laws.bootstrap import CLUSTERS, mean_interval
from capacity.evaluator.laws.law import memorised_runs, require_columns
from capacity.layer.recall import Threshold

By: TypeAlias = Literal["reach", "reliability"]

# what is the same in all starts
PAIR = ("database_id", "layer_id", "recipe")


@briefly_shown
@dataclass(frozen=True)
class Reach:
    """Reach and reliability of layers on databases, with 95 % intervals.

    Attributes
    ----------
    of : int
        Number of starts, k, of which some must hold the database.
    reach : float
        Share of the pairs of a layer and a database that k starts reach, as estimated.
    reach_interval : (float, float)
        Ends of its interval.
    reliability : float
        Mean over the pairs of the share of starts that hold.
    reliability_interval : (float, float)
        Ends of its interval.
    n_pairs, n_starts : int
        Numbers of pairs, or of runs if training ended with the first start that holds, and of
        starts in all.
    """

    of: int
    reach: float
    reach_interval: tuple[float, float]
    reliability: float
    reliability_interval: tuple[float, float]
    n_pairs: int
    n_starts: int


def reach_and_reliability(
    table: pd.DataFrame,
    tau: Threshold = 0.95,
    *,
    of: int | None = None,
    pair: Sequence[str] = PAIR,
    clusters: Sequence[str] = CLUSTERS,
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> Reach:
    """Estimate how often some of k starts hold a database, beside how often one does.

    Parameters
    ----------
    table : DataFrame
        Runs, each of several starts (``starts`` in a sweep's file), or with several seeds for each
        pair; with ``status``, the accuracy column of `tau`, and the columns of `pair` and
        `clusters`.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold that every fact must pass; that of ``held_at`` where runs have several starts.
    of : int, optional
        Number of starts, k; by default that of the pair with fewest.
    pair : sequence of str
        Columns by which runs are starts of one pair: they differ by their seeds alone.
    clusters : sequence of str
        Columns whose values pairs share; each is drawn independently. The luck of starts is in the
        intervals, too, for each pair has starts of its own.
    n_resamples : int
        Number of resamples.
    seed : int or numpy.random.Generator
        Seed of the resamples.

    Returns
    -------
    Reach
        Both shares, with intervals.

    Raises
    ------
    InvalidArgumentError
        If a column is missing or there is no run, `tau` isn't the threshold of runs with several
        starts, some pair has fewer than `of` starts, or some runs ended with the first start that
        holds and others not.

    Examples
    --------
    Two layers, of which one start in four and three in four hold a database:

    >>> runs = pd.DataFrame({"layer_id": list("aaaabbbb"), "database_id": "d", "recipe": "",
    ...     "status": "completed", "accuracy_p95": [1, 0.9, 0.5, 0.8, 1, 1, 0.9, 1]})
    >>> found = reach_and_reliability(runs, of=2)
    >>> found.reach, found.reliability, found.n_starts
    (0.75, 0.5, 8)
    """
    tried, held = starts_of(table, tau)
    if not len(table):
        raise InvalidArgumentError("`table` must have runs; it is empty.")
    at_first = ended_at_first(table)
    if at_first.any() and (~at_first & _several(table)).any():
        raise InvalidArgumentError(
            "`table` must have runs of one kind: some ended with the first start that holds the "
            "database, and others continued. Select one by the column `until`."
        )
    pairs = table
    if at_first.any():
        most = int(table["starts"].min())
    else:
        pairs = pooled_starts(table, tau, pair=pair)
        tried, held = starts_of(pairs, tau)
        most = int(tried.min())
    k = most if of is None else require_integer("of", of)
    if k > most:
        raise InvalidArgumentError(
            f"`of` must be at most the number of starts of every pair; one has {most}, and {k} are "
            "asked for. Train more starts, or ask for fewer."
        )
    require_columns(pairs, *clusters)
    shares = [
        _first_reach(tried, held, n) if at_first.any() else _reach(tried, held, n) for n in (k, 1)
    ]
    ends = [
        mean_interval(share, pairs[list(clusters)], n_resamples=n_resamples, seed=seed)
        for share in shares
    ]
    reach, reliability = (float(share.mean()) for share in shares)
    return Reach(k, reach, ends[0], reliability, ends[1], len(pairs), int(tried.sum()))


def pooled_starts(
    table: pd.DataFrame, tau: Threshold = 0.95, *, pair: Sequence[str] = PAIR
) -> pd.DataFrame:
    """Pool runs that differ by their seed alone into one run of several starts.

    Parameters
    ----------
    table : DataFrame
        Runs, with ``status``, the accuracy column of `tau` and the columns of `pair`.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold that every fact must pass.
    pair : sequence of str
        Columns that are the same in all starts of a pair.

    Returns
    -------
    DataFrame
        For each pair the first of its runs that recall most facts, with the columns ``starts``,
        ``until``, ``held_at``, ``starts_tried``, ``held_by_any`` and ``share_of_starts`` of all its
        runs together.

    Raises
    ------
    InvalidArgumentError
        If a column is missing, `tau` isn't the threshold of runs with several starts, or a run
        ended with the first start that holds, which biases the share of starts.

    Examples
    --------
    >>> runs = pd.DataFrame({"layer_id": "a", "database_id": "d", "recipe": "", "seed": [0, 1, 2],
    ...     "status": "completed", "accuracy_p95": [0.9, 1.0, 0.8]})
    >>> one = pooled_starts(runs)
    >>> one[["seed", "starts_tried", "held_by_any", "share_of_starts"]].round(2).values.tolist()
    [[1, 3, True, 0.33]]
    """
    table = with_current_names(table).reset_index(drop=True)
    require_columns(table, *pair, accuracy_column(tau))
    tried, held = starts_of(table, tau)
    if ended_at_first(table).any():
        raise InvalidArgumentError(
            "Runs that ended with the first start that holds the database can't be pooled, since "
            'their share of starts is biased. Train with until = "all".'
        )
    ranked = table[accuracy_column(tau)].where(table["status"] != "diverged", -1.0)
    numbers = table.groupby(list(pair), sort=False).ngroup().to_numpy()
    best = ranked.groupby(numbers).idxmax().to_numpy()
    n_tried, n_held = (np.bincount(numbers, of).astype(int) for of in (tried, held))
    return (
        table.loc[best]
        .reset_index(drop=True)
        .assign(
            starts=n_tried,
            until="all",
            held_at=str(tau),
            starts_tried=n_tried,
            held_by_any=n_held > 0,
            share_of_starts=n_held / n_tried,
        )
    )


def starts_of(table: pd.DataFrame, tau: Threshold) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the starts of each run that were trained, and those that hold the database at tau.

    Raises
    ------
    InvalidArgumentError
        If a column is missing, or runs of several starts counted those that hold at another tau.
    """
    held = memorised_runs(table, tau).astype(np.int64)
    if "starts_tried" not in table:
        return np.ones_like(held), held
    require_columns(table, "starts", "share_of_starts", "held_at")
    tried = table["starts_tried"].to_numpy(np.int64)
    counted = np.rint(table["share_of_starts"].to_numpy(float) * tried).astype(np.int64)
    several = _several(table)
    others = set(table["held_at"][several]) - {str(tau)}
    if others:
        raise InvalidArgumentError(
            f"`tau` must be the threshold at which starts were counted, {', '.join(others)}; got "
            f"{tau}. Train with held_at = {tau} in [runs]."
        )
    return tried, np.where(several, counted, held)


def ended_at_first(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Mark the runs of several starts that ended with the first that holds the database."""
    if "until" not in table:
        return np.zeros(len(table), dtype=bool)
    return (table["until"] == "held").to_numpy() & _several(table)


def _several(table: pd.DataFrame) -> NDArray[np.bool_]:
    return (table["starts"] > 1).to_numpy()


def _reach(tried: NDArray[np.int64], held: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """Share of the sets of k starts in which some start holds, for each pair."""
    none = np.ones(len(tried))
    for i in range(k):
        # a product of factors of at least 0, and no quotient of large binomials
        none *= np.maximum(tried - held - i, 0) / (tried - i)
    return 1 - none


def _first_reach(tried: NDArray[np.int64], held: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    """1 where the first start that holds is among the first k, for each run."""
    return ((held > 0) & (tried <= k)).astype(np.float64)
