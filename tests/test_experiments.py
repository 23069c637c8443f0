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
def test_its_table_and_figure_are_there_and_are_explained(name: str) -> None:
    results = results_of(name)
    tables = list(results.glob(f"{name}-*.parquet"))
    assert tables
    assert all(len(pd.read_parquet(path)) for path in tables)
    figures = list(results.glob(f"{name}-*.png"))
    text = (ROOT / "experiments" / "README.md").read_text()
    assert figures
    assert all(f"results/{path.name}" in text for path in figures)
    assert f"`{EXPERIMENTS[name].replace('.', '/')}.py`" in text
