"""Formats of files of facts, and the guess of a file's format.

A format is one registered `Format`, with a function that parses checked content. Those of the
library are registered in `rdf` and `tables`; `register_format` adds others. A file with the
suffix of a table, such as ``.csv``, is read as one. The format of another file is guessed from its
content first and its name second: ``@prefix`` in a ``.nt`` file is Turtle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from capacity.checks import nearest, require_choice, shown
from capacity.database.io.files.content import Content, Text
from capacity.database.io.files.foreign import foreign_text, is_parquet
from capacity.database.terms.term import Term
from capacity.display import briefly_shown
from capacity.errors import DatabaseFormatError, InvalidArgumentError

if TYPE_CHECKING:
    from capacity.database.facts import Database
    from capacity.database.io.reading import Reading

Cells: TypeAlias = Term | str


@dataclass(frozen=True)
class FileHead:
    """Beginning of a file, from which its format is guessed.

    Attributes
    ----------
    text : str
        The first 64 KiB.
    first : str
        The first line that is neither blank nor a comment.
    """

    text: str
    first: str


def _tells_nothing(_: FileHead) -> int:
    return 0


@briefly_shown
@dataclass(frozen=True)
class Format:
    """A format of files of facts.

    Attributes
    ----------
    name : str
        Name of the format, in lower case.
    aliases : tuple of str
        Names, file extensions and media types, in lower case, the name first.
    split : callable, optional
        Function of a `Text` and a `Reading` that yields facts: the number of a line, and the terms
        in order of their roles, each a `Term`, or a str, which is a label. It is all that a format
        needs. Limits, empty files, the file's name and line in an error, and the source of the
        database are none of its business.
    kind : str
        ``facts``; or ``table``, whose rows may begin with a header, have other columns, and hold
        N-Triples terms: the options and rules of `read_table` are applied to the rows of str that
        `split` yields.
    likelihood : callable
        Function of a `FileHead` that returns an integer: 0 if the beginning doesn't suggest this
        format, and a larger one the likelier it is.
    write : callable, optional
        Function of a `Database`, this format and keywords that returns the bytes of a file, for
        `write`. Tables have the keyword ``terms``.
    parse : callable, optional
        In place of `split`, function of `Content`, this format, a `Reading` and the keyword
        ``multi`` that returns a `Database`, for what isn't rows, as the formats of the kind
        ``rdf``.
    """

    name: str
    aliases: tuple[str, ...]
    split: Callable[[Text, Reading], Iterable[tuple[int, tuple[Any, ...]]]] | None = None
    kind: str = "facts"
    likelihood: Callable[[FileHead], int] = _tells_nothing
    write: Callable[..., bytes] | None = None
    parse: Callable[..., Database] | None = None


# bytes of a file from which its format is guessed
_HEAD = 65536
_NODE = r"(?:<[^<>\"\s]*+>|_:[\w\u00b7-]++(?:\.++[\w\u00b7-]++)*+)"
_LITERAL = r"\"(?:[^\"\\]|\\.)*+\"(?:@[\w-]++|\^\^<[^<>\s]*+>)?+"
# a statement of N-Triples or N-Quads; no row of a table ends in a full stop outside of its cells.
# Nothing is given back, so that a line takes the time of its length
_STATEMENT = re.compile(
    rf"{_NODE}\s*+<[^<>\"\s]*+>\s*+(?:{_NODE}|{_LITERAL}|<<\(.*\)>>)\s*+"
    rf"(?:(?P<graph>{_NODE})\s*+)?+\.\s*+(?:#.*)?"
)
# by name, in the order in which messages list them; of two as likely the first is guessed
FORMATS: dict[str, Format] = {}
_ALIASES: dict[str, Format] = {}


def register_format(format: Format) -> None:
    r"""Register a format, so that `load` reads its files.

    Parameters
    ----------
    format : Format
        Format with names that no other one has.

    Raises
    ------
    InvalidArgumentError
        If its name or one of its aliases is taken, or isn't in lower case, or it has no `split`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from capacity.database import load
    >>> def split(text, reading):
    ...     for number, line in enumerate(text.lines(), start=1):
    ...         yield number, tuple(line.rstrip("\n").split("|"))
    >>> register_format(Format("piped", ("piped",), split))
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "facts.piped")
    ...     _ = path.write_text("Astrid|born_in|Singapore")
    ...     load(path).n_triples
    1
    >>> unregister_format("piped").kind
    'facts'
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
    if (format.split is None) == (format.parse is None):
        raise InvalidArgumentError(
            f"A format must have a function `split`, or `parse` in place of it; {format.name} has "
            f"{'none' if format.split is None else 'both'}."
        )
    FORMATS[format.name] = format
    _ALIASES.update(dict.fromkeys(names, format))


def unregister_format(name: str) -> Format:
    """Remove a format and its aliases from the registry, and return it.

    Parameters
    ----------
    name : str
        Name of a registered format.

    Returns
    -------
    Format
        The format, which `register_format` adds again.

    Raises
    ------
    InvalidArgumentError
        If there is no format of that name.

    Examples
    --------
    >>> format = unregister_format("csv")
    >>> "csv" in FORMATS
    False
    >>> register_format(format)
    """
    format = FORMATS.pop(require_choice("A format", name, FORMATS))
    for alias in {format.name, *format.aliases}:
        del _ALIASES[alias]
    return format


def resolve_format(content: Content, format: str | None) -> Format:
    """Return the named format, or guess it from the content and the file's name.

    Raises
    ------
    DatabaseFormatError
        For an unknown name, or if the format can't be guessed.
    """
    if format is not None:
        chosen = format_called(format)
        if chosen is None:
            raise DatabaseFormatError(
                content.name,
                f"unknown format {shown(format)}",
                advice=f"Use one of {', '.join(FORMATS)}.{nearest(format, FORMATS)}",
            )
        if is_parquet(content.data) and chosen.name != "parquet":
            raise DatabaseFormatError(
                content.name, f"it is Parquet, and not {chosen.name}", advice="Omit the format."
            )
        return chosen
    guess = guess_format(content)
    if guess is None:
        raise DatabaseFormatError(
            content.name,
            "neither its content nor its name shows the format",
            advice=f"Choose one with `format`: {', '.join(FORMATS)}.",
        )
    return guess


def format_called(name: str) -> Format | None:
    """Return the format of a name, extension or media type; None if there is none."""
    return _ALIASES.get(name.lower())


def format_of_name(name: str) -> Format | None:
    """Return the format of a file's suffix, but for one of compression; None if there is none.

    Examples
    --------
    >>> format_of_name("facts.ttl.gz").name
    'turtle'
    """
    suffixes = [s[1:].lower() for s in Path(name).suffixes]
    while suffixes and suffixes[-1] in ("gz", "bz2", "xz", "zst"):
        suffixes.pop()
    return _ALIASES.get(suffixes[-1]) if suffixes else None


def _statements(text: str, *, whole: bool) -> Format | None:
    """Return the format of a text whose whole lines are all N-Triples or N-Quads."""
    # str.splitlines would also cut literals at U+2028 and others
    lines = re.split(r"[\r\n]", text)
    # the last line of a beginning may be cut
    lines = lines if whole else lines[:-1]
    said = [line for one in lines if (line := one.strip()) and line[0] != "#"]
    found = [_STATEMENT.fullmatch(line) for line in said]
    if not found or not all(found):
        return None
    return FORMATS.get("nquads" if any(one and one["graph"] for one in found) else "ntriples")


def guess_format(content: Content) -> Format | None:
    """Guess a format from the content and the file's name; None if neither suggests one.

    Raises
    ------
    DatabaseFormatError
        For a file of another format, such as an HTML page, which servers send in place of a missing
        file.
    """
    by_name = format_of_name(content.name)
    if is_parquet(content.data):
        return FORMATS.get("parquet")
    text = content.data[:_HEAD].decode("utf-8", "ignore")
    if by_name is not None and by_name.kind == "table":
        return _statements(text, whole=len(content.data) <= _HEAD) or by_name
    first = next((s for line in text.splitlines() if (s := line.strip()) and s[0] != "#"), "")
    if foreign := foreign_text(text):
        raise DatabaseFormatError(content.name, f"it is {foreign.what}", advice=foreign.advice)
    head = FileHead(text, first)
    likelihoods = {name: format.likelihood(head) for name, format in FORMATS.items()}
    likeliest = max(FORMATS, key=likelihoods.__getitem__)
    # a table of records has the name of any JSON
    of_json = by_name is not None and by_name.name == "jsonld"
    of_ld = ".jsonld" in content.name.lower()
    if likeliest == "records" and (by_name is None or (of_json and not of_ld)):
        return FORMATS[likeliest]
    if not likelihoods[likeliest] or (by_name and likelihoods[by_name.name]):
        return by_name
    # tabs alone don't make a file with an RDF name a table: the RDF parser reports what is wrong
    return by_name if by_name and FORMATS[likeliest].kind == "table" else FORMATS[likeliest]
