"""A sweep that tests of pages share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capacity.sweep import load, make_plan, run_sweep

HOSTILE = '<script>alert("1")</script>'


@pytest.fixture(scope="session")
def sweep_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty-eight runs, twelve databases by four layers, of a few epochs each."""
    folder = tmp_path_factory.mktemp("pages") / "a sweep"
    layers = {"d_model": [2, 4], "n_heads": [1, 2], "d_head_qk": [2], "d_head_vo": [2]}
    databases = {"synthetic": {"count": 12, "seed": 0, "max_triples": 60}}
    run_sweep(
        make_plan({"databases": databases, "layers": layers, "recipe": {"epochs": 5}}), folder
    )
    return folder


@pytest.fixture(scope="session")
def mixed_runs(sweep_folder: Path) -> pd.DataFrame:
    """The same runs with scores of our own: some memorise, two diverge, one has ties."""
    runs = load(sweep_folder)
    held = runs["database_rank_bound"] < 4 * runs["layer_rank_bound"]
    # neither all nor none of a size, so that the law has a slope
    held ^= np.arange(len(runs)) % 7 == 0
    columns = [name for name in runs.columns if name.startswith("accuracy_")]
    for name in columns:
        runs[name] = np.where(held, 1.0, 0.25)
    runs["status"] = "completed"
    runs.loc[[3, 5], "status"] = "diverged"
    runs.loc[[3, 5], columns] = np.nan
    runs.loc[8, ["tied", "accuracy_argmax"]] = [0.5, 0.5]
    runs["database_id"] = runs["database_id"].replace(runs["database_id"][0], HOSTILE)
    runs.loc[3, "database_id"] = HOSTILE
    return runs
