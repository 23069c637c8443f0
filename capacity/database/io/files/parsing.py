"""Parse content in a format: what every reader of files shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from capacity.database.facts import Database
from capacity.database.io.files.content import Content, refuse_excess
from capacity.database.io.files.formats import FORMATS, Format
from capacity.database.terms.columns import longer_than
from capacity.errors import (
    DatabaseFormatError,
    InvalidArgumentError,
    InvalidTypeError,
    MultiValuedError,
)


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

    A parser from outside need know nothing of limits, sources, empty files and names of files.

    Raises
    ------
    DatabaseFormatError
        As the format's parser does, and for a term or a number of facts over the content's limits;
        for a parser from outside also for what it finds wrong.
    MultiValuedError
        As the format's parser does, with the name of the file.
    """
    limits = content.limits
    is_ours = str(format.parse.__module__).startswith("capacity.database.io.")
    if not is_ours and options.pop("allow_empty", False) and not content.data.strip():
        nothing = np.empty((0, 3), np.int32)
        return Database.from_ids((), nothing, source=content.source(format.name), allow_empty=True)
    try:
        db = format.parse(content, format, **options)
    except MultiValuedError as error:
        raise MultiValuedError(f"{content.name}: {error}") from None
    except (InvalidArgumentError, InvalidTypeError) as error:
        if is_ours:
            raise
        raise DatabaseFormatError(content.name, str(error), format=format.name) from None
    if not is_ours:
        refuse_excess(content.name, format.name, limits.excess(rows=db.n_facts))
    if db.source is None:
        db = replace(db, source=content.source(format.name))
    text = longer_than(limits.max_term_bytes, db.tokens)
    if text is not None:
        raise DatabaseFormatError(
            content.name,
            f"a term, {text[:20]!r}..., is longer than {limits.max_term_bytes:,} bytes",
            format=format.name,
            advice="Shorten it, or raise `max_term_bytes`.",
        )
    return db
