"""One call for a page about whatever it is: facts, the folder of a sweep, or a table of answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

from capacity.checks import shown
from capacity.database.given_facts import DatabaseLike
from capacity.errors import InvalidArgumentError
from capacity.report.database_page import database_report
from capacity.report.recall_page import is_recall_table, recall_report
from capacity.report.sweep_page import sweep_report
from capacity.safe_files import require_replaceable, write_whole


def report(
    source: DatabaseLike, out: str | os.PathLike[str] | None = None, **options: Any
) -> str | Path:
    """Write a page about facts, a sweep, or what a model knows, as ``capacity report`` does.

    ``capacity.report(source)`` is the same.

    Parameters
    ----------
    source : path of a sweep's folder or of a table of `recall`, or what `as_database` takes
        What the page is about.
    out : path, optional
        File to write it to, which ends in .html.
    **options
        Those of `sweep_report`, `recall_report` or `database_report`.

    Returns
    -------
    str or Path
        The page; or its file, if there is one.

    Raises
    ------
    InvalidArgumentError
        If `out` ends otherwise, or `source` is the folder of a model, whose page needs a text.
    CapacityError
        As the functions that write the page.

    Examples
    --------
    >>> report([("Oslo", "in", "Norway"), ("Bergen", "in", "Norway")])[:15]
    '<!DOCTYPE html>'
    """
    if out is not None:
        if Path(out).suffix.lower() not in (".html", ".htm"):
            raise InvalidArgumentError(
                f"`out` must name the page, a file that ends in .html; got {shown(os.fspath(out))}."
            )
        require_replaceable(Path(out))
    folder = Path(source) if isinstance(source, str | os.PathLike) else None
    if folder is not None and (folder / "manifest.json").exists():
        page = sweep_report(folder, **options)
    elif folder is not None and is_recall_table(folder):
        page = recall_report(folder, **options)
    elif folder is not None and (folder / "config.json").exists():
        raise InvalidArgumentError(
            f"{folder}: a page about a model needs a text that it reads. Use `capacity report "
            "--attention FOLDER --text TEXT --out page.html`, or "
            "capacity.report.attention_report(capture(model, inputs), tokens)."
        )
    else:
        page = database_report(cast("DatabaseLike", source), **options)
    if out is None:
        return page
    write_whole(out, page.encode())
    return Path(out)
