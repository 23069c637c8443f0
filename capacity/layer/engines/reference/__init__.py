"""The reference engine: autograd, one run at a time, on any device."""

from __future__ import annotations

from collections.abc import Iterable

from capacity.layer.engines.engine import Engine
from capacity.layer.engines.workload import StepCost, Workload


def _why_not(_work: Workload) -> str | None:
    return None


def _start(_works: Iterable[Workload]) -> float:
    # what torch's optimizers import at their first step
    return 1.1


REFERENCE = Engine(
    name="reference",
    why_not=_why_not,
    run=f"{__name__}.engine:run",
    cost=StepCost(
        run=1e-3,
        step=1.2e-3,
        head=1.5e-6,
        logit=1.1e-8,
        product=2.5e-10,
        weight=8e-9,
        projection=2e-9,
        double=1.3,
    ),
    start=_start,
    priority=0,
)
