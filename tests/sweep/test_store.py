"""The folder of a sweep, whatever is done to it: loud, nothing lost, nothing doubled."""

import json
import math
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capacity.errors import LeftoverWarning, SweepError
from capacity.sweep import Plan, compact, load, make_plan, run_sweep
from capacity.sweep.estimates import bytes_of
from capacity.sweep.storage import manifest
from capacity.sweep.storage.admission import admitted
from capacity.sweep.storage.manifest import environment, manifests
from capacity.sweep.storage.records import stamped
from capacity.sweep.storage.runs_table import read_rows, rows_sha256, table_of_rows, write_table
from capacity.sweep.storage.store import Store
from tests.oracles import ROOT

CONFIG: dict[str, Any] = {
    "databases": {"synthetic": {"count": 3, "seed": 0, "max_triples": 12}},
    "layers": {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [1, 2]},
    # 12 runs, three a shard: 2.5 s each if they didn't stop at once
    "compute": {"engine": "reference"},
    "recipe": {"epochs": 2000, "learning_rate": 0.1, "stop_tau": 0.51},
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


@pytest.mark.slow
def test_duckdb_and_load_read_a_folder_while_it_grows(plan: Plan, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def read(_what: str, _done: int, _total: int, _left: float | None) -> None:
        if not list(tmp_path.glob("shards/*.parquet")):
            return
        seen.append((len(load(tmp_path)), query(f"count(*) from '{tmp_path}/shards/*.parquet'")))

    run_sweep(plan, tmp_path, progress=read)
    assert all(ours == theirs for ours, theirs in seen)
    assert len({ours for ours, _ in seen}) >= len(plan.shards)
    mean = query(f"avg(accuracy_argmax) from '{tmp_path}/runs.parquet'")
    assert mean == pytest.approx(load(tmp_path)["accuracy_argmax"].mean())


@pytest.mark.slow
def test_the_same_rows_give_the_same_bytes(plan: Plan, done: Path, copy: Path) -> None:
    (copy / "runs.parquet").unlink()
    assert compact(copy) == copy / "runs.parquet"
    assert table(copy) == table(done)
    # of some shards: what is there
    store = Store(copy, plan, environment())
    store.path(1).unlink()
    compact(copy)
    assert len(load(copy)) == len(plan.runs) - len(plan.shards[1])


@pytest.mark.slow
def test_a_table_that_is_behind_its_shards_is_not_believed(plan: Plan, copy: Path) -> None:
    part = pq.read_table(copy / "runs.parquet").slice(0, 2)
    write_table(copy / "runs.parquet", part, of=plan.key)
    assert len(load(copy)) == len(plan.runs)


@pytest.mark.slow
def test_what_is_not_this_sweeps_is_an_error(plan: Plan, copy: Path) -> None:
    shards = sorted((copy / "shards").iterdir())
    foreign = copy / "shards" / "by-hand.parquet"
    shutil.copy(shards[0], foreign)
    with pytest.raises(SweepError, match=r"only this sweep's files; .* such as by-hand\.parquet"):
        compact(copy)
    foreign.unlink()
    # whose columns differ is named, and not another
    pq.write_table(pq.read_table(shards[1]).drop_columns(["loss"]), shards[1])
    with pytest.raises(SweepError, match=f"{shards[1].name} has other columns"):
        compact(copy)
    # without its manifest the folder's sweep is unknown
    (copy / "manifest.json").unlink()
    with pytest.raises(SweepError, match=r"has shards and no manifest\.json"):
        run_sweep(plan, copy)


def test_a_sweep_writes_nothing_to_the_checkout_that_it_runs_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as deep in its checkout as the module is in this one
    source = tmp_path / Path(manifest.__file__).relative_to(ROOT)
    source.parent.mkdir(parents=True)
    source.write_text("")
    author = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "a"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    # the index, which says when each file was last written, is behind
    os.utime(source, (1, 1))
    before = (tmp_path / ".git" / "index").read_bytes()
    monkeypatch.setattr(manifest, "__file__", str(source))
    commit = manifest._commit()
    assert commit is not None
    assert len(commit) == 40
    assert (tmp_path / ".git" / "index").read_bytes() == before
    source.write_text("changed")
    assert manifest._commit() == f"{commit}-dirty"


@pytest.mark.slow
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


@pytest.mark.slow
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
    other = make_plan({**CONFIG, "compute": {"engine": "reference", "dtype": "float64"}})
    with pytest.raises(SweepError, match=r"dtype float32.*dtype float64"):
        admitted(tmp_path, other, here)
    assert admitted(tmp_path, other, here, allow_other_engine=True).key != plan.key
    rate = make_plan({**CONFIG, "recipe": {**CONFIG["recipe"], "learning_rate": 0.2}})
    rate_there = CONFIG["recipe"]["learning_rate"]
    said = (
        rf"holds another sweep: recipe\.learning_rate is {rate_there} there and 0\.2 here\. Choose"
    )
    with pytest.raises(SweepError, match=said):
        admitted(tmp_path, rate, here, allow_other_engine=True)
    layers = {**CONFIG["layers"], "d_model": [1, 99]}
    with pytest.raises(SweepError, match=r"layers\.d_model is .* there and \[1, 99\] here"):
        admitted(tmp_path, make_plan({**CONFIG, "layers": layers}), here)
    shuffled = {**CONFIG, "runs": {"seed": 1}}
    with pytest.raises(SweepError, match=r"runs\.seed is missing there and 1 here"):
        admitted(tmp_path, make_plan(shuffled), here)


WRONG_FIELDS: dict[str, list[Any]] = {
    "n_runs": ["many", [1], -5, True, 12.0, None, 2**63, float("nan")],
    "shards": [3, [[1]], ["x"], ["../../x.parquet"], {}, None, ["00001-0123456789abcdef.parquet"]],
    "plan_key": [3, "", "x" * 64, None],
    "question": [3, [], None],
    "computed_by": [3, [], {"a": []}, {"a": {}}, {"a": "x" * 1000}, None],
}


@pytest.mark.parametrize("field", WRONG_FIELDS)
def test_a_field_of_the_manifest_is_checked_when_it_is_read(
    field: str, plan: Plan, copy: Path
) -> None:
    held = json.loads((copy / "manifest.json").read_text())
    for value in WRONG_FIELDS[field]:
        (copy / "manifest.json").write_text(json.dumps({**held, field: value}))
        for use in (lambda: load(copy), lambda: run_sweep(plan, copy)):
            with pytest.raises(SweepError, match=rf"manifest\.json is damaged.*`{field}` must be"):
                use()
    (copy / "manifest.json").write_text(json.dumps({k: v for k, v in held.items() if k != field}))
    with pytest.raises(SweepError, match=rf"`{field}` must be"):
        load(copy)


@pytest.mark.parametrize(("field", "value"), [("n_runs", 5), ("n_runs", 99), ("shards", [])])
def test_a_manifest_that_disagrees_with_its_plan_is_refused(
    field: str, value: Any, plan: Plan, copy: Path
) -> None:
    held = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**held, field: value}))
    with pytest.raises(
        SweepError, match=rf"manifest\.json is damaged, or .*\(`{field}` isn't its plan's"
    ):
        run_sweep(plan, copy)


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"3", b'{"n_runs": "\xff"}', b"[" * 100_000,
    b'{"n_runs":' + b"[" * 100_000, b'{"n_runs":' + b"1" * 5000 + b"}"])  # fmt: skip
def test_a_damaged_manifest_is_named(text: bytes, plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(text)
    for use in (lambda: Store(tmp_path, plan, environment()), lambda: load(tmp_path)):
        with pytest.raises(SweepError, match=r"manifest\.json is damaged") as refusal:
            use()
        assert "\n" not in str(refusal.value)
        assert len(str(refusal.value)) < 400


def test_a_plan_with_a_run_that_comes_twice_is_refused_before_training(
    plan: Plan, tmp_path: Path, untrained: None
) -> None:
    with pytest.raises(SweepError, match=r"must differ.*; 12 of 24 are repeated"):
        run_sweep(Plan(plan.runs * 2, {}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---- faults -------------------------------------------------------------------------------------


@pytest.mark.slow
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


@pytest.mark.slow
def test_ranks_that_were_damaged_or_forged_are_told_and_computed_again(
    plan: Plan, done: Path, copy: Path
) -> None:
    store = Store(copy, plan, environment())
    facts = next(iter(plan.databases))
    (path,) = (copy / "ranks").glob(f"{facts[:16]}*")
    whole = path.read_text()
    held = json.loads(whole)
    held.pop("sha256")

    def stamp(**changes: Any) -> str:
        return stamped({**held, **changes}).decode()

    for text, why in {
        "": "Expecting value",
        "[]": "not a JSON object",
        "{}": "another content",
        whole.replace(facts, "0" * 64): "another content",
        whole.replace("_lower", "x"): "another content",
        # what was believed: another bound, and the stamp that was there
        json.dumps({**json.loads(whole), "database_rank_lower": 999}): "another content",
        "[" * 20_000: "nested too deep",
        '{"sha256": ' + "[" * 20_000: "nested too deep",
        whole.replace('lower": ', 'lower": ' + "1" * 5000): "4300 digits",
        # with a stamp of their own
        stamp(database_rank_lower=999): "lower bound is above",
        stamp(database_rank_lower=True): "natural number",
        stamp(database_rank_lower=-1): "natural number",
        stamp(database_rank_upper=2**70): "natural number",
        stamp(database_rank_bound=2.0): "natural number",
        stamp(facts_sha256="0" * 64): "other facts",
        whole + " " * 2**16: "holds more than",
    }.items():
        path.write_text(text)
        with pytest.raises(SweepError, match=why) as refusal:
            store.ranks(facts)
        assert str(path) in str(refusal.value)
    # by another version: not known here, and nothing is wrong
    path.write_text(stamp(computed_by={"torch": "another"}))
    assert store.ranks(facts) is None
    path.write_text(stamp(database_rank_lower=999))
    store.path(0).unlink()
    with pytest.warns(UserWarning, match=rf"{path.name} is damaged .*; it is done again"):
        run_sweep(plan, copy)
    assert f'"ranks": "{facts}", "damaged"' in (copy / "log-0-of-1.jsonl").read_text()
    assert path.read_text() == whole
    assert table(copy) == table(done)


@pytest.mark.slow
@pytest.mark.parametrize(("column", "value"), [("accuracy_p95", 0.123), ("seed", 7),
    ("database_rank_lower", 999), ("status", "memorized")])  # fmt: skip
def test_a_row_that_was_edited_is_refused_by_readers_told_and_done_again(
    column: str, value: Any, plan: Plan, done: Path, copy: Path
) -> None:
    for path in (sorted((copy / "shards").iterdir())[1], copy / "runs.parquet"):
        rows = pq.read_table(path)
        values = [value, *rows[column].to_pylist()[1:]]
        i = rows.column_names.index(column)
        edited = rows.set_column(i, rows.schema.field(i), pa.array(values, rows.schema.types[i]))
        # all that was written with the rows is there still
        pq.write_table(edited, path, compression="zstd", write_page_checksum=True)
        if path.parent != copy:
            (copy / "runs.parquet").unlink()
        with pytest.raises(
            SweepError,
            match=rf"{path.name} is damaged .*Delete it and continue with `capacity sweep`",
        ):
            load(copy)
        with pytest.warns(UserWarning, match=rf"{path.name} is damaged .*; it is done again"):
            run_sweep(plan, copy)
        assert table(copy) == table(done)
    log = (copy / "log-0-of-1.jsonl").read_text()
    assert '"shard": 1, "damaged"' in log
    assert '"table": true, "damaged"' in log


def test_a_lower_bound_above_the_upper_one_is_no_row(plan: Plan, copy: Path) -> None:
    path = Store(copy, plan, environment()).path(0)
    rows = [{**row, "database_rank_lower": 999} for row in pq.read_table(path).to_pylist()]
    write_table(path, table_of_rows(rows), of=path.name)
    (copy / "runs.parquet").unlink()
    with pytest.raises(SweepError, match="a lower bound of a rank is above the upper one"):
        load(copy)


def test_a_shard_that_lacks_a_run_or_has_anothers_is_done_again(plan: Plan, copy: Path) -> None:
    store = Store(copy, plan, environment())
    first, second = (pq.read_table(store.path(number)).to_pylist() for number in (0, 1))
    for rows in (first[:-1], [*first[:-1], second[0]]):
        # whole, under its own name
        store.write(0, rows)
        assert not store.is_done(0)
        assert store.is_done(1)


def test_a_table_of_another_is_not_read(plan: Plan, copy: Path) -> None:
    shards = sorted((copy / "shards").iterdir())
    (copy / "runs.parquet").unlink()
    shutil.copy(shards[2], shards[1])
    with pytest.raises(SweepError, match=rf"{shards[1].name} is .*the rows of '{shards[2].name}'"):
        load(copy)


def test_the_digest_is_of_rows_and_not_of_how_they_are_held(done: Path) -> None:
    rows = pq.read_table(done / "runs.parquet")
    sha256 = rows_sha256(rows, of="a")
    parts = pa.concat_tables([rows.slice(0, 5), rows.slice(5, 0), rows.slice(5)])
    assert rows_sha256(parts, of="a") == sha256
    assert rows_sha256(parts.combine_chunks(), of="a") == sha256
    assert rows_sha256(rows, of="b") != sha256
    assert rows_sha256(rows.slice(1), of="a") != sha256
    names = ["layer_id" if name == "run_key" else "run_key" if name == "layer_id" else name
             for name in rows.column_names]  # fmt: skip
    assert rows_sha256(rows.rename_columns(names), of="a") != sha256
    # texts end where they end
    cut, other = (pa.table({"a": pa.array(texts)}) for texts in (["ab", "c"], ["a", "bc"]))
    assert rows_sha256(cut, of="a") != rows_sha256(other, of="a")


def test_a_table_is_the_same_bytes_whatever_its_nans_are(done: Path, tmp_path: Path) -> None:
    rows = pq.read_table(done / "runs.parquet").to_pylist()
    # two NaN that differ in their bits, and a zero below zero
    nans = np.array([0x7FF8000000000000, 0xFFF8000000000001], np.uint64).view(np.float64)
    for i, order in enumerate(([0, 1], [1, 0])):
        for j in range(2):
            rows[j]["loss"] = nans[order[j]]
        rows[2]["loss"] = -0.0
        write_table(tmp_path / f"{i}.parquet", table_of_rows(rows), of="a")
    tables = [(tmp_path / f"{i}.parquet").read_bytes() for i in range(2)]
    assert tables[0] == tables[1]
    read = read_rows(tmp_path / "0.parquet", most=len(rows))
    assert math.copysign(1, read["loss"][2].as_py()) == -1


def test_what_killed_writers_left_is_collected_and_no_file_of_others(
    plan: Plan, done: Path, copy: Path
) -> None:
    store = Store(copy, plan, environment())
    random = "0123456789abcdef" * 2
    facts = next(iter(plan.databases))
    left = [
        copy / "shards" / f".{store.path(0).name}.{random}.part",
        copy / f".runs.parquet.{random}.part",
        copy / f".manifest.json.{random}.part",
        copy / "ranks" / f".{facts[:16]}.json.{random}.part",
    ]
    others = [
        copy / ".thesis.part",
        copy / f".thesis.{random}.part",
        copy / ".runs.parquet.1.part",
        copy / "shards" / ".x.parquet.1.part",
        copy / "shards" / f".x.{random}.part",
        copy / "ranks" / f".0.json.{random}.part",
        copy / "unfinished" / f".x.{random}.part",
    ]
    (copy / "unfinished").mkdir()
    for path in [*left, *others]:
        path.write_bytes(b"PAR1")
    assert len(load(copy)) == len(plan.runs)
    # those of the shards as it begins, and the others when no process does a part of it
    with pytest.warns(LeftoverWarning, match="temporary file") as told:
        run_sweep(plan, copy)
    assert [str(one.message).partition(": ")[2] for one in told] == [
        "a temporary file of a process that was killed went.",
        "3 temporary files of a process that was killed went.",
    ]
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in others)
    assert table(copy) == table(done)


@pytest.mark.parametrize("name", ["shards", "ranks", "unfinished"])
@pytest.mark.parametrize("kind", ["a link", "a file"])
def test_a_folder_that_is_none_of_the_sweeps_is_refused_and_left_as_it_is(
    name: str, kind: str, plan: Plan, tmp_path: Path, untrained: None
) -> None:
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    out.mkdir()
    (elsewhere / ".foo.part").write_text("mine")
    (elsewhere / f".x.parquet.{'0' * 32}.part").write_text("mine")
    if kind == "a link":
        (out / name).symlink_to(elsewhere)
    else:
        (out / name).write_text("mine")
    with pytest.raises(SweepError, match=rf"{name} must be a folder, not a link to one"):
        run_sweep(plan, out)
    assert len(list(elsewhere.iterdir())) == 2


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be trained or bounded."""

    def begun(*_: object, **__: object) -> None:
        raise AssertionError("it was begun")

    monkeypatch.setattr("capacity.sweep.training.one_run.train_runs", begun)
    monkeypatch.setattr("capacity.sweep.driver.database_ranks", begun)


@pytest.mark.parametrize("name", ["by-hand.parquet", "notes.txt", "00099-0123456789abcdef.parquet"])
def test_a_foreign_shard_is_refused_before_training(
    name: str, plan: Plan, copy: Path, untrained: None
) -> None:
    Store(copy, plan, environment()).path(0).unlink()
    (copy / "shards" / name).write_bytes(b"mine")
    with pytest.raises(SweepError, match=rf"only this sweep's files; .* such as {name}"):
        run_sweep(plan, copy)
    assert (copy / "shards" / name).read_bytes() == b"mine"


def test_a_table_without_a_manifest_is_not_overwritten(
    plan: Plan, tmp_path: Path, untrained: None
) -> None:
    (tmp_path / "runs.parquet").write_text("mine")
    with pytest.raises(SweepError, match=r"has runs\.parquet and no manifest\.json"):
        run_sweep(plan, tmp_path)
    assert (tmp_path / "runs.parquet").read_text() == "mine"


def test_other_files_beside_the_sweep_are_nobodys_business(plan: Plan, copy: Path) -> None:
    others = ["grid.png", "notes.md", "manifest-mine.json", "log.txt", "shards/.hidden"]
    for name in others:
        (copy / name).write_text("mine")
    os.mkfifo(copy / "pipe")
    run_sweep(plan, copy)
    assert len(load(copy)) == len(plan.runs)
    assert all((copy / name).read_text() == "mine" for name in others)


OWN = ["manifest.json", "runs.parquet", "log-0-of-1.jsonl", "shards", "ranks", "unfinished"]


@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
@pytest.mark.parametrize("name", OWN)
def test_a_name_of_the_sweeps_that_is_no_regular_file_is_refused_at_once(
    name: str, kind: str, plan: Plan, copy: Path, untrained: None
) -> None:
    store = Store(copy, plan, environment())
    path = {
        "shards": store.path(1),
        "ranks": next(iter((copy / "ranks").iterdir())),
        "unfinished": copy / "unfinished" / store.path(1).name,
    }.get(name, copy / name)
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    # opening a pipe that nobody writes to would wait for ever
    os.mkfifo(path) if kind == "a pipe" else path.mkdir()
    with pytest.raises(SweepError, match=f"{path.name} (must be a regular file|is damaged)"):
        run_sweep(plan, copy)
    if name in ("manifest.json", "runs.parquet", "shards"):
        if path.name != "runs.parquet":
            (copy / "runs.parquet").unlink()
        with pytest.raises(SweepError, match=f"{path.name} (must be a regular file|is damaged)"):
            load(copy)


def test_clocks_that_jump_change_nothing(plan: Plan, done: Path, copy: Path) -> None:
    for seconds in (0, 2**31 - 1):
        for path in copy.rglob("*"):
            os.utime(path, (seconds, seconds))
        run_sweep(plan, copy)
        assert table(copy) == table(done)


@pytest.mark.slow
def test_two_drivers_of_one_part_are_one_too_many(plan: Plan, copy: Path) -> None:
    Store(copy, plan, environment()).path(2).unlink()
    with Store(copy, plan, environment()).mine(0, 1):
        other = driver(copy)
    assert other.returncode == 1
    assert "Another process is doing this part of" in other.stderr
    # another division of the same runs would do some of them at the same time
    with (
        Store(copy, plan, environment()).mine(1, 2),
        pytest.raises(SweepError, match="another division"),
    ):
        run_sweep(plan, copy)
    # what it holds ends with its driver, however that ends
    assert run_sweep(plan, copy) is not None


@pytest.mark.slow
@pytest.mark.parametrize(("size", "name"), [
    (12_000, ".parquet"), (300, "manifest.json"),
])  # fmt: skip
def test_a_full_disk_is_loud_and_loses_nothing(
    size: int, name: str, plan: Plan, done: Path, tmp_path: Path
) -> None:
    # files may not grow past 12 kB: a shard can't be written, a manifest can
    full = driver(
        tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    )
    assert full.returncode == 1
    assert "SweepError" in full.stderr
    assert f"{name} can't be written (File too large); what was done is kept" in full.stderr
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


@pytest.mark.slow
def test_a_read_only_folder_can_be_read_and_is_not_written(plan: Plan, read_only: Path) -> None:
    assert len(load(read_only)) == len(plan.runs)
    with pytest.raises(SweepError, match=r"can't be written \(Read-only file system\)"):
        run_sweep(plan, read_only)


def test_an_estimate_is_of_the_right_size(plan: Plan, done: Path) -> None:
    written = sum(path.stat().st_size for path in done.rglob("*.parquet"))
    assert 0.5 < bytes_of(plan) / written < 2


def test_no_run_is_cut_from_its_shard(plan: Plan) -> None:
    long = replace(plan, runs=tuple(replace(r, recipe=replace(r.recipe, epochs=10**6))
                                    for r in plan.runs))  # fmt: skip
    # longer than a shard should be: one each
    assert [len(shard) for shard in long.shards] == [1] * len(plan.runs)
    assert [run for shard in plan.shards for run in shard] == list(plan.runs)
