import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, Term
from capacity.evaluator import decoded_facts, evaluate
from capacity.layer import AttentionLayer, LayerConfig, store_in_query_key
from capacity.testing import databases, layers
from tests.oracles import figure_1
from tests.tiers import examples


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
