"""Progress of a training. No torch in here."""

from __future__ import annotations

from collections.abc import Callable

from capacity.layer.recipe import Recipe, Training
from capacity.layer.snapshots import Snapshots
from capacity.progress import Progress


def followed(
    train: Callable[[Snapshots], Training],
    recipe: Recipe,
    snapshots: Snapshots,
    progress: Progress | None,
) -> Training:
    """Train, and report the number of epochs done: `progress` of `capacity.layer.train`."""
    if progress is None:
        return train(snapshots)
    progress("epochs", 0, recipe.epochs, None)
    told = snapshots.telling(lambda done: progress("epochs", done, recipe.epochs, None))
    training = train(told)
    # a layer that memorises stops early: what is left isn't trained
    progress("epochs", training.epochs, training.epochs, 0.0)
    return training
