"""The same shards on a Dask cluster of this machine."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

from capacity.errors import MissingExtraError, SweepError
from capacity.sweep import make_plan, run_sweep
from capacity.sweep.workers.cluster import on_dask
from tests.sweep import tasks

CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 2, "seed": 1, "max_triples": 12}},
    "layers": {"d_model": [2], "n_heads": [1], "d_head_qk": [1, 2], "d_head_vo": [1, 2]},
    "compute": {"engine": "reference"},
    "recipe": {"epochs": 2500, "learning_rate": 0.05, "stop_tau": 0.6},
}
# dask's own, at shutdown of a worker that was killed
pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=None,  # type: ignore[arg-type]
        silence_logs=50,
    ) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_cluster_gives_the_same_table_though_a_worker_is_killed(
    cluster: Any, tmp_path: Path
) -> None:
    plan = make_plan(CONFIG)
    assert len(plan.shards) > 1
    run_sweep(plan, tmp_path / "here")
    killed: list[int] = []

    def kill_one(what: str, n_done: int, _total: int, _left: float | None) -> None:
        if what == "runs" and n_done and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    run_sweep(plan, tmp_path / "there", dask=cluster.scheduler_address, progress=kill_one)
    assert killed
    tables = [(tmp_path / name / "runs.parquet").read_bytes() for name in ("here", "there")]
    assert tables[0] == tables[1]


@pytest.mark.slow
def test_what_fails_or_kills_its_workers_fails_alone(cluster: Any) -> None:
    with on_dask(cluster.scheduler_address) as execute:
        failing = list(execute(tasks.fail, {n: (n,) for n in range(4)}))
        deadly = list(execute(tasks.die, {n: (n,) for n in range(4)}))
    for outcomes, why in ((failing, "the poison"), (deadly, "Dask stopped it")):
        assert sorted(one.value for one in outcomes if one.error is None) == [0, 2, 3]
        (failed,) = (one for one in outcomes if one.error is not None)
        assert failed.name == 1
        assert why in str(failed.error)


@pytest.mark.slow
def test_a_cluster_without_workers_is_told_and_waited_for(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.sweep.workers.cluster.PATIENCE", 0.5)
    names = range(40)
    with on_dask(cluster.scheduler_address) as execute:
        outcomes = execute(tasks.slow, {n: (n,) for n in names})
        done = [next(outcomes).name]
        # as where workers were killed, and their nannies start no other
        cluster.scale(0)
        again = threading.Timer(8, cluster.scale, [1])
        again.start()
        with pytest.warns(UserWarning, match=r"has had no worker for \d+ s. This waits for one"):
            done += [outcome.name for outcome in outcomes]
        again.join()
    assert sorted(done) == list(names)


def test_no_scheduler_and_no_dask_are_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SweepError, match="No Dask scheduler answers at no"), on_dask("nowhere"):
        pass
    with pytest.raises(ValueError, match="must compute on CPUs"):
        run_sweep(make_plan(CONFIG), "none", dask="nowhere", device="cuda")
    monkeypatch.setattr("capacity.optional.find_spec", lambda _name: None)
    with pytest.raises(MissingExtraError, match=r"knowledge-capacity\[distributed\]"), on_dask("x"):
        pass


@pytest.mark.slow
def test_a_scheduler_that_goes_and_workers_of_another_kind_are_said_in_words(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what differs from process to process
    monkeypatch.setattr("capacity.sweep.workers.cluster.environment", os.getpid)
    with (
        pytest.raises(SweepError, match="must have the versions and the processor of this process"),
        on_dask(cluster.scheduler_address),
    ):
        pass
    monkeypatch.undo()

    def listen() -> None:
        with on_dask(cluster.scheduler_address) as execute:
            for _ in execute(tasks.slow, {n: (n,) for n in range(200)}):
                cluster.close()

    with pytest.raises(SweepError, match="scheduler is gone"):
        listen()
