"""Parse content in a format: what every reader of files shares."""

from __future__ import annotations

import sys
from typing import Any

from capacity.database.facts import Database
from capacity.database.io.content import Content
from capacity.database.io.formats import FORMATS, Format
from capacity.database.term_columns import longer_than
from capacity.errors import DatabaseFormatError, MultiValuedError
from capacity.limits import require_integer

# the most that the parser of RDF reads in most formats; the same for all of them
MAX_TERM_BYTES = 2**24


def given(**options: Any) -> dict[str, Any]:
    """Keep the options that the user gives; a format from outside may know no others."""
    return {name: value for name, value in options.items() if value is not None}


def of_kind(content: Content, format: Format, kind: str, what: str) -> Format:
    """Refuse a format that isn't of a kind.

    Raises
    ------
    DatabaseFormatError
        With the names of the formats that are.
    """
    if format.kind == kind:
        return format
    names = ", ".join(name for name, known in FORMATS.items() if known.kind == kind)
    raise DatabaseFormatError(
        content.name,
        f"it must be {what}",
        format=format.name,
        advice=f"Read it with `load`, or give its format: {names}.",
    )


def parsed(content: Content, format: Format, *, max_term_bytes: int, **options: Any) -> Database:
    """Parse content, and refuse terms that are too long.

    Raises
    ------
    DatabaseFormatError
        As the format's parser does, and for a term of more than `max_term_bytes`.
    MultiValuedError
        As the format's parser does, with the name of the file.
    """
    require_integer("max_term_bytes", max_term_bytes, most=sys.maxsize)
    try:
        db = format.parse(content, format, **options)
    except MultiValuedError as error:
        raise MultiValuedError(f"{content.name}: {error}") from None
    text = longer_than(max_term_bytes, db.tokens)
    if text is not None:
        raise DatabaseFormatError(
            content.name,
            f"a term, {text[:20]!r}..., is longer than {max_term_bytes:,} bytes",
            format=format.name,
            advice="Shorten it, or raise `max_term_bytes`.",
        )
    return db
