"""HTML pages from the templates of this package: each a single file that loads nothing.

Every value is escaped, and shown as `capacity.visible` has it. A policy in the page itself (CSP)
allows its one style and its one script by their hashes, and pictures that are written in it, so
that a browser runs and loads nothing else even if the escaping had a fault.

A table has columns with explanations, and cells that are sorted by their exact values. Files are
links of the page, as long as they fit.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from capacity import __version__
from capacity.checks import cut
from capacity.display import briefly_shown, percent
from capacity.optional import needed_by
from capacity.visible import visible

# bytes of all files of a page together; a page should be sent by mail
MOST_BYTES = 200_000


def rendered(template: str, **values: object) -> str:
    """Fill a template of this package in.

    Parameters
    ----------
    template : str
        Its name, such as ``database.html.j2``.
    **values
        What the template calls by these names; all of it, or rendering fails.

    Returns
    -------
    str
        The page. The same values yield the same page.

    Raises
    ------
    MissingExtraError
        Without jinja2 (extra ``report``).
    """
    with needed_by("A report"):
        import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("capacity.report", "templates"),
        autoescape=True,
        finalize=_shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": percent}
    style, script = (_source(environment, name) for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    )
    return environment.get_template(template).render(
        **values, style=style, script=script, policy=policy, version=__version__
    )


def number(value: object) -> str:
    """Write a number for people: integers whole, others by three digits after the point.

    Examples
    --------
    >>> number(4103), number(0.5), number("open")
    ('4,103', '0.500', 'open')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "without limit"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _shown(value: object) -> object:
    """Texts of others as they are shown; what is HTML already, such as a macro's, stays."""
    return value if hasattr(value, "__html__") else visible(str(value))


def _source(environment: Any, name: str) -> Any:
    """Text of a style or script of this package, which is no user's, and so isn't escaped."""
    from markupsafe import Markup

    return Markup(environment.loader.get_source(environment, name)[0])


def _hash(text: str) -> str:
    """The source of a policy that allows a text by its SHA-256."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# characters of a sentence in a cell; those of names are `capacity.checks.SHOWN`
_SENTENCE = 400
Order = Literal["ascending", "descending", "none"]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    title : str
        Its heading.
    says : str
        An explanation, a sentence.
    kind : {'text', 'number', 'picture'}
        Numbers are aligned and sorted as such; pictures aren't sorted.
    order : {'ascending', 'descending', 'none'}
        How the rows are sorted by it at first.
    """

    title: str
    says: str
    kind: Literal["text", "number", "picture"] = "text"
    order: Order = "none"


@dataclass(frozen=True)
class Picture:
    """A picture in a cell, as a ``data:`` address, with words for who doesn't see it."""

    source: str
    words: str


@dataclass(frozen=True)
class Cell:
    """A cell: what is shown, and the exact value that it is sorted by.

    Attributes
    ----------
    text : str
        What is shown.
    value : str
        The value; of a number, all of its digits.
    picture : Picture or None
        A picture in place of the text.
    """

    text: str
    value: str
    picture: Picture | None = None


@briefly_shown
@dataclass(frozen=True)
class Table:
    """A table of a page.

    Attributes
    ----------
    name : str
        Its identifier within the page.
    caption : str
        What it shows.
    columns : tuple of Column
        Its columns; the first one heads each row.
    rows : tuple of tuple of Cell
        As many cells in each as there are columns.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def cell(value: object, text: str | None = None) -> Cell:
    """Make a cell of a value.

    Parameters
    ----------
    value : object
        A number, a text, or None for what isn't known; a long text is cut.
    text : str, optional
        What is shown in its place.

    Examples
    --------
    >>> cell(4103)
    Cell(text='4,103', value='4103', picture=None)
    >>> cell(None)
    Cell(text='-', value='', picture=None)
    """
    if value is None:
        return Cell(text or "-", "")
    if isinstance(value, float) and value != value:
        # a NaN, such as the mean of no runs
        return Cell(text or "-", "")
    exact = value if isinstance(value, str) else repr(value)
    return Cell(cut(number(value)) if text is None else text, cut(exact))


def sentence(text: str) -> Cell:
    """Make a cell of a sentence, which is longer than a name may be."""
    return Cell(text if len(text) <= _SENTENCE else f"{text[: _SENTENCE - 3]}...", cut(text))


def table(
    name: str, caption: str, columns: Sequence[Column], rows: Iterable[Iterable[object]]
) -> Table:
    """Make a table of values; those that are cells already stay as they are."""
    cells = (tuple(one if isinstance(one, Cell) else cell(one) for one in row) for row in rows)
    return Table(name, caption, tuple(columns), tuple(cells))


@dataclass(frozen=True)
class Download:
    """A file of a page.

    Attributes
    ----------
    name, words, command : str
        The file's name, what it holds, and the command that makes it.
    n_bytes : int
        Its size.
    address : str or None
        The file as a ``data:`` address; None if it is too large for the page.
    """

    name: str
    words: str
    command: str
    n_bytes: int
    address: str | None


def downloads(
    files: Iterable[tuple[str, str, str, object]], *, most: int = MOST_BYTES
) -> tuple[Download, ...]:
    """Write JSON files as links, in order, as long as they fit.

    Parameters
    ----------
    files : iterable of (str, str, str, object)
        Name, words and command of each, and its data.
    most : int
        Bytes of all links together, before they are encoded.

    Examples
    --------
    >>> small, large = downloads([("a.json", "a", "do a", [1]), ("b.json", "b", "do b", [2])],
    ...                          most=4)
    >>> small.address, large.address
    ('data:application/json;base64,WzFdCg==', None)
    """
    links: list[Download] = []
    left = most
    for name, words, command, data in files:
        raw = json.dumps(data).encode() + b"\n"
        address = None
        if len(raw) <= left:
            left -= len(raw)
            address = f"data:application/json;base64,{base64.b64encode(raw).decode()}"
        links.append(Download(name, words, command, len(raw), address))
    return tuple(links)
