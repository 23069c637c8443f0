"""Facts as an iterable of rows, or of files, as Python has them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Unpack, cast

from capacity.database.facts import Database
from capacity.database.io.readers import load
from capacity.database.io.reading import LoadOptions, with_options
from capacity.database.policy import MultiPolicy
from capacity.errors import InvalidTypeError


@with_options(LoadOptions)
def from_rows(
    rows: Iterable[Any], *, multi: MultiPolicy | None = None, **options: Unpack[LoadOptions]
) -> Database:
    """Make a database of an iterable of triples, or of a list of paths.

    Parameters
    ----------
    rows : iterable
        Rows of three cells, as `Database.from_triples` has them, or a list of paths.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.
    **options
        Of files, as `load` has them.

    Raises
    ------
    InvalidTypeError
        For an option of files with rows.
    CapacityError
        As `Database.from_triples`, or `load`.

    Examples
    --------
    >>> from_rows([("a", "p", "x")]).n_facts
    1
    """
    if isinstance(rows, list) and rows and all(isinstance(one, str | os.PathLike) for one in rows):
        return load(cast("list[str]", rows), multi=multi, **options)
    if options:
        raise InvalidTypeError(
            f"Rows of three cells have no option `{next(iter(options))}`, which is one of files. "
            "A DataFrame has options of tables."
        )
    return Database.from_triples(rows, multi=multi)
