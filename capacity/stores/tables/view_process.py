"""The process that evaluates a view of a DuckDB file for `stores.tables.views`; it limits itself.

It imports nothing of this library, so as to start soon.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

# bytes that DuckDB may take for what it sorts and groups; it doesn't count values
GROUPED = 128 * 10**6
# how a database is opened that may do harm: a view may name other files, but can't read them, and
# what it needs more of isn't written beside the file
CONFIG = {"enable_external_access": "false", "autoload_known_extensions": "false",
          "autoinstall_known_extensions": "false", "python_enable_replacements": "false",
          "memory_limit": f"{GROUPED}B", "temp_directory": "", "threads": "1"}  # fmt: skip
# rows that are fetched at once: a value may be as long as a term
AT_ONCE = 64


def evaluate(file: str, sql: str, *, term: int, text: int, memory: int, seconds: float) -> object:
    """Write the rows of a query as lines of JSON, and return what came of it.

    Parameters
    ----------
    file, sql : str
        Path of the database, and a query whose columns are text.
    term, text : int
        Bytes of a cell, and of all cells, with which it ends.
    memory : int
        Bytes that this process may take beside its imports, on Linux.
    seconds : float
        Seconds of the processor, on Linux, should nobody end it before.

    Returns
    -------
    object
        The string "memory" if it took too much; or a dict with an item: the number of ``rows``, if
        these are all; the bytes of a ``term`` or of the ``text`` that are too many; the ``error``
        of DuckDB.
    """
    import duckdb

    _limit(memory, seconds)
    rows = size = 0
    try:
        with duckdb.connect(file, read_only=True, config=CONFIG) as con:  # type: ignore[arg-type]
            found = con.execute(sql)
            while some := found.fetchmany(AT_ONCE):
                for row in some:
                    lengths = [len(cell.encode()) for cell in row if cell is not None]
                    rows, size = rows + 1, size + sum(lengths)
                    if max(lengths, default=0) > term:
                        return {"term": max(lengths)}
                    if size > text:
                        return {"text": size}
                    tell(row)
        return {"rows": rows}
    except (MemoryError, duckdb.OutOfMemoryException):
        return "memory"
    except duckdb.Error as error:
        return {"error": str(error)[:1000]}


def tell(answer: object) -> None:
    """Write a line of JSON."""
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode() + b"\n")


def _limit(memory: int, seconds: float) -> None:
    if sys.platform != "linux":
        return
    import resource

    # pages of data and of the stack that it has by now
    data = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (data + memory, data + memory))
    longest = math.ceil(min(seconds, 2**30)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (longest, longest))


if __name__ == "__main__":
    tell(evaluate(**json.loads(sys.stdin.buffer.read())))
