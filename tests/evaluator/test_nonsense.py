"""Answers to nonsense queries, and the facts that a layer asserts."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, Term
from capacity.evaluator import (
    decoded_facts,
    evaluate,
    nonsense_answers,
    nonsense_pairs,
    with_unknown,
)
from capacity.layer import AttentionLayer, LayerConfig, store_in_query_key
from capacity.testing import databases, layers
from tests.oracles import figure_1
from tests.tiers import examples


def test_nonsense_pairs_are_the_complement_of_the_domain() -> None:
    db = figure_1()
    pairs = nonsense_pairs(db)
    # 5 subjects x 3 predicates, 8 facts
    assert len(pairs) == 7
    asked = {tuple(row) for row in db.token_triples[:, :2].tolist()}
    outside = {tuple(row) for row in pairs.tolist()}
    assert not asked & outside
    names = {(db.tokens[k].text, db.tokens[q].text) for k, q in outside}
    assert ("Malaysia", "born_in") in names  # Remark 2.5's question
    assert len(nonsense_pairs(db, n_queries=3)) == 3
    assert np.array_equal(
        nonsense_pairs(db, n_queries=3, seed=1), nonsense_pairs(db, n_queries=3, seed=1)
    )


def test_a_layer_that_always_says_one_object_is_caught() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(1, 1, 1, 1), db.n_tokens)
    object_id = int(db.object_ids[0])
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.W_E += 1
        layer.W_U[0, object_id] = 20
    said = nonsense_answers(layer, db, tau=0.95)
    assert (said.n_queries, said.answered, said.answered_with_object) == (7, 1.0, 1.0)
    assert said.mean_confidence > 0.999
    assert said.mean_entropy < 0.01
    with torch.no_grad():
        layer.W_U.zero_()
    said = nonsense_answers(layer, db, tau=0.95)
    assert (said.answered, said.answered_with_object) == (0.0, 0.0)
    # a uniform answer over ten tokens
    assert said.mean_confidence == pytest.approx(0.1)
    assert said.mean_entropy == pytest.approx(math.log2(10))


def test_without_nonsense_nothing_is_claimed() -> None:
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    said = nonsense_answers(AttentionLayer(LayerConfig(1, 1, 1, 1), db.n_tokens), db)
    assert said.n_queries == 0
    assert math.isnan(said.answered)
    with pytest.raises(ValueError, match="at least 1"):
        nonsense_pairs(db, n_queries=0)


def test_unknown_answers_a_sample_of_the_nonsense_and_leaves_the_facts() -> None:
    db = figure_1()
    more = with_unknown(db, 0.5, seed=1)
    # 7 pairs of nonsense, 4 of them answered; round half to even
    assert more.n_triples == db.n_triples + 4
    assert len(nonsense_pairs(more)) == 3
    unknown = next(i for i, token in enumerate(more.tokens) if token.text == "unknown")
    kept = more.token_triples[more.token_triples[:, 2] != unknown]
    named = {tuple(more.tokens[i] for i in row) for row in kept.tolist()}
    assert named == {tuple(db.tokens[i] for i in row) for row in db.token_triples.tolist()}
    assert with_unknown(db, 0.5, seed=1) == more != with_unknown(db, 0.5, seed=2)
    assert len(nonsense_pairs(with_unknown(db, 1.0))) == 0


def test_unknown_must_be_possible() -> None:
    with pytest.raises(ValueError, match="`share` must be above 0"):
        with_unknown(figure_1(), 0)
    with pytest.raises(ValueError, match="'Singapore' is a term"):
        with_unknown(figure_1(), 0.5, token="Singapore")
    with pytest.raises(ValueError, match="every subject has every predicate"):
        with_unknown(Database.from_triples([("a", "p", "x")]), 0.5)


def terms_of(db: Database) -> set[tuple[Term, ...]]:
    return {tuple(db.tokens[i] for i in fact) for fact in db.token_triples.tolist()}


@given(databases(functional=True))
@settings(max_examples=examples(40))
def test_a_layer_that_memorises_says_the_facts_and_nothing_else(db: Database) -> None:
    layer = store_in_query_key(db, 0.9)
    assert decoded_facts(layer, db, 0.9) == db
    assert decoded_facts(layer, db) == db
    everything = decoded_facts(layer, db, nonsense=True)
    # argmax answers everything
    assert everything is not None
    assert everything.n_pairs == len(db.subject_ids) * len(db.predicate_ids)


@given(st.data())
@settings(max_examples=examples(40))
def test_the_share_of_facts_said_is_the_accuracy(data: st.DataObject) -> None:
    db = data.draw(databases(functional=True))
    layer = data.draw(layers(db.n_tokens))
    facts = terms_of(db)
    found = evaluate(layer, db)
    for said, share in (
        (decoded_facts(layer, db), found.at("argmax_paper")),
        (decoded_facts(layer, db, "argmax"), found.at("argmax")),
        (decoded_facts(layer, db, 0.5), found.at(0.5)),
        (decoded_facts(layer, db, 0.75), found.at(0.75)),
    ):
        right = facts & (terms_of(said) if said else set())
        assert len(right) / db.n_triples == pytest.approx(share)


def test_a_layer_may_say_nothing_and_a_diverged_one_says_nothing_sensible() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(1, 1, 1, 1), db.n_tokens)
    with torch.no_grad():
        layer.W_U.zero_()
    assert decoded_facts(layer, db, 0.75) is None
    # all tokens tie
    said = decoded_facts(layer, db)
    assert said is not None
    assert said.n_triples == db.n_triples * db.n_tokens
    assert decoded_facts(layer, db, "argmax") is None
    with torch.no_grad():
        layer.W_U.fill_(torch.nan)
    with pytest.raises(ValueError, match="must be finite"):
        decoded_facts(layer, db)
