"""A temporary database on the disk, of limited memory, that goes at the end.

If its process is killed, the next one that counts in the same folder removes it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

from capacity.checks import megabytes, require_integer, shown
from capacity.errors import InvalidArgumentError, MemoryBudgetError, StorageError
from capacity.progress import Progress
from capacity.stores.scratch.temporary import ELSEWHERE, temporary_folder

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# rows of a group of the database; whole groups are written at once, and not logged first
ROWS = 122_880
# bytes of rows that are held at once
HELD = 2**26
# what Python, the parser and Arrow take beside the database, and the least that this works with
BESIDE = 300 * 10**6
LEAST = 700 * 10**6
# by how much the database takes more than its limit, as measured: it keeps freed pages for a while
OVER = 1.3
# bytes of memory that a thread sorts and groups in
_A_THREAD = 192 * 2**20
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?)B?", re.IGNORECASE)
# free bytes on a disk that is as good as full
_NOTHING = 2**24


def bytes_of(limit: str | int) -> int:
    """Return a size in bytes, which may have a unit.

    Parameters
    ----------
    limit : str or int
        A number of bytes; or a number and KB, MB, GB or TB, by thousands; KiB, MiB, GiB or TiB, by
        1,024.

    Raises
    ------
    InvalidArgumentError
        If it isn't a size, or too little memory to work with.

    Examples
    --------
    >>> bytes_of("1GB"), bytes_of("1.5 GiB")
    (1000000000, 1610612736)
    """
    found = _SIZE.fullmatch(limit.strip()) if isinstance(limit, str) else None
    if isinstance(limit, str) and found is None:
        raise InvalidArgumentError(
            f"`memory_limit` must be a size such as 1GB or 800MB; got {shown(limit)}."
        )
    if found is not None:
        base = 1024 if found[3] else 1000
        limit = int(float(found[1]) * base ** _UNITS[found[2].upper()])
    n_bytes = require_integer("memory_limit", limit, most=2**62)
    if n_bytes < LEAST:
        raise InvalidArgumentError(
            f"`memory_limit` must be at least {megabytes(LEAST)}, of which Python and the parsers "
            f"take {megabytes(BESIDE)}; got {megabytes(n_bytes)}."
        )
    return n_bytes


class Scratch:
    """A temporary database, and how far the work in it is.

    Attributes
    ----------
    con : DuckDBPyConnection
        The connection.
    folder : str
        Folder of its files.
    memory : int
        Bytes of memory of the whole process.
    """

    def __init__(
        self, con: duckdb.DuckDBPyConnection, folder: str, memory: int, progress: Progress | None
    ) -> None:
        self.con, self.folder, self.memory = con, folder, memory
        self._pool = ThreadPoolExecutor(1)
        self._progress = progress
        self._done = self._steps = 0

    def begin(self, steps: int) -> None:
        """Begin work of a number of steps, which each is one call of `step`."""
        self._done, self._steps = 0, steps
        self.tell("steps of counting", 0, steps)

    def step(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, as `run` does, and count it as a step."""
        rows = self.run(sql, values)
        self._done += 1
        self.tell("steps of counting", self._done, max(self._done, self._steps))
        return rows

    def tell(self, what: str, done: int, total: int) -> None:
        """Report the progress of the work, if anybody asked."""
        if self._progress is not None:
            self._progress(what, done, total, None)

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement with bound values, and return its rows; Ctrl-C ends it at once."""
        return self._wait(lambda: self.con.execute(sql, list(values)).fetchall())

    def _wait(self, work: Callable[[], Any]) -> Any:
        # the main thread must be free: the database doesn't look at signals, and takes one that
        # comes in its calls to Python for an error of its own
        future = self._pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            self.con.interrupt()
            future.exception()
            raise

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement, and return the first value of its first row."""
        return self.run(sql, values)[0][0]

    def append(
        self, table: str, batches: Iterable[pa.RecordBatch], tell: Callable[[int], object]
    ) -> int:
        """Append batches of rows to a table of as many columns, and return the number of rows.

        After some batches `tell` is called with the number so far.
        """
        import pyarrow as pa

        held: list[pa.RecordBatch] = []
        n_rows = 0
        for batch in chain(batches, [None]):
            if batch is not None:
                held.append(batch)
            size = sum(one.num_rows for one in held)
            # all at the end, or where they are long, and else whole groups
            while size and (batch is None or size >= ROWS or sum(b.nbytes for b in held) > HELD):
                rows = pa.Table.from_batches(held)
                self._insert(table, rows.slice(0, ROWS))
                held = rows.slice(ROWS).to_batches()
                n_rows += min(size, ROWS)
                size = max(0, size - ROWS)
                tell(n_rows)
        # what Arrow keeps for later is more than the limit has room for
        pa.default_memory_pool().release_unused()
        return n_rows

    def append_all(
        self,
        table: str,
        batches: Iterable[pa.RecordBatch],
        tell: Callable[[int], object],
        unsuited: type[Exception],
    ) -> int | None:
        """Append batches of rows, or none and return None if they raise `unsuited`."""
        before = self.one(f"select coalesce(max(rowid), -1) + 1 from {table}")
        try:
            return self.append(table, batches, tell)
        except unsuited:
            self.run(f"delete from {table} where rowid >= ?", [before])
            return None

    def _insert(self, table: str, rows: pa.Table) -> None:
        def insert() -> None:
            self.con.register("incoming", rows)
            try:
                self.con.execute(f"insert into {table} select * from incoming")
            finally:
                self.con.unregister("incoming")

        self._wait(insert)

    def close(self) -> None:
        """Close the database."""
        self._pool.shutdown()
        self.con.close()


@contextmanager
def scratch(
    source: str,
    *,
    memory_limit: str | int,
    temp_folder: str | os.PathLike[str] | None,
    threads: int | None,
    progress: Progress | None,
) -> Iterator[Scratch]:
    """Open a temporary database, and remove it at the end, as `temporary_folder` does.

    Parameters
    ----------
    source : str
        Name of what is counted, for messages.
    memory_limit : str or int
        Memory of the whole process, as `bytes_of` reads it.
    temp_folder : path, optional
        Folder in which a folder is made; by default that of the system, which ``TMPDIR`` names.
    threads : int, optional
        Number of threads; by default as many as there are processors and memory for.
    progress : callable, optional
        Function that is called with the progress of the work.

    Raises
    ------
    InvalidArgumentError
        For a wrong limit, or number of threads.
    StorageError
        If the disk is full, or the folder can't be used.
    MemoryBudgetError
        If the memory is too little.
    """
    import duckdb

    memory = bytes_of(memory_limit)
    own = int((memory - BESIDE) / OVER)
    if threads is None:
        threads = max(1, min(os.cpu_count() or 1, own // _A_THREAD))
    parent = gettempdir() if temp_folder is None else os.fspath(temp_folder)
    config = {
        "memory_limit": f"{own}B",
        "threads": str(require_integer("threads", threads, most=1024)),
        "preserve_insertion_order": "false",
        # nothing is fetched, and no name stands for a variable of Python
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
    }
    with temporary_folder(parent) as folder:
        config["temp_directory"] = os.fspath(Path(folder, "spilled"))
        db: Scratch | None = None
        try:
            con = duckdb.connect(Path(folder, "facts.duckdb"), config=config)  # type: ignore[arg-type]
            db = Scratch(con, folder, memory, progress)
            yield db
        except duckdb.Error as error:
            raise _mendable(error, source, folder, parent, memory) from error
        finally:
            if db is not None:
                db.close()


def _mendable(
    error: duckdb.Error, source: str, folder: str, parent: str, memory: int
) -> BaseException:
    """Make the error of a full disk, or of too little memory; others are errors of this program."""
    import duckdb

    said = str(error)
    free = shutil.disk_usage(parent).free
    if "No space left" in said or "max_temp_directory_size" in said or free < _NOTHING:
        used = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        return StorageError(
            parent,
            f"the disk is full: counting {source} has written {megabytes(used)}, and "
            f"{megabytes(free)} are free",
            ELSEWHERE,
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return MemoryBudgetError(
            f"{source}: {megabytes(memory)} of memory are too little for these facts. Raise "
            "`memory_limit`."
        )
    return error
