"""Headline figures of sweeps: a small plan in a new environment, and the whole command.

Each function starts the command of this checkout in processes of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sweep_speed import PLAN

ROOT = Path(__file__).parents[2]
SMALL = Path(__file__).with_name("small_plan.toml").read_text()
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
from capacity.layer.engines.fused.kernels import Kernel, _load
for dims in range(1, 9):
    _load(Kernel("full", dims, "float32"))
"""


def _run(arguments: list[str], cache: str) -> tuple[float, str]:
    """Run Python with a folder of compiled code; return the wall seconds, and what it prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT),
                   "NUMBA_CACHE_DIR": cache}  # fmt: skip
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
    return time.perf_counter() - start, done.stdout


def _sweep(plan: str, folder: Path, cache: str, workers: int) -> float:
    config = folder / "plan.toml"
    config.write_text(plan)
    with tempfile.TemporaryDirectory(dir=folder) as out:
        line = ["-m", "capacity.cli", "sweep", str(config), "--out", f"{out}/sweep",
                "--workers", str(workers)]  # fmt: skip
        return _run(line, cache)[0]


def cold_sweep(workers: int = 2) -> tuple[float, float, int]:
    """Seconds of the small plan with nothing compiled, and again; and the kernels compiled."""
    with tempfile.TemporaryDirectory() as folder:
        cache = f"{folder}/cache"
        cold, warm = (_sweep(SMALL, Path(folder), cache, workers) for _ in range(2))
        return cold, warm, len(list(Path(cache).rglob("*.nbc")))


def kernels_compiled() -> int:
    """Number of functions that the small plan compiles in a new environment."""
    return cold_sweep(1)[2]


def whole_sweep(workers: int = 2, cache: str = str(ROOT / "build/kernels")) -> float:
    """Wall time of the whole command over that of the kernel alone, on as many threads.

    All kernels are compiled, in a folder that is kept for the next call.
    """
    _run(["-c", _COMPILE], cache)
    with tempfile.TemporaryDirectory() as folder:
        taken = _sweep(PAPER, Path(folder), cache, workers)
        alone = _run(["-c", _KERNEL, f"{folder}/plan.toml", str(workers)], cache)[1]
        return taken / float(alone)
