"""A run that takes long goes on from its snapshot after a kill, and none is left in the end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from capacity.layer.engines import reference
from capacity.sweep import make_plan, run_sweep
from capacity.sweep.plan import Plan
from capacity.sweep.storage.manifest import environment
from capacity.sweep.storage.store import Store

EPOCHS = 3000
# one run of some seconds
LONG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 1, "seed": 0, "max_triples": 12}},
    "layers": {"d_model": [2], "n_heads": [1], "d_head_qk": [1], "d_head_vo": [1]},
    "compute": {"engine": "reference"},
    "recipe": {"epochs": EPOCHS, "stop_tau": 0, "batch_size": 0},
}
DRIVER = """
import json, sys
from capacity.layer.run import snapshots
from capacity.sweep import make_plan, run_sweep
snapshots.SECONDS = 0.05
run_sweep(make_plan(json.loads(sys.argv[1])), sys.argv[2])
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, bytes]:
    plan, folder = make_plan(LONG), tmp_path_factory.mktemp("alone")
    assert len(plan.runs) == 1
    run_sweep(plan, folder)
    return plan, (folder / "runs.parquet").read_bytes()


@pytest.fixture
def killed(alone: tuple[Plan, bytes], tmp_path: Path) -> Path:
    """The folder of a sweep that was killed at some hundreds of epochs."""
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, json.dumps(LONG), out],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    path = out / "unfinished" / f"{alone[0].runs[0].key}.npz"
    seen: set[int] = set()
    # each snapshot is a file of its own
    while len(seen) < 4 and process.poll() is None:
        if path.exists():
            seen.add(path.stat().st_mtime_ns)
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert path.is_file()
    assert not list(out.glob("shards/*.parquet"))
    return out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::capacity.errors.LeftoverWarning")
def test_a_long_run_that_is_killed_goes_on_from_its_snapshot(
    alone: tuple[Plan, bytes], killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, table = alone
    # what a kill leaves of a file that it was writing
    name = f".{plan.runs[0].key}.npz.{'0' * 32}.part"
    (killed / "unfinished" / name).write_bytes(b"PK")
    looks: list[bool] = []
    look = reference._loss

    def counted(*arguments: Any) -> Any:
        looks.append(True)
        return look(*arguments)

    monkeypatch.setattr(reference, "_loss", counted)
    run_sweep(plan, killed)
    assert 0 < len(looks) < EPOCHS
    assert (killed / "runs.parquet").read_bytes() == table
    assert not (killed / "unfinished").exists()


@pytest.mark.slow
def test_another_process_goes_on_to_the_same_table(alone: tuple[Plan, bytes], killed: Path) -> None:
    run_sweep(alone[0], killed, workers=2)
    assert (killed / "runs.parquet").read_bytes() == alone[1]
    assert not (killed / "unfinished").exists()


@pytest.mark.slow
def test_a_damaged_snapshot_costs_time_alone(alone: tuple[Plan, bytes], killed: Path) -> None:
    (path,) = killed.glob("unfinished/*.npz")
    path.write_bytes(path.read_bytes()[:-100])
    run_sweep(alone[0], killed)
    assert (killed / "runs.parquet").read_bytes() == alone[1]
    assert not (killed / "unfinished").exists()


def test_snapshots_end_with_their_rows_and_no_others(tmp_path: Path) -> None:
    config = {**LONG, "recipe": {**LONG["recipe"], "epochs": 2}}
    config["layers"] = {**LONG["layers"], "n_heads": [1, 2, 3]}
    plan = make_plan(config)
    first, second, third = (run.key for run in plan.shards[0])
    run_sweep(plan, tmp_path / "done")
    rows = {
        row["run_key"]: row for row in pq.read_table(tmp_path / "done/runs.parquet").to_pylist()
    }
    store = Store(tmp_path / "out", plan, environment())
    folder = tmp_path / "out" / "unfinished"
    folder.mkdir()
    for name in (first, second, third, "0" * 64):
        (folder / f"{name}.npz").touch()
    store.keep_unfinished(0, [rows[first]])
    assert {path.stem for path in folder.glob("*.npz")} == {second, third, "0" * 64}
    store.write(0, rows.values())
    # of another plan, or somebody's
    assert [path.stem for path in folder.iterdir()] == ["0" * 64]


@pytest.mark.slow
def test_a_folder_in_the_place_of_a_snapshot_is_refused_before_training(
    alone: tuple[Plan, bytes], tmp_path: Path
) -> None:
    (tmp_path / "unfinished" / f"{alone[0].runs[0].key}.npz").mkdir(parents=True)
    with pytest.raises(ValueError, match="must be a regular file"):
        run_sweep(alone[0], tmp_path)
