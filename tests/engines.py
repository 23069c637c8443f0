"""The registered engines, for what holds of each; and one of the tests, which trains many together.

What an engine can is asked of its own record, `Engine.why_not`, so that the tests know no name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from capacity.database import Database
from capacity.layer import Compute, Engine, LayerConfig, Recipe, Training
from capacity.layer.engines.engine import Workload, why_not_whole
from capacity.layer.engines.fused.engine import run_weights
from capacity.layer.engines.registry import engine_named, engine_names
from capacity.layer.packed import PackedLayers, train_together

SMALL = LayerConfig(4, 2, 2, 3)


def small_work(layer: LayerConfig = SMALL, recipe: Recipe | None = None, **said: Any) -> Workload:
    """A training of a small layer on a CPU; further arguments are those of `Workload`."""
    return Workload(layer, recipe or Recipe(), **{"n_triples": 20, "n_tokens": 30, **said})


def able(layer: LayerConfig = SMALL, recipe: Recipe | None = None, **said: Any) -> list[str]:
    """Names of the engines of the library that can do a training (`small_work`)."""
    work = small_work(layer, recipe, **said)
    return [name for name in engine_names() if engine_named(name).why_not(work) is None]


def able_alone(layer: LayerConfig = SMALL, recipe: Recipe | None = None, **said: Any) -> list[str]:
    """Those that train a layer by itself, which keep snapshots and tell their epochs."""
    names = able(layer, recipe, **said)
    return [name for name in names if engine_named(name).run_many is None]


def compute_by(engine: str, recipe: Recipe | None = None, dtype: Any = "float32") -> Compute:
    """Say the engine and the dtype, or skip the test for the reason that the engine gives."""
    refusal = engine_named(engine).why_not(small_work(recipe=recipe, dtype=dtype))
    if refusal is not None:
        pytest.skip(f"{engine} can't, for {refusal}")
    return Compute(engine, dtype)


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
        config = packed.configs[i]
        assert isinstance(config, LayerConfig)
        trainings.append(run_weights(config, weights, db, recipe, rng))
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
