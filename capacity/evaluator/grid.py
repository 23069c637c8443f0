"""From a table of runs to a grid of accuracies over rank bins. No torch in here.

Cell (i, j) averages the runs whose layer rank bound lies in (i - 5, i] and whose database rank
bound lies in (j - 10, j] (Wong 2025, Figure 3). Diverged runs have no accuracy; they are counted,
not averaged.
"""

from __future__ import annotations

import pandas as pd

from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import Threshold, accuracy_column, with_current_names

LAYER_BIN = 5
DATABASE_BIN = 10


def accuracy_grid(table: pd.DataFrame, tau: Threshold = 0.95) -> pd.DataFrame:
    """Average accuracies over bins of the two rank bounds.

    Parameters
    ----------
    table : DataFrame
        Runs, with columns ``layer_rank_bound``, ``database_rank_bound``, ``status`` and the
        accuracy asked for, under its name of today or of schema 2.
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
    table, column = with_current_names(table), accuracy_column(tau)
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
