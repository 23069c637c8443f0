"""Parts of the experiment on number formats that its conclusions rest on."""

import pytest
import torch

from capacity.database import random_database
from capacity.evaluator import certified_recall, pair_logits
from experiments.bits.formats import PREDICATES, WAYS, table
from experiments.bits.retuned import balanced, best, rounded


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_balanced_weights_are_smaller_and_give_the_same_logits(way: str, seed: int) -> None:
    db = random_database(seed)
    layer = WAYS[way](db, 0.99)
    other = balanced(layer)
    pairs = db.token_triples[:, :2]
    # products of powers of two are exact
    assert (pair_logits(layer, pairs) == pair_logits(other, pairs)).all()
    largest = [max(p.abs().max().item() for p in one.parameters()) for one in (layer, other)]
    assert largest[1] <= largest[0]
    for name, p in layer.named_parameters():
        m, _ = torch.frexp(p)
        n, _ = torch.frexp(other.get_parameter(name))
        assert torch.equal(m, n)


def test_the_best_of_several_layers_is_no_worse_than_each() -> None:
    db = table(20, 8)
    layers = [WAYS["query-key"](db, tau) for tau in (0.51, 0.99, 0.9999)]
    chosen = best(layers, "bfloat16", db)
    assert chosen is not None
    least = [
        certified_recall(layer, db, 0.95).least_margin
        for layer in (chosen, *(rounded(layer, "bfloat16") for layer in layers))
        if layer is not None
    ]
    assert least[0] == pytest.approx(max(least))


def test_a_layer_whose_weights_are_too_large_is_none() -> None:
    db = table(100, 50)
    layer = WAYS["query-key"](db, 0.99)
    assert rounded(layer, "float8_e4m3fn") is None
    assert best([layer], "float8_e4m3fn", db) is None


@pytest.mark.parametrize("facts", PREDICATES)
def test_tables_have_their_facts_and_objects(facts: int) -> None:
    db = table(facts, 17)
    assert db.n_triples == facts
    assert db.shape == (facts // PREDICATES[facts], PREDICATES[facts], 17)
    assert db.is_functional
