"""Triples to and from PyKEEN."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pykeen.datasets import Nations
from pykeen.triples import CoreTriplesFactory, TriplesFactory

from capacity.database import Database, from_pykeen, load, to_pykeen
from capacity.errors import CapacityError, InvalidArgumentError, InvalidTypeError
from capacity.testing import databases
from tests.oracles import EXAMPLES
from tests.tiers import examples


@given(databases(), st.booleans())
@settings(max_examples=examples(50))
def test_facts_come_back_as_they_were(db: Database, inverse: bool) -> None:
    factory = to_pykeen(db, create_inverse_triples=inverse)
    assert factory.num_triples == db.n_facts
    entities = {*db.role_ids[0].tolist(), *db.role_ids[2].tolist()}
    assert factory.num_entities == len(entities)
    assert factory.num_relations == db.shape[1] * (1 + inverse)
    again = from_pykeen(factory, multi="keep", terms="n3" if db.tokens[0].kind != "label" else None)
    assert again.facts_sha256 == db.facts_sha256


def test_pykeens_own_datasets_are_read() -> None:
    training = Nations().training
    assert isinstance(training, TriplesFactory)
    db = from_pykeen(training, multi="keep")
    assert (db.n_facts, db.shape) == (1592, (14, 55, 14))
    facts = {tuple(db.tokens[i].text for i in row) for row in db.token_triples.tolist()}
    assert facts == {tuple(row) for row in training.triples.tolist()}
    # numbers of another factory: PyKEEN's, and back
    again = to_pykeen(db, like=training)
    assert again.entity_to_id == training.entity_to_id
    assert {*map(tuple, again.mapped_triples.tolist())} == {
        *map(tuple, training.mapped_triples.tolist())
    }


def test_a_factory_like_one_with_inverse_triples_has_them() -> None:
    db = Database.from_triples([("a", "r", "b"), ("b", "q", "c")])
    like = to_pykeen(db, create_inverse_triples=True)
    assert to_pykeen(db, like=like).num_relations == like.num_relations == 4
    assert to_pykeen(db, like=like, create_inverse_triples=False).num_relations == 2


def test_terms_of_rdf_are_written_as_terms() -> None:
    db = load(EXAMPLES / "figure-1.ttl")
    factory = to_pykeen(db)
    assert all(name.startswith(("<", '"')) for name in factory.entity_to_id)
    assert from_pykeen(factory, multi="keep").facts_sha256 == db.facts_sha256


def test_what_is_wrong_is_told() -> None:
    core = CoreTriplesFactory(torch.tensor([[0, 0, 1]]), 2, 1)
    for wrong in (core, None, "nations"):
        with pytest.raises(InvalidTypeError, match="TriplesFactory"):
            from_pykeen(wrong)  # type: ignore[arg-type]
    db = Database.from_triples([("a", "r", "b")])
    other = to_pykeen(Database.from_triples([("a", "r", "c")]))
    with pytest.raises(InvalidArgumentError, match="it lacks 'b'"):
        to_pykeen(db, like=other)
    empty: Any = TriplesFactory(torch.zeros(0, 3, dtype=torch.int64), {"a": 0}, {"r": 0})
    with pytest.raises(CapacityError):
        from_pykeen(empty)
    pairs = Database.from_tuples([("a", "b")])
    with pytest.raises(InvalidArgumentError):
        to_pykeen(pairs)
