"""The curve of a training: its loss, and the share of facts that the layer knows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from capacity.checks import shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer.run.recipe import Training
from capacity.optional import require_packages
from capacity.plots.theme import COLOURS, canvas, figure_theme, require_drawable, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# curves of fewer points show where they were recorded
FEW = 40


def plot_training(
    training: Training,
    *,
    title: str | None = None,
    axes: Sequence[Axes] | None = None,
    figsize: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """Draw the loss of a training and the share of facts that it knows, by epoch.

    Parameters
    ----------
    training : Training
        Outcome of `capacity.layer.train`, with its history.
    title : str, optional
        Title of the figure; if omitted, how the training ended.
    axes : (Axes, Axes), optional
        Panels of a figure of yours to draw the loss and the share of facts into; by default a new
        figure is made.
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
        If `training` or `axes` is of another type.
    InvalidArgumentError
        If its engine recorded no epoch, for another number of panels, or another suffix.
    StorageError, MissingExtraError
        As for all plots (`capacity.plots`).

    Notes
    -----
    The loss is that of predicates and objects, unless the recipe asks for objects alone; it can't
    reach 0 where a subject has several predicates, for which of them follows isn't determined. So
    the title doesn't contain it: a layer that has memorised all facts may have a loss of 0.5.

    Examples
    --------
    >>> from capacity.layer.run.history import History
    >>> curve = History((0, 1, 2), (2.3, 0.9, 0.1), (0.0, 0.5, 1.0))
    >>> figure = plot_training(Training("memorised", 2, 0.1, "fused", curve))
    >>> figure.axes[0].get_title()
    'memorised after 2 epochs'
    """
    require_packages("plot_training", ("matplotlib",), "plots")
    if not isinstance(training, Training):
        raise InvalidTypeError(
            f"`training` must be what capacity.layer.train returns, a Training; got "
            f"{shown(training)}."
        )
    curve = training.history
    if not curve.epochs:
        raise InvalidArgumentError(
            "`training` must have a history of at least one epoch; the engine "
            f"{training.engine} recorded none. Train with another engine."
        )
    if path is not None:
        require_drawable(path)
    if title is None:
        epochs = f"{training.epochs:,} epoch{'' if training.epochs == 1 else 's'}"
        title = f"{training.status} after {epochs}"
    with figure_theme():
        figure = canvas(figsize, (5.4, 4.2), axes, 2)
        upper, lower = axes or figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        mark = "." if len(curve.epochs) < FEW else ""
        upper.plot(curve.epochs, curve.loss, color=COLOURS[0], marker=mark)
        lower.plot(curve.epochs, curve.accuracy_p50, color=COLOURS[1], marker=mark)
        upper.set(ylabel="loss (nats)")
        upper.set_ylim(bottom=0)
        lower.set(xlabel="epochs done", ylabel="facts with p > 0.5", ylim=(-0.04, 1.04))
        # left, and yet the title that `get_title` returns
        upper.set_title(title, loc="center", x=0, ha="left")
        save_figure(figure, path)
    return figure
