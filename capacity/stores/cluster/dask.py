"""Counts of facts in files on a Dask cluster: the same aggregates, where the data are.

Each group of rows of a Parquet file, and each file of another format, is a task, which a worker
reads by itself; what follows is in `capacity.stores.cluster.dask_counts`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from capacity._version import __version__
from capacity.checks import in_a_line
from capacity.database.io.files.several import files_of, is_one, name_of_all
from capacity.database.io.reading import Reading, with_options
from capacity.database.io.skipping import in_words
from capacity.database.io.tables.cells import form_of, in_full, uncertain
from capacity.database.io.tables.layout import Layout, layout_of
from capacity.database.io.tables.table import missing_cell
from capacity.errors import ClusterError
from capacity.progress import Progress
from capacity.reading_limits import Limits
from capacity.schedulers import connected
from capacity.stores.cluster.dask_counts import Cluster, count_parts
from capacity.stores.cluster.parquet_parts import KEYS, Part, Survey, skipped_in, survey
from capacity.stores.counts import StoreCounts
from capacity.stores.staging import CountingOptions, counted_reading, format_of, notes_on_comments
from capacity.stores.tables.cells import TableFile, wrong_cell, wrong_predicate
from capacity.stores.tables.files import parquet_table


@with_options(CountingOptions)
def count_dask(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    scheduler: str,
    *,
    progress: Progress | None = None,
    **options: Unpack[CountingOptions],
) -> StoreCounts:
    """Count facts in files on a Dask cluster, and bound their rank by the counts.

    Parameters
    ----------
    path : path, or list of these
        Files of any format, folders of them, and patterns such as ``parts/*.parquet``. A task reads
        a group of rows of a Parquet file, or a whole file of another format, which a worker must
        have the memory to load. This process and all workers must see them under the same paths.
    scheduler : str
        Address of a Dask scheduler, such as ``tcp://10.0.0.1:8786``, which must have this version
        of the library, as its workers must.
    progress : callable, optional
        Function that is called with the progress of the work, in steps.
    format : str, optional
        Format of all files; by default it is guessed of each.
    table, terms : str, optional
        Forms of a table and of its cells, as `capacity.database.read_table` has them.
    columns : sequence of str or int, optional
        Columns of subject, predicate and object, by name or by position from 0.
    comment : str, optional
        What lines of comments of a table begin with, as `read_table` has it.
    graph, base, contexts : optional
        Options of RDF, as `read_rdf` has them.
    max_growth, max_rows, max_cells, max_term_bytes : optional
        Limits of each file, as `capacity.load` has them. The bytes of a file aren't limited.
    skip_errors : int
        Most broken lines of a file that are omitted, as `capacity.load` has it; ``notes`` list
        them.

    Returns
    -------
    StoreCounts
        The same as of `count_duckdb`.

    Raises
    ------
    ClusterError
        If no scheduler answers, it has no workers, or it abandons a task.
    DatabaseFormatError
        If a file can't be read as facts, or passes a limit.
    InvalidArgumentError
        For an unknown form of the table, or other numbers of columns than 3.
    InvalidTypeError
        If `path` holds anything but paths.
    MissingExtraError
        If the extra ``distributed`` isn't installed.
    """
    given = [path] if isinstance(path, str | os.PathLike) else list(path)
    reading = counted_reading("count_dask", options)
    files, notes = files_of(given, reading.format)
    alone = len(given) == 1 and bool(is_one(given[0]))
    name = Path(given[0]).name if alone else name_of_all(given, len(files))
    read: dict[str, _File] = {}
    parts: list[Part] = []
    for number, file in enumerate(files, start=1):
        where, of_several = str(Path(file).absolute()), number if len(files) > 1 else None
        format = format_of(where, reading)
        reading.require_kind(where, format.name, format.kind)
        if format.name == "parquet" and not reading.of_table.wide:
            read[where] = _File.read(where, reading)
            parts += read[where].parts(of_several)
        else:
            parts.append(Part(where, file=of_several, reading=reading))
            said = notes_on_comments(where, format, reading)
            notes += said if len(files) == 1 else tuple(f"{where}: {note}" for note in said)
    packages = ("dask", "distributed", "pandas")
    instead = "count in this process, by count_duckdb"
    with (
        connected(scheduler, "count_dask", packages, ClusterError, instead=instead) as client,
        _in_words(scheduler),
    ):
        _require_library(client, scheduler)
        cluster = Cluster(client, progress)
        forms = _forms(cluster, read, parts)
        if reading.skip_errors:
            for part, found in zip(parts, cluster.map(skipped_in, parts), strict=True):
                notes += (in_words(part.path, found),) if found else ()
        return count_parts(cluster, parts, forms, name, notes)


@dataclass(frozen=True)
class _File:
    """A file, and where the facts are in it."""

    of: TableFile
    layout: Layout
    limits: Limits

    @classmethod
    def read(cls, where: str, reading: Reading) -> _File:
        """Read what the file contains about itself."""
        of = parquet_table(where, reading, lambda *_: None)
        layout = layout_of(of.table, of.options)
        if layout.doubt is not None:
            # whether two rows have one subject would take a count of its own
            raise layout.doubt
        return cls(of, layout, reading.limits)

    def parts(self, number: int | None) -> Iterator[Part]:
        """Yield the groups of its rows."""
        import pyarrow.parquet as pq

        names, where = self.of.table.names or (), self.of.table.name
        columns, most = tuple(names[i] for i in self.layout.order), self.limits.max_term_bytes
        for group in range(pq.read_metadata(where).num_row_groups):
            variables = self.layout.variables
            yield Part(where, group, columns, number, variables, most)

    def form(self, found: Sequence[Survey]) -> str:
        """Return the form of the cells, or raise what is wrong with them."""
        table, terms = self.of.table, self.of.options.terms
        if any(one.missing for one in found):
            # the first of them raises it
            for _ in self.layout.facts(table):
                pass
            raise missing_cell(table, None)
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
            cells = (cell for _, row in self.layout.facts(table) for cell in row)
            raise uncertain(table.name, table.format, cells, self.layout.facts(table))
        wrong = next((one.wrong for one in found if one.wrong is not None), None)
        if form == "n3" and wrong is not None:
            text = in_full(wrong) if self.layout.variables else wrong
            raise wrong_cell(self.of, self.layout, {wrong: text})
        if form == "n3" and any(one.literal_predicate for one in found):
            raise wrong_predicate(self.of, self.layout)
        return form


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
            f"{in_a_line(error):.200} Allow workers more memory, or write smaller groups of rows."
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
    """Return the form of the cells of each part: that of its file, or keys where it is loaded."""
    surveys: dict[str, list[Survey]] = {name: [] for name in files}
    asked = [part for part in parts if part.path in files]
    for part, found in zip(asked, cluster.map(survey, asked), strict=True):
        surveys[part.path].append(found)
    forms = {name: file.form(surveys[name]) for name, file in files.items()}
    return [forms.get(part.path, KEYS) for part in parts]
