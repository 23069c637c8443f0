"""Write facts to a file in the format of its name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path
from typing import Any

from capacity.database.given_facts import DatabaseLike, require_database
from capacity.database.io.files.formats import FORMATS, format_called, format_of_name
from capacity.database.io.table_options import TableTerms, check_terms
from capacity.database.terms.term import NO_SETS
from capacity.errors import InvalidArgumentError
from capacity.safe_files import write_whole


def write(
    db: DatabaseLike,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    terms: TableTerms | None = None,
) -> None:
    """Write facts to a file, from which `load` reads the same facts.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Facts to write.
    path : path
        File to write or to replace; missing folders are made. The end of its name determines the
        format and the compression: ``.nt``, ``.nq``, ``.ttl`` and ``.trig`` for RDF, ``.tsv``,
        ``.csv`` and ``.parquet`` (extra ``layers``) for a table with a header; then perhaps
        ``.gz``, ``.bz2`` or ``.xz``.
    format : str, optional
        Name, extension or media type of a format, if the name of the file doesn't determine it.
    terms : {'label', 'n3'}, optional
        Form of the cells of a table: plain labels, or N-Triples terms. By default labels if all
        tokens are labels, else N-Triples terms, which a header of variables marks: ``?subject
        ?predicate ?object``. Facts of another arity are read with `arity`.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        If no format is known that writes such a file, or the format can't hold the facts so that
        they are read as the same: sets, labels or facts of another arity than 3 in RDF, a
        label with a tab or a line break in TSV, or one that is half of a character.
    StorageError
        If the file can't be written, or `path` is a folder, a pipe or a device. A file that was
        there before is unchanged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from capacity.database import load, parse_rdf
    >>> text = '<x:Astrid> <x:born_in> <x:Singapore>, "Singapur"@de .'
    >>> db = parse_rdf(text, "turtle", multi="keep")
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("facts.nt", "facts.tsv"):
    ...         write(db, Path(folder, name))
    ...         assert load(Path(folder, name), multi="keep") == db
    ...     print(Path(folder, "facts.tsv").read_text().splitlines()[2])
    <x:Astrid>	<x:born_in>	"Singapur"@de
    """
    db = require_database(db, "write(db, path)")
    check_terms(terms)
    name = os.fspath(path)
    chosen = format_of_name(name) if format is None else format_called(format)
    if chosen is None or chosen.write is None:
        writing = ", ".join(known.name for known in FORMATS.values() if known.write is not None)
        said = Path(name).name if format is None else format
        raise InvalidArgumentError(
            f"The format to write must be one of {writing}; got {said!r:.60}. Choose a file such "
            "as facts.nt or facts.tsv, or `format`."
        )
    options: dict[str, Any] = {} if terms is None else {"terms": terms}
    if options and chosen.kind != "table":
        raise InvalidArgumentError(
            f"`terms` is the form of the cells of a table; {chosen.name} has none. Omit it."
        )
    if any(token.kind == "set" for token in db.tokens):
        raise InvalidArgumentError(NO_SETS)
    write_whole(path, _compressed(name, chosen.write(db, chosen, **options)))


def write_tsv(
    db: DatabaseLike, path: str | os.PathLike[str], *, terms: TableTerms | None = None
) -> None:
    """Write facts to a TSV file with a header row, whatever its name, as `write` does.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Facts to write.
    path : path
        File to write or to replace; missing folders are made.
    terms : {'label', 'n3'}, optional
        Form of the cells: plain labels, or N-Triples terms. By default labels if all tokens are
        labels, else N-Triples terms.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        If a token has no such form, or for a label that TSV can't hold, with a tab or a line
        break.
    StorageError
        If the file can't be written, or `path` is a folder, a pipe or a device. A file that was
        there before is unchanged.

    Examples
    --------
    >>> from capacity import Database
    >>> from tempfile import TemporaryDirectory
    >>> db = Database.from_triples([("Astrid", "born_in", "Singapore")])
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.tsv")
    ...     write_tsv(db, path)
    ...     path.read_text().split()
    ['subject', 'predicate', 'object', 'Astrid', 'born_in', 'Singapore']
    """
    db = require_database(db, "write_tsv(db, path)")
    write(db, path, format="tsv", terms=terms)


def _compressed(name: str, data: bytes) -> bytes:
    suffix = Path(name).suffix.lower()
    if suffix == ".gz":
        # the same facts give the same bytes at any time
        return gzip.compress(data, mtime=0)
    if suffix in (".bz2", ".xz"):
        return bz2.compress(data) if suffix == ".bz2" else lzma.compress(data)
    if suffix == ".zst":
        raise InvalidArgumentError(
            "The compression must be .gz, .bz2 or .xz; got .zst, which is read and not written."
        )
    return data
