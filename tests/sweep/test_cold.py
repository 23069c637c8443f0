"""A small sweep in a new environment compiles one kernel."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAN = Path(__file__).parents[2] / "benchmarks/headlines/small_plan.toml"


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_small_plan_of_three_sizes_compiles_one_kernel(workers: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    subprocess.run(
        [sys.executable, "-m", "capacity.cli", "sweep", str(PLAN), "--out", "out",
         "--workers", workers],
        cwd=tmp_path, check=True, capture_output=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )  # fmt: skip
    # with 60 runs of a thousand epochs, and ranks of ten databases
    (kernel,) = cache.rglob("*.nbc")
    assert kernel.name.startswith("epochs.train_epochs-")
