"""Parse content in a format: what every reader of files shares."""

from __future__ import annotations

from typing import Any

from capacity.database.facts import Database
from capacity.database.io.files.content import Content, refuse_excess
from capacity.database.io.files.formats import FORMATS, Format
from capacity.database.terms.columns import longer_than
from capacity.errors import DatabaseFormatError, MultiValuedError


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


def parsed(content: Content, format: Format, **options: Any) -> Database:
    """Parse content, and refuse terms that are too long, and too many facts.

    The library's own parsers look at the limits on the way; one from outside may know none.

    Raises
    ------
    DatabaseFormatError
        As the format's parser does, and for a term or a number of facts over the content's limits.
    MultiValuedError
        As the format's parser does, with the name of the file.
    """
    limits = content.limits
    try:
        db = format.parse(content, format, **options)
    except MultiValuedError as error:
        raise MultiValuedError(f"{content.name}: {error}") from None
    if format.kind not in ("rdf", "table"):
        refuse_excess(content.name, format.name, limits.excess(rows=db.n_facts))
    text = longer_than(limits.max_term_bytes, db.tokens)
    if text is not None:
        raise DatabaseFormatError(
            content.name,
            f"a term, {text[:20]!r}..., is longer than {limits.max_term_bytes:,} bytes",
            format=format.name,
            advice="Shorten it, or raise `max_term_bytes`.",
        )
    return db
