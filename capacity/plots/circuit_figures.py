"""Circuits of a layer, and what it makes of one pair, labelled by tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from capacity.database.given_facts import DatabaseLike
from capacity.database.terms.term import Term
from capacity.evaluator.circuits import PairAnswer, circuit_tables, pair_answer
from capacity.optional import needed_by
from capacity.plots.matrices import (
    BAR,
    CELL,
    NAME,
    draw_matrix,
    largest,
    plain,
    require_legible,
    short,
)
from capacity.plots.theme import COLOURS, figure_theme, require_drawable, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from capacity.layer.model.attention_layer import AttentionLayer

_CHOOSE = "Choose some tokens: `tokens` takes their names."


def plot_circuits(
    layer: AttentionLayer,
    db: DatabaseLike,
    *,
    tokens: Iterable[Term | str] | None = None,
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw the circuits W_EU, W_QK and W_VO of each head, labelled by tokens.

    A predicate q attends to subject k by the difference of two scores in its row of W_QK, at k and
    at q. What it attends to, k and q, adds its row of W_VO to the logits, and q its row of W_EU.

    Parameters
    ----------
    layer : AttentionLayer
        Layer without norm, bias or positions, with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database that names the tokens, and tells subjects, predicates and objects.
    tokens : iterable of Term or str, optional
        The tokens to show, by names that `Database` knows; all of them if omitted.
    title : str
        Title of the figure.
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
    Scores have one scale of colours, and what is added to logits, W_EU and W_VO, another.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import store_in_value_output
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> figure = plot_circuits(store_in_value_output(db), db)
    >>> [axes.get_title() for axes in figure.axes if axes.get_title()]
    ['W_EU', 'W_QK, head 0', 'W_VO, head 0']
    """
    with needed_by("plot_circuits"):
        from matplotlib.figure import Figure

    if path is not None:
        require_drawable(path)
    tables = circuit_tables(layer, db, tokens=tokens)
    require_legible(tables, _CHOOSE)
    n_heads, n_asking = layer.config.n_heads, len(tables["W_EU"])
    n_attended, n_objects = tables["W_VO 0"].shape
    widths = [n_attended, n_objects]
    heights = [n_asking, *[max(n_attended, n_asking)] * n_heads]
    scores = [tables[f"W_QK {h}"] for h in range(n_heads)]
    logits = [tables["W_EU"], *(tables[f"W_VO {h}"] for h in range(n_heads))]
    with figure_theme():
        figure = Figure(
            figsize=(
                sum(widths) * CELL + 2 * NAME + 1.8,
                sum(heights) * CELL + (NAME + 0.3) * len(heights),
            )
        )
        grid = figure.subplots(
            1 + n_heads, 2, squeeze=False, width_ratios=widths, height_ratios=heights
        )
        most_score, most_logit = largest(scores), largest(logits)
        logit_bar = draw_matrix(grid[0, 1], logits[0], most_logit, title="W_EU")
        grid[0, 0].set_axis_off()
        score_bars = [
            draw_matrix(axes, table, most_score, title=f"W_QK, head {h}")
            for h, (axes, table) in enumerate(zip(grid[1:, 0], scores, strict=True))
        ]
        for h, (axes, table) in enumerate(zip(grid[1:, 1], logits[1:], strict=True)):
            draw_matrix(axes, table, most_logit, title=f"W_VO, head {h}")
        for axes in grid[1:, 0]:
            axes.set(xlabel="attended to")
        for axes in grid[:, 1]:
            axes.set(xlabel="object")
        figure.colorbar(score_bars[0], ax=grid[1:, 0].tolist(), label="score (nats)", **BAR)
        figure.colorbar(logit_bar, ax=grid[:, 1].tolist(), label="logit (nats)", **BAR)
        figure.suptitle(plain(title))
        save_figure(figure, path)
    return figure


def plot_pair(
    layer: AttentionLayer,
    db: DatabaseLike,
    subject: Term | str,
    predicate: Term | str,
    *,
    most: int = 8,
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
    with needed_by("plot_pair"):
        from matplotlib.figure import Figure

    if path is not None:
        require_drawable(path)
    answer = pair_answer(layer, db, subject, predicate, most=most)
    terms = answer.logits
    require_legible({"The table of terms": terms}, "Show fewer tokens: `most`.")
    n_shown = terms.shape[1]
    with figure_theme():
        figure = Figure(figsize=((2 + n_shown) * CELL + 2.6 * NAME, len(terms) * CELL + 2.6 * NAME))
        left, right = figure.subplots(1, 2, width_ratios=[2, n_shown])
        draw_matrix(left, answer.attention, 1.0, title="attention")
        bar = draw_matrix(right, terms, largest([terms]), title="terms of the logits (nats)")
        # the sum stands apart from its terms
        right.axhline(len(terms) - 1, color="black", linewidth=1)
        labels = [
            f"{short(name)}  {p:.2f}"
            for name, p in zip(terms.columns, answer.probabilities, strict=True)
        ]
        for text, name in zip(right.set_xticklabels(labels), terms.columns, strict=True):
            if name in answer.objects:
                text.set(weight="bold", color=COLOURS[2])
        right.set(xlabel="token, and its probability")
        figure.colorbar(bar, ax=right, **BAR)
        figure.suptitle(plain(_told(answer)), wrap=True)
        save_figure(figure, path)
    return figure


def _told(answer: PairAnswer) -> str:
    said, p = answer.logits.columns[0], answer.probabilities[0]
    right = "which is right" if said in answer.objects else f"not {' or '.join(answer.objects)}"
    if not answer.objects:
        right = "a pair without an object"
    return f"{answer.subject} {answer.predicate}: {said} (p = {p:.2f}), {right}"
