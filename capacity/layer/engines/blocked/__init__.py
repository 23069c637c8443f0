"""The blocked engine: large layers, a block of facts at a time, with analytic gradients."""

from __future__ import annotations

from typing import Any

from capacity.layer.engines.registry import Engine
from capacity.layer.engines.workload import StepCost, Workload, why_not_plain
from capacity.layer.recipe import Training


def _why_not(work: Workload) -> str | None:
    if work.device != "cpu":
        return "it computes on CPUs"
    return why_not_plain(work)


def _run(*arguments: Any) -> Training:
    from capacity.layer.engines.blocked.engine import run

    return run(*arguments)


BLOCKED = Engine(
    name="blocked",
    why_not=_why_not,
    run=_run,
    cost=StepCost(run=1e-2, step=4e-4, logit=2.5e-9, product=2.5e-10),
    priority=1,
)
