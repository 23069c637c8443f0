"""Mathematics that experiments/facts/README.md states about Wong 2025, checked on examples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from capacity import AttentionLayer, Database, LayerConfig
from capacity.database import random_database
from capacity.evaluator import decoded_facts, evaluate, pair_logits
from capacity.layer import layer_rank_assumed, store_in_query_key, store_in_value_output
from capacity.layer.model.tensor import layer_tensor
from capacity.rank import database_bounds, paper_bound
from capacity.testing import databases
from tests.oracles import figure_1
from tests.tiers import examples

WRITERS = [store_in_query_key, store_in_value_output]


def apart(db: Database) -> Database:
    """The same facts with names of their own for subjects, predicates and objects."""
    rows = db.token_triples.tolist()
    return Database.from_triples([(f"k{k}", f"q{q}", f"v{v}") for k, q, v in rows])


@pytest.mark.parametrize("write", WRITERS)
@given(drawn=databases(functional=True))
@settings(max_examples=examples(30))
def test_both_constructions_have_rank_at_most_the_smaller_side_and_one(write, drawn) -> None:
    db = apart(drawn)
    tensor = layer_tensor(write(db, 0.9), db).L.detach().numpy()
    # all fibers differ from the first by multiples of one vector: a matrix times it, and a constant
    fibers = tensor.reshape(-1, tensor.shape[2])
    steps = fibers - fibers[0]
    singular = np.linalg.svd(steps, compute_uv=False)
    assert (singular[1:] <= 1e-9 * max(np.abs(fibers).max(), 1)).all()


@pytest.mark.parametrize("write", WRITERS)
def test_so_argmax_of_a_tensor_of_low_rank_is_any_database(write) -> None:
    # 30 subjects, 2 predicates, 60 objects: the rank of D is 60, and L's is at most 3
    db = Database.from_triples([(f"k{i}", q, f"{q}{i}") for i in range(30) for q in "ab"])
    assert max(database_bounds(db).unfoldings) == 60
    layer = write(db, 0.99)
    assert decoded_facts(layer, db) == db
    assert evaluate(layer, db).softmax[0.99] == 1.0


@pytest.mark.parametrize("write", WRITERS)
def test_databases_with_permuted_objects_get_the_same_heads(write) -> None:
    db = random_database(3, triples=(30, 60))
    objects = db.object_ids
    turned = dict(zip(objects.tolist(), np.roll(objects, 1).tolist(), strict=True))
    facts = db.token_triples.astype(np.int64)
    facts[:, 2] = [turned[v] for v in facts[:, 2].tolist()]
    other = Database.from_ids(db.tokens, facts, multi="error")
    one, two = write(db, 0.9), write(other, 0.9)
    for name in ("W_Q", "W_K", "W_V", "W_O", "W_U"):
        assert torch.equal(getattr(one, name), getattr(two, name)), name
    assert not torch.equal(one.W_E, two.W_E)


def test_equation_10_is_not_sufficient() -> None:
    """With d_model = 1 all logits are multiples of one vector: argmax names at most two tokens."""
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("c", "p", "z")])
    config = LayerConfig(1, 4, 1, 1)
    assert paper_bound(db) == 3 <= layer_rank_assumed(config) == 5
    for seed in range(50):
        layer = AttentionLayer(config, db.n_tokens, seed=seed, dtype=torch.float64)
        logits = pair_logits(layer, db.token_triples[:, :2])
        assert np.linalg.matrix_rank(logits) <= 1
        assert len(set(logits.argmax(axis=1).tolist())) <= 2
        assert evaluate(layer, db).argmax < 1


def test_argmax_of_a_matrix_of_rank_1_may_have_rank_3() -> None:
    """The paper's 'it is easy to see' before Proposition 3.6, by its own (11): ties all count."""
    matrix = np.outer([1, -1, 0], [1, 2, 3])
    largest = (matrix == matrix.max(axis=1, keepdims=True)).astype(int)
    assert largest.tolist() == [[0, 0, 1], [1, 0, 0], [1, 1, 1]]
    assert np.linalg.matrix_rank(largest) == 3


@pytest.mark.parametrize("write", WRITERS)
def test_off_the_domain_L_is_E_and_may_assert(write) -> None:
    """So D = softmax>=tau(L), below (14), needn't hold for a layer that memorises D."""
    db = figure_1()
    layer = write(db, 0.99)
    assert evaluate(layer, db).softmax[0.99] == 1.0
    z = layer_tensor(layer, db).L.detach().numpy()
    said = np.exp(z - z.max(axis=2, keepdims=True))
    said /= said.sum(axis=2, keepdims=True)
    observed = np.zeros(db.shape[:2], dtype=bool)
    observed[db.triples[:, 0], db.triples[:, 1]] = True
    assert (said[~observed].max(axis=1) >= 0.99).any()
