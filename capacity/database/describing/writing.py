"""A description as a page of text, and as a table in HTML."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from capacity.checks import cut
from capacity.display import aligned, fitted, in_html, percent
from capacity.visible import visible

if TYPE_CHECKING:
    from capacity.database.describing.measured import Measured
    from capacity.database.describing.rows import PredicateRow

_HEAD = ("predicate", "facts", "subjects", "objects", "rank", "of rank", "of facts", "kind",
         "repeats", "several objects, such as")  # fmt: skip
# columns of numbers, which end at the same place
_NUMBERS = range(1, 7)
# columns that a narrow terminal omits, the first one first: the example, what is repeated, kind,
# shares, and numbers of subjects and objects
_SPARED = (9, 8, 7, 6, 5, 3, 2)


def as_text(of: Measured, width: int | None = None) -> str:
    """Write a description for a terminal: numbers, a table of predicates, and advice.

    Parameters
    ----------
    of : Measured
        The description.
    width : int, optional
        Characters of a line. Columns that have no room are omitted, examples first; advice is
        wrapped. By default lines are as long as need be.
    """
    rows = [_HEAD, *(_cells(row) for row in of.predicates)]
    table = aligned(rows, _NUMBERS) if width is None else fitted(rows, _NUMBERS, width, _SPARED)
    advice = [f"  * {visible(one.text)}" for one in of.advice]
    numbers = _numbers(of)
    if width is not None:
        advice = [line for one in advice for line in _wrapped(one, width, "    ")]
        numbers = [line for one in numbers for line in _wrapped(one, width, " " * 14)]
    return "\n".join([*numbers, "", *table, *([""] if advice else []), *advice])


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, max(width, 20), subsequent_indent=indent, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def as_html(of: Measured) -> str:
    """Write the same as a table in HTML, with the numbers as its caption and advice below."""
    numbers = "<br>".join(in_html(line.strip()) for line in _numbers(of))
    head = "".join(f"<th>{in_html(name)}</th>" for name in _HEAD)
    body = "".join(
        f"<tr>{''.join(f'<td>{in_html(cell)}</td>' for cell in _cells(row))}</tr>"
        for row in of.predicates
    )
    advice = "".join(f"<li>{in_html(one.text)}</li>" for one in of.advice)
    return f"<table><caption>{numbers}</caption><tr>{head}</tr>{body}</table><ul>{advice}</ul>"


def _numbers(of: Measured) -> list[str]:
    db = of.db
    name = f"{visible(db.source.name)}: " if db.source is not None else ""
    kinds = ", ".join(
        f"{kind.replace('_', ' ')} {n:,} ({percent(n / db.n_facts)})"
        for kind, n in of.kinds.items()
        if n
    )
    largest = f", the largest of {of.components[0]:,} facts" if len(of.components) > 1 else ""
    return [
        f"{name}{db!r}",
        f"  rank        at most {of.bound:,}; `capacity rank` bounds it from both sides",
        f"  facts       {kinds or 'no schema, annotations, literals or blank nodes'}",
        f"  parts       {len(of.components):,} that share nothing{largest}"
        if largest
        else "  parts       1: all facts hang together",
    ]


def _cells(row: PredicateRow) -> tuple[str, ...]:
    several = ""
    if not row.functional:
        subject, *values = (cut(name) for name in row.example)
        several = f"{row.multi_valued_pairs:,}: {subject} -> {', '.join(values)}"
    kinds = (
        ("schema", row.schema),
        ("annotation", row.annotation),
        ("literals", row.literal),
    )
    label = f" ({cut(row.label)})" if row.label and row.label not in row.name else ""
    return (
        cut(row.name) + label,
        f"{row.facts:,}",
        f"{row.subjects:,}",
        f"{row.objects:,}",
        f"{row.rank:,}",
        percent(row.rank_share),
        percent(row.facts_share),
        ", ".join(kind for kind, is_so in kinds if is_so),
        row.in_words(),
        several,
    )
