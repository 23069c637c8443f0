"""A database is a collection of facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity import Database, load
from capacity.database import random_database, to_pandas, write
from capacity.database.terms.term import Term, label
from capacity.errors import CapacityError
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
