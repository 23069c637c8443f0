"""The table of facts: a row a fact, and shares that are the evaluator's to the last bit."""

import math
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError, InvalidTypeError, MultiValuedError
from capacity.evaluator import accuracy_column, evaluate, fact_table
from capacity.layer import AttentionLayer, LayerConfig, Recipe, store_in_query_key, train
from tests.oracles import figure_1


def flat(db: Database) -> AttentionLayer:
    """A layer of zeros: all logits are equal."""
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    with torch.no_grad():
        layer.W_U.zero_()
    return layer


@given(
    st.integers(0, 50), st.integers(0, 5), st.sampled_from([0.0, 1.0, 8.0, 60.0]),
    st.sampled_from(["tokens", "objects"]), st.integers(0, 80),
)  # fmt: skip
def test_its_shares_are_the_evaluators_to_the_last_bit(
    database: int, seed: int, scale: float, over: Any, epochs: int
) -> None:
    db = random_database(database, triples=(1, 30))
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens, seed=seed)
    train(layer, db, Recipe(learning_rate=0.05, epochs=epochs))
    with torch.no_grad():
        layer.W_U.mul_(scale)
    table = fact_table(layer, db, taus=[0.6, 0.95], over=over)
    accuracy = evaluate(layer, db, taus=[0.6, 0.95], over=over)
    assert len(table) == accuracy.n_facts
    for tau in ("argmax", "argmax_paper", 0.5, 0.6, 0.95):
        column = accuracy_column(cast(Any, tau)).removeprefix("accuracy_")
        assert table[column].mean() == accuracy.at(cast(Any, tau))
    # what the columns say of one another
    assert (table.argmax == (table.margin > 0)).all()
    assert (table.argmax_paper == (table.margin >= 0)).all()
    assert (table.probability <= table.said_probability).all()
    assert (table.said == table.object)[table.argmax].all()


def test_probabilities_are_those_of_the_forward_pass() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens, dtype=torch.float64)
    table = fact_table(layer, db)
    ids = torch.from_numpy(db.token_triples.astype(np.int64))
    p = layer(ids[:, :2])[:, -1].softmax(-1).detach().numpy()
    expected = p[np.arange(8), db.token_triples[:, 2]]
    assert table.probability.to_numpy() == pytest.approx(expected, rel=1e-12)
    assert table.said_probability.to_numpy() == pytest.approx(p.max(axis=1), rel=1e-12)
    assert list(table.said) == [db.name(db.tokens[i]) for i in p.argmax(axis=1)]


def test_rows_are_the_facts_in_words_and_in_their_order() -> None:
    db = figure_1()
    table = fact_table(store_in_query_key(db), db)
    words = [tuple(db.name(db.tokens[i]) for i in ids) for ids in db.token_triples.tolist()]
    assert list(table[["subject", "predicate", "object"]].itertuples(index=False)) == words
    assert table.columns.tolist()[3:] == [
        "probability", "said", "said_probability", "margin",
        "argmax", "argmax_paper", "p50", "p75", "p95", "p99",
    ]  # fmt: skip
    marks = table.loc[:, "argmax":].to_numpy()
    assert marks.dtype == bool
    assert marks.all()


def test_of_equal_logits_the_first_is_said_and_no_fact_is_known() -> None:
    db = figure_1()
    table = fact_table(flat(db), db)
    # ten tokens, each with a tenth of the probability
    assert table.probability.to_numpy() == pytest.approx(0.1, rel=1e-12)
    assert set(table.said) == {db.name(db.tokens[0])}
    assert not table.argmax.any()
    assert table.argmax_paper.all()
    assert (table.margin == 0).all()


def test_over_objects_the_others_have_no_probability() -> None:
    db = figure_1()
    table = fact_table(flat(db), db, over="objects")
    # four objects
    assert table.probability.to_numpy() == pytest.approx(0.25, rel=1e-12)
    assert set(table.said) == {db.name(db.objects[0])}


def test_what_no_table_can_be_made_of_is_refused_in_words() -> None:
    db = figure_1()
    layer = flat(db)
    with pytest.raises(InvalidTypeError, match="The layer comes first"):
        fact_table(cast(Any, db), cast(Any, layer))
    several = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep")
    with pytest.raises(MultiValuedError, match="A table of facts"):
        fact_table(AttentionLayer(LayerConfig(2, 1, 1, 1), several.n_tokens), several)
    with pytest.raises(InvalidArgumentError, match="must have the database's 10 tokens"):
        fact_table(AttentionLayer(LayerConfig(2, 1, 1, 1), 5), db)
    with pytest.raises(InvalidArgumentError, match=r"strictly between 0\.5 and 1"):
        fact_table(layer, db, taus=[0.5])
    with pytest.raises(InvalidArgumentError, match="`over` must be one of"):
        fact_table(layer, db, over=cast(Any, "object"))
    with torch.no_grad():
        layer.W_U[0, 0] = math.nan
    with pytest.raises(InvalidArgumentError, match=r"must be finite .* diverged"):
        fact_table(layer, db)
