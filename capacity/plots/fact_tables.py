"""A database as the tables that it was made of, and as its triples."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.errors import InvalidArgumentError
from capacity.optional import require_packages
from capacity.plots.matrices import NAME, plain, short
from capacity.plots.theme import COLOURS, canvas, figure_theme, require_drawable, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# the most facts whose sentences fit on a page, and the most columns of a table
MOST_FACTS = 60
MOST_PREDICATES = 8
ROW = 0.28
# sentences side by side
ACROSS = 3


def plot_database(
    db: DatabaseLike,
    *,
    title: str = "",
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw a small database as tables, with its triples as sentences below.

    As Figure 1 of Wong 2025 does. Subjects that share a predicate, directly or by others, are in
    one table, with a column for each predicate. An object has one colour everywhere.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Triples, of which at most 60 can be read.
    title : str
        Title of the figure.
    figsize : (float, float), optional
        Width and height of a new figure, in inches; by default as large as the content needs.
    path : path, optional
        File to write it to, as for `save_figure`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InvalidTypeError
        If `db` is of another type.
    InvalidArgumentError
        For facts of another arity than 3, no fact, more than 60 facts or 8 predicates in a table,
        or another suffix.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Examples
    --------
    >>> db = Database.from_triples([("Astrid", "born_in", "Oslo"), ("Oslo", "in", "Norway")])
    >>> figure = plot_database(db)
    >>> [[cell.get_text() for cell in axes.texts] for axes in figure.axes[:2]]
    [['born_in', 'Astrid', 'Oslo'], ['in', 'Oslo', 'Norway']]
    """
    require_packages("plot_database", ("matplotlib",), "plots")
    db = require_triples(db, "plot_database(db)")
    if not 0 < db.n_triples <= MOST_FACTS:
        raise InvalidArgumentError(
            f"A figure of a database must have 1 to {MOST_FACTS} facts, or it can't be read; got "
            f"{db.n_triples:,}. Draw a part: db.sample_subjects or db.select."
        )
    if path is not None:
        require_drawable(path)
    tables = _tables(db)
    widest = max(len(predicates) for _, predicates in tables)
    if widest > MOST_PREDICATES:
        raise InvalidArgumentError(
            f"A table must have at most {MOST_PREDICATES} predicates, or it can't be read; got "
            f"{widest}. Draw a part: db.select(predicates=[...])."
        )
    lines = math.ceil(db.n_triples / ACROSS)
    tall = max(len(subjects) for subjects, _ in tables) + 1
    widths = [1 + len(predicates) for _, predicates in tables]
    width = max(NAME * (sum(widths) + 0.3 * len(widths)), 2.4 * ACROSS)
    with figure_theme():
        figure = canvas(figsize, (width, ROW * (tall + lines) + 0.9))
        parts: Any = figure.subfigures(2, 1, height_ratios=[tall, lines + 0.5])
        upper, lower = parts
        every = upper.subplots(1, len(tables), squeeze=False, width_ratios=widths).ravel()
        for axes, (subjects, predicates) in zip(every, tables, strict=True):
            _draw_table(axes, db, subjects, predicates, tall)
        _draw_sentences(lower.subplots(), db, lines)
        figure.suptitle(plain(title))
        save_figure(figure, path)
    return figure


def _tables(db: Database) -> list[tuple[list[int], list[int]]]:
    """Subjects and predicates of each table: the connected parts of the graph of pairs."""
    part = list(range(db.shape[1]))
    for k in range(db.shape[0]):
        mine = {part[q] for q in db.triples[db.triples[:, 0] == k, 1].tolist()}
        part = [min(mine) if p in mine else p for p in part]
    of = np.array(part)[db.triples[:, 1]]
    return [
        tuple(np.unique(db.triples[of == p, mode]).tolist() for mode in (0, 1))  # type: ignore[misc]
        for p in sorted(set(part))
    ]


def _colour(v: int) -> str:
    return COLOURS[v % len(COLOURS)]


def _draw_table(
    axes: Axes, db: Database, subjects: list[int], predicates: list[int], tall: int
) -> None:
    axes.set(xlim=(0, len(predicates) + 1), ylim=(-tall, 0))
    axes.set_axis_off()
    for j, q in enumerate(predicates):
        axes.text(j + 1.5, -0.5, short(db.name(db.predicates[q])), ha="center", va="center",
                  weight="bold", size=8)  # fmt: skip
    axes.axhline(-1, color="black", linewidth=0.8)
    for i, k in enumerate(subjects):
        middle = -i - 1.5
        axes.text(0.95, middle, short(db.name(db.subjects[k])), ha="right", va="center",
                  weight="bold", size=8)  # fmt: skip
        for j, q in enumerate(predicates):
            here = (db.triples[:, 0] == k) & (db.triples[:, 1] == q)
            objects = db.triples[here, 2].tolist()
            names = " / ".join(db.name(db.objects[v]) for v in objects)
            if objects:
                axes.text(j + 1.5, middle, short(names), ha="center", va="center", size=8,
                          color=_colour(objects[0]))  # fmt: skip


def _draw_sentences(axes: Axes, db: Database, lines: int) -> None:
    axes.set(xlim=(0, ACROSS), ylim=(-lines - 0.5, 0.5))
    axes.set_axis_off()
    for n, (k, q, v) in enumerate(db.triples.tolist()):
        column, line = divmod(n, lines)
        names = (db.name(db.subjects[k]), db.name(db.predicates[q]), db.name(db.objects[v]))
        told = axes.text(column, -line - 0.5, " ".join(map(short, names[:2])) + " ", size=8,
                         va="center")  # fmt: skip
        axes.annotate(short(names[2]), (1, 0), xycoords=told, va="bottom", size=8,
                      color=_colour(v))  # fmt: skip
