"""A database is a collection of facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity import Database, load
from capacity.database import from_pandas, random_database, to_pandas, write
from capacity.database.terms.term import Term, label
from capacity.errors import (
    CapacityError,
    DatabaseFormatError,
    InvalidArgumentError,
    InvalidTypeError,
)
from capacity.rank import rank_interval
from tests.oracles import EXAMPLES

ROWS = [("Ada", "born in", "London"), ("Ada", "knows", "Alan"), ("Alan", "born in", "London")]
DB = Database.from_triples(ROWS)


def test_a_database_has_a_length_and_yields_its_facts() -> None:
    assert len(DB) == 3
    assert [tuple(map(str, fact)) for fact in DB] == ROWS
    assert Database.from_triples(DB) == DB
    for subject, predicate, obj in DB:
        assert DB(subject, predicate) == obj


def test_a_fact_is_in_it_by_its_terms_or_their_names() -> None:
    assert ("Ada", "knows", "Alan") in DB
    assert [label("Ada"), "knows", label("Alan")] in DB
    assert ("Alan", "knows", "Ada") not in DB
    assert ("Ada", "knows", "Nobody") not in DB
    rdf = load(EXAMPLES / "figure-1.ttl")
    first = rdf[0]
    assert first in rdf
    # by local names, as a lookup takes them
    assert tuple(rdf.name(term).rpartition(":")[2] for term in first) in rdf


def test_a_name_of_two_terms_stands_for_either() -> None:
    db = Database.from_triples(
        [(Term("iri", "x:/a"), "p", "one"), (Term("iri", "y:/a"), "p", "two")]
    )
    assert ("a", "p", "one") in db
    assert ("a", "p", "two") in db
    assert ("a", "p", "three") not in db


@pytest.mark.parametrize("wrong", ["Ada", ("Ada", "knows"), 3, None, ("a", "b", "c", "d")])
def test_what_is_no_fact_is_not_silently_absent(wrong: object) -> None:
    with pytest.raises(CapacityError, match="a tuple of subject, predicate, object"):
        assert wrong in DB


def test_facts_are_chosen_by_numbers_slices_and_masks() -> None:
    assert DB[0] == tuple(map(label, ROWS[0]))
    assert DB[-1] == DB[2] == tuple(map(label, ROWS[2]))
    assert DB[1:] == Database.from_triples(ROWS[1:])
    assert DB[[0, 2]] == DB[np.array([0, 2])] == DB[np.array([True, False, True])]
    assert DB[::-1] == DB
    assert (len(DB[3:]), DB[3:].shape) == (0, (0, 0, 0))
    assert not DB[3:]


@pytest.mark.parametrize(
    "wrong", [3, -4, [5], np.array([True]), "Ada", 0.5, ("Ada", "knows"), None]
)
def test_another_choice_is_refused_in_words(wrong: Any) -> None:
    with pytest.raises(CapacityError, match=r"numbered from 0 to 2|by a number, a slice"):
        _ = DB[wrong]


facts = st.sets(st.tuples(*[st.sampled_from("abc")] * 3), min_size=1)


@given(facts, facts)
def test_sets_of_two_databases_are_those_of_their_facts(a: Any, b: Any) -> None:
    one, two = (Database.from_triples(rows, multi="keep") for rows in (a, b))
    assert {tuple(map(str, fact)) for fact in one | two} == a | b
    assert {tuple(map(str, fact)) for fact in one & two} == a & b
    assert (one | two).multi == "keep"


@given(st.integers(0, 99))
def test_parts_unite_to_the_whole(seed: int) -> None:
    db = random_database(seed)
    assert db[:5] | db[5:] == db
    assert not db[:5] & db[5:]
    some = db.sample(min(7, len(db)), seed)
    assert some & db == some
    assert some == db.sample(min(7, len(db)), np.random.default_rng(seed))


def test_blank_nodes_of_two_files_are_not_taken_for_one(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.nt").write_text(f"_:x <x:p> <x:{name}> .\n")
    one, two = (load(tmp_path / f"{name}.nt") for name in "ab")
    for call in (lambda: one | two, lambda: one & two, lambda: one[:1] | two):
        with pytest.raises(CapacityError, match=r"capacity\.load\(\[path, other\]\)"):
            call()
    assert one[:1] | one == one


def test_facts_of_two_arities_have_no_union() -> None:
    with pytest.raises(CapacityError, match="one arity; got 3 and 2"):
        _ = DB | Database.from_tuples([("a", "b")])


def test_a_sample_is_of_some_facts() -> None:
    assert len(DB.sample(2, 0)) == 2
    for wrong in (0, 4, 1.5):
        with pytest.raises(CapacityError, match="`n` must be"):
            DB.sample(wrong, 0)  # type: ignore[arg-type]


def test_a_frame_is_that_of_to_pandas(tmp_path: Path) -> None:
    assert DB.to_frame().equals(to_pandas(DB))
    write(DB, tmp_path / "facts.tsv")
    assert load(tmp_path / "facts.tsv")[:1].source is not None


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
