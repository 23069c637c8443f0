"""The experiments run, small; what they find is in their results, and isn't asserted here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from experiments import EXPERIMENTS

ROOT = Path(__file__).parents[1]


def results_of(name: str) -> Path:
    return ROOT.joinpath(*EXPERIMENTS[name].split(".")[:-1], "results")


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_runs(name: str) -> None:
    command = [sys.executable, "-m", EXPERIMENTS[name], "--smoke"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    # it draws the conclusions that the committed record has
    record = json.loads((results_of(name) / f"{name}.json").read_text())
    assert json.loads(done.stdout).keys() == record.keys()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_its_tables_are_there(name: str) -> None:
    tables = list(results_of(name).glob(f"{name}-*.parquet"))
    assert tables
    assert all(len(pd.read_parquet(path)) for path in tables)


def test_experiments_know_nothing_of_the_command_line() -> None:
    code = "import sys, experiments.common.harness; sys.exit('capacity.cli' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
    sources = (ROOT / "experiments").rglob("*.py")
    assert not [path for path in sources if "capacity.cli" in path.read_text()]
