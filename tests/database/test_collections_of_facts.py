"""A database as a collection, beside other facts: blank nodes, other forms, empty choices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capacity import Database, load
from capacity.database import from_pandas
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError
from capacity.rank import rank_interval

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def put(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_blank_nodes_of_two_files_stay_two_whatever_they_are_united_with(tmp_path: Path) -> None:
    a = load(put(tmp_path, "a.nt", "_:b <x:p> <x:x> .\n"))
    b = load(put(tmp_path, "b.nt", "_:b <x:p> <x:y> .\n"))
    both = a | Database.from_triples([("k", "p", "x")])
    for left, right in ((a, b), (both, b), (b, both)):
        with pytest.raises(InvalidArgumentError, match="blank nodes of two files"):
            _ = left | right
    # of one file they are the same
    assert (a | a[:1]) == a


def test_facts_in_other_forms_are_united_and_what_is_none_is_told() -> None:
    db = Database.from_triples([("a", "p", "x")])
    assert (db | [("b", "p", "y")]).n_facts == 2
    assert (db & [("a", "p", "x"), ("b", "p", "y")]) == db
    with pytest.raises(InvalidTypeError, match="as_database"):
        _ = db | None  # type: ignore[operator]


def test_choices_of_no_fact_and_masks_of_pandas_are_choices() -> None:
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "x"), ("c", "p", "y")])
    assert db[[]].n_facts == db[:0].n_facts == 0
    assert db[pd.Series([True, False, True])] == db[[0, 2]]
    # a set, in its own order
    assert db[[2, 0]] == db[[0, 2]]


def test_a_number_has_one_text_whatever_stands_in_other_rows() -> None:
    for born, texts in (([1.0, 2.5], {"1", "2.5"}), ([2.0, 1.0], {"2", "1"})):
        frame = pd.DataFrame({"subject": ["a", "b"], "predicate": "p", "object": born})
        assert {o.text for o in from_pandas(frame).objects} == texts


@pytest.mark.parametrize("dtype", [np.int64, object])
def test_rows_of_three_integers_are_in_doubt_whatever_their_type(dtype: type) -> None:
    rows = np.array([[0, 7, 1], [1, 7, 0], [2, 7, 3]], dtype=dtype)
    with pytest.raises(InvalidTypeError, match=r"as_database\(rows\).*as_tensor\(rows\)"):
        rank_interval(rows)


def test_a_key_that_an_object_has_twice_is_named(tmp_path: Path) -> None:
    path = put(tmp_path, "a.jsonl", '{"s": "a", "s": "b"}\n{"s": "c"}\n')
    with pytest.raises(DatabaseFormatError, match="has the key 's' twice"):
        load(path)


REIFIED = f"""@prefix rdf: <{RDF}> . @prefix : <http://e/> .
_:r rdf:subject :a ; rdf:predicate :p ; rdf:object :b ; a :Disputed ;
  <http://e/ontology#rank> "3" ; <http://www.w3.org/ns/prov#wasDerivedFrom> <http://e/reference/1> .
<http://e/reference/1> :title "T" . :x :y :z ."""


def test_rules_of_wikibase_are_for_its_statements_alone(tmp_path: Path) -> None:
    path = put(tmp_path, "a.ttl", REIFIED)
    folded = load(path, fold="statements", multi="keep")
    # the statement, and the facts about what it isn't derived from by a rule of Wikibase
    assert {tuple(t.text.rsplit("/", 1)[-1] for t in fact) for fact in folded} == {
        ("a", "p", "b"), ("1", "title", "T"), ("x", "y", "z")
    }  # fmt: skip
    assert folded.selected is not None
    assert folded.selected.folded is not None
    assert folded.selected.folded.counts["qualifiers_omitted"] == 3
    five = load(path, fold="statements:order-5", multi="keep")
    assert {fact[3].text.rsplit("/", 1)[-1] for fact in five if fact[0].text == "http://e/a"} == {
        "22-rdf-syntax-ns#type", "ontology#rank", "prov#wasDerivedFrom",
    }  # fmt: skip


def test_facts_about_the_empty_list_are_counted(tmp_path: Path) -> None:
    path = put(tmp_path, "a.ttl", "@prefix : <http://e/> . :a :p () . :x :q ( :u :v ) .")
    folded = load(path, fold="lists", multi="keep")
    assert folded.n_facts == 2
    assert folded.selected is not None
    assert folded.selected.folded is not None
    assert folded.selected.folded.counts == {"lists": 1, "lists_empty": 1, "lists_kept": 0}
