"""`--fold` on every command: what was folded is told, verified again, and refused out of core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capacity.database import Database, load
from capacity.errors import InvalidTypeError
from capacity.stores import count_duckdb
from tests.commands import run
from tests.oracles import ROOT

DATA = ROOT / "tests" / "database" / "folding_data"
PIZZA, WIKIDATA = str(DATA / "pizza.ttl"), str(DATA / "wikidata.ttl")
FOLD = ("--fold", "lists,restrictions", "--schema", "drop")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The object that a command prints, whatever it says on standard error."""
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    return json.loads(out)


def test_what_was_folded_is_told_on_standard_error_and_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run(capsys, "rank", PIZZA, *FOLD)
    assert code == 0
    # as test_folding.py has them, 4 types, 10 facts, and 28 that are kept: 5 axioms, 3 facts of
    # each of two restrictions and 4 of each of two, 3 of a union, 2 of a complement, 4 of classes
    # that are disjoint
    assert "facts are folded to 42: restrictions 7, restrictions kept 4, lists 2; of these" in err
    got = printed(capsys, "rank", PIZZA, *FOLD)
    assert got["triples"] == 8
    selection = got["selection"]
    assert selection["options"] == {"schema": "drop", "fold": ["lists", "restrictions"]}
    assert selection["folded"]["facts"] == selection["of"] == 42
    # repeated, and by commas, are the same
    again = printed(
        capsys, "rank", PIZZA, "--fold", "restrictions", "--fold", "lists", "--schema", "drop"
    )
    assert again["facts_sha256"] == got["facts_sha256"]


def test_a_certificate_of_folded_facts_is_verified_under_the_same_fold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    certificate = tmp_path / "pizza.json"
    assert run(capsys, "rank", PIZZA, *FOLD, "--certificate", certificate)[0] == 0
    code, out, _ = run(capsys, "verify", certificate, PIZZA, *FOLD)
    assert code == 0
    assert "selection: schema=drop, fold=lists, restrictions" in out
    # other facts are another tensor
    assert run(capsys, "verify", certificate, PIZZA, "--schema", "drop", "--fold", "lists")[0] != 0
    # and so are facts of order four
    order_4 = ("--fold", "statements:pq:P580")
    assert run(capsys, "rank", WIKIDATA, *order_4, "--certificate", certificate)[0] == 0
    assert run(capsys, "verify", certificate, WIKIDATA, *order_4)[0] == 0


def test_statements_that_are_folded_are_not_asked_about(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "said.ttl"
    path.write_text(
        "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix : <x:> ."
        "_:r rdf:subject :a ; rdf:predicate :p ; rdf:object :b ; :since 1990 ."
    )
    code, _, err = run(capsys, "rank", path, "--fold", "statements")
    assert code == 0
    assert "Choose with" not in err
    assert "statements 1, statements not asserted 1, qualifiers omitted 1" in err


def test_a_fold_needs_the_facts_in_memory(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "rank", PIZZA, "--out-of-core", "--fold", "lists")
    assert code == 2
    assert "--fold needs the facts in memory" in err
    assert "Omit --fold, or load a part of them" in err
    with pytest.raises(InvalidTypeError, match="`load` has `fold`, for facts that memory holds"):
        count_duckdb(PIZZA, fold="lists")  # type: ignore[call-arg]


def test_a_wrong_fold_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "describe", PIZZA, "--fold", "restriction")
    assert code == 2
    assert "Did you mean `restrictions`?" in err


def test_load_takes_a_fold_as_select_does() -> None:
    whole: Database = load(PIZZA, multi="keep")
    assert load(PIZZA, multi="keep", fold=["lists"]) == whole.select(fold="lists")
