import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from benchmarks import soak_sweep
from capacity.database import Database
from capacity.errors import SweepError
from capacity.evaluator import accuracy_of_logits, evaluate, margins, pair_logits
from capacity.layer import Compute, LayerConfig, Recipe
from capacity.layer.engines.registry import resolve_device
from capacity.rank import paper_bound, rank_interval
from capacity.sweep import RUNS_SCHEMA, driver, load, make_plan, run_sweep, train_run
from capacity.sweep.plan import TASK_SECONDS, TASKS_A_WORKER, Plan, task_seconds, tasks_of
from capacity.sweep.storage.manifest import environment
from capacity.sweep.storage.store import Store
from capacity.sweep.training import one_run
from capacity.sweep.training.one_run import database_ranks, train_runs
from tests.engines import able
from tests.sweep.tasks import ranks_once_there

# 24 runs, of which some memorise and some don't, in three shards
EPOCHS, SHARD_SECONDS = 100, 1.3
PLAN = soak_sweep.PLAN.replace("epochs = 2000", f"epochs = {EPOCHS}")
CONFIG = tomllib.loads(PLAN)
# the command line, with shards as short
SWEEP = f"""
from capacity.cli import main
from capacity.sweep import plan
if __name__ == "__main__":
    plan.SHARD_SECONDS = {SHARD_SECONDS}
    main()
"""


@pytest.fixture(scope="module", autouse=True)
def _short_shards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capacity.sweep.plan.SHARD_SECONDS", SHARD_SECONDS)
        yield


@pytest.fixture(scope="module")
def plan() -> Plan:
    plan = make_plan(CONFIG)
    assert [len(shard) for shard in plan.shards] == [10, 10, 4]
    return plan


@pytest.mark.slow
def test_the_table_has_its_schema_and_a_row_a_run(plan: Plan, done: Path) -> None:
    table = pq.read_table(done / "runs.parquet")
    assert table.schema.remove_metadata() == RUNS_SCHEMA
    keys = table["run_key"].to_pylist()
    assert keys == sorted(run.key for run in plan.runs)
    assert not [name for name in table.column_names if "time" in name or "second" in name]


@pytest.mark.slow
def test_a_row_tells_the_truth_about_its_run(plan: Plan, done: Path) -> None:
    rows = {row["run_key"]: row for row in load(done).to_dict("records")}
    for run in plan.runs[::7]:
        row = rows[run.key]
        again, layer = train_run(run)
        assert row == again
        db = run.database
        assert row["database_rank_bound"] == paper_bound(db)
        interval = rank_interval(db)
        assert row["database_rank_lower"] == interval.lower
        assert row["database_rank_upper"] == interval.upper
        assert row["accuracy_p95"] == evaluate(layer, db).softmax[0.95]
        logits, objects = pair_logits(layer, db.token_triples[:, :2]), db.token_triples[:, 2]
        assert row["margin"] == margins(logits, objects).min()
        # at the scale that it says it needs, and a little more, it memorises
        scale = row["scale_p95"]
        assert math.isfinite(scale) == (row["accuracy_argmax"] == 1)
        if math.isfinite(scale):
            scaled = accuracy_of_logits(scale * (1 + 1e-9) * logits, objects)
            assert scaled.softmax[0.95] == 1
        assert (
            row["layer_rank_bound"] == run.layer.d_model + run.layer.n_heads * run.layer.d_head_vo
        )
        assert (row["status"] == "memorised") == (row["epochs"] < EPOCHS)


def table_bytes(folder: Path) -> bytes:
    return (folder / "runs.parquet").read_bytes()


@pytest.mark.slow
def test_progress_tells_of_ranks_and_then_of_runs(plan: Plan, tmp_path: Path) -> None:
    told: list[tuple[str, int, int, float | None]] = []
    run_sweep(plan, tmp_path, progress=lambda *said: told.append(said))
    n = len(plan.databases)
    assert told[: n + 1] == [
        ("runs", 0, 24, None), *[("ranks", i + 1, n, None) for i in range(n)]
    ]  # fmt: skip
    # by run, of which four are a shard
    assert sorted({said[:3] for said in told[n + 1 :]}) == [("runs", i, 24) for i in range(1, 25)]
    assert all(left is not None and left >= 0 for *_, left in told[n + 1 :])
    assert told[-1] == ("runs", 24, 24, 0.0)


@pytest.mark.slow
def test_the_same_command_again_skips_what_is_done(plan: Plan, done: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (done / "shards").iterdir()}
    told: list[tuple[str, int, int, float | None]] = []
    run_sweep(plan, done, progress=lambda *said: told.append(said))
    assert {p: p.stat().st_mtime_ns for p in (done / "shards").iterdir()} == before
    assert told == [("runs", 24, 24, None)]


@pytest.mark.slow
def test_workers_and_parts_give_the_same_table(plan: Plan, done: Path, tmp_path: Path) -> None:
    assert run_sweep(plan, tmp_path, shard=(1, 2)) is None
    assert len(load(tmp_path)) < 24
    assert run_sweep(plan, tmp_path, shard=(0, 2), workers=2) is not None
    assert table_bytes(tmp_path) == table_bytes(done)


@pytest.mark.slow
def test_every_engine_names_itself_and_makes_rows_that_only_rounding_sets_apart(
    plan: Plan, tmp_path: Path
) -> None:
    short = {**CONFIG["recipe"], "epochs": 40}
    tables = {}
    names = able(LayerConfig(2, 2, 2, 2), Recipe(**short))
    for engine in (*names, "auto"):
        config = {**CONFIG, "recipe": short, "compute": {"engine": engine}, "runs": {"pairs": 6}}
        run_sweep(make_plan(config), tmp_path / engine)
        tables[engine] = load(tmp_path / engine)
    which = ["database_id", "layer_id"]
    # 'auto' is the same runs as what it stands for
    assert tables.pop("auto").equals(tables["fused"])
    keys = [key for table in tables.values() for key in table["run_key"]]
    assert len(set(keys)) == len(keys) == 6 * len(names)
    losses = {name: table.set_index(which)["loss"].sort_index() for name, table in tables.items()}
    for name, table in tables.items():
        assert set(table["engine"]) == {name}
        assert losses[name].to_numpy() == pytest.approx(losses["reference"].to_numpy(), rel=1e-3)


@pytest.mark.slow
def test_a_row_does_not_depend_on_what_else_is_in_the_sweep(done: Path, tmp_path: Path) -> None:
    fewer = make_plan({**CONFIG, "runs": {"pairs": 5, "seed": 0}})
    run_sweep(fewer, tmp_path)
    rows, all_rows = load(tmp_path), load(done)
    assert rows.equals(all_rows[all_rows["run_key"].isin(rows["run_key"])].reset_index(drop=True))


@pytest.mark.slow
def test_a_damaged_shard_is_done_again(plan: Plan, done: Path, tmp_path: Path) -> None:
    for name in ("manifest.json", "shards"):
        target = tmp_path / name
        if (done / name).is_dir():
            target.mkdir()
            for file in (done / name).iterdir():
                (target / file.name).write_bytes(file.read_bytes())
        else:
            target.write_bytes((done / name).read_bytes())
    shards = sorted((tmp_path / "shards").iterdir())
    shards[0].write_bytes(shards[0].read_bytes()[:100])
    shards[1].write_bytes(shards[2].read_bytes())  # whole, and not its own
    with pytest.raises(SweepError, match="is damaged"):
        load(tmp_path)
    with pytest.warns(UserWarning, match="is damaged .*; it is done again") as told:
        run_sweep(plan, tmp_path)
    assert [shards[n].name in str(told[n].message) for n in (0, 1)] == [True, True]
    assert table_bytes(tmp_path) == table_bytes(done)
    log = (tmp_path / "log-0-of-1.jsonl").read_text()
    assert [n for n in (0, 1, 2) if f'"shard": {n}, "damaged"' in log] == [0, 1]


@pytest.mark.slow
def test_another_sweep_in_the_same_folder_is_refused(done: Path) -> None:
    other = make_plan({**CONFIG, "runs": {"seed": 1}})
    with pytest.raises(SweepError, match=r"holds another sweep.*--out"):
        run_sweep(other, done)


def test_folders_without_a_sweep_are_named(tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"no manifest\.json"):
        load(tmp_path)


def test_diverged_runs_have_no_accuracy(tmp_path: Path) -> None:
    wild = make_plan(
        {**CONFIG, "recipe": {"epochs": 20, "learning_rate": 1e30}, "runs": {"pairs": 2}}
    )
    run_sweep(wild, tmp_path)
    table = load(tmp_path)
    assert set(table["status"]) == {"diverged"}
    assert table.filter(like="accuracy").isna().all(axis=None)
    assert all(map(math.isnan, table["tied"]))


@pytest.mark.parametrize(("option", "reason"), [
    ({"workers": 0}, "`workers` must be an integer of at least 1"), ({"workers": 1.5}, "got 1.5"),
    ({"shard": (2, 2)}, "0 <= i < N"), ({"device": "tpu"}, "auto, cpu, cuda"),
])  # fmt: skip
def test_wrong_options_are_refused(plan: Plan, option: dict, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason):
        run_sweep(plan, tmp_path, **option)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::capacity.errors.LeftoverWarning")
@pytest.mark.parametrize(
    ("stop", "workers", "group"),
    [(signal.SIGKILL, 1, True), (signal.SIGKILL, 2, False), (signal.SIGTERM, 2, True),
     *(pytest.param(*one, marks=pytest.mark.full) for one in
       [(signal.SIGINT, 1, True), (signal.SIGINT, 2, True), (signal.SIGTERM, 1, True),
        (signal.SIGTERM, 2, False)])],
)  # fmt: skip
def test_a_sweep_that_is_stopped_goes_on_to_the_same_table(
    stop: signal.Signals, workers: int, group: bool, plan: Plan, done: Path, tmp_path: Path
) -> None:
    out, config, script = (tmp_path / name for name in ("out", "plan.toml", "sweep.py"))
    config.write_text(PLAN)
    script.write_text(SWEEP)
    process = subprocess.Popen(
        [sys.executable, script, "sweep", config, "--out", out, "--workers", str(workers)],
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        # what runs these tests in the background may ignore interrupts, and so would its children
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    # after the first shard there is something to keep, and something left to do
    while not list(out.glob("shards/*.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    (os.killpg if group else os.kill)(process.pid, stop)
    _, message = process.communicate(timeout=60)
    assert process.returncode == (-stop if stop == signal.SIGKILL else 128 + stop)
    assert ("run the same command again" in message) == (stop != signal.SIGKILL)
    # workers end with their parent, however it ends
    for _ in range(100):
        if not soak_sweep.is_alive(process.pid):
            break
        time.sleep(0.1)
    assert not soak_sweep.is_alive(process.pid)
    assert stop == signal.SIGKILL or not list(out.rglob("*.part"))
    kept = sorted(out.glob("shards/*.parquet"))
    assert 0 < len(kept) < 3
    assert not (out / "runs.parquet").exists()
    for path in kept:
        assert isinstance(pq.read_table(path), pa.Table)
    assert run_sweep(plan, out) is not None
    assert table_bytes(out) == table_bytes(done)


# one shard, of four tasks of two runs each
PAIR_SECONDS = 0.3
ONE_SHARD: dict[str, Any] = {
    "databases": {"synthetic": {"count": 1, "seed": 0, "max_triples": 12}},
    "layers": {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1, 2], "d_head_vo": [1, 2]},
    "compute": {"engine": "reference"},
    "recipe": {"epochs": 100, "stop_tau": 0},
}
# trains it with these workers, keeps rows at every chance, and says how far it is
DRIVER = f"""
import json, signal, sys
from capacity.sweep import driver, make_plan, plan, run_sweep
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    driver.KEEP_SECONDS, plan.TASK_SECONDS = 0, {PAIR_SECONDS}
    plan = make_plan(json.loads(sys.argv[1]))
    tell = lambda what, done, total, left: print(what, done, total, flush=True)
    run_sweep(plan, sys.argv[2], workers=int(sys.argv[3]), progress=tell)
"""


@pytest.fixture
def short_tasks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capacity.sweep.plan.TASK_SECONDS", PAIR_SECONDS)
        yield


@pytest.fixture(scope="module")
def one_shard(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, bytes]:
    plan, folder = make_plan(ONE_SHARD), tmp_path_factory.mktemp("one_shard")
    assert len(plan.shards) == 1
    run_sweep(plan, folder)
    assert not (folder / "unfinished").exists()
    return plan, table_bytes(folder)


def trained(plan: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[str]:
    """Keys of the runs that a sweep trains in this process."""
    keys: list[str] = []

    def counted(runs: Any, **known: Any) -> Any:
        keys.extend(run.key for run in runs)
        return train_runs(runs, **known)

    monkeypatch.setattr(one_run, "train_runs", counted)
    run_sweep(plan, folder, **options)
    monkeypatch.undo()
    return keys


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::capacity.errors.LeftoverWarning")
@pytest.mark.parametrize(("stop", "workers"), [
    (signal.SIGKILL, 1), (signal.SIGINT, 1), (signal.SIGKILL, 2), (signal.SIGINT, 2),
])  # fmt: skip
def test_a_shard_that_is_stopped_in_its_middle_goes_on_there(
    stop: signal.Signals, workers: int, one_shard: tuple[Plan, bytes], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    plan, table = one_shard
    out, script = tmp_path / "out", tmp_path / "driver.py"
    script.write_text(DRIVER)
    process = subprocess.Popen(
        [sys.executable, script, json.dumps(ONE_SHARD), out, str(workers)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    # four runs: one task is over, and the second at its end
    for line in process.stdout:
        what, n_done, _ = line.split()
        if what == "runs" and int(n_done) >= 4:
            break
    os.killpg(process.pid, stop)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not list(out.glob("shards/*"))
    (kept,) = out.glob("unfinished/*.parquet")
    keys = pq.read_table(kept)["run_key"].to_pylist()
    # only what is of the task under way is lost
    assert len(keys) >= 2
    told: list[tuple[str, int, int, float | None]] = []
    again = trained(plan, out, monkeypatch, progress=lambda *said: told.append(said))
    assert told[0] == ("runs", len(keys), len(plan.runs), None)
    assert sorted(again + keys) == sorted(run.key for run in plan.runs)
    assert table_bytes(out) == table
    assert not (out / "unfinished").exists()


def test_what_a_kill_costs_is_below_ten_seconds() -> None:
    # what isn't kept yet, and a task of each worker, on a machine of a fifth of the speed
    assert driver.KEEP_SECONDS + 5 * TASK_SECONDS <= 10


@pytest.mark.slow
def test_a_kill_between_the_last_row_and_its_shard_trains_nothing_again(
    plan: Plan, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(done, tmp_path / "copy"))
    store = Store(copy, plan, environment())
    # a shard whose rows were all kept, and one that was stored, and its rows not removed yet
    for number in (0, 1):
        store.keep_unfinished(number, pq.read_table(store.path(number)).to_pylist())
    store.path(0).unlink()
    assert trained(plan, copy, monkeypatch) == []
    assert table_bytes(copy) == table_bytes(done)
    assert not (copy / "unfinished").exists()


@pytest.mark.slow
def test_unfinished_rows_that_are_damaged_or_anothers_are_told_and_done_again(
    plan: Plan, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(done, tmp_path / "copy"))
    store = Store(copy, plan, environment())
    rows = pq.read_table(store.path(0)).to_pylist()
    store.path(0).unlink()
    store.keep_unfinished(0, rows[:2])
    kept = copy / "unfinished" / store.path(0).name
    whole = kept.read_bytes()
    shutil.copy(store.path(1), kept)
    others = kept.read_bytes()
    for data in (whole[:1000], b"", others):
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(data)
        store.path(0).unlink(missing_ok=True)
        with pytest.warns(UserWarning, match=rf"unfinished.{kept.name} is damaged"):
            again = trained(plan, copy, monkeypatch)
        assert sorted(again) == sorted(run.key for run in plan.shards[0])
        assert table_bytes(copy) == table_bytes(done)
    # nothing of unfinished shards is a shard, under whatever name
    kept.parent.mkdir()
    kept.write_bytes(whole)
    kept.replace(store.path(0))
    (copy / "runs.parquet").unlink()
    with pytest.raises(SweepError, match="has other columns than the runs table"):
        load(copy)


@pytest.mark.slow
@pytest.mark.usefixtures("short_tasks")
def test_a_task_that_fails_costs_no_other_run_of_its_shard(
    one_shard: tuple[Plan, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, table = one_shard
    poison = plan.runs[5].key

    def fragile(runs: Any, **options: Any) -> Any:
        if any(run.key == poison for run in runs):
            raise ArithmeticError("the poison")
        return train_runs(runs, **options)

    monkeypatch.setattr(one_run, "train_runs", fragile)
    with pytest.raises(SweepError, match="ArithmeticError: the poison") as failure:
        run_sweep(plan, tmp_path)
    # the traceback is in the log
    assert "\n" not in str(failure.value)
    assert "Traceback" in (tmp_path / "log-0-of-1.jsonl").read_text()
    monkeypatch.undo()
    again = trained(plan, tmp_path, monkeypatch)
    # its task: two runs
    assert poison in again
    assert len(again) == 2
    assert table_bytes(tmp_path) == table


def test_tasks_are_the_runs_of_a_shard_cut_and_those_trained_together_are_one(
    plan: Plan, together: str
) -> None:
    # runs of almost a second each by estimate
    long = [replace(run, recipe=replace(run.recipe, epochs=8 * EPOCHS)) for run in plan.shards[0]]
    assert [len(task) for task in tasks_of(long)] == [1] * 10
    cut = list(tasks_of(plan.runs))
    assert [run for task in cut for run in task] == [*plan.runs]
    # of a second at most, to which the next run would add too much
    for task, following in pairwise(cut):
        seconds = sum(run.seconds for run in task)
        assert seconds <= TASK_SECONDS < seconds + following[0].seconds
    at_once = [replace(run, compute=Compute(together)) for run in plan.runs]
    assert [len(task) for task in tasks_of(at_once)] == [24]


@pytest.mark.slow
def test_a_short_sweep_gives_each_process_several_tasks(plan: Plan) -> None:
    total = sum(run.seconds for run in plan.runs)
    assert task_seconds(plan.runs, workers=1) == TASK_SECONDS
    assert task_seconds(plan.runs, workers=100) == pytest.approx(total / (100 * TASKS_A_WORKER))
    assert task_seconds([*plan.runs] * 10_000, workers=100) == TASK_SECONDS


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_shard_an_attempt(
    plan: Plan, done: Path, tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill_one(what: str, n_done: int, _total: int, _left: float | None) -> None:
        if what == "runs" and n_done and not killed:
            killed.append(multiprocessing.active_children()[0].pid or 0)
            os.kill(killed[0], signal.SIGKILL)

    run_sweep(plan, tmp_path, workers=2, progress=kill_one)
    assert killed
    assert table_bytes(tmp_path) == table_bytes(done)
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_a_shard_that_fails_fails_alone_and_is_reported(
    plan: Plan, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison = plan.shards[2][1].key

    def fragile(runs: Any, **options: Any) -> Any:
        if any(run.key == poison for run in runs):
            raise ArithmeticError("the poison")
        return train_runs(runs, **options)

    monkeypatch.setattr(one_run, "train_runs", fragile)
    with pytest.raises(
        SweepError, match=r"1 of 3 shards aren.t done.*first, shard 2: ArithmeticError: the poison$"
    ):
        run_sweep(plan, tmp_path)
    assert len(load(tmp_path)) == 20
    monkeypatch.undo()
    run_sweep(plan, tmp_path)
    assert table_bytes(tmp_path) == table_bytes(done)


@pytest.mark.slow
def test_ranks_are_computed_once_a_database(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(db: Database) -> dict[str, int]:
        asked.append(db.facts_sha256)
        return database_ranks(db)

    monkeypatch.setattr(driver, "database_ranks", counted)
    run_sweep(plan, tmp_path, shard=(0, 2))
    run_sweep(plan, tmp_path, shard=(1, 2))
    assert sorted(asked) == sorted(plan.databases)


@pytest.mark.slow
def test_layers_are_trained_while_a_database_is_still_bounded(
    plan: Plan, done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, asked = tmp_path / "there", tmp_path / "out"
    slow = plan.runs[0].database.facts_sha256
    monkeypatch.setattr(driver, "database_ranks", partial(ranks_once_there, str(there), slow))
    told: list[str] = []

    def tell(what: str, n_done: int, _total: int, _left: float | None) -> None:
        told.append(what)
        if what == "runs" and n_done:
            # the first rows are of this database, and wait for its ranks
            there.touch()

    run_sweep(plan, asked, workers=2, progress=tell)
    assert table_bytes(asked) == table_bytes(done)
    # one count after the other, though both go on at once
    assert told[1:] == sorted(told[1:])


def test_equal_recipes_have_equal_keys() -> None:
    keys = [
        make_plan({**CONFIG, "recipe": {"stop_tau": zero, "learning_rate": one}}).key
        for zero, one in ((0, 1), (0.0, 1.0))
    ]
    assert keys[0] == keys[1]
    with pytest.raises(SweepError, match="`weight_decay` must be a number"):
        make_plan({**CONFIG, "recipe": {"weight_decay": True}})
    with pytest.raises(SweepError, match="name each value once"):
        make_plan({**CONFIG, "layers": {**CONFIG["layers"], "n_heads": [1, 1]}})


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.6, pytest.param(0.3, marks=pytest.mark.full)])
def test_a_kill_at_any_moment_changes_nothing(
    share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `make soak-sweep` does a hundred of these; in two shards
    monkeypatch.setattr(soak_sweep, "PLAN", soak_sweep.PLAN.replace("2000", "500"))
    (tmp_path / "alone").mkdir()
    table, seconds = soak_sweep.alone(tmp_path / "alone", 2)
    row = {"killed": False}
    # the end comes sooner on a machine that does less else by now
    for i in range(3):
        folder = tmp_path / f"killed-{i}"
        folder.mkdir()
        moment = share * seconds / 2**i
        row = soak_sweep.trial(folder, moment=moment, workers=2, table=table)
        if row["killed"]:
            break
    assert row["killed"]
    assert row["identical"]
    assert row["files_read"]
    assert not row["broken"]
    assert not row["temporaries_in_the_end"]


def test_every_recipe_starts_from_the_same_weights(plan: Plan) -> None:
    run = replace(plan.runs[0], recipe=Recipe(epochs=0))
    other = replace(run, recipe=Recipe(epochs=0, learning_rate=0.5, optimizer="adamw"))
    assert run.key != other.key
    first, second, seeded = (train_run(r)[1] for r in (run, other, replace(run, seed=1)))
    assert all(map(torch.equal, first.parameters(), second.parameters()))
    assert not torch.equal(first.W_E, seeded.W_E)


def test_a_gpu_is_for_whoever_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto") == resolve_device("cpu") == "cpu"
    assert resolve_device("cuda") == "cuda"
