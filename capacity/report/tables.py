"""Tables of a page: columns with explanations, and cells that are sorted by their exact values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from capacity.checks import cut
from capacity.display import briefly_shown
from capacity.report.rendering import number

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
