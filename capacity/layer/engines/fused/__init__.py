"""The fused engine: all of training one small layer in compiled code, on one thread of a CPU."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capacity.kept_code import is_kept
from capacity.layer.engines.engine import Engine, StepCost, Workload, why_not_plain
from capacity.layer.engines.simd import ROW


def _why_not(work: Workload) -> str | None:
    if work.device != "cpu":
        return "it runs on CPUs only"
    if work.layer.d_model > ROW:
        return f"d_model must be at most {ROW}"
    return why_not_plain(work)


def _start(works: Iterable[Workload]) -> float:
    from capacity.layer.engines.fused.kernels import start_seconds

    return start_seconds(works)


def _ahead(work: Workload) -> list[str] | None:
    kind, function = ("batches", "train_batches") if work.n_steps > 1 else ("full", "train_epochs")
    if is_kept(Path(__file__).with_name("epochs.py"), function):
        return None
    return [f"{__name__}.kernels:compile_widest", kind, work.dtype]


FUSED = Engine(
    name="fused",
    why_not=_why_not,
    run=f"{__name__}.engine:run",
    run_weights=f"{__name__}.engine:run_weights",
    # of a run, by the kernel of its own d_model
    cost=StepCost(
        run=6e-4,
        look=8e-9,
        step=8e-7,
        token=8e-9,
        head=6e-9,
        logit=3.5e-10,
        product=1.1e-10,
        double=2.0,
    ),
    start=_start,
    ahead=_ahead,
    # faster than the tape engine from d_model = 4 on, and nearly as fast below
    priority=3,
)
