"""The blocked engine: large layers, a block of facts at a time, with analytic gradients."""

from __future__ import annotations

from collections.abc import Iterable

from capacity.layer.engines.engine import Engine, StepCost, Workload, why_not_plain


def _start(works: Iterable[Workload]) -> float:
    from capacity.layer.engines.blocked.softmax import errors_of
    from capacity.layer.engines.simd.compile import kept_types

    # its first argument is the block of logits
    kept = {str(block.dtype) for block, *_ in kept_types(errors_of)}
    missing = {work.dtype for work in works if work.device == "cpu"} - kept
    # imports of numba and torch's optimizers, and small kernels for each dtype
    return 1.6 + 1.0 * len(missing)


BLOCKED = Engine(
    name="blocked",
    why_not=why_not_plain,
    run=f"{__name__}.engine:run",
    # on a CPU: no device has been measured
    cost=StepCost(
        run=1e-3,
        step=7e-4,
        head=2e-7,
        logit=2.5e-9,
        product=6e-11,
        weight=8e-9,
        projection=1.1e-10,
        double=1.5,
    ),
    start=_start,
    priority=1,
)
