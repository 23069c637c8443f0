"""The experiments run, small; what they find is in experiments/results, and isn't asserted here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
NAMES = ["figures", "logit_scale", "d_head_qk", "measured_ranks", "capacity_law", "by_hand",
         "nonsense", "additive_motif", "identifiability", "effective_attention",
         "decomposition"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_runs(name: str) -> None:
    command = [sys.executable, str(EXPERIMENTS / f"{name}.py"), "--smoke"]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    # it draws the conclusions that the committed record has
    record = json.loads((EXPERIMENTS / "results" / f"{name}.json").read_text())
    assert json.loads(done.stdout).keys() == record.keys()


@pytest.mark.parametrize("name", NAMES)
def test_its_table_and_figure_are_there_and_are_explained(name: str) -> None:
    tables = list((EXPERIMENTS / "results").glob(f"{name}-*.parquet"))
    assert tables
    assert all(len(pd.read_parquet(path)) for path in tables)
    figures = list((EXPERIMENTS / "results").glob(f"{name}-*.png"))
    text = (EXPERIMENTS / "README.md").read_text()
    assert figures
    assert all(f"results/{path.name}" in text for path in figures)
    assert f"`experiments/{name}.py`" in text
