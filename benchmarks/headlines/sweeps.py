"""Headline figures of sweeps: a small plan in a new environment, and the whole command.

Each function starts the command of this checkout in processes of its own.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
from record import environment
from sweep_speed import PLAN, drawn, naive, ours

from headlines.figure import Figure, calibration, ratio, wall_seconds

ROOT = Path(__file__).parents[2]
SMALL, DECODERS = (
    Path(__file__).with_name(name).read_text() for name in ("small_plan.toml", "decoders_plan.toml")
)
# epochs of the naive loop that are measured, a twentieth of the kernel's
EPOCHS = 20
# where kernels stay compiled
CACHE = str(ROOT / "build" / "kernels")
# 200 runs of the paper's experiment, in small
PAPER = PLAN.format(epochs=2000)
# the same runs by the kernel alone, with every kernel compiled and loaded
_KERNEL = """
import sys, time
from pathlib import Path
from capacity.layer import AttentionLayer, Compute, LayerConfig, Recipe, train_many
from capacity.sweep import read_plan
plan = read_plan(Path(sys.argv[1]))
runs = [(AttentionLayer(run.layer, run.database.n_tokens), run.database) for run in plan.runs]
own = {run.layer.d_model: (AttentionLayer(run.layer, run.database.n_tokens), run.database)
       for run in plan.runs}
train_many([*own.values()], Recipe(epochs=1), Compute("fused"))
start = time.perf_counter()
train_many(runs, plan.runs[0].recipe, Compute("fused"), threads=int(sys.argv[2]))
print(time.perf_counter() - start)
"""
# compiles the kernel of each d_model, whatever it pays
_COMPILE = """
from capacity.layer.engines.fused.kernels import Kernel
for dims in range(1, 9):
    kernel = Kernel("full", dims, "float32")
    kernel.function.compile(kernel.types)
"""


def _run(arguments: list[str], cache: str) -> tuple[float, str]:
    """Run Python with a folder of compiled code; return the wall seconds, and what it prints."""
    variables = environment(OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT), NUMBA_CACHE_DIR=cache)
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT, env=variables,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    return time.perf_counter() - start, done.stdout


def _sweep(plan: str, folder: Path, cache: str, workers: int) -> float:
    config = folder / "plan.toml"
    config.write_text(plan)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        line = ["-m", "capacity.cli", "sweep", str(config), "--out", f"{out}/sweep",
                "--workers", str(workers)]  # fmt: skip
        return _run(line, cache)[0]


def cold_sweep(plan: str) -> float:
    """Wall seconds of a plan with nothing compiled, in units of the calibration loop's."""
    with tempfile.TemporaryDirectory() as folder:
        # every call of the command has a folder of compiled code of its own
        caches = (f"{folder}/{number}" for number in itertools.count())
        return ratio(
            lambda: _sweep(plan, Path(folder), next(caches), 2),
            calibration,
            repeats=2,
            clock=wall_seconds,
        )


def kernels_compiled() -> float:
    """Number of functions that the small plan compiles in a new environment."""
    with tempfile.TemporaryDirectory() as folder:
        _sweep(SMALL, Path(folder), f"{folder}/cache", 1)
        return len(list(Path(folder, "cache").rglob("*.nbc")))


def whole_sweep(workers: int) -> float:
    """Wall time of the whole command over that of the kernel alone, on as many threads.

    All kernels are compiled before, in a folder that is kept for the next call.
    """
    _run(["-c", _COMPILE], CACHE)
    found: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        # modules are compiled, too
        _sweep(SMALL, Path(folder), CACHE, workers)
        for _ in range(2):
            taken = _sweep(PAPER, Path(folder), CACHE, workers)
            alone = _run(["-c", _KERNEL, f"{folder}/plan.toml", str(workers)], CACHE)[1]
            found.append(taken / float(alone))
    return statistics.median(found)


def kernel() -> float:
    """Time of a run-epoch of the compiled engine, in units of a naive torch loop's."""
    torch.set_num_threads(1)
    runs = drawn(16)
    return ratio(lambda: ours(runs, 20 * EPOCHS), lambda: naive(runs, EPOCHS), repeats=5) / 20


FIGURES = {
    "whole sweep, one worker": Figure("ratio", "its kernel alone", partial(whole_sweep, 1)),
    "whole sweep, two workers": Figure("ratio", "its kernel alone", partial(whole_sweep, 2)),
    "kernel": Figure("ratio", "a naive torch loop, a run-epoch", kernel),
    "cold sweep": Figure("ratio", "calibration loop", partial(cold_sweep, SMALL)),
    "cold sweep, decoders": Figure("ratio", "calibration loop", partial(cold_sweep, DECODERS)),
    "kernels of a cold sweep": Figure("count", "compiled functions", kernels_compiled),
}
