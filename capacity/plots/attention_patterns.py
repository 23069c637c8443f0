"""Attention patterns as heat maps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from capacity.errors import InvalidArgumentError
from capacity.optional import needed_by
from capacity.plots.matrices import plain, scale_of
from capacity.plots.theme import canvas, require_drawable, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_attention(
    patterns: Mapping[str, pd.DataFrame],
    *,
    title: str = "",
    shares: pd.DataFrame | None = None,
    ax: Axes | None = None,
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw attention patterns side by side, on one colour scale, lightest at 0.

    Parameters
    ----------
    patterns : mapping of str to DataFrame
        Attention weights by title: rows attend to columns, and both are labelled by tokens.
    title : str
        Title of the figure.
    shares : DataFrame, optional
        Effective share of each layer (rows) and head (columns), from 0 to 1, drawn in a panel to
        the left of the patterns.
    ax : matplotlib.axes.Axes, optional
        Panel of a figure of yours to draw into, for a single pattern without shares; by default a
        new figure is made.
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
        Without a pattern, for a pattern without tokens, or another suffix.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Examples
    --------
    >>> tokens = ["Astrid", "born_in"]
    >>> pattern = pd.DataFrame([[1.0, 0.0], [0.3, 0.7]], index=tokens, columns=tokens)
    >>> plot_attention({"head 0": pattern}).axes[0].get_ylabel()
    'from'
    """
    with needed_by("plot_attention"):
        import seaborn as sns

    if not patterns or any(pattern.empty for pattern in patterns.values()):
        raise InvalidArgumentError(
            "A figure of attention must have a pattern of at least one token; got none."
        )
    if path is not None:
        require_drawable(path)
    n = len(next(iter(patterns.values())))
    # negative weights, which effective attention can have, are blue
    scale = scale_of(patterns.values())
    panels = len(patterns) + (shares is not None)
    figure = canvas(figsize, (1 + 6 * panels, 6.2), None if ax is None else [ax], panels)
    axes: list[Axes] = [] if ax is None else [ax]
    if not axes:
        figure.set_layout_engine("constrained")
        figure.set_dpi(110)
        axes = list(figure.subplots(1, panels, squeeze=False)[0])
    if shares is not None:
        first = axes.pop(0)
        sns.heatmap(shares, ax=first, vmin=0, vmax=1, cmap="viridis", square=True,
                    cbar_kws={"label": "effective share", "shrink": 0.4})  # fmt: skip
        first.set_title("all heads", fontsize=10)
    # more labels than these overlap
    labels = n <= 64
    for one, (name, pattern) in zip(axes, patterns.items(), strict=True):
        sns.heatmap(pattern, ax=one, cmap=scale.cmap, vmin=scale.least, vmax=scale.most,
                    square=True, cbar=one is axes[-1], cbar_kws={"label": "weight", "shrink": 0.7},
                    xticklabels=_names(pattern.columns) if labels else False,
                    yticklabels=_names(pattern.index) if labels else False)  # fmt: skip
        one.set_title(plain(name), fontsize=10)
        one.tick_params(labelsize=max(5, 9 - n // 10))
    axes[0].set_ylabel("from")
    for one in axes:
        one.set_xlabel("to")
    if title or ax is None:
        figure.suptitle(plain(title), fontsize=11)
    save_figure(figure, path)
    return figure


def _names(tokens: pd.Index) -> list[str]:
    return [plain(str(token)) for token in tokens]
