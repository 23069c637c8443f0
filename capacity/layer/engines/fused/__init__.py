"""The fused engine: all of training one small layer in compiled code, on one thread of a CPU."""

from __future__ import annotations

from typing import Any

from capacity.layer.engines.registry import Engine
from capacity.layer.engines.simd import ROW
from capacity.layer.engines.workload import StepCost, Workload, why_not_plain
from capacity.layer.recipe import Training


def _why_not(work: Workload) -> str | None:
    if work.device != "cpu":
        return "it computes on CPUs"
    if work.layer.d_model > ROW:
        return f"d_model must be at most {ROW} then"
    return why_not_plain(work)


def _run(*arguments: Any) -> Training:
    from capacity.layer.engines.fused.engine import run

    return run(*arguments)


FUSED = Engine(
    name="fused",
    why_not=_why_not,
    run=_run,
    cost=StepCost(run=3e-3, step=1.5e-6, logit=5e-10, product=1e-10),
    # faster than the blocked engine wherever it can be used (benchmarks/large_layers.py)
    priority=2,
)
