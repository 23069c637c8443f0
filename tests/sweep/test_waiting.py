"""Rows of databases that aren't bounded yet are kept as others are: nothing is trained twice."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capacity.errors import SweepError
from capacity.sweep import RUNS_SCHEMA, driver, load, make_plan, run_sweep
from capacity.sweep.plan import Plan
from capacity.sweep.storage.manifest import environment
from capacity.sweep.storage.row_schema import RANK_COLUMNS, unfinished_schema
from capacity.sweep.storage.runs_table import table_of_rows, write_table
from capacity.sweep.storage.store import Store
from tests.sweep import tasks

# 12 runs of two databases in three shards, of which one has both; by estimate each run is a task,
# but they memorise at once
CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 2, "seed": 0, "max_triples": 8}},
    "layers": {"d_model": [6], "n_heads": [1, 2], "d_head_qk": [2], "d_head_vo": [2, 3, 4]},
    "compute": {"engine": "reference"},
    "recipe": {"epochs": 2000, "learning_rate": 0.1, "stop_tau": 0.51},
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(CONFIG)


def table_bytes(folder: Path) -> bytes:
    return (folder / "runs.parquet").read_bytes()


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Keys of the runs that were trained, by this process and by others."""
    path = tmp_path / "trained"
    path.touch()
    monkeypatch.setattr(driver, "timed_rows", partial(tasks.counted_rows, str(path)))
    return lambda: sorted(path.read_text().split())


def keys_of(plan: Plan) -> list[str]:
    return sorted(run.key for run in plan.runs)


@pytest.mark.parametrize(
    ("how", "workers"), [("raise", 1), pytest.param("die", 2, marks=pytest.mark.slow)]
)
def test_a_database_that_cannot_be_bounded_costs_no_training(
    how: str, workers: int, plan: Plan, done: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, trained: Callable[[], list[str]],
) -> None:  # fmt: skip
    facts, out = plan.runs[0].database.facts_sha256, tmp_path / "out"
    bound = driver.database_ranks
    monkeypatch.setattr(driver, "database_ranks", partial(tasks.ranks_never, how, facts))
    why = {"raise": "ArithmeticError: the poison", "die": "its process died 3 times"}[how]
    # one shard has the other database alone
    n_lacking = sum(any(r.database.facts_sha256 == facts for r in s) for s in plan.shards)
    for _ in range(2):
        with pytest.raises(
            SweepError, match=f"{n_lacking} of .* because 1 tasks failed.*ranks of {facts}: {why}"
        ):
            run_sweep(plan, out, workers=workers)
        assert trained() == keys_of(plan)
        # readers see none of its rows
        assert not list(out.glob("runs.parquet"))
        assert len(list(out.glob("shards/*"))) == len(plan.shards) - n_lacking
    monkeypatch.setattr(driver, "database_ranks", bound)
    told: list[tuple[str, int, int, float | None]] = []
    run_sweep(plan, out, progress=lambda *said: told.append(said))
    assert told == [("runs", 12, 12, None), ("ranks", 1, 1, None)]
    assert trained() == keys_of(plan)
    assert table_bytes(out) == table_bytes(done)
    assert not (out / "unfinished").exists()


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, SweepError])
def test_an_interrupt_keeps_the_rows_that_wait(
    error: type[BaseException], plan: Plan, done: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, trained: Callable[[], list[str]],
) -> None:  # fmt: skip
    def interrupt(what: str, n_done: int, total: int, _left: float | None) -> None:
        if what == "runs" and n_done == total:
            raise error

    out, facts = tmp_path / "out", plan.runs[0].database.facts_sha256
    never = str(tmp_path / "never")
    with monkeypatch.context() as patch:
        patch.setattr(driver, "database_ranks", partial(tasks.ranks_once_there, never, facts))
        with pytest.raises(error):
            run_sweep(plan, out, workers=2, progress=interrupt)
    assert list(out.glob("unfinished/*.parquet"))
    run_sweep(plan, out)
    assert trained() == keys_of(plan)
    assert table_bytes(out) == table_bytes(done)
    assert not (out / "unfinished").exists()


DRIVER = """
import json, sys
from functools import partial
from capacity.sweep import driver, make_plan, run_sweep
from tests.sweep import tasks
if __name__ == "__main__":
    driver.KEEP_SECONDS = 0
    plan = make_plan(json.loads(sys.argv[1]))
    facts = plan.runs[0].database.facts_sha256
    driver.database_ranks = partial(tasks.ranks_once_there, sys.argv[2] + "-never", facts)
    tell = lambda what, done, total, left: print(what, done, flush=True)
    run_sweep(plan, sys.argv[2], workers=2, progress=tell)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::capacity.errors.LeftoverWarning")
def test_a_kill_costs_none_of_the_rows_that_were_kept_while_they_waited(
    plan: Plan, done: Path, tmp_path: Path, trained: Callable[[], list[str]]
) -> None:
    out, script = tmp_path / "out", tmp_path / "driver.py"
    script.write_text(DRIVER)
    process = subprocess.Popen(
        [sys.executable, script, json.dumps(CONFIG), out],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        # tasks of the database that isn't bounded, of which all but the last are surely kept
        if line.startswith("runs") and int(line.split()[1]) >= 3:
            break
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    files = [*out.glob("unfinished/*.parquet"), *out.glob("shards/*.parquet")]
    kept = [row for path in files for row in pq.read_table(path).to_pylist()]
    facts = {run.key: run.database.facts_sha256 for run in plan.runs}
    assert plan.runs[0].database.facts_sha256 in {facts[row["run_key"]] for row in kept}
    run_sweep(plan, out)
    assert sorted([*trained(), *(row["run_key"] for row in kept)]) == keys_of(plan)
    assert table_bytes(out) == table_bytes(done)


@pytest.mark.slow
def test_a_worker_that_dies_while_bounding_costs_an_attempt_alone(
    plan: Plan, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    trained: Callable[[], list[str]],
) -> None:  # fmt: skip
    marks, out = tmp_path / "marks", tmp_path / "out"
    marks.mkdir()
    monkeypatch.setattr(driver, "database_ranks", partial(tasks.ranks_die_once, str(marks)))
    run_sweep(plan, out, workers=2)
    assert list(marks.iterdir())
    assert trained() == keys_of(plan)
    assert table_bytes(out) == table_bytes(done)


def test_rows_without_ranks_are_no_shard(plan: Plan, done: Path, tmp_path: Path) -> None:
    store = Store(tmp_path, plan, environment())
    rows = [
        {**row, **dict.fromkeys(RANK_COLUMNS)}
        for row in load(done).to_dict("records")
        if row["run_key"] in {run.key for run in plan.shards[0]}
    ]
    with pytest.raises(pa.ArrowInvalid, match="non-nullable"):
        store.write(0, rows)
    # stamped as a shard, and of as many rows
    path = store.path(0)
    write_table(path, table_of_rows(rows, unfinished_schema(RUNS_SCHEMA)), of=path.name)
    with pytest.raises(SweepError, match="other columns than the runs table"):
        load(tmp_path)
    assert not store.is_done(0)


def test_unfinished_rows_with_ranks_as_they_were_kept_before_are_read(
    plan: Plan, done: Path, tmp_path: Path
) -> None:
    store = Store(tmp_path, plan, environment())
    table = pq.read_table(Store(done, plan, environment()).path(0)).slice(1)
    path = tmp_path / "unfinished" / store.path(0).name
    path.parent.mkdir()
    write_table(path, table, of=f"unfinished/{path.name}")
    assert [row["run_key"] for row in store.unfinished(0)] == table["run_key"].to_pylist()
