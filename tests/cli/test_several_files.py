"""Several files on the command line are their union, in every command that takes facts."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capacity import Database, load, rank_interval
from capacity.rank import save_certificates
from tests.commands import run, run_json

# facts 1 and 2, and 2 and 3, whose union has three facts of two predicates
FIRST = "<x:a> <x:p> <x:b> .\n<x:b> <x:p> <x:c> .\n"
SECOND = "@prefix x: <x:> . x:b x:p x:c . x:c x:q x:a ."


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "a.nt").write_text(FIRST)
    (tmp_path / "b.ttl").write_text(SECOND)
    return [str(tmp_path / "a.nt"), str(tmp_path / "b.ttl")]


def of_union(files: list[str]) -> Database:
    union = load(files)
    assert union.n_facts == 3
    return union


def test_rank_is_that_of_the_union(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    union = of_union(files)
    found = run_json(capsys, "rank", *files)
    assert found["triples"] == 3
    assert union.source is not None
    assert (found["sha256"], found["source"]) == (union.source.sha256, "a.nt, b.ttl (2 files)")
    assert found["facts_sha256"] == union.facts_sha256
    assert found["rank"]["lower"] == rank_interval(union).lower
    # in any order, with options between
    other = run_json(capsys, "rank", files[1], "--multi", "keep", files[0])
    assert (other["facts_sha256"], other["sha256"]) == (found["facts_sha256"], found["sha256"])


@pytest.mark.parametrize("command", ["describe", "dimension"])
def test_others_are_about_the_union(
    command: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--no-witness", "--model", "CP") if command == "dimension" else ()
    found = run_json(capsys, command, *files, *options)
    assert found["facts_sha256"] == of_union(files).facts_sha256
    with_selection = run_json_quietly(capsys, command, *files, *options, "--predicate", "x:q")
    assert with_selection["selection"]["of"] == 3


def run_json_quietly(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_layer_is_trained_on_the_union(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    (row,) = run_json(capsys, "train", *files, "--epochs", "1", "--d-model", "2")
    assert (row["n_triples"], row["database_id"].rpartition("-")[0]) == (3, "a+b")
    code, out, _ = run(capsys, "train", *files, "--epochs", "1", "--d-model", "2")
    assert (code, out.partition(":")[0]) == (0, "a.nt, b.ttl (2 files)")


def test_a_page_is_about_the_union(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2")
    out = tmp_path / "page.html"
    assert run(capsys, "report", *files, "--out", str(out))[0] == 0
    assert "a.nt, b.ttl" in out.read_text()


def test_certificates_are_verified_for_the_union_alone(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate = tmp_path / "c.json"
    save_certificates(rank_interval(load(files)).certificates, certificate)
    assert run_json(capsys, "verify", str(certificate), *files)["proved"]
    assert run_json(capsys, "verify", str(certificate), "--format", "turtle", *files)["proved"]
    # files don't come first
    code, _, err = run(capsys, "verify", *files, str(certificate))
    assert code == 2
    assert "comes first" in err
    code, _, err = run(capsys, "verify", str(certificate), files[0])
    assert code == 2
    assert "must be for the facts" in err


def test_tables_folders_patterns_and_compressed_files_go_together(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "c.tsv").write_text("<x:c>\t<x:q>\t<x:d>\n")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"one,two,three\n"))
    every = [*files, str(tmp_path / "part"), str(tmp_path / "d.c*")]
    found = run_json_quietly(capsys, "describe", *every)
    assert found["triples"] == 5
    assert found["facts_sha256"] == load(every, multi="keep").facts_sha256


def test_a_file_that_is_named_twice_is_read_once_and_blank_nodes_stay_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.nt").write_text("_:n <x:p> <x:c> .\n")
    a, b = str(tmp_path / "a.nt"), str(tmp_path / "b.nt")
    assert run_json(capsys, "rank", a, a)["triples"] == 1
    assert run_json(capsys, "rank", a, b)["triples"] == 2


def test_the_policy_is_for_the_union(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # each file is functional
    (tmp_path / "c.nt").write_text("<x:a> <x:p> <x:c> .\n")
    several = [files[0], str(tmp_path / "c.nt")]
    assert all(run(capsys, "rank", one, "--multi", "error")[0] == 0 for one in several)
    code, _, err = run(capsys, "rank", *several, "--multi", "error")
    assert code == 2
    assert "a.nt, c.nt" in err
    code, _, err = run(capsys, "rank", *several)
    assert code == 0
    assert "--multi" in err


def test_facts_of_several_files_are_counted_where_they_are(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    for command in ("rank", "describe"):
        assert run_json(capsys, command, *files, "--out-of-core")["triples"] == 3
    code, _, err = run(capsys, "rank", *files, "--out-of-core", "--multi", "first")
    assert code == 2
    assert "a.nt" in err
    assert "b.ttl" in err
    assert "--multi" in err


def test_standard_input_may_be_one_of_them(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(files[1]).open() as text:
        monkeypatch.setattr(sys, "stdin", text)
        found = run_json(capsys, "rank", files[0], "-")
    assert found["facts_sha256"] == of_union(files).facts_sha256


@pytest.mark.parametrize("command", ["rank", "verify"])
@pytest.mark.parametrize("tensor", ["w.npy", "matrices:2x2x2"])
def test_a_tensor_is_given_alone(
    command: str,
    tensor: str,
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("w.npy", np.ones((2, 2, 2)))
    before = ("c.json",) if command == "verify" else ()
    for several in ([*files, tensor], [tensor, tensor]):
        code, _, err = run(capsys, command, *before, *several)
        assert code == 2
        assert f"{tensor}: a tensor must be given alone" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["rank", "describe", "dimension", "train", "verify", "report"])
@pytest.mark.parametrize("source", ["https://example.org/sparql", "facts.duckdb", "none.nt"])
def test_what_cant_be_united_is_named(
    command: str, source: str, files: list[str], capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    before = ("c.json",) if command == "verify" else ()
    after = ("--out", str(tmp_path / "p.html")) if command == "report" else ()
    code, _, err = run(capsys, command, *before, files[0], source, *after)
    assert code == 2
    assert source in err or command == "verify"
    assert err.count("\n") == 1


def test_a_page_of_a_sweep_or_a_model_is_of_one(
    files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2")
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "manifest.json").write_text("{}")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    for folder, what in (("sweep", "a sweep"), ("model", "a model")):
        given = (files[0], str(tmp_path / folder), "--out", str(tmp_path / "p.html"))
        code, _, err = run(capsys, "report", *given)
        assert code == 2
        assert f"{what} must be given alone" in err


def test_no_file_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("rank", "describe", "dimension", "train", "verify"):
        code, _, err = run(capsys, command)
        assert code == 2
        assert "Missing argument" in err
        assert err.count("\n") == 1
