import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.errors import MultiValuedError
from capacity.evaluator import stored_bits
from capacity.layer import AttentionLayer, LayerConfig, store_in_query_key, store_in_value_output
from capacity.testing import databases, layers
from tests.oracles import figure_1
from tests.tiers import examples


@given(st.data(), databases(functional=True))
@settings(max_examples=examples(80))
def test_the_two_totals_are_those_of_a_plain_sum_and_in_order(
    data: st.DataObject, db: Database
) -> None:
    layer = data.draw(layers(db.n_tokens))
    with torch.no_grad():
        layer.W_U *= data.draw(st.sampled_from([0, 1, 30]))
    gains, content = [], 0.0
    for k, q, v in db.token_triples.tolist():
        objects = {w for _, p, w in db.token_triples.tolist() if p == q}
        p = layer(torch.tensor([[k, q]]))[0, -1].softmax(-1)[v].item()
        gains.append(math.log2(len(objects)) + (math.log2(p) if p else -2000))
        content += math.log2(len(objects))
    bits = stored_bits(layer, db)
    assert bits.content == pytest.approx(content)
    assert bits.clipped == pytest.approx(sum(max(0, g) for g in gains), abs=1e-9)
    if min(gains) > -1000:
        assert bits.averaged == pytest.approx(max(0, sum(gains)), abs=1e-9)
    assert 0 <= bits.averaged <= bits.clipped + 1e-9
    assert bits.clipped <= bits.content + 1e-9


@pytest.mark.parametrize("write", [store_in_query_key, store_in_value_output])
def test_a_layer_that_memorises_stores_all_but_a_little(write) -> None:
    db = random_database(0)
    bits = stored_bits(write(db, 0.99), db)
    # each fact lacks at most -log2 0.99
    lack = -math.log2(0.99) * db.n_triples
    assert bits.content - lack <= bits.averaged <= bits.clipped <= bits.content


def uniform_over(db: Database, tokens: np.ndarray, others: float) -> AttentionLayer:
    """A layer with logits 0 at some tokens and `others` at the rest, after any pair."""
    weights = {name: torch.zeros(shape, dtype=torch.float64)
               for name, shape in LayerConfig(1, 1, 1, 1).shapes(db.n_tokens).items()}  # fmt: skip
    weights["W_E"][:] = 1.0
    weights["W_U"][:] = others
    weights["W_U"][0, tokens.tolist()] = 0
    return AttentionLayer.of_weights(LayerConfig(1, 1, 1, 1), weights)


def test_a_layer_that_knows_the_objects_of_a_predicate_alone_stores_nothing() -> None:
    db = Database.from_triples([(f"k{i}", "q", f"v{i % 4}") for i in range(12)])
    bits = stored_bits(uniform_over(db, db.object_ids, -200.0), db)
    assert bits.averaged == pytest.approx(0, abs=1e-9)
    assert bits.clipped == pytest.approx(0, abs=1e-9)
    assert bits.content == 24


def test_wrong_facts_count_against_the_average_alone() -> None:
    db = Database.from_triples([(f"k{i}", "q", f"v{i % 4}") for i in range(12)])
    # always the first object: 2 bits each of 3 facts, and -98 / ln 2 or so of the others
    bits = stored_bits(uniform_over(db, db.object_ids[:1], -100.0), db)
    assert bits.clipped == pytest.approx(6)
    assert bits.averaged == 0


def test_parameters_are_counted_with_embeddings_and_without() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(3, 2, 1, 2), db.n_tokens)
    bits = stored_bits(layer, db)
    # 2 heads x 2 x 3 x (1 + 2); 2 x 3 x |T| more
    assert (bits.n_parameters, bits.n_all_parameters) == (36, 36 + 6 * db.n_tokens)
    row = bits.to_row()
    assert row["bits_clipped_per_parameter"] == bits.clipped / (36 + 6 * db.n_tokens)
    assert row["bits_averaged_per_head_parameter"] == bits.averaged / 36
    assert row["n_facts"] == db.n_triples
    assert len(row) == 10


def test_diverged_layers_have_no_bits_and_multi_valued_databases_are_refused() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(1, 1, 1, 1), db.n_tokens)
    with torch.no_grad():
        layer.W_U[0, 0] = torch.inf
    bits = stored_bits(layer, db)
    assert math.isnan(bits.averaged)
    assert math.isnan(bits.clipped)
    many = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep")
    with pytest.raises(MultiValuedError):
        stored_bits(AttentionLayer(LayerConfig(1, 1, 1, 1), many.n_tokens), many)
