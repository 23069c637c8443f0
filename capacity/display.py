"""Short forms of results, for a terminal and for a notebook.

An object of this library is shown by what it is and holds, in at most 200 characters: an array by
its dtype and shape, a sequence by its length. A notebook shows the same as a table.
"""

from __future__ import annotations

import html
from collections.abc import Container, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from capacity.checks import SHOWN, cut, written
from capacity.visible import visible

LARGEST = 200
# a name in a table isn't cut shorter
MOST_CUT = 6
_Class = TypeVar("_Class", bound=type[Any])


def brief(value: object) -> str:
    """A short form of any value: what it is, with its size.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
        At most 60 characters.

    Examples
    --------
    >>> import numpy as np
    >>> brief(np.zeros((3, 4)))
    'float64 (3, 4)'
    >>> brief([1.5, 2.5]), brief(["a"] * 1000)
    ('[1.5, 2.5]', '1000 x str')
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None and len(shape):
        return _cut(f"{str(dtype).removeprefix('torch.')} {tuple(shape)}")
    if isinstance(value, list | tuple | dict | set | frozenset) and _is_plain(value):
        kinds = sorted({type(one).__name__ for one in value})
        plain = {"int", "float", "str", "bool", "NoneType", "Fraction"}.issuperset(kinds)
        text = written(value) if plain and len(value) < SHOWN else ""
        if 0 < len(text) <= SHOWN:
            return text
        return _cut(f"{len(value)} x {' or '.join(kinds)}")
    if is_dataclass(value):
        text = written(value)
        return text if len(text) <= SHOWN else _cut(f"{type(value).__name__}(...)")
    if callable(value):
        return _cut(str(getattr(value, "__qualname__", None) or repr(value)))
    return _cut(written(value))


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """An HTML table of names and values.

    Parameters
    ----------
    title : str
    rows : iterable of (str, object)
        A value that is no str is shown by `brief`.

    Examples
    --------
    >>> table("Bounds", [("triples", 8)])
    '<table><caption>Bounds</caption><tr><th>triples</th><td>8</td></tr></table>'
    """
    cells = "".join(
        f"<tr><th>{in_html(name)}</th>"
        f"<td>{in_html(value if isinstance(value, str) else brief(value))}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption>{in_html(title)}</caption>{cells}</table>"


def in_html(text: str) -> str:
    r"""Write a text, which may be anybody's, for a page of HTML.

    Examples
    --------
    >>> print(in_html("<b>\x1b"))
    &lt;b&gt;\x1b
    """
    return html.escape(visible(text))


def aligned(rows: Sequence[Sequence[str]], numbers: Container[int] = ()) -> list[str]:
    """Write rows of cells as lines with columns of equal width.

    Parameters
    ----------
    rows : sequence of sequences of str
        Rows of one length, the names of the columns first; cells are shown in one line each, by
        `capacity.visible`.
    numbers : container of int
        Positions of the columns of numbers, which end at the same place.

    Examples
    --------
    >>> aligned([("name", "n"), ("a", "10"), ("b", "2")], {1})
    ['  name   n', '  a     10', '  b      2']
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]  # fmt: skip


def fitted(
    rows: Sequence[Sequence[str]], numbers: Container[int], width: int, spared: Sequence[int]
) -> list[str]:
    """Write rows as `aligned` does, in lines of a width: columns are omitted, and then cut.

    Parameters
    ----------
    rows : sequence of sequences of str
        Rows of one length, the names of the columns first.
    numbers : container of int
        Positions of the columns of numbers.
    width : int
        Characters of a line.
    spared : sequence of int
        Positions of the columns that are omitted where there is no room, the first one first.
        Empty ones are omitted anyway. What then is too wide is cut in the first column.

    Examples
    --------
    >>> fitted([("name", "n", "note"), ("a" * 9, "1", "long"), ("b", "2", "")], {1}, 14, [2])
    ['  name       n', '  aaaaaaaaa  1', '  b          2']
    >>> fitted([("name", "n"), ("a" * 9, "1"), ("b", "2")], {1}, 11, [])
    ['  name    n', '  aaa...  1', '  b       2']
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    kept = [i for i in range(len(rows[0])) if i not in spared or any(row[i] for row in rows[1:])]

    def lines() -> list[str]:
        chosen = [[row[i] for i in kept] for row in rows]
        return aligned(chosen, {new for new, old in enumerate(kept) if old in numbers})

    for column in spared:
        if max(map(len, lines())) > width and column in kept:
            kept.remove(column)
    longest = max(map(len, lines()))
    most = max(MOST_CUT, max(len(row[0]) for row in rows) - max(0, longest - width))
    rows = [[row[0] if len(row[0]) <= most else f"{row[0][: most - 3]}...", *row[1:]]
            for row in rows]  # fmt: skip
    return lines()


def percent(share: float) -> str:
    """Write a share in percent, those between 0 and 1 % as ``under 1 %``.

    Examples
    --------
    >>> percent(0.786), percent(0.001), percent(0)
    ('79 %', 'under 1 %', '0 %')
    """
    return "under 1 %" if 0 < share < 0.005 else f"{share:.0%}".replace("%", " %")


def briefly_shown(cls: _Class) -> _Class:
    """Decorate a dataclass, so that it is shown by the short forms of its fields."""

    def shown_fields(self: Any) -> list[tuple[str, str]]:
        return [(each.name, brief(getattr(self, each.name))) for each in fields(cls) if each.repr]

    def brief_repr(self: Any) -> str:
        parts = [f"{name}={value}" for name, value in shown_fields(self)]
        room = LARGEST - len(f"{type(self).__name__}(, ...)")
        while len(", ".join(parts)) > room:
            parts[-2:] = ["..."] if len(parts) > 1 else [parts[0][:room]]
        return f"{type(self).__name__}({', '.join(parts)})"

    def brief_html(self: Any) -> str:
        return table(type(self).__name__, shown_fields(self))

    for name, method in (("__repr__", brief_repr), ("_repr_html_", brief_html)):
        setattr(cls, name, method)
    return cls


def _is_plain(value: object) -> bool:
    """Return True unless a subclass, such as a named tuple, has a form of its own."""
    return type(value) in (list, tuple, dict, set, frozenset)


def _cut(text: str) -> str:
    return cut(" ".join(text.split()))
