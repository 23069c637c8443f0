"""Counts on a Dask cluster are those of one process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from capacity import Database, load
from capacity.database import write
from capacity.errors import CapacityError, ClusterError, DatabaseFormatError, MissingExtraError
from capacity.stores import count_dask, count_duckdb
from capacity.stores.cluster import parquet_parts
from tests.commands import run, run_json
from tests.oracles import EXAMPLES
from tests.stores.test_duckdb import graphs, label_graphs
from tests.tiers import examples

# dask's own, at shutdown of a worker that was killed
pytestmark = pytest.mark.filterwarnings("default")


def local_cluster(**options: Any) -> Any:
    quiet: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, **quiet, **options)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Workers in this process, which tests can change."""
    with local_cluster(processes=False, protocol="tcp://") as cluster:
        yield cluster.scheduler_address


def in_parts(db: Database, folder: Path, n: int) -> None:
    """Write facts as several files, which share some, and each in groups of few rows."""
    rows = np.arange(db.n_facts)
    for i in range(n):
        path = folder / f"part-{i}.parquet"
        write(db.subset((rows % n == i) | (rows % 3 == 0) | (rows == 0)), path)
        whole = pq.read_table(path)
        pq.write_table(whole, path, row_group_size=max(1, len(whole) // 2),
                       write_page_checksum=True)  # fmt: skip


def same(path: Path, scheduler: str, **options: Any) -> None:
    """Both count alike, or both refuse it."""
    try:
        expected = count_duckdb(path, **options)
    except CapacityError:
        with pytest.raises(CapacityError):
            count_dask(path, scheduler, **options)
        return
    assert count_dask(path, scheduler, **options) == expected


@pytest.mark.slow
# each example is a second: nothing is made smaller
@settings(max_examples=examples(12, part=4), deadline=None, phases=[Phase.generate])
@given(st.one_of(graphs(), label_graphs()), st.integers(1, 3))
def test_a_cluster_counts_what_one_process_does(scheduler: str, db: Database, n: int) -> None:
    with TemporaryDirectory() as folder:
        try:
            in_parts(db, Path(folder), n)
        except CapacityError:
            return
        same(Path(folder), scheduler)


def countries(folder: Path) -> Path:
    in_parts(load(EXAMPLES / "countries.ttl"), folder, 3)
    return folder


@pytest.mark.slow
def test_parts_of_a_real_file_are_counted(scheduler: str, tmp_path: Path) -> None:
    told: list[int] = []

    def tell(_what: str, done: int, _total: int, _left: float | None) -> None:
        told.append(done)

    found = count_dask(countries(tmp_path), scheduler, progress=tell)
    assert found == count_duckdb(tmp_path)
    assert (found.facts, len(found.notes)) == (4103, 0)
    assert told == list(range(1, len(told) + 1))


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_number(tmp_path: Path) -> None:
    countries(tmp_path)
    killed: list[int] = []
    with local_cluster() as cluster:

        def kill_one(_what: str, done: int, _total: int, _left: float | None) -> None:
            # with facts, and pairs, on it
            if done in (5, 9):
                worker = next(iter(cluster.workers.values()))
                killed.append(worker.pid)
                os.kill(worker.pid, signal.SIGKILL)

        found = count_dask(tmp_path, cluster.scheduler_address, progress=kill_one)
    assert len(set(killed)) == 2
    assert found == count_duckdb(tmp_path)


@pytest.mark.slow
def test_terms_that_share_an_id_are_found_out(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids_of, salts = parquet_parts.ids_of, list[str]()

    def colliding(keys: list[str], salt: str) -> Any:
        if salt not in salts:
            salts.append(salt)
        found = ids_of(keys, salt)
        return found % 64 if salt == salts[0] else found

    monkeypatch.setattr(parquet_parts, "ids_of", colliding)
    found = count_dask(countries(tmp_path), scheduler)
    assert len(salts) == 2
    assert found == count_duckdb(tmp_path)


def put(path: Path, rows: Sequence[tuple[str | None, ...]], names: tuple[str, ...]) -> Path:
    columns = [pa.array(list(column), pa.string()) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), path)
    return path


SPO = ("subject", "predicate", "object")
WRONG: dict[str, tuple[list[tuple[str | None, ...]], tuple[str, ...], str]] = {
    "a missing cell": ([("a", "p", "b"), ("a", None, "c")], SPO, "a cell is missing"),
    "terms and labels": ([("<x:a>", "<x:p>", "b")], SPO, "some cells are N-Triples terms"),
    "two columns": ([("a", "b")], ("subject", "object"), "column"),
    "no term": ([("<x:a>", "<x:p>", "")], ("?s", "?p", "?o"), "An empty cell among terms"),
    "a wide table": (
        [("Bob", "1980", "Rome"), ("Ann", "1990", "Oslo")], ("id", "born", "city"), "wide",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_table_of_facts_is_said_in_words(
    what: str, scheduler: str, tmp_path: Path
) -> None:
    rows, names, words = WRONG[what]
    path = put(tmp_path / "a.parquet", rows, names)
    with pytest.raises(DatabaseFormatError, match=words):
        count_dask(path, scheduler)
    with pytest.raises(DatabaseFormatError, match=words):
        count_duckdb(path)


@pytest.mark.slow
def test_columns_and_forms_are_options(scheduler: str, tmp_path: Path) -> None:
    rows = [("<x:b>", "<x:a>", "<x:p>", "1"), ("<x:c>", "<x:a>", "<x:p>", "2")]
    path = put(tmp_path / "a.parquet", rows, ("tail", "head", "relation", "note"))
    for options in ({}, {"table": "long"}, {"columns": [0, 2, 1]}, {"columns": ["head", "note"]}):
        same(path, scheduler, **options)
    numbers = pa.table({"s": ["a", "b", "c"], "p": [3, 4, 4], "o": [1980.0, 0.5, 1980.0]})
    pq.write_table(numbers, path)
    same(path, scheduler)
    # what is no number is a missing cell
    pq.write_table(numbers.set_column(2, "o", pa.array([1.0, float("nan"), 2.0])), path)
    same(path, scheduler)


def test_what_a_cluster_lacks_is_said_in_words(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "a.parquet", [("a", "p", "b")], SPO)
    with pytest.raises(ClusterError, match="No Dask scheduler answers at nowhere"):
        count_dask(path, "nowhere")
    there = tmp_path / "there.parquet"

    def elsewhere(part: parquet_parts.Part) -> Any:
        # as a worker that has another disk
        return survey(replace(part, path=str(there)))

    survey = parquet_parts.survey
    monkeypatch.setattr("capacity.stores.cluster.dask.survey", elsewhere)
    with pytest.raises(ClusterError, match=r"same paths as this process; .*there\.parquet isn't"):
        count_dask(path, scheduler)
    monkeypatch.undo()
    monkeypatch.setattr("capacity.stores.cluster.dask.__version__", "0.0")
    with pytest.raises(ClusterError, match=r"must have this library, 0\.0, .* has 0\."):
        count_dask(path, scheduler)
    monkeypatch.undo()
    monkeypatch.setattr("capacity.optional.find_spec", lambda _name: None)
    with pytest.raises(MissingExtraError, match=r"knowledge-capacity\[distributed\]"):
        count_dask(path, scheduler)


@pytest.mark.slow
def test_the_commands_count_on_a_cluster(
    scheduler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path / "a.parquet", [("a", "p", "b"), ("a", "q", "b")], SPO)
    for command in ("rank", "describe"):
        found = run_json(capsys, command, str(tmp_path), "--dask", scheduler, "--json")
        assert found["triples"] == 2
    for option, words in (
        (["--memory-limit", "1GB"], "omit --memory-limit"),
        (["--max-file-bytes", "9"], "is a limit of loading"),
        (["--multi", "first"], "--multi needs the facts in memory"),
    ):  # fmt: skip
        code, out, err = run(capsys, "rank", str(tmp_path), "--dask", scheduler, *option)
        assert (code, out) == (2, "")
        assert words in err
