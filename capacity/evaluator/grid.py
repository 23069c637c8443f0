"""From a table of runs to a grid of accuracies over rank bins. No torch in here.

Cell (i, j) averages the runs whose layer rank bound lies in (i - 5, i] and whose database rank
bound lies in (j - 10, j] (Wong 2025, Figure 3). Diverged runs have no accuracy; they are counted,
not averaged.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import pandas as pd

from capacity.errors import InvalidArgumentError
from capacity.evaluator.accuracy import check_tau
from capacity.limits import shown

Threshold: TypeAlias = float | Literal["argmax", "argmax_paper"]
LAYER_BIN = 5
DATABASE_BIN = 10


def accuracy_column(tau: Threshold) -> str:
    """Column of the runs table that holds the accuracy at a threshold.

    Parameters
    ----------
    tau : float, 'argmax' or 'argmax_paper'
        0.5 names the column ``accuracy_0.50``, which asks for a probability *above* one half.

    Raises
    ------
    ValueError
        For a tau that isn't 0.5 or strictly between 0.5 and 1.

    Examples
    --------
    >>> accuracy_column(0.95)
    'accuracy_0.95'
    """
    if isinstance(tau, str):
        if tau not in ("argmax", "argmax_paper"):
            raise InvalidArgumentError(
                f"`tau` must be a number, 'argmax' or 'argmax_paper'; got {shown(tau)}."
            )
        return f"accuracy_{tau}"
    if tau != 0.5:
        check_tau(tau)
    return f"accuracy_{tau:.2f}" if round(tau, 2) == tau else f"accuracy_{tau}"


def accuracy_grid(table: pd.DataFrame, tau: Threshold = 0.95) -> pd.DataFrame:
    """Average accuracies over bins of the two rank bounds.

    Parameters
    ----------
    table : DataFrame
        Runs, with columns ``layer_rank_bound``, ``database_rank_bound``, ``status`` and the
        accuracy asked for.
    tau : float, 'argmax' or 'argmax_paper'

    Returns
    -------
    DataFrame
        One row a cell that has runs, sorted: ``layer_rank_bin`` i and ``database_rank_bin`` j, the
        upper ends of the bins; ``accuracy``, the mean over the runs that did not diverge (NaN if
        all did); ``n_runs``, their number; ``n_diverged``, that of the others.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    column = accuracy_column(tau)
    needed = ["layer_rank_bound", "database_rank_bound", "status", column]
    missing = [name for name in needed if name not in table.columns]
    if missing:
        there = ", ".join(c for c in table.columns if c.startswith("accuracy_")) or "none"
        raise InvalidArgumentError(
            f"The table must have the columns {', '.join(needed)}; it lacks {', '.join(missing)}. "
            f"Accuracies there are: {there}."
        )
    diverged = table["status"] == "diverged"
    cells = pd.DataFrame(
        {
            "layer_rank_bin": _upper_end(table["layer_rank_bound"], LAYER_BIN),
            "database_rank_bin": _upper_end(table["database_rank_bound"], DATABASE_BIN),
            "accuracy": table[column].where(~diverged),
            "n_runs": (~diverged).astype(int),
            "n_diverged": diverged.astype(int),
        }
    ).groupby(["layer_rank_bin", "database_rank_bin"])
    return cells.agg({"accuracy": "mean", "n_runs": "sum", "n_diverged": "sum"}).reset_index()


def _upper_end(values: pd.Series[int], width: int) -> pd.Series[int]:
    return -(-values // width) * width
