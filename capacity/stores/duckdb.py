"""Counts of facts in files that are larger than memory, by a temporary database on the disk.

Facts are read in a stream into a DuckDB database, as integers, and counted there by aggregates that
use the disk where memory is too small. The three tables of pairs are made one after the other, and
dropped when they are counted. Nothing is fetched from a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack

from capacity.checks import require_seconds, shown
from capacity.database.io.files.several import Name, files_of, is_one, name_of_all
from capacity.database.io.reading import with_options
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.optional import needed_by
from capacity.progress import Progress
from capacity.stores.counts import MOST_CLASSES, PairCounts, PredicateCounts, StoreCounts
from capacity.stores.scratch.keys import (
    BLANK,
    LITERAL,
    TRIPLE_WITH_BLANK,
    key_of,
    number_terms,
    term_of,
)
from capacity.stores.scratch.scratch import Scratch, scratch
from capacity.stores.scratch.streams import ends_of
from capacity.stores.staging import CountingOptions, counted_reading, stage
from capacity.stores.tables.cells import stage_table
from capacity.stores.tables.databases import database_table

# 8 steps for each kind of pairs, 3 of numbering, and those at the end
_STEPS = 3 * 5 + 3 + 3 + 2
_BLANK = f"in ({BLANK}, {TRIPLE_WITH_BLANK})"


def count_keyed(db: Scratch, source: str, notes: tuple[str, ...]) -> StoreCounts:
    """Count the facts whose keys are in the table ``keyed`` (s, p, o), which goes.

    Parameters
    ----------
    db : Scratch
        The temporary database.
    source : str
        Name of the file, table or endpoint.
    notes : tuple of str
        Further remarks.
    """
    db.begin(_STEPS)
    number_terms(db)
    sp, so, po = (_pairs(db, *roles) for roles in ("spo", "sop", "pos"))
    rows = db.step(
        "select key, f.facts, k.n, v.n, k.several, f.literals, f.blanks from (select p, count(*) "
        f"facts, count(*) filter (o % 8 = {LITERAL}) literals, count(*) filter (s % 8 {_BLANK} or "
        f"p % 8 {_BLANK} or o % 8 {_BLANK}) blanks from facts group by p) f "
        "join p_s k on k.x = f.p join p_o v on v.x = f.p join terms on terms.id = f.p"
    )
    found = sorted(
        (PredicateCounts(term_of(key), *numbers) for key, *numbers in rows),
        key=lambda row: (-row.facts, row.predicate),
    )
    # of the slices of each role, the smaller sides; every token of a role is in both tables
    sums = [
        db.step(f"select coalesce(sum(least(a.n, b.n)), 0)::bigint, count(*) from {role}_{one} a "
                f"join {role}_{other} b on a.x = b.x")[0]
        for role, one, other in ("spo", "pso", "ops")
    ]  # fmt: skip
    (subject, subjects), (predicate, predicates), (object_, objects) = sums
    return StoreCounts(
        source=source,
        facts=sum(row.facts for row in found),
        subjects=subjects,
        predicates=predicates,
        objects=objects,
        pairs=sp.pairs,
        multi_valued_pairs=sp.several,
        subject_objects=so.pairs,
        predicate_objects=po.pairs,
        slice_sums=(subject, predicate, object_),
        private=(po.private, so.private, sp.private),
        predicates_rows=tuple(found),
        classes=_classes(db),
        notes=notes,
    )


def _pairs(db: Scratch, a: str, b: str, third: str) -> PairCounts:
    """Count the pairs of two roles, and of each token of one its different tokens of the other."""
    db.step(f"create table pairs as select {a}, {b}, count(*) n, min({third}) one from facts "
            f"group by {a}, {b}")  # fmt: skip
    pairs, several = db.run("select count(*), count(*) filter (n > 1) from pairs")[0]
    ((private,),) = db.step("select count(*) from (select distinct one from pairs where n = 1)")
    for of, other in (a, b), (b, a):
        db.step(f"create table {of}_{other} as select {of} x, count(*) n, count(*) filter (n > 1) "
                f"several from pairs group by {of}")  # fmt: skip
    db.step("drop table pairs")
    return PairCounts(pairs, several, private)


def _classes(db: Scratch) -> tuple[tuple[Term, int], ...]:
    """Count the subjects of each object of ``rdf:type``, those with most first."""
    # of as many, IRIs in their order: their keys end in a character that IRIs don't hold
    rows = db.step(
        "select t.key, c.n from (select o, count(*) n from facts where p = (select id from terms "
        "where key = ?) group by o) c join terms t on t.id = c.o "
        "order by n desc, rtrim(t.key, '>') limit ?",
        [key_of(Term("iri", RDF_TYPE)), MOST_CLASSES],
    )
    return tuple(sorted(((term_of(key), n) for key, n in rows), key=lambda c: (-c[1], c[0])))


MEMORY_LIMIT = "1GB"
# seconds for a view
TIMEOUT = 60.0


@with_options(CountingOptions)
def count_duckdb(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    views: bool = False,
    timeout: float = TIMEOUT,
    memory_limit: str | int = MEMORY_LIMIT,
    temp_folder: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **options: Unpack[CountingOptions],
) -> StoreCounts:
    r"""Count facts that may be larger than memory, and bound their rank by the counts.

    Parameters
    ----------
    path : path, or list of these
        Files of any format, as `capacity.load` reads them; folders, and patterns such as
        ``parts/*.parquet``. N-Triples, N-Quads, Parquet and other tables are read in a stream; the
        text of other formats takes a quarter of the memory at most. Or a DuckDB database, which is
        opened for reading alone.
    views : bool
        Whether `table` may also be a view of a DuckDB database, which is a program: a process of
        its own evaluates it, limited by `timeout`, `max_rows` and, on Linux, half a gigabyte.
    timeout : float
        Seconds for reading a view.
    memory_limit : str or int
        Memory of the whole process, such as ``"1GB"``; what doesn't fit goes to the disk.
    temp_folder : path, optional
        Folder for the temporary database, which is removed at the end, and if this process is
        killed by the next count there; by default that of the system, which the variable ``TMPDIR``
        names. It takes up to some times the size of the text.
    threads : int, optional
        Number of threads; by default as many as there are processors and memory for.
    progress : callable, optional
        Function that is called with the progress of the work: bytes or rows read, then steps of
        counting.
    format : str, optional
        Format of all files; by default it is guessed of each.
    table : str, optional
        Of a DuckDB database, the name of a table; of other tables, their form, as `capacity.load`
        has it.
    terms : str, optional
        Form of the cells of tables, as `read_table` has it.
    columns : sequence of str or int, optional
        Columns of subject, predicate and object, by name or by position from 0.
    comment : str, optional
        What lines of comments of a table begin with, as `read_table` has it.
    graph, base, contexts : optional
        Options of RDF, as `read_rdf` has them.
    max_growth, max_rows, max_cells, max_term_bytes : optional
        Limits of each file, as `capacity.load` has them. The bytes of a file aren't limited.
    skip_errors : int
        Most broken lines of a file of N-Triples or N-Quads that are omitted; ``notes`` list them.

    Returns
    -------
    StoreCounts
        Numbers of facts and tokens, and bounds of the rank. Facts are a set. Blank nodes of two
        files are two.

    Raises
    ------
    DatabaseFormatError
        If a file can't be read as facts, as by `capacity.load`, is of another format, or passes a
        limit.
    InvalidTypeError
        If `path` holds anything but paths.
    InvalidArgumentError
        For an unknown form of the table, other numbers of columns than 3, a wrong limit, or a wrong
        number of threads.
    MemoryBudgetError
        If `memory_limit` is too little.
    StorageError
        If the disk is full, or the folder can't be used.
    MissingExtraError
        If the extra ``duckdb`` isn't installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "towns.nt")
    ...     _ = path.write_text("<x:Oslo> <x:in> <x:Norway> .\n<x:Bergen> <x:in> <x:Norway> .")
    ...     found = count_duckdb(path)
    >>> found
    StoreCounts(towns.nt: 2 facts, 2 x 1 x 1; functional; rank in [1, 1])
    """
    with needed_by("Counting out of core"):
        import duckdb as duckdb
        import pyarrow as pyarrow
    given: dict[str, Any] = dict(options)
    seconds = require_seconds("timeout", timeout) if views else None
    names = _named(path)
    alone = len(names) == 1 and bool(is_one(names[0]))
    first = names[0] if alone else None
    is_database = first is not None and _is_duckdb(first, options.get("format"))
    # of a database, `table` is the name of one
    name = given.pop("table", None) if is_database else None
    reading = counted_reading("count_duckdb", given)
    if is_database:
        reading.require_kind(str(first), "duckdb", "table")
    files, notes = ([first], ()) if first is not None else files_of(names, reading.format)
    source = Path(first).name if first is not None else name_of_all(names, len(files))
    with scratch(
        source,
        memory_limit=memory_limit,
        temp_folder=temp_folder,
        threads=threads,
        progress=progress,
    ) as db:
        db.run("create table keyed (s varchar, p varchar, o varchar)")
        for number, where in enumerate(map(str, files), start=1):
            file = number if len(files) > 1 else None
            if not is_database:
                said = stage(db, where, reading, file)
                notes += said if len(files) == 1 else tuple(f"{where}: {note}" for note in said)
                continue
            with database_table(db, where, name, reading, seconds) as table:
                stage_table(db, table, file)
        return count_keyed(db, source, notes)


def _named(path: Name | Iterable[Name]) -> list[str]:
    if isinstance(path, str | os.PathLike):
        path = [path]
    names = list(path) if isinstance(path, Iterable) else [path]
    for name in names:
        if not isinstance(name, str | os.PathLike):
            raise InvalidTypeError(
                f"Files to count must be named by paths, for they are read more than once; got "
                f"{shown(name)}."
            )
        if os.fspath(name) in ("", "-"):
            raise InvalidArgumentError(
                "Files to count must be named by paths, for they are read more than once; got "
                f"{shown(name)}. Save standard input to a file first."
            )
    return [os.fsdecode(name) for name in names]


def _is_duckdb(where: str, format: str | None) -> bool:
    if format is not None:
        return format.lower() == "duckdb"
    return ends_of(where)[0][8:12] == b"DUCK"
