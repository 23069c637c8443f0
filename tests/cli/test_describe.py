"""`capacity describe`, and the options that choose facts, of every command that reads them."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from capacity.database import load, parse_rdf
from capacity.database.describing import void
from tests.commands import run, run_json
from tests.oracles import ROOT

# 12 facts in the default graph and 2 in another
DATASET = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Alien  a :Film ; rdfs:label "Alien" ; :year 1979 ; :director :Scott ; :set [ :place :England ] .
:Aliens a :Film ; rdfs:label "Aliens" ; :year 1986 ; :director :Cameron .
:Cameron a :Person ; rdfs:label "James Cameron" .
:more { :Avatar :director :Cameron ; :year 2009 . }
"""


@pytest.fixture
def films(tmp_path: Path) -> str:
    path = tmp_path / "films.trig"
    path.write_text(DATASET)
    return str(path)


KEYS = {"source", "sha256", "facts_sha256", "multi", "selection", "triples", "subjects", "objects",
        "tokens", "functional", "multi_valued_pairs", "schema_facts", "annotations_facts",
        "literals_facts", "blank_nodes_facts", "components", "bounds", "bound", "predicates",
        "classes", "advice"}  # fmt: skip
ROW = {"predicate", "name", "label", "facts", "subjects", "objects", "functional",
       "multi_valued_pairs", "example", "rank", "rank_share", "facts_share", "literal",
       "literal_facts", "blank_facts", "schema", "annotation", "repeats"}  # fmt: skip
ADVICE = {"text", "options", "omits", "facts_share", "leaves", "rank_share"}


def test_describe_prints_the_contracts_object(
    capsys: pytest.CaptureFixture[str], films: str
) -> None:
    got = run_json(capsys, "describe", films)
    assert set(got) == KEYS
    assert got["sha256"] == hashlib.sha256(Path(films).read_bytes()).hexdigest()
    assert got["facts_sha256"] == load(films).facts_sha256
    assert (got["source"], got["selection"]) == ("films.trig", None)
    # three types and three labels; three labels and three years
    kinds = ("triples", "schema_facts", "annotations_facts", "literals_facts", "blank_nodes_facts")
    assert [got[name] for name in kinds] == [14, 6, 3, 6, 2]
    assert got["classes"] == [
        {"class": "http://example.org/Film", "subjects": 2},
        {"class": "http://example.org/Person", "subjects": 1},
    ]
    assert [set(row) for row in got["predicates"]] == [ROW] * 6
    assert {frozenset(one) for one in got["advice"]} == {frozenset(ADVICE)}
    (year,) = [row for row in got["predicates"] if row["name"] == ":year"]
    assert year == {
        "predicate": "http://example.org/year", "name": ":year", "label": None, "facts": 3,
        "subjects": 3, "objects": 3, "functional": True, "multi_valued_pairs": 0, "example": [],
        # the ranks of the predicates are 3, 3, 2, 2, 1 and 1
        "rank": 3, "rank_share": 3 / 12, "facts_share": 3 / 14, "literal": True,
        "literal_facts": 3, "blank_facts": 0, "schema": False, "annotation": False,
        "repeats": None,
    }  # fmt: skip
    assert got["bounds"]["predicate_slices"] == 12
    assert got["bound"] == min(got["bounds"].values())


def test_advice_holds_when_it_is_typed(capsys: pytest.CaptureFixture[str], films: str) -> None:
    got = run_json(capsys, "describe", films)
    assert len(got["advice"]) == 5
    for one in got["advice"]:
        (typed,) = re.findall("`(--[^`]*)`", one["text"])
        code, out, err = run(capsys, "rank", films, *shlex.split(typed), "--json")
        assert code == 0
        bounds = json.loads(out)["bounds"]
        slices = ("subject_slices", "predicate_slices", "object_slices")
        assert min(bounds[name] for name in slices) == one["leaves"]
        assert f"{14 - one['omits']} of 14 facts are selected" in err
        assert f"of rank at most {one['leaves']}" in one["text"]


def test_describe_is_a_page_for_people(capsys: pytest.CaptureFixture[str], films: str) -> None:
    code, out, err = run(capsys, "describe", films)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("films.trig: Database(14 triples")
    assert [line.split()[0] for line in lines if re.match(r"  (:|rdf)", line)] == [
        ":year", "rdfs:label", ":director", "rdf:type", ":place", ":set",
    ]  # fmt: skip
    assert sum(line.startswith("  * ") for line in lines) == 5


def test_describe_writes_turtle_that_capacity_reads(
    capsys: pytest.CaptureFixture[str], films: str, tmp_path: Path
) -> None:
    code, out, err = run(capsys, "describe", films, "--as", "turtle")
    assert (code, err) == (0, "")
    read = parse_rdf(out, "turtle", multi="keep")
    assert read.select(predicates="void:property").n_facts == 6
    path = tmp_path / "void.ttl"
    path.write_text(out)
    assert run_json(capsys, "describe", str(path), "--multi", "keep")["triples"] == read.n_facts
    code, out, err = run(capsys, "describe", films, "--as", "turtle", "--json")
    assert (code, out) == (2, "")
    assert "--json and --as turtle are two forms" in err


def test_a_selected_part_is_described_with_what_the_whole_says_of_kinds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "notes.ttl"
    path.write_text("""
        @prefix : <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
        :note2 a owl:AnnotationProperty ; <http://www.w3.org/2000/01/rdf-schema#label> "a note" .
        :a :note2 "x" ; :p :b . :b :note2 "y" ; :p :c .
    """)
    code, out, _ = run(capsys, "describe", str(path), "--schema", "drop", "--json")
    got = json.loads(out)
    assert (code, got["triples"], got["annotations_facts"]) == (0, 4, 2)
    (row,) = [row for row in got["predicates"] if row["name"] == ":note2"]
    assert (row["annotation"], row["label"]) == (True, "a note")
    assert "--annotations drop" in "".join(one["text"] for one in got["advice"])
    assert not [one for one in got["advice"] if ":note2" in one["text"]]


OPTIONS = ("--graph", "--schema", "--literals", "--annotations", "--blank-nodes", "--predicate",
           "--exclude", "--namespace", "--type")  # fmt: skip
# of each choice, the facts that stay, and what it omits
CHOICES: dict[str, tuple[list[str], int, dict[str, int]]] = {
    "schema": (["--schema", "drop"], 8, {"schema": 6}),
    "literals": (["--literals", "drop"], 8, {"literals": 6}),
    "annotations": (["--annotations", "drop"], 11, {"annotations": 3}),
    "blank nodes": (["--blank-nodes", "drop"], 12, {"blank_nodes": 2}),
    "predicates": (["--predicate", "year", "--predicate", ":set"], 4, {"predicates": 10}),
    "exclude": (["--exclude", "rdf:type", "--exclude", "label"], 8, {"exclude": 6}),
    "a namespace": (["--namespace", "http://example.org/"], 8, {"namespaces": 6}),
    "a type": (["--type", "Film"], 9, {"types": 5}),
    "the default graph": (["--graph", "default"], 12, {"graph": 2}),
    "a graph by its name": (["--graph", ":more"], 2, {"graph": 12}),
    "several": (
        ["--graph", "default", "--schema", "drop", "--literals", "drop"], 4,
        {"graph": 2, "schema": 6, "literals": 5},
    ),
}  # fmt: skip
COMMANDS = {
    "rank": ["rank"],
    "describe": ["describe"],
    "train": ["train", "--d-model", "2", "--n-heads", "1", "--epochs", "1"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", CHOICES)
def test_what_is_left_out_is_told_and_stands_in_the_json(
    capsys: pytest.CaptureFixture[str], films: str, command: str, what: str
) -> None:
    options, kept, omitted = CHOICES[what]
    name, *others = COMMANDS[command]
    code, out, err = run(capsys, name, films, *others, *options, "--json")
    assert code == 0, err
    got: Any = json.loads(out)
    got = got[0] if command == "train" else got
    assert got["selection"]["omitted"] == omitted
    assert got["n_triples" if command == "train" else "triples"] == kept
    if "graph" in omitted:
        assert f"capacity: {omitted['graph']} triples in other graphs are omitted\n" in err
    for criterion, n in omitted.items():
        assert criterion == "graph" or f"by {criterion.replace('_', ' ')} {n}" in err


def test_a_certificate_is_verified_for_the_facts_that_it_was_made_for(
    capsys: pytest.CaptureFixture[str], films: str, tmp_path: Path
) -> None:
    certificate = str(tmp_path / "c.json")
    chosen = ["--graph", "default", "--annotations", "drop"]
    run(capsys, "rank", films, *chosen, "--certificate", certificate)
    code, out, err = run(capsys, "verify", certificate, films, *chosen, "--json")
    assert code == 0
    got = json.loads(out)
    assert got["proved"] is True
    assert got["selection"]["omitted"] == {"graph": 2, "annotations": 3}
    assert "9 of 12 facts are selected" in err
    code, out, err = run(capsys, "verify", certificate, films)
    assert (code, out) == (2, "")
    assert "with the same selection" in err


@pytest.mark.parametrize("command", ["rank", "describe", "train", "verify"])
def test_every_command_that_reads_facts_has_the_options(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    _, out, _ = run(capsys, command, "--help")
    for option in OPTIONS:
        assert f" {option} " in out


WRONG: dict[str, tuple[list[str], str]] = {
    "a predicate": (["--exclude", "yaer"], "No predicate is called 'yaer' .*`year`"),
    "a namespace": (["--namespace", "nope"], "A namespace must hold a predicate"),
    "a class": (["--type", "Flim"], "No class is called 'Flim' .*`Film`"),
    "a graph": (["--graph", ":mroe"], "no triples were found in the graph .*more"),
    "a choice": (["--schema", "dorp"], "'dorp' is not one of .*`drop`"),
    "nothing left": (["--predicate", "year", "--literals", "drop"], "0 of 14 facts .* Omit one"),
}


@pytest.mark.parametrize("command", ["rank", "describe"])
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_choice_ends_in_one_line(
    capsys: pytest.CaptureFixture[str], films: str, command: str, what: str
) -> None:
    options, words = WRONG[what]
    code, out, err = run(capsys, command, films, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(words, err)


def test_a_tensor_has_no_facts_to_choose_from(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "w.tns"
    path.write_text("1 1 1 1\n")
    code, _, err = run(capsys, "rank", str(path), "--blank-nodes", "drop")
    assert code == 2
    assert "--blank-nodes is about files of facts" in err
    code, _, err = run(capsys, "describe", str(path))
    assert code == 2


def test_a_sweep_selects_from_its_files_and_its_dry_run_tells(
    capsys: pytest.CaptureFixture[str], films: str, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.toml"
    text = """
        [[databases.files]]
        path = "films.trig"
        graph = "default"
        schema = "drop"
        exclude = [":set", ":place"]
        [[databases.files]]
        path = "films.trig"
        predicates = ["year", "director"]
        subset = { subjects = 2, seed = 0, count = 3 }
        [layers]
        d_model = [1]
        n_heads = [1]
        d_head_qk = [1]
        d_head_vo = [1]
    """
    plan.write_text(text)
    told = run_json(capsys, "sweep", str(plan), "--dry-run")["selections"]
    # subsets of a file share what was selected from it
    first, second = sorted(told, key=lambda one: one["of"])
    assert first["database"].startswith("films-")
    assert (first["of"], first["kept"], first["omitted"]) == (12, 4, {"schema": 6, "exclude": 2})
    assert (second["of"], second["kept"], second["omitted"]) == (14, 6, {"predicates": 8})
    _, out, _ = run(capsys, "sweep", str(plan), "--dry-run")
    assert "selected    4 of 12 facts for films-" in out
    for wrong, words in [
        ('["yaer"]', "No predicate is called 'yaer'"),
        ('"year"', "must be a list of 1 to 100,000 strings; got 'year'"),
        ('[""]', "must not be empty"),
        ("[3]", "must be a string; got 3"),
    ]:
        plan.write_text(text.replace('["year", "director"]', wrong))
        code, out, err = run(capsys, "sweep", str(plan), "--dry-run")
        assert (code, out) == (2, "")
        assert words in err


def test_the_page_begins_without_tensors_and_names_all_options_and_terms() -> None:
    page = (ROOT / "docs" / "how-to" / "describe-and-select.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    assert "tensor" not in "\n".join(lines[: len(lines) // 2]).lower()
    title = next(line for line in lines if line.startswith("# "))
    assert title.endswith("?")
    for option in OPTIONS:
        assert f"`{option}" in page
    # each term of our own has a row on the page, as in the module that writes them
    for term in re.findall(r"^``(\w+)``", void.__doc__ or "", re.MULTILINE):
        assert f"`{term}`" in page
