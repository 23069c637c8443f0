"""The logit lens as a table: stages above one another, tokens side by side, a word in each cell."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from capacity.checks import shown
from capacity.errors import InvalidArgumentError
from capacity.optional import needed_by
from capacity.plots.matrices import BAR, NAME, plain, require_legible, short
from capacity.plots.theme import canvas, figure_theme, require_drawable, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# inches of a cell
WIDE, HIGH = 0.85, 0.24


def plot_logit_lens(
    lens: pd.DataFrame,
    tokens: Sequence[str],
    names: Callable[[int], str],
    *,
    sentence: int = 0,
    title: str = "",
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw what a model predicts from each stage, coloured by its probability, the last one on top.

    Parameters
    ----------
    lens : DataFrame
        Table of `capacity.transformer.logit_lens`. Of several tokens for a stage and position, the
        first is drawn; rows may be chosen, such as those of some stages.
    tokens : sequence of str
        The tokens of the sentence, as labels of columns: one for each position.
    names : callable
        Returns the word of a token id, such as ``tokenizer.decode``.
    sentence : int
        Index of the sentence.
    title : str
        Title of the figure.
    ax : matplotlib.axes.Axes, optional
        Panel of a figure of yours to draw into; by default a new figure is made.
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
    InvalidArgumentError
        If the table has no row of the sentence, more than 40 stages or positions, or a position
        that has no token; for another suffix.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Examples
    --------
    >>> lens = pd.DataFrame({"sentence": 0, "stage": [0, 1], "position": 0, "token": [4, 5],
    ...                      "probability": [0.2, 0.9]})
    >>> figure = plot_logit_lens(lens, ["Japan"], {4: "the", 5: "Tokyo"}.__getitem__)
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['Tokyo', 'the']
    """
    with needed_by("plot_logit_lens"):
        import seaborn as sns

    chosen = lens[lens["sentence"] == sentence]
    if chosen.empty:
        raise InvalidArgumentError(
            f"`lens` must have rows of the sentence that is drawn; none is of {shown(sentence)}."
        )
    first = chosen.drop_duplicates(["stage", "position"])
    ids, shares = (
        first.pivot(index="stage", columns="position", values=name).sort_index(ascending=False)
        for name in ("token", "probability")
    )
    require_legible({"The lens": shares}, "Choose rows of some stages or positions.")
    if max(shares.columns) >= len(tokens):
        raise InvalidArgumentError(
            f"`tokens` must have one for each position up to {max(shares.columns)}; got "
            f"{len(tokens)}. Pass those of the sentence with its padding."
        )
    if path is not None:
        require_drawable(path)
    with figure_theme():
        rows, across = shares.shape
        size = across * WIDE + NAME + 0.8, rows * HIGH + NAME + 0.4
        figure = canvas(figsize, size, None if ax is None else [ax], 1)
        panel = figure.subplots() if ax is None else ax
        words = [
            ["" if pd.isna(one) else short(names(int(one))) for one in row]
            for row in ids.to_numpy(object)
        ]
        sns.heatmap(
            shares.to_numpy(float), ax=panel, vmin=0, vmax=1, cmap="Reds", cbar=False, annot=words,
            fmt="", annot_kws={"size": 6.5}, linewidths=0.5, linecolor="#dddddd",
            xticklabels=[short(tokens[at]) for at in shares.columns],
            yticklabels=[str(stage) for stage in shares.index],
        )  # fmt: skip
        panel.tick_params(labelsize=7, length=0)
        panel.tick_params(axis="x", rotation=90)
        panel.tick_params(axis="y", rotation=0)
        panel.set(xlabel="token", ylabel="stage")
        figure.colorbar(panel.collections[0], ax=panel, label="probability", **BAR)
        if title or ax is None:
            figure.suptitle(plain(title))
        save_figure(figure, path)
    return figure
