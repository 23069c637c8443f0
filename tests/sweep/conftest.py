"""A sweep that nothing disturbed, beside which others are held."""

from pathlib import Path

import pytest

from capacity.sweep import run_sweep
from capacity.sweep.plan import Plan


@pytest.fixture(scope="module")
def done(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a whole sweep of the module's plan, in one process."""
    folder = tmp_path_factory.mktemp("sweep")
    assert run_sweep(plan, folder) == folder / "runs.parquet"
    return folder
