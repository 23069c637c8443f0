"""The tape engine: a decoder as instructions of a small vector machine, in compiled code.

A part of a decoder records the operations of its forward pass, each of which has its gradient, so
that one compiled function trains any decoder. It trains one run on one thread of a CPU, at all
facts in each step.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capacity.kept_code import is_kept
from capacity.layer.engines.engine import Engine, StepCost, Workload

# most logits of an epoch, which are in memory at once; of a plain layer those that fit the cache,
# and its largest d_model: beyond them the blocked engine is faster
MOST_LOGITS, MOST_OF_PLAIN, WIDEST_PLAIN = 2**24, 2**20, 64
# CPU seconds on a core of 2025 to import numba and load the code, and to compile it
LOAD, COMPILE = 0.6, 4.0


def _why_not(work: Workload) -> str | None:
    if work.device != "cpu":
        return "it runs on CPUs only"
    if work.n_steps > 1:
        return "it takes all facts in each step, and the recipe asks for batches"
    most = MOST_OF_PLAIN if work.layer.is_plain else MOST_LOGITS
    if 2 * work.n_logits > most:
        return f"its {2 * work.n_logits:,} logits must be at most {most:,}"
    if work.layer.is_plain and work.layer.d_model > WIDEST_PLAIN:
        return f"d_model of a plain layer must be at most {WIDEST_PLAIN}"
    return None


def _is_kept() -> bool:
    return is_kept(Path(__file__).with_name("execute.py"), "train")


def _start(_works: Iterable[Workload]) -> float:
    return LOAD if _is_kept() else LOAD + COMPILE


def _ahead(work: Workload) -> list[str] | None:
    return None if _is_kept() else [f"{__name__}.execute:compile_for", work.dtype]


TAPE = Engine(
    name="tape",
    why_not=_why_not,
    run=f"{__name__}.engine:run",
    run_weights=f"{__name__}.engine:run_weights",
    logits_of_facts=f"{__name__}.engine:logits_of_facts",
    cost=StepCost(
        run=3e-3,
        look=8e-9,
        step=2e-6,
        logit=1e-9,
        product=1.5e-10,
        projection=2.8e-10,
        double=2.0,
    ),
    start=_start,
    ahead=_ahead,
    # faster than the blocked engine wherever it can be used
    priority=2,
    weighs_facts=True,
)
