"""The command's messages name its own options, and not keywords of Python."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from capacity.cli.messages import in_options
from capacity.database import load
from capacity.database.io.files.formats import FORMATS
from capacity.database.policy import multi_valued_error
from capacity.errors import CapacityError
from tests.commands import run

# of a file's name, its text, the options, what the library says, and what the command says
MESSAGES: dict[str, tuple[str, str, list[str], str, str]] = {
    "a context": (
        "a.jsonld", '{"@context": "https://schema.org/", "name": "A"}', [],
        "contexts={'https://schema.org/': 'context.jsonld'}",
        "--context https://schema.org/=context.jsonld",
    ),
    "a long context": (
        "a.jsonld", '{"@context": "https://schema.org/' + "x" * 80 + '", "name": "A"}', [],
        "...: 'context.jsonld'}", "...=context.jsonld.",
    ),
    "a wide table": (
        "a.csv", "id,born,city,zip\nBob,1980,Rome,1\nAnn,1990,Oslo,2\n", [],
        'table="wide"', "--table wide",
    ),
    "columns by name": (
        "a.csv", "id,subject,predicate,object\n1,a,p,b\n2,b,p,c\n", [],
        "columns=['subject', 'predicate', 'object']",
        "--column subject --column predicate --column object",
    ),
    "no triples": (
        "a.ttl", "@prefix : <x:> .", [], "`allow_empty`",
        "no triples were found. Check the file and its format.\n",
    ),
    "an option of tables": (
        "a.nt", "<x:a> <x:p> <x:b> .", ["table", "long"], "`table` is an option of tables",
        "`--table` is an option of tables",
    ),
    "a wrong base": (
        "a.nt", "<x:a> <x:p> <x:b> .", ["base", "x"], "`base` must be", "`--base` must be",
    ),
    "a wrong graph": (
        "a.nt", "<x:a> <x:p> <x:b> .", ["graph", "a b"], "`graph` must be", "`--graph` must be",
    ),
    "an annotation that isn't there": (
        "a.nt", "<x:a> <x:p> <x:b> .", ["annotations_of_facts", "order-4"],
        "as `annotations_of_facts` = 'order-4' needs",
        "as `--annotations-of-facts` = 'order-4' needs",
    ),
    "Python's own code": (
        "a.hext", '["x:a", "x:p", "x:b", "globalId", "", ""]\n', [],
        'format="hext")', 'format="hext")',
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", MESSAGES)
def test_errors_name_options(what: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name, text, options, library, command = MESSAGES[what]
    path = tmp_path / name
    path.write_text(text)
    keywords = dict([options]) if options else {}
    with pytest.raises(CapacityError) as said:
        load(path, **keywords)  # type: ignore[arg-type]
    assert library in str(said.value)
    flags = [f"--{options[0].replace('_', '-')}", options[1]] if options else []
    code, out, err = run(capsys, "rank", str(path), *flags)
    assert (code, out) == (2, "")
    assert command in err
    if library != command:
        assert library not in err


def test_limits_are_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    facts, packed = tmp_path / "a.nt", tmp_path / "a.nt.gz"
    facts.write_text(f'<x:a> <x:p> "{"b" * 300}" .\n')
    packed.write_bytes(gzip.compress(facts.read_bytes()))
    for path, flag, words in (
        (facts, "--max-file-bytes", "100"),
        (packed, "--max-file-bytes", "raise `--max-file-bytes`"),
        (packed, "--max-term-bytes", "raise `--max-term-bytes`"),
    ):
        code, out, err = run(capsys, "rank", str(path), flag, "100")
        assert (code, out) == (2, "")
        assert words in err
        assert run(capsys, "describe", str(path), flag, "1000")[0] == 0
    tensor = tmp_path / "a.npy"
    np.save(tensor, np.ones((2, 2, 2), np.int64))
    assert run(capsys, "rank", str(tensor), "--max-file-bytes", "100")[0] == 2
    assert run(capsys, "rank", str(tensor), "--max-file-bytes", "1000")[0] == 0
    _, _, err = run(capsys, "rank", str(tensor), "--max-term-bytes", "1000")
    assert "--max-term-bytes is about files of facts" in err


def test_warnings_name_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    path.write_text("<x:a> <x:p> <x:b>, <x:c> {| <x:q> <x:d> |} .")
    code, _, err = run(capsys, "rank", str(path))
    assert code == 0
    assert "Choose with --annotations-of-facts: keep" in err
    assert "Choose a policy with --multi: keep" in err
    assert "=:" not in err


def test_a_format_that_nothing_tells_is_an_option(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "README.md"
    path.write_text("some words")
    code, _, err = run(capsys, "rank", str(path))
    assert code == 2
    assert f"Choose one with `--format`: {next(iter(FORMATS))}" in err


def test_names_of_files_and_hints_stay() -> None:
    said = 'multi=: x/table="wide"/a.csv: Pass table="wide".'
    assert in_options(said, 'multi=: x/table="wide"/a.csv') == said.replace(
        'Pass table="wide"', "Pass --table wide"
    )
    hint = "No predicate is called 'tabel' in the facts. Did you mean `table` or `base`?"
    assert in_options(hint) == hint
    functional = in_options(str(multi_valued_error("Training", 1, 2)))
    assert "Choose a policy with --multi: first, majority" in functional
    assert in_options("Pass columns=[0, 1, 2] if it is a fact.") == (
        "Pass --column 0 --column 1 --column 2 if it is a fact."
    )
    assert in_options("Facts of 4 columns are read with `arity=4`.") == (
        "Facts of 4 columns are read with `--arity 4`."
    )
    # the text of a file can look like advice
    assert in_options(r"got columns=['\x'].") == r"got columns=['\x']."
    # a policy that is said, and not advised
    assert in_options("the facts under multi=keep") == "the facts under multi=keep"


@pytest.mark.parametrize("command", ["rank", "describe", "train"])
def test_an_empty_argument_is_not_the_current_folder(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, out, err = run(capsys, command, "")
    assert (code, out) == (2, "")
    assert "The path must not be empty" in err


def test_an_empty_file_to_verify_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = run(capsys, "verify", str(tmp_path / "c.json"), "")
    assert code == 2
    assert "The path must not be empty" in err


def test_a_point_is_the_current_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.nt").write_text("<x:a> <x:p> <x:b> .")
    code, _, _ = run(capsys, "rank", ".")
    assert code == 0
