import math

import numpy as np
import pytest
import torch

from capacity.database import Database
from capacity.evaluator import nonsense_answers, nonsense_pairs, with_unknown
from capacity.layer import AttentionLayer, LayerConfig
from tests.oracles import figure_1


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
