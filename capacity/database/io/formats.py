"""The formats that facts are read from, and the guess which of them a file has.

A format is a function that parses checked content, and one registered `Format`. Those of the
library are registered in `rdf_formats` and `tables`; `register_format` takes others as well. The
format of a file is guessed from its content first and its name second: ``@prefix`` in a ``.nt``
file is Turtle.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from capacity.database.io.content import Content
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.limits import shown
from capacity.options import require_choice

if TYPE_CHECKING:
    from capacity.database.facts import Database


@dataclass(frozen=True)
class Head:
    """The beginning of a file, by which its format is guessed.

    Attributes
    ----------
    text : str
        The first 64 KiB.
    first : str
        The first line that is neither blank nor a comment.
    """

    text: str
    first: str


def _tells_nothing(_: Head) -> int:
    return 0


@dataclass(frozen=True)
class Format:
    """A format of files of facts.

    Attributes
    ----------
    name : str
    aliases : tuple of str
        Names, file extensions and media types, in lower case, the name first.
    kind : str
        ``rdf`` or ``table``, which have options of their own, or another word.
    parse : callable
        Gives a `Database` from `Content`, this format, and keywords: ``multi``, and the options of
        its kind, ``graph`` for RDF and ``terms`` for tables.
    likelihood : callable
        From a `Head` to an integer: 0 if the beginning doesn't suggest this format, else the
        larger the likelier.
    """

    name: str
    aliases: tuple[str, ...]
    kind: str
    parse: Callable[..., Database]
    likelihood: Callable[[Head], int] = _tells_nothing


# by name, in the order of messages; the first wins where two are as likely
FORMATS: dict[str, Format] = {}
_ALIASES: dict[str, Format] = {}


def register_format(format: Format) -> None:
    """Make a format known to `load`.

    Raises
    ------
    InvalidArgumentError
        If its name or an alias of it is taken, or isn't in lower case.
    """
    names = {format.name, *format.aliases}
    if taken := sorted(names & _ALIASES.keys()):
        raise InvalidArgumentError(
            f"The names of a format must be its own; {', '.join(map(shown, taken))} "
            f"{'is' if len(taken) == 1 else 'are'} taken. Choose others."
        )
    if any(name != name.lower() for name in names):
        raise InvalidArgumentError(
            f"The names of a format must be in lower case; got {', '.join(map(shown, names))}."
        )
    FORMATS[format.name] = format
    _ALIASES.update(dict.fromkeys(names, format))


def unregister_format(name: str) -> Format:
    """Take a format out of the registry, with its aliases, and return it.

    Raises
    ------
    InvalidArgumentError
        If there is none of that name.
    """
    format = FORMATS.pop(require_choice("A format", name, FORMATS))
    for alias in {format.name, *format.aliases}:
        del _ALIASES[alias]
    return format


def resolve_format(content: Content, format: str | None) -> Format:
    """The named format, or the one that the content and the name suggest.

    Raises
    ------
    DatabaseFormatError
        For an unknown name, or where nothing gives the format away.
    """
    if format is not None:
        if format.lower() not in _ALIASES:
            raise DatabaseFormatError(
                content.name,
                f"unknown format {shown(format)}",
                advice=f"Use one of {', '.join(FORMATS)}.",
            )
        return _ALIASES[format.lower()]
    guess = guess_format(content)
    if guess is None:
        raise DatabaseFormatError(
            content.name,
            "neither its content nor its name tells the format",
            advice=f"Say which with format: {', '.join(FORMATS)}.",
        )
    return guess


def guess_format(content: Content) -> Format | None:
    """Guess by content, then by name; None if neither tells.

    Raises
    ------
    DatabaseFormatError
        For an HTML page, which is what servers send in place of a file.
    """
    suffixes = [s[1:].lower() for s in Path(content.name).suffixes]
    while suffixes and suffixes[-1] in ("gz", "bz2", "xz", "zst"):
        suffixes.pop()
    by_name = _ALIASES.get(suffixes[-1]) if suffixes else None
    if by_name is not None and by_name.kind == "table":
        return by_name
    text = content.data[:65536].decode("utf-8", "ignore")
    first = next((s for line in text.splitlines() if (s := line.strip()) and s[0] != "#"), "")
    if re.match(r"<!DOCTYPE html|<html", first, re.IGNORECASE):
        raise DatabaseFormatError(
            content.name, "it is an HTML page", advice="Download the RDF file itself."
        )
    head = Head(text, first)
    likelihoods = {name: format.likelihood(head) for name, format in FORMATS.items()}
    likeliest = max(FORMATS, key=likelihoods.__getitem__)
    if not likelihoods[likeliest] or (by_name and likelihoods[by_name.name]):
        return by_name
    # tabs don't make a table of what is named as RDF: its parser shall say what is wrong
    return by_name if by_name and FORMATS[likeliest].kind == "table" else FORMATS[likeliest]
