"""Rows of a view of a DuckDB file: a program, which may take any memory and time.

DuckDB limits neither: the bytes of a value don't count to its limit of memory, and an expression
isn't interrupted. So a process of its own evaluates the view, once, and the system ends it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capacity.checks import megabytes
from capacity.database.io.files.content import refuse_excess
from capacity.database.io.tables.headers import Row
from capacity.errors import DatabaseFormatError
from capacity.reading_limits import Limits
from capacity.stores.tables.view_process import GROUPED

# bytes that the process may take beside its imports
MEMORY = 2**29
# without the working folder in its path, which may be that of a hostile file
_COMMAND = (sys.executable, "-P", "-m", "capacity.stores.tables.view_process")


def write_view(where: str, file: str, sql: str, out: Path, limits: Limits, seconds: float) -> int:
    """Write the rows of a query of a view, in a process of its own, and return their number.

    Parameters
    ----------
    where : str
        Name of the view, for messages.
    file : str
        Path of the database.
    sql : str
        The query, whose columns are text.
    out : Path
        File for the rows, which `rows_of_view` reads.
    limits : Limits
        Limits of the file, of which those of a cell and of all text end the process.
    seconds : float
        Seconds until the process is ended.

    Raises
    ------
    DatabaseFormatError
        If the view takes more time, or, on Linux, more memory than `MEMORY`, passes a limit, or
        can't be read.
    """
    question = {"file": file, "sql": sql, "term": limits.max_term_bytes,
                "text": limits.text, "memory": MEMORY, "seconds": seconds}  # fmt: skip
    path = os.pathsep.join(filter(None, sys.path))
    try:
        with out.open("wb") as rows:
            done = subprocess.run(
                _COMMAND,
                input=json.dumps(question).encode(),
                stdout=rows,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                timeout=seconds,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise _refused(
            where, "the view isn't read to its end in time",
            "Make a table of it, or raise `timeout`.",
        ) from None  # fmt: skip
    match _last(out):
        case {"rows": int(n)}:
            return n
        case {"error": error}:
            raise cannot_read(where, error)
        case "memory":
            most = f"{megabytes(MEMORY)}, and {megabytes(GROUPED)} for what it sorts"
            reason = f"the view, or a value of it, takes more memory than it may ({most})"
        case dict(excess):
            refuse_excess(where, "duckdb", limits.excess(**excess))
            reason = "the view passes a limit"
        case _:
            reason = f"the process that evaluates the view ended early, with code {done.returncode}"
    raise _refused(where, reason, "Make a table of it.")


def rows_of_view(out: Path) -> Iterator[Row]:
    """Yield the rows that `write_view` has written, with their numbers from 1."""
    with out.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith(b"["):
                yield number, tuple(json.loads(line))


def cannot_read(where: str, error: object) -> DatabaseFormatError:
    """Make the error for what DuckDB refuses."""
    import duckdb

    return _refused(
        where,
        f"DuckDB {duckdb.__version__} can't read it ({' '.join(str(error).split()):.300})",
        "If a newer version wrote it, install that; if another program has it open, close it "
        "there; if a view reads other files, make a table of it.",
    )


def _last(out: Path) -> Any:
    """Return the last line, which isn't a row unless the process has died."""
    with out.open("rb") as lines:
        lines.seek(max(0, out.stat().st_size - 2**14))
        last = lines.read().rstrip(b"\n").rpartition(b"\n")[2]
    # a row may be longer, and cut where it begins
    return json.loads(last) if last.startswith((b'{"', b'"memory"')) else None


def _refused(where: str, reason: str, advice: str) -> DatabaseFormatError:
    return DatabaseFormatError(where, reason, format="duckdb", advice=advice)
