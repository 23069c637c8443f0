"""The padded engine: many runs in one padded batch, with analytic gradients, on any device.

A step on all facts is the same few dozen tensor operations for any runs: no branch, no autograd, no
scatter. Gathers from tokens to facts, and the sums back, are products with incidence matrices,
which are deterministic on every device. Sizes are padded to powers of two, so that runs of similar
size share a batch, and so that a run's shapes, and with them its bits, don't depend on the other
runs. Padding is zero and has zero gradient. A run that has ended keeps its weights. Batches of
facts are assembled on the host, step by step.

It is meant for GPUs, where a step on all facts can be captured once and replayed, and its speed
there hasn't been measured. On CPUs the fused engine is much faster.

For the formulas see `capacity.layer.engines.fused.attention`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from capacity.database.facts import Database
from capacity.layer.engines.padded.batch import GROUP, PaddedRun, Sizes
from capacity.layer.engines.padded.trainer import Group
from capacity.layer.packed import PackedLayers
from capacity.layer.run.recipe import Recipe, Training


def run_many(
    packed: PackedLayers,
    databases: Sequence[Database],
    recipe: Recipe,
    rngs: Sequence[np.random.Generator],
) -> list[Training]:
    """Train layers of one device in place, in groups of equal padded sizes."""
    whole = [
        PaddedRun.of(packed.configs[i], packed.weights(i), db, rng)
        for i, (db, rng) in enumerate(zip(databases, rngs, strict=True))
    ]
    groups: dict[tuple[Sizes, int], list[int]] = {}
    for i, task in enumerate(whole):
        groups.setdefault((task.sizes, recipe.facts_a_step(task.db.n_triples)), []).append(i)
    results: dict[int, Training] = {}
    for (sizes, facts_a_step), members in groups.items():
        for start in range(0, len(members), GROUP):
            part = members[start : start + GROUP]
            group = Group([whole[i] for i in part], sizes, recipe, facts_a_step)
            results.update(zip(part, group.train(), strict=True))
    return [results[i] for i in range(len(packed))]
