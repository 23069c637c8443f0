"""An engine that is registered from outside trains a sweep wherever its runs are done."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import distributed
import pandas as pd
import pytest

from capacity.errors import SweepError
from capacity.layer import Engine, register_engine, unregister_engine
from capacity.sweep import load, make_plan, measure_runs, run_sweep
from tests.sweep import tasks
from tests.sweep.toy_engine import ALONE, TOGETHER

CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 2, "max_triples": 8}},
    "layers": {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1, 2], "d_head_vo": [1, 2]},
    "recipe": {"epochs": 4},
    "compute": {"engine": "toy"},
}


@pytest.fixture(params=[ALONE, TOGETHER], ids=["alone", "together"])
def toy(request: pytest.FixtureRequest) -> Iterator[Engine]:
    register_engine(request.param)
    yield request.param
    unregister_engine("toy")


@pytest.fixture
def alone() -> Iterator[None]:
    register_engine(ALONE)
    yield
    unregister_engine("toy")


@pytest.mark.slow
@pytest.mark.usefixtures("toy")
def test_the_table_is_the_same_in_one_process_in_several_and_by_parts(tmp_path: Path) -> None:
    plan = make_plan(CONFIG)
    # each way the whole sweep
    run_sweep(plan, tmp_path / "one")
    run_sweep(plan, tmp_path / "two", workers=2)
    for part in (1, 0):
        run_sweep(plan, tmp_path / "parts", shard=(part, 2), workers=2)
    tables = [(tmp_path / name / "runs.parquet").read_bytes() for name in ("one", "two", "parts")]
    assert tables[0] == tables[1] == tables[2]
    assert set(load(tmp_path / "one")["engine"]) == {"toy"}


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_what_is_measured_of_its_layers_is_the_same_in_several_processes() -> None:
    plan = make_plan({**CONFIG, "compute": {"engine": "auto"}})
    assert {run.engine for run in plan.runs} == {"toy"}
    table = measure_runs(plan.runs, tasks.norms, workers=2)
    pd.testing.assert_frame_equal(table, measure_runs(plan.runs, tasks.norms))


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
@pytest.mark.filterwarnings("default")
def test_a_cluster_that_never_heard_of_it_trains_by_it(tmp_path: Path) -> None:
    plan = make_plan(CONFIG)
    run_sweep(plan, tmp_path / "here")
    there: Any = distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address=None,  # type: ignore[arg-type]
        silence_logs=50,
    )
    with there as cluster:
        run_sweep(plan, tmp_path / "there", dask=cluster.scheduler_address)
    tables = [(tmp_path / name / "runs.parquet").read_bytes() for name in ("here", "there")]
    assert tables[0] == tables[1]


def test_a_folder_that_auto_began_by_other_engines_is_not_said_to_be_damaged(
    tmp_path: Path,
) -> None:
    plan = make_plan({**CONFIG, "compute": {"engine": "auto"}})
    run_sweep(plan, tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text())["computed_by"]["engine"] == "fused"
    # the engine that 'auto' stands for, by its name
    run_sweep(make_plan({**CONFIG, "compute": {"engine": "fused"}}), tmp_path)
    register_engine(ALONE)
    try:
        again = make_plan({**CONFIG, "compute": {"engine": "auto"}})
        with pytest.raises(
            SweepError, match=r"begun with engine fused.*; this process has engine toy"
        ):
            run_sweep(again, tmp_path)
        run_sweep(again, tmp_path, allow_other_engine=True)
    finally:
        unregister_engine("toy")
    assert load(tmp_path)["engine"].value_counts().to_dict() == {"fused": 16, "toy": 16}


@pytest.mark.slow
def test_an_engine_that_processes_cannot_import_is_named_and_trains_in_one(tmp_path: Path) -> None:
    register_engine(replace(ALONE, cost=lambda _: 0.45))
    try:
        plan = make_plan(CONFIG)
        with pytest.raises(SweepError, match=r"that they can import; .*lambda"):
            run_sweep(plan, tmp_path, workers=2)
        assert run_sweep(plan, tmp_path) is not None
    finally:
        unregister_engine("toy")
