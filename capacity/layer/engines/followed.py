"""Progress of a training. No torch in here."""

from __future__ import annotations

from collections.abc import Callable, Collection

from capacity.layer.run.recipe import Recipe, Training
from capacity.layer.run.snapshots import Snapshots
from capacity.progress import Progress


def followed(
    train: Callable[[Snapshots], Training],
    recipe: Recipe,
    snapshots: Snapshots,
    progress: Progress | None,
    watch: Callable[[int, float], object] | None = None,
    watch_at: Collection[int] = (),
) -> Training:
    """Train, and report epochs and loss: `progress` and `watch` of `capacity.layer.train`."""
    if watch is not None:
        snapshots = snapshots.telling(watch, at=watch_at)
    if progress is not None:
        progress("epochs", 0, recipe.epochs, None)
        snapshots = snapshots.telling(
            lambda done, _loss: progress("epochs", done, recipe.epochs, None)
        )
    training = train(snapshots)
    if watch is not None:
        watch(training.epochs, training.loss)
    if progress is not None:
        # a layer that memorises stops early: what is left isn't trained
        progress("epochs", training.epochs, training.epochs, 0.0)
    return training
