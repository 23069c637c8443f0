"""Texts of files steer no terminal: every command, page and notebook shows escapes."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from bs4 import BeautifulSoup

from capacity import errors
from capacity.cli import COMMANDS
from capacity.database import load
from capacity.embedding import dimensions
from capacity.embedding.results.page import in_words
from capacity.errors import (
    CapacityError,
    DatabaseFormatError,
    DecompositionFormatError,
    EndpointError,
    FormatError,
    StorageError,
    TensorFormatError,
)
from capacity.rank import describe, rank_interval
from capacity.report import attention_report, database_report, sweep_report
from capacity.stores import count_duckdb
from capacity.visible import STEERING, visible
from tests.commands import run
from tests.oracles import ROOT

# a title, colours by both forms of CSI, overrides of direction, a bell, and a line of its own
HOSTILE = "\x1b]0;T\x07\x1b[31m\x9b32m\u202eR\u2066\u061c\u200f\x7f\x85\u2028\x0b\tT\nFORGED"
PLAN = """
[[databases.files]]
path = {path}
blank_nodes = "drop"
[layers]
d_model = [1]
n_heads = [1]
d_head_qk = [1]
d_head_vo = [1]
[recipe]
epochs = 1
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Path:
    """Facts with hostile labels, in files of hostile names, and what commands made of them."""
    folder = tmp_path_factory.mktemp("visible") / HOSTILE
    folder.mkdir()
    # a cycle without reverses, which DistMult has no embedding of, so that its facts are named
    names = [f"{letter}{HOSTILE}" for letter in "abc"]
    with (folder / f"{HOSTILE}.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            (one, f"p{HOSTILE}", names[i - 1]) for i, one in enumerate(names)
        )
    shutil.copytree(model_folder, folder / "model" / HOSTILE)
    path = json.dumps(f"{HOSTILE}.csv").replace("\x7f", r"\u007f")
    (folder / "plan.toml").write_text(PLAN.format(path=path))
    literal, label = ox.Literal(HOSTILE), "http://www.w3.org/2000/01/rdf-schema#label"
    facts = [("x:a", "x:p", literal), ("x:a", "x:p", ox.Literal("x")), ("x:p", label, literal),
             ("x:\u202ea", "x:p", literal)]  # fmt: skip
    (folder / f"{HOSTILE}.nt").write_text(
        "".join(f"<{s}> <{p}> {o} .\n" for s, p, o in facts), encoding="utf-8"
    )
    return folder


def lines_of(place: Path) -> dict[str, list[list[object]]]:
    """Command lines by their commands."""
    table, triples = place / f"{HOSTILE}.csv", place / f"{HOSTILE}.nt"
    model, demo = place / "model" / HOSTILE, place / "demo"
    page = place / f"{HOSTILE}.html"
    return {
        "describe": [
            ["describe", table], ["describe", triples], ["describe", triples, "--out-of-core"],
            ["describe", table, "--out-of-core"], ["describe", triples, "--as", "turtle"],
            ["describe", f"{triples}?"], ["describe", table, "--exclude", HOSTILE],
            ["describe", table, "--namespace", HOSTILE],
        ],
        "rank": [
            ["rank", table, "--certificate", place / f"{HOSTILE}.json"],
            ["rank", triples, "--effective"], ["rank", table, "--out-of-core"],
            ["rank", table, "--method", HOSTILE], ["rank", table, "--multi", HOSTILE],
        ],
        "verify": [["verify", place / f"{HOSTILE}.json", table], ["verify", table, table]],
        "dimension": [
            ["dimension", table, "--certificate", place / f"{HOSTILE}-dimension.json"],
            ["dimension", triples, "--model", HOSTILE],
        ],
        "train": [
            ["train", table, "--epochs", 1, "--out", place / "layer" / HOSTILE],
            ["train", triples], ["train", table, "--curve", f"{HOSTILE}.x"],
        ],
        "sweep": [
            ["sweep", place / "plan.toml", "--dry-run"],
            ["sweep", place / "plan.toml", "--out", demo],
            ["sweep", triples, "--out", place / "none"],
            ["sweep", place / "plan.toml", "--out", demo, "--shard", HOSTILE],
        ],
        "grid": [
            ["grid", demo, "--out", place / f"{HOSTILE}.png"], ["grid", demo, "--tau", HOSTILE],
        ],
        "attention": [
            ["attention", model, "--text", f"the court {HOSTILE}"],
            ["attention", place / "model", "--text", "the"],
        ],
        "recall": [
            ["recall", model, table, "--templates", HOSTILE], ["recall", model, triples],
            ["recall", place / "model", table],
        ],
        "report": [
            ["report", table, "--out", page], ["report", demo, "--out", page],
            ["report", triples, "--out", page, "--exclude", HOSTILE],
            ["report", "--attention", model, "--text", "the court", "--out", page],
        ],
        "doctor": [["doctor"], ["doctor", "--device", HOSTILE]],
    }  # fmt: skip


def assert_steers_nothing(text: str, *, but: str = "\n") -> None:
    found = {c for c in text if ord(c) in STEERING} - {*but}
    assert not found, ascii(text)
    # a label's line break is none of the page's
    assert "\nFORGED" not in text


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_what_steers_a_terminal(
    command: str, place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", f"/{HOSTILE}/python")
    shown = []
    for line in lines_of(place)[command]:
        for more in ([], ["--json"]):
            if "turtle" in line and more:
                continue
            code, out, err = run(capsys, *line, *more)
            assert code in (0, 2), err
            # Turtle has lines of its own that begin with tabs
            assert_steers_nothing(out, but="\n\t" if "turtle" in line else "\n")
            assert_steers_nothing(err)
            if more and code == 0:
                # nothing is lost on the way to another program
                shown.append(json.dumps(json.loads(out), ensure_ascii=False))
            else:
                shown.append(out + err)
    assert r"\x1b" in "".join(shown)


def test_json_and_turtle_hold_the_labels_as_they_are(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "describe", place / f"{HOSTILE}.csv", "--json")
    assert json.loads(out)["predicates"][0]["predicate"] == f"p{HOSTILE}"
    _, out, _ = run(capsys, "describe", place / f"{HOSTILE}.nt", "--as", "turtle")
    titles = {str(triple.object.value) for triple in ox.parse(out, format=ox.RdfFormat.TURTLE)
              if triple.predicate.value.endswith("title")}  # fmt: skip
    assert {f"{HOSTILE}.nt", HOSTILE} <= titles


def pages(place: Path) -> dict[str, Callable[[], str]]:
    import torch

    from capacity.transformer import capture
    from tests.transformer.conftest import build

    def of_model() -> str:
        captured = capture(build("Bert"), {"input_ids": torch.tensor([[3, 4, 5]])})
        return attention_report(captured, [HOSTILE] * 3, title=HOSTILE)

    return {
        "table": lambda: database_report(load(place / f"{HOSTILE}.csv")),
        "triples": lambda: database_report(
            load(place / f"{HOSTILE}.nt", multi="keep"), options=["--exclude", HOSTILE]
        ),
        "sweep": lambda: sweep_report(place / "demo"),
        "model": of_model,
    }


@pytest.mark.parametrize("name", ["table", "triples", "sweep", "model"])
@pytest.mark.filterwarnings("ignore::capacity.errors.MultiValuedWarning")
def test_no_page_holds_what_steers_its_reader(
    name: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "sweep", place / "plan.toml", "--out", place / "demo")
    page = pages(place)[name]()
    # the style and the script have tabs and lines of their own
    assert_steers_nothing(page)
    text = BeautifulSoup(page, "html.parser").get_text()
    assert visible("\u202eR\u2066") in text


def test_notebooks_and_reprs_show_escapes(place: Path) -> None:
    db = load(place / f"{HOSTILE}.csv")
    rank, found, counted = rank_interval(db), describe(db), count_duckdb(place / f"{HOSTILE}.nt")
    bounds = dimensions(db, ["DistMult", "CP"], witness=False)
    # what files of certificates say
    for end in rank.certificates:
        object.__setattr__(end, "by", HOSTILE)
    for bound in bounds:
        object.__setattr__(bound, "notes", (HOSTILE,))
    assert_steers_nothing(in_words(bounds, db))
    object.__setattr__(bounds[0], "model", HOSTILE)
    shown: list[Any] = [
        db, db.source, db.subjects[0], rank, *rank.certificates, found,
        *found.predicates, *found.advice,
        *bounds, counted, *counted.predicates_rows,
        db.select(predicates=[f"p{HOSTILE}"]).selected,
    ]  # fmt: skip
    for one in shown:
        assert_steers_nothing(repr(one))
        # the text of a term is data
        if one is not db.subjects[0]:
            assert_steers_nothing(str(one))
        if hasattr(one, "_repr_html_"):
            assert_steers_nothing(one._repr_html_())


def test_every_error_is_a_line_whatever_is_quoted_in_it() -> None:
    parts = {FormatError: 2, DatabaseFormatError: 2, TensorFormatError: 2,
             DecompositionFormatError: 2, StorageError: 3, EndpointError: 3}  # fmt: skip
    kinds = [one for one in vars(errors).values()
             if isinstance(one, type) and issubclass(one, CapacityError)]  # fmt: skip
    for kind in kinds:
        said = str(kind(*[HOSTILE] * parts.get(kind, 1)))
        assert said.startswith(visible(HOSTILE)), kind
        assert_steers_nothing(said, but="")


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.full)])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.slow
def test_every_command_prints_in_any_encoding(command: str, encoding: str, place: Path) -> None:
    line = [str(one) for one in lines_of(place)[command][0]]
    for words in (line, [command, "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "capacity.cli", *words],
            capture_output=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )
        assert done.returncode in (0, 2), done.stderr.decode()
        assert b"Traceback" not in done.stderr
        assert_steers_nothing(done.stdout.decode(encoding) + done.stderr.decode(encoding))


@pytest.mark.slow
def test_letters_that_an_encoding_lacks_are_shown_as_escapes(tmp_path: Path) -> None:
    facts = tmp_path / "l.tsv"
    facts.write_text("Zürich\tführt nach\t日本\nZürich\tführt nach\tBasel\n", encoding="utf-8")
    for encoding, zürich in (("ascii", rb"Z\u00FCrich"), ("latin-1", b"Z\xfcrich")):
        for form in ("table", "turtle"):
            done = subprocess.run(
                [sys.executable, "-m", "capacity.cli", "describe", facts, "--as", form],
                capture_output=True, cwd=ROOT, check=True,
                env={**os.environ, "PYTHONIOENCODING": encoding},
            )  # fmt: skip
            if form == "table":
                assert rb"%s -> Basel, \u65E5\u672C" % zürich in done.stdout
            else:
                read = ox.parse(done.stdout.decode(encoding), format=ox.RdfFormat.TURTLE)
                assert "führt nach" in {str(triple.object.value) for triple in read}  # type: ignore[union-attr]
