"""Parse checked content as facts: rules that all formats share, those from outside too.

A format yields rows. It handles neither limits, nor empty files, nor sources, nor the file's name
in an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO, Literal

import numpy as np

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.database.io.files.content import Content, Text, read, refuse_excess
from capacity.database.io.files.formats import FORMATS, Cells, Format, resolve_format
from capacity.database.io.reading import Reading
from capacity.database.io.skipping import found_by, tell, without
from capacity.database.io.tables.text import parse_table_content
from capacity.database.policy import MultiPolicy
from capacity.database.terms.columns import longer_than
from capacity.database.terms.term import Term
from capacity.errors import (
    DatabaseFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    MultiValuedError,
)


def content_of(path: str | os.PathLike[str] | BinaryIO, reading: Reading) -> Content:
    """Read a file as checked content, as a `Reading` has it; errors are those of `read`."""
    return read(
        path, limits=reading.limits, allow_empty=reading.allow_empty,
        skip_errors=reading.skip_errors,
    )  # fmt: skip


def format_of_kind(content: Content, name: str | None, kind: Literal["rdf", "table"]) -> Format:
    """Find the format of a name, or guess it, and refuse one that isn't of a kind.

    Raises
    ------
    DatabaseFormatError
        With the names of the formats that are.
    """
    format = resolve_format(content, name)
    if format.kind == kind:
        return format
    names = ", ".join(name for name, known in FORMATS.items() if known.kind == kind)
    raise DatabaseFormatError(
        content.name,
        "it must be RDF" if kind == "rdf" else "it must be a table",
        format=format.name,
        advice=f"Read it with `load`, or pass its format: {names}.",
    )


def parsed(
    content: Content, format: Format, reading: Reading, *, multi: MultiPolicy | None = None
) -> Database:
    """Parse content, and refuse terms that are too long, and too many facts.

    Parameters
    ----------
    content : Content
        The file.
    format : Format
        Its format.
    reading : Reading
        The caller's options for it.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs.

    Raises
    ------
    DatabaseFormatError
        For options of another kind of format, for what the format refuses, and for a term or a
        number of facts over the content's limits.
    MultiValuedError
        Under the policy ``error``, or if it leaves no fact, with the name of the file.
    """
    reading.require_kind(content.name, format.name, format.kind)
    if reading.skip_errors:
        return _without_broken_lines(content, format, reading, multi)
    return _parsed(content, format, reading, multi)


def _without_broken_lines(
    content: Content, format: Format, reading: Reading, multi: MultiPolicy | None
) -> Database:
    """Parse content, and again without the lines that are broken, if these are few."""
    data, omitted = content.data, dict(content.omitted)
    first: DatabaseFormatError | None = None
    while True:
        try:
            db = _parsed(replace(content, data=data), format, reading, multi)
            break
        except DatabaseFormatError as error:
            first = first or error
            more = found_by(error, data, format.name, reading.skip_errors)
            found = [one for one in more if one[0] not in omitted]
            if not found or len(omitted) + len(found) > reading.skip_errors:
                raise first from None
        omitted |= found
        data = without(data, [line for line, _ in found])
    if not omitted:
        return db
    tell(content.name, omitted.items())
    skipped = tuple(sorted(omitted.items()))
    source = db.source or content.source(format.name)
    return replace(db, source=replace(source, skipped=skipped))


def _parsed(
    content: Content, format: Format, reading: Reading, multi: MultiPolicy | None
) -> Database:
    parse = format.parse or (parse_table_content if format.kind == "table" else _of_rows)
    try:
        db = parse(content, format, reading, multi=multi)
    except MultiValuedError as error:
        raise MultiValuedError(f"{content.name}: {error}") from None
    if db.source is None:
        db = replace(db, source=content.source(format.name))
    text = longer_than(content.limits.max_term_bytes, db.tokens)
    if text is not None:
        raise too_long(content.name, format.name, text, content.limits.max_term_bytes)
    return db


def _of_rows(
    content: Content, format: Format, reading: Reading, *, multi: MultiPolicy | None = None
) -> Database:
    rows = [cells for _, cells in rows_of_terms(content, format, reading)]
    if not rows:
        if not reading.allow_empty:
            raise DatabaseFormatError(content.name, "it holds no facts", format=format.name)
        nothing = np.empty((0, 3), np.int32)
        return Database.from_ids((), nothing, allow_empty=True)
    try:
        return Database.from_tuples(rows, multi=multi)
    except (InvalidArgumentError, InvalidTypeError) as error:
        raise DatabaseFormatError(content.name, str(error), format=format.name) from None


def _refuse_term(content: Text, format: Format, line: int, cell: object) -> None:
    """Refuse what isn't a term, has no form in UTF-8, or is too long."""
    name, text = content.name, cell.text if isinstance(cell, Term) else cell
    if not isinstance(text, str):
        reason = f"each term must be a `Term` or a str; got {shown(cell)}"
        raise DatabaseFormatError(name, reason, format=format.name, line=line)
    most = content.limits.max_term_bytes
    if text.isascii() and len(text) <= most:
        return
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        reason = f"a term has no form in UTF-8: {text!r:.60}"
        raise DatabaseFormatError(name, reason, format=format.name, line=line) from None
    if size > most:
        raise too_long(name, format.name, text, most, line)


def too_long(
    name: str, format: str, text: str, most: int, line: int | None = None
) -> DatabaseFormatError:
    """Make the error for a term of more bytes than the limits allow."""
    return DatabaseFormatError(
        name,
        f"a term, {text[:20]!r}..., is longer than {most:,} bytes",
        format=format,
        line=line,
        advice="Shorten it, or raise `max_term_bytes`.",
    )


def rows_of_terms(
    content: Text, format: Format, reading: Reading
) -> Iterator[tuple[int, tuple[Cells, ...]]]:
    """Yield the lines and the facts of a format from outside, within limits, with the errors of it.

    Raises
    ------
    DatabaseFormatError
        For what the format refuses, a fact of another arity, or too many facts.
    """
    split, arity, line, n_rows = format.split, reading.of_table.arity, None, 0
    rows: Iterable[tuple[int, tuple[Cells, ...]]] = () if split is None else split(content, reading)
    rows = iter(rows)
    while True:
        try:
            row = next(rows, None)
        except DatabaseFormatError:
            raise
        except (InvalidTypeError, ValueError) as error:
            after = f" (after line {line})" if line is not None else ""
            raise DatabaseFormatError(content.name, f"{error}{after}", format=format.name) from None
        if row is None:
            return
        line, cells = row
        n_rows += 1
        for cell in cells:
            _refuse_term(content, format, line, cell)
        refuse_excess(content.name, format.name, content.limits.excess(rows=n_rows))
        if len(cells) != arity:
            raise DatabaseFormatError(
                content.name,
                f"a fact must have {arity} terms; this one has {len(cells)}",
                format=format.name,
                line=line,
                advice=None if reading.arity else "Facts of another number are read with `arity`.",
            )
        yield line, tuple(cells)
