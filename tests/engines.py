"""An engine of the tests that trains many layers together on a CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from capacity.database import Database
from capacity.layer import Engine, Recipe, Training
from capacity.layer.engines.fused.engine import run_weights
from capacity.layer.engines.workload import Workload, why_not_whole
from capacity.layer.packed import PackedLayers, train_together


def run_many(
    packed: PackedLayers,
    databases: Sequence[Database],
    recipe: Recipe,
    rngs: Sequence[np.random.Generator],
) -> list[Training]:
    """Train each in its part of the packed weights, by the fused engine."""
    trainings: list[Training] = []
    for i, (db, rng) in enumerate(zip(databases, rngs, strict=True)):
        weights = {name: weight.numpy() for name, weight in packed.weights(i).items()}
        trainings.append(run_weights(packed.configs[i], weights, db, recipe, rng))
    return [replace(training, engine="together") for training in trainings]


def run(layer: Any, db: Any, recipe: Any, rng: Any, _snapshots: Any) -> Training:
    return train_together(run_many, [(layer, db)], recipe, [rng])[0]


def cost(_work: Workload) -> float:
    return 0.01


# by the names of its functions, which processes of a sweep import as well
TOGETHER = Engine(
    "together",
    why_not=why_not_whole,
    run=f"{__name__}:run",
    cost=cost,
    run_many=f"{__name__}:run_many",
)
