"""Names of the columns of a runs table that depend on a threshold, and their names in schema 2.

The name of a column for the threshold tau ends in p and the decimals of tau, at least two:
``accuracy_p95`` is the share of facts whose object has probability 0.95 or more, and
``accuracy_p999`` that for 0.999. SQL and pandas accept such names without quotes. ``accuracy_p50``
is the share with a probability *above* one half (`capacity.evaluator.accuracy`).

Tables of schema 2 have ``accuracy_0.95`` and ``scale_0.95`` instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from capacity.errors import InvalidArgumentError
from capacity.layer.recall import Threshold, check_tau, check_threshold

if TYPE_CHECKING:
    import pandas as pd

_SCHEMA_2 = re.compile(r"(accuracy|scale)_0\.([0-9]{2,17})")


def accuracy_column(tau: Threshold) -> str:
    """Return the name of the column that holds the accuracy at a threshold.

    Parameters
    ----------
    tau : float, 'argmax' or 'argmax_paper'
        Threshold on the probability; for 0.5, whose column is ``accuracy_p50``, it must be
        exceeded.

    Returns
    -------
    str
        Name of a column of the runs table.

    Raises
    ------
    InvalidArgumentError
        For a number that is neither 0.5 nor strictly between 0.5 and 1, or another word.

    Examples
    --------
    >>> accuracy_column(0.95), accuracy_column(0.999), accuracy_column("argmax")
    ('accuracy_p95', 'accuracy_p999', 'accuracy_argmax')
    """
    return f"accuracy_{threshold_column(tau)}"


def threshold_column(tau: Threshold) -> str:
    """Return the name of a threshold in the names of columns, and of its own column of facts.

    Raises
    ------
    InvalidArgumentError
        As `accuracy_column` does.

    Examples
    --------
    >>> threshold_column(0.95), threshold_column("argmax")
    ('p95', 'argmax')
    """
    check_threshold(tau)
    return tau if isinstance(tau, str) else _decimals(tau)


def scale_column(tau: float) -> str:
    """Return the name of the column that holds the smallest scale at which a layer memorises.

    Parameters
    ----------
    tau : float
        Threshold on the probability (`smallest_scale`).

    Returns
    -------
    str
        Name of a column of the runs table.

    Raises
    ------
    InvalidArgumentError
        If tau doesn't lie strictly between 0.5 and 1.

    Examples
    --------
    >>> scale_column(0.95)
    'scale_p95'
    """
    check_tau(tau)
    return f"scale_{_decimals(tau)}"


def thresholds(table: pd.DataFrame) -> list[str]:
    """List the thresholds that a table of runs has accuracies for, as `tau` takes them.

    Examples
    --------
    >>> import pandas as pd
    >>> thresholds(pd.DataFrame(columns=["accuracy_argmax", "accuracy_p95", "loss"]))
    ['argmax', '0.95']
    """
    found = (re.fullmatch("accuracy_(p?)(.+)", str(name)) for name in table.columns)
    return [f"0.{one[2]}" if one[1] else one[2] for one in found if one]


def _decimals(tau: float) -> str:
    """Write p and the decimals of a number from 0.5 to below 1; different numbers differ."""
    # Python writes the shortest decimals that are read as the same number
    return f"p{float(tau)!r:0<4}".replace("0.", "", 1)


def current_name(column: str) -> str:
    """Return the current name of a column of schema 2; other names are unchanged.

    Examples
    --------
    >>> current_name("accuracy_0.95"), current_name("scale_0.99"), current_name("loss")
    ('accuracy_p95', 'scale_p99', 'loss')
    """
    old = _SCHEMA_2.fullmatch(column)
    return f"{old[1]}_p{old[2]}" if old else column


def with_current_names(table: pd.DataFrame) -> pd.DataFrame:
    """Rename the columns of a runs table of schema 2 to their current names.

    Parameters
    ----------
    table : DataFrame
        Runs, in any schema and with any columns.

    Returns
    -------
    DataFrame
        The same runs under the current names.

    Raises
    ------
    InvalidArgumentError
        If the table has a column under both its old and its current name.

    Examples
    --------
    >>> import pandas as pd
    >>> with_current_names(pd.DataFrame({"accuracy_0.95": [1.0]})).columns.tolist()
    ['accuracy_p95']
    """
    names = {name: current_name(name) for name in table.columns if isinstance(name, str)}
    twice = [old for old, new in names.items() if old != new and new in names]
    if twice:
        raise InvalidArgumentError(
            f"A table must have each column under one name; it has {twice[0]} and "
            f"{names[twice[0]]}. Drop one of them."
        )
    return table.rename(columns=names)
