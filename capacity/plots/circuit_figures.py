"""Circuits of a layer, and what it makes of one pair, labelled by tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from capacity.database.given_facts import DatabaseLike
from capacity.database.terms.term import Term
from capacity.evaluator.circuits import PairAnswer, circuit_tables, pair_answer
from capacity.optional import require_packages
from capacity.plots.matrices import (
    CELL,
    NAME,
    Scale,
    draw_matrix,
    plain,
    require_legible,
    scale_of,
    short,
)
from capacity.plots.theme import COLOURS, canvas, figure_theme, require_drawable, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from capacity.layer.model.attention_layer import AttentionLayer

# cells that the two scales of colours need, across and down, and the share that each is high
SCALE, ROOM, BAR_HIGH = 4, 3, 0.1
# inches of a character of a name
LETTER = 0.062
_CHOOSE = "Choose some tokens: `tokens` takes their names."


def plot_circuits(
    layer: AttentionLayer,
    db: DatabaseLike,
    *,
    tokens: Iterable[Term | str] | None = None,
    title: str | None = None,
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw the circuits W_EU, W_QK and W_VO of each head, labelled by tokens.

    A predicate q attends to subject k by the difference of two scores in its row of W_QK, at k and
    at q. Each token that it attends to, k and q, adds its row of W_VO to the logits, and q adds its
    row of W_EU.

    Parameters
    ----------
    layer : AttentionLayer
        Layer without norm, bias or positions, with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database that names the tokens: subjects, predicates and objects.
    tokens : iterable of Term or str, optional
        The tokens to show, by names that `Database` knows; all of them if omitted.
    title : str, optional
        Title of the figure; if omitted, the sizes of the layer.
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
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, a layer with norm, bias or positions, `tokens` without a
        subject, a predicate or an object, more than 40 of them in a row or a column, more than 11
        heads, or another suffix.
    UnknownTokenError
        If no token has a name, or several do.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Notes
    -----
    Scores have one scale of colours, and what is added to logits, W_EU and W_VO, another. W_EU and
    W_VO are drawn transposed, with one row per object, so that W_QK and W_VO have the same columns.
    To draw a circuit into a panel of yours, see `capacity.evaluator.circuit_tables` and
    `draw_matrix`.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import store_in_value_output
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> figure = plot_circuits(store_in_value_output(db), db)
    >>> [axes.get_title() for axes in figure.axes if axes.get_title()]
    ['W_QK, head 0', 'W_EU', 'W_VO, head 0']
    """
    require_packages("plot_circuits", ("matplotlib", "seaborn"), "plots")
    if path is not None:
        require_drawable(path)
    tables = circuit_tables(layer, db, tokens=tokens)
    require_legible(tables, _CHOOSE)
    n_heads, (n_asking, n_objects) = layer.config.n_heads, tables["W_EU"].shape
    n_attended = len(tables["W_VO 0"])
    scores = [tables[f"W_QK {h}"] for h in range(n_heads)]
    # a row for each object, so that tokens attended to are the columns of both rows of panels
    logits = [tables["W_EU"].T, *(tables[f"W_VO {h}"].T for h in range(n_heads))]
    # above W_EU there is room for the scales of the colours
    widths = [max(n_asking, SCALE), *[n_attended] * n_heads]
    heights = [max(n_asking, ROOM), n_objects]
    with figure_theme():
        size = (
            sum(widths) * CELL + (NAME + 0.2) * len(widths),
            sum(heights) * CELL + (NAME + 0.3) * 2 + 0.3,
        )
        figure = canvas(figsize, size)
        grid = figure.subplots(
            2, 1 + n_heads, squeeze=False, width_ratios=widths, height_ratios=heights
        )
        score_scale, logit_scale = scale_of(scores), scale_of(logits)
        bars = {"logit (nats)": draw_matrix(grid[1, 0], logits[0], title="W_EU", scale=logit_scale)}
        for h, (upper, lower) in enumerate(grid[:, 1:].T):
            bars["score (nats)"] = draw_matrix(
                upper, scores[h], title=f"W_QK, head {h}", scale=score_scale
            )
            draw_matrix(lower, logits[1 + h], title=f"W_VO, head {h}", scale=logit_scale)
            for axes in (upper, lower):
                axes.set(xlabel="attended to")
        for axes in grid[1]:
            axes.set(ylabel="object")
        free = grid[0, 0]
        free.set_axis_off()
        for n, (label, bar) in enumerate(sorted(bars.items(), reverse=True)):
            place = free.inset_axes((0.0, 0.85 - 0.75 * n, 1.0, BAR_HIGH))
            figure.colorbar(bar, cax=place, label=label, orientation="horizontal")
        figure.suptitle(plain(f"Circuits of {layer.config.name}" if title is None else title))
        save_figure(figure, path)
    return figure


def plot_pair(
    layer: AttentionLayer,
    db: DatabaseLike,
    subject: Term | str,
    predicate: Term | str,
    *,
    most: int = 8,
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw what a layer makes of one pair: each head's attention, and the terms of the logits.

    Parameters
    ----------
    layer : AttentionLayer
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database that names the tokens.
    subject, predicate : Term or str
        The pair, by names that `Database` knows; it may lie outside the domain.
    most : int
        Number of likeliest tokens to show, at most 40; the objects of the pair are shown besides.
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
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, `most` out of its range, more than 18 heads, or another
        suffix.
    UnknownTokenError
        If no subject or no predicate has a name, or several do.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Notes
    -----
    Columns are tokens, the likeliest first, with the objects that the database has in bold. The
    rows of terms add up to the last one (`capacity.evaluator.pair_answer`).

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> plot_pair(store_in_query_key(db), db, "b", "p").get_suptitle()
    'b p: y (p = 1.00), which is right'
    """
    require_packages("plot_pair", ("matplotlib", "seaborn"), "plots")
    if path is not None:
        require_drawable(path)
    answer = pair_answer(layer, db, subject, predicate, most=most)
    terms = answer.logits
    require_legible({"The table of terms": terms}, "Show fewer tokens: `most`.")
    n_shown = terms.shape[1]
    labels = [
        f"{short(name)}  {p:.2f}"
        for name, p in zip(terms.columns, answer.probabilities, strict=True)
    ]
    with figure_theme():
        below = LETTER * max(map(len, labels)) + 0.9
        size = ((2 + n_shown) * CELL + 2.9 * NAME, len(terms) * CELL + below)
        figure = canvas(figsize, size)
        left, right = figure.subplots(1, 2, width_ratios=[2, n_shown])
        draw_matrix(left, answer.attention, title="attention", scale=Scale("Reds", 0.0, 1.0))
        bar = draw_matrix(right, terms, title="terms of the logits (nats)")
        # the sum stands apart from its terms
        right.axhline(len(terms) - 1, color="black", linewidth=1)
        for text, name in zip(right.set_xticklabels(labels), terms.columns, strict=True):
            if name in answer.objects:
                text.set(weight="bold", color=COLOURS[2])
        right.set(xlabel="token, and its probability")
        # as high as the matrix
        beside = right.inset_axes((1 + 0.4 / n_shown, 0.0, 0.35 / n_shown, 1.0))
        figure.colorbar(bar, cax=beside)
        figure.suptitle(plain(_told(answer)), wrap=True)
        save_figure(figure, path)
    return figure


def _told(answer: PairAnswer) -> str:
    said, p = answer.logits.columns[0], answer.probabilities[0]
    right = "which is right" if said in answer.objects else f"not {' or '.join(answer.objects)}"
    if not answer.objects:
        right = "a pair without an object"
    return f"{answer.subject} {answer.predicate}: {said} (p = {p:.2f}), {right}"
