"""An engine of another library, whose functions processes of their own can import from here.

Nothing registers it when it is imported: whoever trains by it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from capacity.database import Database
from capacity.layer import AttentionLayer, Engine, Recipe, Training, Workload
from capacity.layer.snapshots import NO_SNAPSHOTS, Snapshots


def why_not(work: Workload) -> str | None:
    return None if work.layer.n_heads < 3 else "it has two hands"


def cost(work: Workload) -> float:
    # half a second: two runs a task
    return 0.45


def run(
    layer: AttentionLayer,
    _db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    _snapshots: Snapshots = NO_SNAPSHOTS,
) -> Training:
    """Learn nothing, and set the unembedding to random numbers."""
    with torch.no_grad():
        layer.W_U.copy_(torch.as_tensor(rng.standard_normal(layer.W_U.shape)))
    return Training("completed", recipe.epochs, 0.0, "toy")


def run_many(
    tasks: Sequence[tuple[AttentionLayer, Database]],
    recipe: Recipe,
    rngs: Sequence[np.random.Generator],
) -> list[Training]:
    return [run(*task, recipe, rng) for task, rng in zip(tasks, rngs, strict=True)]


ALONE = Engine("toy", why_not=why_not, run=run, cost=cost, priority=9)
TOGETHER = Engine("toy", why_not=why_not, run=run, cost=cost, run_many=run_many, priority=9)
