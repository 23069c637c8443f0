"""Read files of facts as a `Database`: content, format, parser; and rows that Python holds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack, cast

from capacity.database.choosing.selection import Selection
from capacity.database.facts import Database
from capacity.database.io.files.formats import resolve_format
from capacity.database.io.files.several import Sources, is_one, load_several
from capacity.database.io.libraries.excel import is_workbook, read_workbook
from capacity.database.io.parsing import content_of, format_of_kind, parsed
from capacity.database.io.reading import (
    LoadOptions,
    Reading,
    TableFileOptions,
    reading_of,
    with_options,
)
from capacity.database.policy import MultiPolicy, check_policy, multi_valued_warning
from capacity.errors import (
    AnnotationWarning,
    InvalidArgumentError,
    InvalidTypeError,
    MultiValuedError,
    UnknownTokenError,
    warn_caller,
)


@with_options(LoadOptions)
def load(
    path: Sources, *, multi: MultiPolicy | None = None, **options: Unpack[LoadOptions]
) -> Database:
    r"""Read facts: RDF in any common format, or a table of three columns; of one file or several.

    Parameters
    ----------
    path : path, binary file, or list of these
        File of facts, which may be compressed (gzip, bzip2, xz, zstandard); ``-`` is standard
        input. Of a folder the files are read whose names end as a known format's do, of a pattern
        such as ``data/*.nt`` all that it matches (``**`` matches folders in folders). The facts
        of several files are united; blank nodes of two files are never the same.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.
    format : str, optional
        Name, extension or media type of a registered format; by default it is guessed of each
        file.
    arity : int, optional
        Number of columns of the facts, by default 3. RDF has no facts of another arity.
    table, terms, columns, comment, split : optional
        Options of tables, as `read_table` has them.
    graph, base, contexts, annotations_of_facts : optional
        Options of RDF, as `read_rdf` has them.
    allow_empty : bool
        Whether a file without facts is an empty database, of shape (0, 0, 0), and no error.
    max_bytes, max_growth, max_rows, max_cells, max_term_bytes : optional
        Limits of a file, as `capacity.reading_limits.Limits` has them: of its bytes, also as it
        decompresses, how many times its stored size these may be, of its rows and cells, and of
        the bytes of a term.
    skip_errors : int
        Number of broken lines of N-Triples, N-Quads, TSV and CSV that are omitted at most, of each
        file, with a `SkippedLinesWarning`; with more of them the first error is raised. By default
        none.
    schema, literals, annotations, blank_nodes : {'keep', 'drop'}
        What becomes of facts of that kind, as `Selection` has it. The policy for multi-valued pairs
        is applied to the facts that stay.
    predicates, exclude, namespaces, types : sequence
        Names of what to keep, or to drop, as `Selection` has them.
    fold : sequence of str
        What is folded to facts before facts are selected: ``lists``, ``restrictions`` and
        ``statements``, as `capacity.database.choosing.folding.fold` has them.

    Returns
    -------
    Database
        The facts, with the file's name, hash and format as ``source``, and with the numbers of a
        selection as ``selected``.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read as a database: missing, empty, binary, broken, too large, or
        without facts; a table with another number of columns, that can be read in two ways, or
        with options of RDF; RDF with options of tables.
    InvalidTypeError
        If `path` names no file and is none, or `contexts` isn't a mapping; for an unknown option.
    InvalidArgumentError
        For an empty `path`, an unknown policy, an `arity` that isn't from 2 to 32, or as `read_rdf`
        and `read_table` do; if a selection keeps no fact, or for a wrong criterion.
    UnknownTokenError
        If no predicate, class or namespace of the file has the name of a criterion.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.tsv")
    ...     _ = path.write_text("Astrid\tborn_in\tSingapore")
    ...     db = load(path)
    >>> str(db("Astrid", "born_in"))
    'Singapore'
    """
    return load_with_all(path, multi=multi, **options)[0]


def load_with_all(
    path: Sources, *, multi: MultiPolicy | None = None, **options: Unpack[LoadOptions]
) -> tuple[Database, Database]:
    """Read facts as `load` does, and return beside those that are selected all of the file.

    Parameters
    ----------
    path, multi, **options
        As of `load`, with its errors.

    Returns
    -------
    Database
        What `load` returns.
    Database
        All facts that were read, under the policy ``keep``; the first database if nothing is
        selected.
    """
    reading, selection = reading_of("load", LoadOptions, options)
    if selection.options():
        with warnings.catch_warnings():
            if any(name.startswith("statements") for name in selection.fold):
                # which asks what is to become of facts about facts: they are folded
                warnings.simplefilter("ignore", AnnotationWarning)
            every = _read(path, reading, "keep")
        where = os.fspath(path) if isinstance(path, str | os.PathLike) else _name_of(every)
        return selected_part(every, selection, multi, where), every
    found = _read(path, reading, multi)
    return found, found


def _read(path: Sources, reading: Reading, multi: MultiPolicy | None) -> Database:
    if isinstance(path, str | os.PathLike) and is_workbook(path) and Path(path).is_file():
        return read_workbook(path, reading, multi=multi)
    if is_one(path):
        content = content_of(path, reading)
        return parsed(content, resolve_format(content, reading.format), reading, multi=multi)

    def read_one(file: Sources) -> Database:
        return _read(file, reading, "keep")

    return load_several(path, read_one, format=reading.format, multi=multi)


def _name_of(db: Database) -> str:
    return "the facts" if db.source is None else db.source.name


@with_options(TableFileOptions)
def read_table(
    path: str | os.PathLike[str],
    *,
    multi: MultiPolicy | None = None,
    **options: Unpack[TableFileOptions],
) -> Database:
    r"""Read a table: TSV, CSV or Parquet.

    A first row is a header if it reads ``subject predicate object``, or if it names these roles in
    other words (``head relation tail``, ``source target relation``, ``?s ?p ?o``, and others that
    `capacity.database.io.tables.headers` lists) that no other row repeats. What can be read in two
    ways is refused: words over a column of numbers or IRIs, too. Other first rows are facts.

    Parameters
    ----------
    path : path
        Table with three columns: subject, predicate, object, unless `table`, `arity` or `columns`
        specify others. It may be compressed; ``-`` is standard input.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.
    format : {'tsv', 'csv', 'parquet'}, optional
        Format of the table; by default it is guessed.
    arity : int, optional
        Number of columns of the table if it isn't 3; the last one holds the object, the others the
        key. The first row is a header only if it reads ``key_1 key_2 ... object``.
    table : {'long', 'wide', 'n3'}, optional
        Form of the table. ``long``: a row is a fact, and its cells are labels; ``n3``: the same
        with N-Triples terms in the cells; ``wide``: the first row names properties, the first
        column holds the subjects, and each other cell that isn't empty is a fact. By default a row
        is a fact, and a table that may be wide is refused.
    terms : {'label', 'n3'}, optional
        Form of the cells: plain labels, or N-Triples terms. By default they are terms if all of
        them are, with an IRI among them, or if the header names variables; a table in which only
        some cells are terms is refused.
    columns : sequence of str or int, optional
        Columns to read, the object's last: by their names, which the first row must hold, or by
        their positions from 0, of a table whose first row is a fact unless the whole of it
        is a header; with ``long``, all rows are facts.
    comment : str, optional
        What lines of comments begin with, such as ``#``; they are no rows, wherever they are. By
        default lines before the first row that begin with ``#`` or ``!`` are comments where one has
        another number of cells than that row, unless `table` is ``long``.
    split : str, optional
        What separates the values of a cell of objects that holds several, such as ``,`` in
        ``Horror, SciFi``: each is a fact, without the blanks around it.
    max_bytes, max_growth, max_rows, max_cells, max_term_bytes : optional
        Limits of the file, as `load` has them.
    skip_errors : int
        Most broken rows of TSV and CSV that are omitted, as `load` has it.

    Returns
    -------
    Database
        The rows of the table.

    Raises
    ------
    DatabaseFormatError
        If the file can't be read, for a row with another number of cells, a cell that isn't a term,
        a table without rows, without one of the `columns`, or that can be read in two ways.
    InvalidTypeError
        If `path` is neither a str nor a path.
    InvalidArgumentError
        For an unknown `table`, `terms` or policy, an `arity` that isn't from 2 to 32, or that isn't
        the number of `columns`.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.csv")
    ...     _ = path.write_text("head,relation,tail\n<x:Astrid>,<x:born_in>,<x:Singapore>")
    ...     db = read_table(path)
    >>> db.subjects[0].kind
    'iri'
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "weather.csv")
    ...     _ = path.write_text("id,city,month,year,weather\n1,Oslo,May,2024,sun")
    ...     read_table(path, columns=["city", "month", "year", "weather"])
    Database(1 facts of arity 4: 1 x 1 x 1 x 1, 4 tokens; functional)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("name,born,city\nBob,1980,Rome\nAnn,1990,")
    ...     read_table(path, table="wide").n_triples
    3
    """
    reading, _ = reading_of("read_table", TableFileOptions, options)
    if is_workbook(path) and Path(path).is_file():
        return read_workbook(path, reading, multi=multi)
    content = content_of(path, reading)
    chosen = format_of_kind(content, reading.format, "table")
    return parsed(content, chosen, reading, multi=multi)


def selected_part(
    db: Database, selection: Selection, multi: MultiPolicy | None, name: str
) -> Database:
    """Select from the facts of a file, and apply the policy to those that stay.

    Parameters
    ----------
    db : Database
        All facts, under the policy ``keep``.
    selection : Selection
        The criteria.
    multi : MultiPolicy or None
        The policy; None is ``keep``, with a warning if there are multi-valued pairs.
    name : str
        Name of the file, for messages.

    Raises
    ------
    InvalidArgumentError
        If no fact stays, or for an unknown policy.
    UnknownTokenError
        If no predicate, class or namespace has a name, or several do.
    MultiValuedError
        Under the policy ``error``, or if the policy leaves no fact.
    """
    check_policy(multi or "keep", db.arity)
    try:
        part = db.select(**selection.options())
        if multi is not None:
            return part.with_policy(multi)
    except (InvalidArgumentError, MultiValuedError, UnknownTokenError) as error:
        raise type(error)(f"{name}: {error}") from None
    if not part.is_functional:
        said = multi_valued_warning(part.n_multi_valued_pairs, part.n_pairs, part.arity)
        warn_caller(said)
    return part


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
