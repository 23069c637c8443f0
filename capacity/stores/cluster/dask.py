"""Counts of facts in Parquet files on a Dask cluster: the same aggregates, where the data are.

Each group of rows is a task, which a worker reads by itself; what follows is in
`capacity.stores.cluster.dask_counts`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capacity._version import __version__
from capacity.checks import in_a_line
from capacity.database.io.files.formats import format_of_name
from capacity.database.io.files.several import files_of, is_one, name_of_all
from capacity.database.io.tables.cells import form_of, in_full, recognised, uncertain
from capacity.database.io.tables.options import Columns, TableOptions, table_options
from capacity.errors import ClusterError, DatabaseFormatError
from capacity.progress import Progress
from capacity.reading_limits import MAX_GROWTH, MAX_TERM_BYTES, Limits
from capacity.schedulers import connected
from capacity.stores.cluster.dask_counts import Cluster, count_parts
from capacity.stores.cluster.parquet_parts import (
    Part,
    Survey,
    survey,
)
from capacity.stores.counts.counts import StoreCounts
from capacity.stores.tables.cells import TableFile, rows_of_facts, wrong_cell
from capacity.stores.tables.files import parquet_table
from capacity.stores.tables.layout import Layout, layout_of, require_rows_of_facts


def count_dask(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    scheduler: str,
    *,
    table: str | None = None,
    columns: Columns | None = None,
    max_growth: int = MAX_GROWTH,
    max_rows: int | None = None,
    max_cells: int | None = None,
    max_term_bytes: int = MAX_TERM_BYTES,
    progress: Progress | None = None,
) -> StoreCounts:
    """Count facts in Parquet files on a Dask cluster, and bound their rank by the counts.

    Parameters
    ----------
    path : path, or list of these
        Parquet files, folders of them, and patterns such as ``parts/*.parquet``. This process and
        all workers must see them under the same paths.
    scheduler : str
        Address of a Dask scheduler, such as ``tcp://10.0.0.1:8786``, which must have this version
        of the library, as its workers must.
    table : str, optional
        Form of the cells, ``long`` or ``n3``, as `capacity.load` has it.
    columns : sequence of str or int, optional
        Columns of subject, predicate and object, by name or by position from 0.
    max_growth, max_rows, max_cells, max_term_bytes : optional
        Limits of each file, as `capacity.load` has them. The bytes of a file aren't limited.
    progress : callable, optional
        Function that is told how far the work is, in steps.

    Returns
    -------
    StoreCounts
        The same as of `count_duckdb`.

    Raises
    ------
    ClusterError
        If no scheduler answers, it has no workers, or it gives a task up.
    DatabaseFormatError
        If a file can't be read as facts, or passes a limit.
    InvalidArgumentError
        For an unknown form of the table, or other numbers of columns than 3.
    InvalidTypeError
        If `path` holds anything but paths.
    MissingExtraError
        If the extra ``distributed`` isn't installed.
    """
    limits = Limits(sys.maxsize, max_growth, max_rows, max_cells, max_term_bytes)
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    options = table_options(table, None, None, columns)
    require_rows_of_facts("the files", options)
    files, notes = files_of(given, "parquet")
    alone = len(given) == 1 and bool(is_one(given[0]))
    name = Path(given[0]).name if alone else name_of_all(given, len(files))
    for where in files:
        known = format_of_name(os.fspath(where))
        if known is not None and known.name != "parquet":
            raise DatabaseFormatError(
                os.fspath(where),
                "the workers of Dask count Parquet files alone",
                advice="Count it in this process, out of core, or write it as Parquet.",
            )
    read = [
        _File.read(str(Path(where).absolute()), options, limits, said=table is not None)
        for where in files
    ]
    parts = [
        part
        for number, file in enumerate(read, start=1)
        for part in file.parts(number if len(files) > 1 else None)
    ]
    packages = ("dask", "distributed", "pandas")
    instead = "count in this process, by count_duckdb"
    with (
        connected(scheduler, "count_dask", packages, ClusterError, instead=instead) as client,
        _in_words(scheduler),
    ):
        _require_library(client, scheduler)
        cluster = Cluster(client, progress)
        forms = _forms(cluster, {file.of.table.name: file for file in read}, parts)
        return count_parts(cluster, parts, forms, name, notes)


@dataclass(frozen=True)
class _File:
    """A file, and where the facts are in it."""

    of: TableFile
    layout: Layout
    limits: Limits

    @classmethod
    def read(cls, where: str, options: TableOptions, limits: Limits, *, said: bool) -> _File:
        """Read what the file says of itself."""
        of = parquet_table(where, options, limits, lambda *_: None, said=said)
        layout = layout_of(of.table, of.options)
        if layout.doubt is not None:
            # whether two rows have one subject would take a count of its own
            raise layout.doubt
        return cls(of, layout, limits)

    def parts(self, number: int | None) -> Iterator[Part]:
        """Yield the groups of its rows."""
        import pyarrow.parquet as pq

        names, where = self.of.table.names or (), self.of.table.name
        columns, most = tuple(names[i] for i in self.layout.order), self.limits.max_term_bytes
        for group in range(pq.read_metadata(where).num_row_groups):
            yield Part(where, group, columns, number, self.layout.variables, most)

    def form(self, found: Sequence[Survey]) -> str:
        """Tell the form of the cells, or raise what is wrong with them."""
        table, terms = self.of.table, self.of.options.terms
        if any(one.missing for one in found):
            rows = rows_of_facts(self.of, self.layout)
            line = next((line for line, row in rows if None in row), None)
            raise table.error("a cell is missing", line, "Drop the row, or fill the cell.")
        if any(one.long for one in found):
            reason, advice = self.limits.excess(term=self.limits.max_term_bytes + 1) or ("", "")
            raise table.error(reason, None, advice)
        form = terms or ("n3" if self.layout.variables else None)
        if form is None:
            iri, plain = (
                any(of)
                for of in zip(*((one.some_iri, one.some_plain) for one in found), strict=True)
            )
            form = form_of(iri, plain)
        if form is None:
            raise self._uncertain()
        wrong = next((one.wrong for one in found if one.wrong is not None), None)
        if form == "n3" and wrong is not None:
            text = in_full(wrong) if self.layout.variables else wrong
            raise wrong_cell(self.of, self.layout, {wrong: text})
        return form

    def _uncertain(self) -> DatabaseFormatError:
        examples: dict[bool, str] = {}
        for _, row in rows_of_facts(self.of, self.layout):
            for cell in row:
                examples.setdefault(recognised([cell]) == "label", cell)
            if len(examples) == 2:
                break
        rows = rows_of_facts(self.of, self.layout)
        return uncertain(self.of.table.name, self.of.table.format, examples.values(), rows)


@contextmanager
def _in_words(scheduler: str) -> Iterator[None]:
    """Turn what Dask raises if it loses workers, or is gone itself, into words."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            f"The scheduler at {scheduler} has given a task up, whose workers died: "
            f"{in_a_line(error):.200} Give workers more memory, or write smaller groups of rows."
        ) from None
    except (CancelledError, CommClosedError, TimeoutError):
        raise ClusterError(
            f"The scheduler at {scheduler} is gone. Start it again, and count again."
        ) from None
    except FileNotFoundError as error:
        raise ClusterError(
            f"The workers of {scheduler} must see the files under the same paths as this process; "
            f"{error.filename} isn't there. Use a folder that all share."
        ) from None


# evaluated elsewhere, for a function of this library can't arrive where the library isn't
_VERSION = "__import__('importlib.util').util.find_spec('capacity') and "
_VERSION += "__import__('capacity').__version__"


def _require_library(client: Any, scheduler: str) -> None:
    """Require this version of the library of the scheduler and of all workers."""
    found = {scheduler: client.run_on_scheduler(eval, _VERSION), **client.run(eval, _VERSION)}
    for where, version in found.items():
        if version != __version__:
            has = f"has {version}" if version else "hasn't the library"
            raise ClusterError(
                f"The scheduler at {scheduler} and its workers must have this library, "
                f"{__version__}, with its extra `distributed`; {where} {has}. Install it there."
            )


def _forms(cluster: Cluster, files: Mapping[str, _File], parts: Sequence[Part]) -> list[str]:
    """Tell the form of the cells of each part, that of its file."""
    surveys: dict[str, list[Survey]] = {name: [] for name in files}
    for part, found in zip(parts, cluster.map(survey, parts), strict=True):
        surveys[part.path].append(found)
    forms = {name: file.form(surveys[name]) for name, file in files.items()}
    return [forms[part.path] for part in parts]
