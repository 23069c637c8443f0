"""The padded engine: many runs in one padded batch, with analytic gradients, on any device."""

from __future__ import annotations

from typing import Any

from capacity.layer.engines.engine import Engine
from capacity.layer.engines.workload import StepCost, Workload, why_not_whole
from capacity.layer.run.recipe import Training

# most facts times tokens: a batch takes about 2 kB for each, whatever the other runs
MOST_LOGITS = 1 << 18


def _why_not(work: Workload) -> str | None:
    if work.n_logits > MOST_LOGITS:
        return f"facts times tokens must be at most {MOST_LOGITS:,}"
    return why_not_whole(work)


def _run(layer: Any, db: Any, recipe: Any, rng: Any, _snapshots: Any) -> Training:
    from capacity.layer.packed import train_together

    return train_together(_run_many, [(layer, db)], recipe, [rng])[0]


def _run_many(*arguments: Any) -> list[Training]:
    from capacity.layer.engines.padded.engine import run_many

    return run_many(*arguments)


# without a priority: it is meant for GPUs, where its speed hasn't been measured
PADDED = Engine(
    name="padded",
    why_not=_why_not,
    run=_run,
    # in a full group; a single run costs as much as sixteen
    cost=StepCost(run=1e-3, step=2e-4, logit=6e-8, product=1e-9, double=1.8),
    run_many=_run_many,
)
