import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import CapacityError
from capacity.evaluator import (
    auroc,
    completion_artefacts,
    nonsense_answers,
    nonsense_pairs,
    with_unknown,
)
from capacity.layer import AttentionLayer, LayerConfig, Recipe, store_in_query_key, train
from tests.oracles import figure_1


def always(db: Database, token: int, logit: float = 20.0) -> AttentionLayer:
    """A layer that answers every pair with one token."""
    layer = AttentionLayer(LayerConfig(1, 1, 1, 1), db.n_tokens)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.W_E += 1
        layer.W_U[0, token] = logit
    return layer


def test_an_object_said_everywhere_is_an_artefact_of_each_pair_without_a_fact() -> None:
    db = figure_1()
    said = int(db.token_triples[0, 2])
    found = completion_artefacts(always(db, said), db, thresholds=["argmax", 0.5, 0.99])
    # 5 subjects x 3 predicates, 8 facts
    assert (found.n_pairs, found.n_facts) == (7, 8)
    right = int((db.token_triples[:, 2] == said).sum())
    for threshold in ("argmax", 0.5, 0.99):
        assert found.artefacts[threshold] == 7
        assert found.wrong[threshold] == 8 - right
    assert found.ratio(0.99) == 7 / 8


def test_among_all_tokens_every_pair_but_those_of_facts_is_asked() -> None:
    db = figure_1()
    layer = always(db, int(db.object_ids[0]))
    found = completion_artefacts(layer, db, among="tokens")
    assert found.n_pairs == db.n_tokens**2 - 8 == found.artefacts["argmax"]


def test_a_token_that_is_no_object_asserts_nothing() -> None:
    db = figure_1()
    predicate = int(db.predicate_ids[0])
    found = completion_artefacts(always(db, predicate), db)
    assert set(found.artefacts.values()) == {0} == set(found.wrong.values())


def test_ties_assert_each_of_them_by_the_papers_argmax_and_none_by_a_unique_one() -> None:
    db = figure_1()
    flat = always(db, 0, 0.0)
    found = completion_artefacts(flat, db, thresholds=["argmax", "argmax_paper"])
    assert (found.artefacts["argmax"], found.artefacts["argmax_paper"]) == (0, 7 * db.shape[2])


def test_a_layer_that_holds_its_facts_is_never_wrong() -> None:
    db = figure_1()
    found = completion_artefacts(store_in_query_key(db, 0.95), db, thresholds=["argmax", 0.95])
    assert set(found.wrong.values()) == {0}


def test_at_a_threshold_artefacts_are_the_confident_answers_to_nonsense() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens)
    train(layer, db, Recipe(epochs=400, learning_rate=0.03))
    for tau in (0.75, 0.95):
        found = completion_artefacts(layer, db, thresholds=[tau])
        share = nonsense_answers(layer, db, tau=tau).answered_with_object
        assert found.artefacts[tau] == pytest.approx(share * found.n_pairs)


def test_counts_are_those_of_a_loop_over_pairs_and_objects() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(3, 2, 2, 2), db.n_tokens, seed=1)
    facts = {tuple(row) for row in db.token_triples.tolist()}
    taught = {fact[:2] for fact in facts}
    n = db.n_tokens
    sentences = torch.tensor([[k, q] for k in range(n) for q in range(n)])
    with torch.no_grad():
        best = layer(sentences)[:, -1].argmax(1).reshape(n, n)
    asserted = [(k, q, int(best[k, q])) for k in range(n) for q in range(n)
                if int(best[k, q]) in db.object_ids]  # fmt: skip
    found = completion_artefacts(layer, db, thresholds=["argmax"], among="tokens")
    assert found.artefacts["argmax"] == sum(fact[:2] not in taught for fact in asserted)
    assert found.wrong["argmax"] == sum(
        fact[:2] in taught and fact not in facts for fact in asserted
    )


def test_unknown_asserts_nothing_and_its_facts_are_no_facts() -> None:
    db = with_unknown(figure_1(), 0.5)
    token = next(i for i, term in enumerate(db.tokens) if term.text == "unknown")
    silent = completion_artefacts(always(db, token), db, unknown="unknown")
    assert silent.n_facts == 8
    assert silent.n_pairs == len(nonsense_pairs(db)) == 3
    assert set(silent.artefacts.values()) == {0} == set(silent.wrong.values())
    # an object said of the four pairs that are taught as unknown is wrong
    said = int(figure_1().token_triples[0, 2])
    said = next(i for i, t in enumerate(db.tokens) if t == figure_1().tokens[said])
    right = int((db.token_triples[:, 2] == said).sum())
    loud = completion_artefacts(always(db, said), db, unknown="unknown")
    assert loud.wrong["argmax"] == 8 + 4 - right


def test_a_diverged_layer_has_no_counts() -> None:
    db = figure_1()
    found = completion_artefacts(always(db, 0, math.nan), db)
    assert all(math.isnan(count) for count in found.artefacts.values())


def test_wrong_questions_are_refused_in_words() -> None:
    db = figure_1()
    layer = always(db, 0)
    with pytest.raises(CapacityError, match="with_unknown"):
        completion_artefacts(layer, db, unknown="unknown")
    with pytest.raises(CapacityError, match="strictly between"):
        completion_artefacts(layer, db, thresholds=[0.3])
    with pytest.raises(CapacityError, match=r"one that was counted: 0\.95"):
        completion_artefacts(layer, db, thresholds=[0.95]).ratio("argmax")
    with pytest.raises(CapacityError, match="roles"):
        completion_artefacts(layer, db, among="pairs")  # type: ignore[arg-type]
    with pytest.raises(CapacityError, match=r"\.ravel\(\)"):
        auroc([[1.0]], [0.0])


SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=8)


@given(SCORES, SCORES)
def test_auroc_is_the_share_of_pairs_in_order(positive: list[int], negative: list[int]) -> None:
    wins = [(a > b) + (a == b) / 2 for a in positive for b in negative]
    assert auroc(positive, negative) == pytest.approx(np.mean(wins))
    assert auroc(positive, negative) + auroc(negative, positive) == pytest.approx(1)


def test_a_constant_scores_one_half_and_nothing_scores_nothing() -> None:
    assert auroc([5.0] * 3, [5.0] * 4) == 0.5
    assert math.isnan(auroc([], [1.0]))
    assert math.isnan(auroc([math.nan], [1.0]))
