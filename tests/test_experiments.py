"""The experiments run, small; what they find is in their results, and isn't asserted here."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from experiments import EXPERIMENTS
from experiments.common import harness
from experiments.common.spent import spending

ROOT = Path(__file__).parents[1]
# the quickest of each room; the others take most of the time, and `make test-full` runs them
QUICKEST = {"associations", "attention_ranks", "by_hand", "decoder_findings", "dimension_least",
            "formats", "frozen_law", "geometry", "measured_ranks", "norms", "optimal",
            "parameters", "sub_tensors", "tau_rank", "tau_widths"}  # fmt: skip


def results_of(name: str) -> Path:
    return ROOT.joinpath(*EXPERIMENTS[name].split(".")[:-1], "results")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.full] * (name not in QUICKEST)) for name in EXPERIMENTS],
)
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


def squared(n: int) -> dict[str, int]:
    if n < 0:
        raise ValueError(f"{n} is below zero")
    return {"n": n, "square": n * n}


@pytest.mark.slow
def test_kept_rows_are_used_and_all_come_in_the_order_of_their_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "RUNS", tmp_path)
    kept = tmp_path / "squares.jsonl"
    # a kept row, told by its square, and one that a kill has cut off
    kept.write_text('["2", {"n": 2, "square": -4}]\n["3", {"n": 3, "squ')
    told: list[tuple[str, int, int]] = []
    rows = harness.rows_of(
        "squares", squared, range(5), lambda *step: told.append(step), in_process=False,
        cost=lambda n: n % 3,
    )  # fmt: skip
    assert [row["square"] for row in rows] == [0, 1, -4, 9, 16]
    assert told[-1] == ("squares", 5, 5)
    assert not kept.exists()


def test_the_longest_tasks_are_begun_first() -> None:
    begun: list[int] = []

    def row_of(n: int) -> dict[str, int]:
        begun.append(n)
        return {"n": n}

    rows = harness.rows_of("some", row_of, [3, 1, 2], print, in_process=True, cost=float)
    assert begun == [3, 2, 1]
    assert [row["n"] for row in rows] == [3, 1, 2]


@pytest.mark.slow
def test_rows_that_are_done_survive_a_task_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "RUNS", tmp_path)
    with pytest.raises(RuntimeError, match=r"(?s)squares, -1: .*-1 is below zero"):
        harness.rows_of("squares", squared, [1, 2, 3, -1], print, in_process=False)
    kept = harness._kept(tmp_path / "squares.jsonl")
    assert kept
    assert set(kept) <= {"1", "2", "3"}


@pytest.mark.slow
def test_experiments_know_nothing_of_the_command_line() -> None:
    code = "import sys, experiments.common.harness; sys.exit('capacity.cli' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
    sources = (ROOT / "experiments").rglob("*.py")
    assert not [path for path in sources if "capacity.cli" in path.read_text()]


def busy(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def busy_until_stopped(seconds: float) -> None:
    busy(seconds)
    raise KeyboardInterrupt


def test_a_run_that_was_stopped_takes_what_all_its_parts_took(tmp_path: Path) -> None:
    kept = tmp_path / "runs" / "name.spent.json"
    with pytest.raises(KeyboardInterrupt), spending(kept):
        busy_until_stopped(0.1)
    first = json.loads(kept.read_text())
    # the clock of processes has ticks of 0.01 s
    assert first["processor_seconds"] >= 0.08
    with spending(kept) as took:
        time.sleep(0.02)
    assert took["seconds"] >= first["seconds"] + 0.02
    assert took["processor_seconds"] >= first["processor_seconds"]
    assert json.loads(kept.read_text()) == took


@pytest.mark.slow
def test_what_workers_took_counts(tmp_path: Path) -> None:
    with spending(tmp_path / "name.spent.json") as took:
        done = list(harness.by_processes("busy", busy, [0.2, 0.2]))
    assert len(done) == 2
    assert took["processor_seconds"] >= 0.35
