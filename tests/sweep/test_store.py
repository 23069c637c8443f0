"""The folder of a sweep, whatever is done to it: loud, nothing lost, nothing doubled."""

import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from capacity.errors import SweepError
from capacity.sweep import Plan, compact, load, make_plan, run_sweep
from capacity.sweep.manifest import admitted, environment, manifests
from capacity.sweep.store import Store

CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 3, "seed": 0, "max_triples": 12}},
    "layers": {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [1, 2]},
    # 12 runs, three a shard: 2.5 s each if they didn't stop at once
    "recipe": {"engine": "reference", "epochs": 2000, "learning_rate": 0.1, "stop_tau": 0.51},
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    plan = make_plan(CONFIG)
    assert len(plan.shards) > 2
    return plan


@pytest.fixture(scope="module")
def done(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    run_sweep(plan, folder)
    return folder


@pytest.fixture
def copy(done: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done, tmp_path / "copy"))


def query(what: str) -> Any:
    return duckdb.connect().execute(f"select {what}").fetchall()[0][0]


def driver(folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Do the sweep in another process."""
    script = (
        "import sys, json, signal\n"
        "from capacity.sweep import make_plan, run_sweep\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "run_sweep(make_plan(json.loads(sys.argv[1])), sys.argv[2])"
    )
    command = [sys.executable, "-c", script, json.dumps(CONFIG), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def table(folder: Path) -> bytes:
    return (folder / "runs.parquet").read_bytes()


# ---- what reads it ------------------------------------------------------------------------------


def test_duckdb_and_load_read_a_folder_while_it_grows(plan: Plan, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def read(_what: str, _done: int, _total: int) -> None:
        if not list(tmp_path.glob("shards/*.parquet")):
            return
        seen.append((len(load(tmp_path)), query(f"count(*) from '{tmp_path}/shards/*.parquet'")))

    run_sweep(plan, tmp_path, progress=read)
    assert all(ours == theirs for ours, theirs in seen)
    assert len({ours for ours, _ in seen}) >= len(plan.shards)
    mean = query(f"avg(accuracy_argmax) from '{tmp_path}/runs.parquet'")
    assert mean == pytest.approx(load(tmp_path)["accuracy_argmax"].mean())


def test_the_same_rows_give_the_same_bytes(plan: Plan, done: Path, copy: Path) -> None:
    (copy / "runs.parquet").unlink()
    assert compact(copy) == copy / "runs.parquet"
    assert table(copy) == table(done)
    # of some shards: what is there
    store = Store(copy, plan, environment())
    store.path(1).unlink()
    compact(copy)
    assert len(load(copy)) == len(plan.runs) - len(plan.shards[1])


def test_a_table_that_is_behind_its_shards_is_not_believed(plan: Plan, copy: Path) -> None:
    part = pq.read_table(copy / "runs.parquet").slice(0, 2)
    pq.write_table(part, copy / "runs.parquet")
    assert len(load(copy)) == len(plan.runs)


def test_what_is_not_this_sweeps_is_an_error(plan: Plan, copy: Path) -> None:
    shards = sorted((copy / "shards").iterdir())
    foreign = copy / "shards" / "by-hand.parquet"
    shutil.copy(shards[0], foreign)
    with pytest.raises(SweepError, match=r"isn't this sweep's, such as by-hand\.parquet"):
        compact(copy)
    foreign.unlink()
    # whose columns differ is named, and not another
    pq.write_table(pq.read_table(shards[1]).drop_columns(["loss"]), shards[1])
    with pytest.raises(SweepError, match=f"{shards[1].name} has other columns"):
        compact(copy)
    # without its manifest nobody knows what the folder is
    (copy / "manifest.json").unlink()
    with pytest.raises(SweepError, match=r"has shards and no manifest\.json"):
        run_sweep(plan, copy)


def test_the_manifest_tells_where_rows_come_from(plan: Plan, done: Path, tmp_path: Path) -> None:
    (held,) = manifests(done)
    assert held["plan_key"] == plan.key
    assert held["config"] == CONFIG
    assert {"engine", "dtype", "cpu", "torch", "python", "machine"} <= set(held["computed_by"])
    assert set(held["databases"].values()) == set(plan.databases)
    facts = tmp_path / "facts.tsv"
    facts.write_text("a\tp\tx\n")
    read = make_plan({**CONFIG, "databases": {"files": [{"path": str(facts)}]}})
    assert list(read.sources) == [str(facts)]
    # timings stand in the log, and in no table
    lines = [
        json.loads(line) for line in (done / "log-0-of-1.jsonl").read_text().splitlines() if line
    ]
    assert {line["shard"] for line in lines} == set(range(len(plan.shards)))
    assert all(line["seconds"] > 0 for line in lines)


# ---- what must not be mixed ---------------------------------------------------------------------


def test_another_engine_is_refused_or_has_other_keys(plan: Plan, copy: Path) -> None:
    held = json.loads((copy / "manifest.json").read_text())
    held["computed_by"]["cpu"] = "another"
    (copy / "manifest.json").write_text(json.dumps(held))
    with pytest.raises(SweepError, match=r"begun with .*cpu another.*--allow-other-engine"):
        run_sweep(plan, copy)
    before = load(copy)
    run_sweep(plan, copy, allow_other_engine=True)
    both = load(copy)
    assert len(both) == 2 * len(plan.runs)
    assert set(before["run_key"]) < set(both["run_key"])
    # they start from the same weights, and here compute the same
    assert sorted(both["variant"].unique())[0] == ""
    first, second = (rows.drop(columns=["run_key", "variant"]).sort_values(list(rows.columns[1:5]))
                     .reset_index(drop=True) for _, rows in both.groupby("variant"))  # fmt: skip
    assert first.equals(second)
    # the same command again has nothing to do
    files = {p: p.stat().st_mtime_ns for p in copy.glob("shards/*")}
    run_sweep(plan, copy, allow_other_engine=True)
    assert {p: p.stat().st_mtime_ns for p in copy.glob("shards/*")} == files


def test_another_dtype_is_another_engine_and_another_rate_another_sweep(
    plan: Plan, tmp_path: Path
) -> None:
    here = environment()
    admitted(tmp_path, plan, here)
    other = make_plan({**CONFIG, "recipe": {**CONFIG["recipe"], "dtype": "float64"}})
    with pytest.raises(SweepError, match=r"dtype float32.*dtype float64"):
        admitted(tmp_path, other, here)
    assert admitted(tmp_path, other, here, allow_other_engine=True).key != plan.key
    rate = make_plan({**CONFIG, "recipe": {**CONFIG["recipe"], "learning_rate": 0.2}})
    with pytest.raises(SweepError, match="holds another sweep"):
        admitted(tmp_path, rate, here, allow_other_engine=True)


def test_a_damaged_manifest_is_named(plan: Plan, tmp_path: Path) -> None:
    for text in ("[]", "{"):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(SweepError, match=r"manifest\.json is damaged"):
            Store(tmp_path, plan, environment())


# ---- faults -------------------------------------------------------------------------------------


def test_flipped_bytes_of_a_shard_are_found(plan: Plan, done: Path, copy: Path) -> None:
    store = Store(copy, plan, environment())
    source = store.path(0).read_bytes()
    good = pq.read_table(store.path(0))
    for position in range(4, len(source), 97):
        damaged = bytearray(source)
        damaged[position] ^= 0xFF
        store.path(0).write_bytes(damaged)
        # either it is done again, or what was hit didn't matter
        if store.is_done(0):
            assert pq.read_table(store.path(0)).equals(good)


def test_damaged_ranks_are_computed_again(plan: Plan, copy: Path) -> None:
    store = Store(copy, plan, environment())
    facts = next(iter(plan.databases))
    (path,) = (copy / "ranks").glob(f"{facts[:16]}*")
    whole = path.read_text()
    for text in (
        "",
        "[]",
        "{}",
        whole.replace(facts, "0" * 64),
        whole.replace("_lower", "x"),
        whole.replace("torch", "another"),
    ):
        path.write_text(text)
        assert store.ranks(facts) is None
    store.path(0).unlink()
    run_sweep(plan, copy)
    assert path.read_text() == whole


def test_what_killed_writers_left_is_collected(plan: Plan, done: Path, copy: Path) -> None:
    store = Store(copy, plan, environment())
    left = [copy / "shards" / f".{store.path(0).name}.1.part", copy / ".runs.parquet.1.part"]
    for path in left:
        path.write_bytes(b"PAR1")
    assert len(load(copy)) == len(plan.runs)
    run_sweep(plan, copy)
    assert not [path for path in left if path.exists()]
    assert table(copy) == table(done)


def test_clocks_that_jump_change_nothing(plan: Plan, done: Path, copy: Path) -> None:
    for seconds in (0, 2**31 - 1):
        for path in copy.rglob("*"):
            os.utime(path, (seconds, seconds))
        run_sweep(plan, copy)
        assert table(copy) == table(done)


def test_two_drivers_of_one_part_are_one_too_many(plan: Plan, copy: Path) -> None:
    Store(copy, plan, environment()).path(2).unlink()
    with Store(copy, plan, environment()).mine(0, 1):
        other = driver(copy)
    assert other.returncode == 1
    assert "Another process does this part of" in other.stderr
    # another division of the same runs would do some of them at the same time
    with (
        Store(copy, plan, environment()).mine(1, 2),
        pytest.raises(SweepError, match="another division"),
    ):
        run_sweep(plan, copy)
    # what it holds ends with its driver, however that ends
    assert run_sweep(plan, copy) is not None


def test_a_full_disk_is_loud_and_loses_nothing(plan: Plan, done: Path, tmp_path: Path) -> None:
    # files may not grow past 12 kB: a shard can't be written, a manifest can
    size = 12_000
    full = driver(
        tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    )
    assert full.returncode == 1
    assert "SweepError" in full.stderr
    assert "can't be written (File too large); what was done is kept" in full.stderr
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("*.parquet"))
    run_sweep(plan, tmp_path)
    assert table(tmp_path) == table(done)


@pytest.fixture
def read_only(copy: Path) -> Any:
    """The folder, of a file system that is mounted for reading: root may write into others."""
    mount = copy.parent / "mount"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", mount], capture_output=True).returncode:
        pytest.skip("file systems can't be mounted here")
    try:
        shutil.copytree(copy, mount, dirs_exist_ok=True)
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


def test_a_read_only_folder_can_be_read_and_is_not_written(plan: Plan, read_only: Path) -> None:
    assert len(load(read_only)) == len(plan.runs)
    with pytest.raises(SweepError, match=r"can't be written \(Read-only file system\)"):
        run_sweep(plan, read_only)


def test_an_estimate_is_of_the_right_size(plan: Plan, done: Path) -> None:
    written = sum(path.stat().st_size for path in done.rglob("*.parquet"))
    assert 0.5 < plan.summary()["bytes"] / written < 2


def test_no_run_is_cut_from_its_shard(plan: Plan) -> None:
    long = replace(plan, runs=tuple(replace(r, recipe=replace(r.recipe, epochs=10**6))
                                    for r in plan.runs))  # fmt: skip
    # longer than a shard should be: one each
    assert [len(shard) for shard in long.shards] == [1] * len(plan.runs)
    assert [run for shard in plan.shards for run in shard] == list(plan.runs)
