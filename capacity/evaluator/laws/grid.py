"""Grid of mean accuracies over rank bins, from a table of runs; needs no torch.

Cell (i, j) averages the runs whose layer rank bound lies in (i - 5, i] and whose database rank
bound lies in (j - 10, j] (Wong 2025, Figure 3). Diverged runs have no accuracy; they are counted,
not averaged.
"""

from __future__ import annotations

import pandas as pd

from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import accuracy_column, thresholds, with_current_names
from capacity.layer.recall import Threshold

LAYER_BIN = 5
DATABASE_BIN = 10


def accuracy_grid(table: pd.DataFrame, tau: Threshold = 0.95) -> pd.DataFrame:
    """Average the accuracies of runs over bins of the two rank bounds.

    Parameters
    ----------
    table : DataFrame
        Runs, with columns ``layer_rank_bound``, ``database_rank_bound``, ``status`` and the
        accuracy column of `tau`, under its current name or that of schema 2.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold on the probability; 0.5 means a probability above one half.

    Returns
    -------
    DataFrame
        One row per cell with runs, sorted: ``layer_rank_bin`` i and ``database_rank_bin`` j, the
        upper ends of the bins; ``accuracy``, the mean over the runs that did not diverge (NaN if
        all did); ``n_runs``, their number; ``n_diverged``, the number of diverged runs.

    Raises
    ------
    InvalidArgumentError
        If a column is missing, `tau` is out of range, or the runs are of decoders.

    Examples
    --------
    >>> runs = pd.DataFrame({"layer_rank_bound": [4, 5, 6], "database_rank_bound": [10, 1, 11],
    ...     "status": "completed", "accuracy_p95": [1.0, 0.5, 0.0]})
    >>> accuracy_grid(runs)[["layer_rank_bin", "database_rank_bin", "accuracy"]]
       layer_rank_bin  database_rank_bin  accuracy
    0               5                 10      0.75
    1              10                 20      0.00
    """
    table, column = with_current_names(table), accuracy_column(tau)
    needed = ["layer_rank_bound", "database_rank_bound", "status", column]
    missing = [name for name in needed if name not in table.columns]
    if missing:
        if missing == [column]:
            taus = ", ".join(thresholds(table)) or "none"
            raise InvalidArgumentError(
                f"`tau` must be a threshold that the runs were scored at: {taus}; got {tau}. "
                "Others are scored if the plan of the sweep names them: taus, under [runs]."
            )
        raise InvalidArgumentError(
            f"The table must hold runs, with the columns {', '.join(needed)}; it lacks "
            f"{', '.join(missing)}. `capacity.sweep.load` reads such a table."
        )
    if len(table) and table["layer_rank_bound"].isna().all():
        raise InvalidArgumentError(
            "A grid has the layer's bound of equation (9) as an axis; these runs are of decoders, "
            "which have none. Group the table by its other columns, such as mlp and norm, or write "
            "`capacity report FOLDER --out page.html`."
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
