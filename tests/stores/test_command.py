"""The commands count what is too large to load, and refuse what needs it in memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from capacity import load
from capacity.database import write
from tests.commands import run, run_json
from tests.oracles import EXAMPLES, ROOT


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    write(load(EXAMPLES / "countries.ttl", multi="keep"), tmp_path / "countries.nt")
    return tmp_path / "countries.nt"


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "facts.duckdb") as con:
        con.execute("create table facts (who varchar, what varchar, whom varchar, w integer)")
        con.execute("insert into facts values ('a', 'p', 'x', 1), ('a', 'p', 'y', 2)")
    return tmp_path / "facts.duckdb"


def test_rank_prints_the_contracts_object_with_counted_ends(
    capsys: pytest.CaptureFixture[str], facts: Path
) -> None:
    loaded = run_json(capsys, "rank", facts)
    counted = run_json(capsys, "rank", facts, "--out-of-core")
    assert loaded.keys() <= counted.keys()
    assert loaded["bounds"].keys() <= counted["bounds"].keys()
    same = ("source", "triples", "subjects", "predicates", "objects", "functional",
            "multi_valued_pairs", "multi")  # fmt: skip
    assert {name: counted[name] for name in same} == {name: loaded[name] for name in same}
    assert counted["bounds"]["paper"] == loaded["bounds"]["paper"]
    rank = counted["rank"]
    assert set(rank) == {"lower", "upper", "closed", "lower_by", "upper_by"}
    assert rank["lower"] <= loaded["rank"]["upper"]
    assert loaded["rank"]["lower"] <= rank["upper"]
    unknown = ("sha256", "facts_sha256", "selection", "effective_rank", "estimate")
    assert [counted[name] for name in unknown] == [None] * 5
    # the sizes of slices aren't their ranks
    slices = ("subject_slices", "predicate_slices", "object_slices", "unfoldings")
    assert [counted["bounds"][name] for name in slices] == [None] * 4


@pytest.mark.slow
def test_rank_says_what_proves_each_end_and_what_needs_memory(
    capsys: pytest.CaptureFixture[str], facts: Path
) -> None:
    code, out, err = run(capsys, "rank", facts, "--out-of-core", "--memory-limit", "800MB")
    assert (code, err) == (0, "")
    assert "are the only object of some pair of subject and predicate" in out
    assert "upper bound" in out
    assert "searches and certificates need the facts in memory, about 200 MB" in out


def test_describe_prints_the_rows_of_the_loaded_facts_without_ranks(
    capsys: pytest.CaptureFixture[str], facts: Path
) -> None:
    loaded, counted = (
        run_json(capsys, "describe", facts),
        run_json(capsys, "describe", facts, "--out-of-core"),
    )
    assert loaded.keys() <= counted.keys()
    rows = {row["predicate"]: row for row in loaded["predicates"]}
    assert len(rows) == len(counted["predicates"])
    uncounted = {"label", "example", "rank", "rank_share", "repeats"}
    for row in counted["predicates"]:
        known = rows[row["predicate"]]
        assert set(row) == set(known)
        assert {k: v for k, v in row.items() if k not in uncounted} == {
            k: v for k, v in known.items() if k not in uncounted
        }
        assert row["rank"] is None
    assert counted["classes"] == loaded["classes"]
    code, out, _ = run(capsys, "describe", facts, "--out-of-core")
    assert code == 0
    assert "several objects" in out
    assert "rank in [" in out


def test_a_table_of_a_database_is_always_counted(
    capsys: pytest.CaptureFixture[str], stored: Path
) -> None:
    columns = [part for name in ("who", "what", "whom") for part in ("--column", name)]
    got = run_json(capsys, "rank", stored, "--table", "facts", *columns)
    assert (got["triples"], got["multi_valued_pairs"], got["rank"]["upper"]) == (2, 1, 1)
    code, _, err = run(capsys, "describe", stored)
    assert code == 2
    assert "Choose with `--column`" in err
    code, _, err = run(capsys, "describe", stored, "--table", "other")
    assert (code, "It has main.facts" in err) == (2, True)
    code, _, err = run(capsys, "verify", "none.json", stored)
    assert code == 2


@pytest.mark.parametrize(
    ("command", "options"),
    [("rank", ["--effort", "standard"]), ("rank", ["--certificate", "c.json"]),
     ("rank", ["--multi", "first"]), ("rank", ["--effective"]), ("rank", ["--estimate"]),
     ("rank", ["--method", "slices"]), ("rank", ["--seed", "1"]), ("rank", ["--arity", "4"]),
     ("rank", ["--literals", "drop"]), ("rank", ["--predicate", "x:p"]),
     ("describe", ["--as", "turtle"]), ("describe", ["--multi", "set"]),
     ("describe", ["--annotations", "drop"]), ("describe", ["--type", "x:T"]),
     ("describe", ["--annotations-of-facts", "drop"])],
)  # fmt: skip
def test_what_needs_the_facts_in_memory_is_refused(
    capsys: pytest.CaptureFixture[str], facts: Path, command: str, options: list[str]
) -> None:
    code, out, err = run(capsys, command, facts, "--out-of-core", *options)
    assert (code, out) == (2, "")
    assert f"{options[0]} needs the facts in memory" in err
    assert str(facts) in err


def test_options_with_their_default_are_no_refusal(
    capsys: pytest.CaptureFixture[str], facts: Path
) -> None:
    options = ["--multi", "keep", "--effort", "quick", "--arity", "3", "--schema", "keep"]
    assert run(capsys, "rank", facts, "--out-of-core", *options)[0] == 0


def test_options_of_counting_need_it(capsys: pytest.CaptureFixture[str], facts: Path) -> None:
    code, _, err = run(capsys, "rank", facts, "--memory-limit", "2GB")
    assert (code, "add --out-of-core" in err) == (2, True)
    code, _, err = run(capsys, "rank", facts, "--out-of-core", "--memory-limit", "1MB")
    assert (code, "`--memory-limit` must be at least 700 MB" in err) == (2, True)
    code, _, err = run(capsys, "rank", facts, "--table", "facts")
    assert (code, "`--table` must be one of long, wide, n3" in err) == (2, True)


def test_what_is_omitted_of_a_folder_is_told(
    capsys: pytest.CaptureFixture[str], facts: Path
) -> None:
    (facts.parent / "notes.md").write_text("no facts")
    code, _, err = run(capsys, "rank", facts.parent, "--out-of-core")
    assert code == 0
    assert "notes.md" in err


def process(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "capacity.cli", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            cwd=ROOT, **options)  # fmt: skip


@pytest.mark.slow
def test_the_command_ends_without_a_word_of_the_database(facts: Path) -> None:
    with process("rank", facts, "--out-of-core", "--json") as ended:
        out, err = ended.communicate()
    assert (ended.returncode, err) == (0, "")
    assert json.loads(out)["source"] == "countries.nt"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupted_command_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.nt", tmp_path / "temporary"
    path.write_text("".join(f"<x:a{i}> <x:p> <x:b{i}> .\n" for i in range(10**6)))
    folder.mkdir()
    with process("rank", path, "--out-of-core", env={**os.environ, "TMPDIR": str(folder)}) as ended:
        while not any(folder.glob("capacity-*/facts.duckdb")):
            assert ended.poll() is None
        ended.send_signal(signal.SIGINT)
        _, err = ended.communicate()
    assert (ended.returncode, err) == (130, "")
    assert not list(folder.iterdir())
