"""Exact ranks of attention tensors, beside singular values and the paper's example."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity import Database
from capacity.database import random_database
from capacity.errors import InvalidArgumentError
from capacity.evaluator import attention_ranks
from capacity.layer import AttentionLayer, LayerConfig, layer_tensor

# as in Example 3.3 of Wong 2025: three subjects, two predicates, every pair has an object
FACTS = [("a", "beta", "s"), ("b", "beta", "s"), ("c", "beta", "m"), ("a", "lambda", "m"),
         ("b", "lambda", "s"), ("c", "lambda", "m")]  # fmt: skip


def numerical(layer: AttentionLayer, db: Database) -> list[int]:
    """Ranks of the unfoldings by keys, by singular values."""
    A = layer_tensor(layer.double(), db).A.detach().numpy()
    n_keys = A.shape[-1]
    return [int(np.linalg.matrix_rank(head.reshape(-1, n_keys), tol=1e-9)) for head in A]


def test_attention_that_is_the_same_everywhere_has_the_rank_of_example_3_3() -> None:
    # all of A is 1/2 on the domain, which is connected: 3 + 2 - 1
    db = Database.from_triples(FACTS)
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    with torch.no_grad():
        layer.W_Q.zero_()
    assert attention_ranks(layer, db).tolist() == numerical(layer, db) == [4]


def test_the_query_of_all_predicates_being_one_costs_each_component_one() -> None:
    # then s_kq = u w_k - u w_q is a sum; two tables without a common token are two components
    facts = [*FACTS, *((f"{k}'", f"{q}'", v) for k, q, v in FACTS)]
    db = Database.from_triples(facts)
    layer = AttentionLayer(LayerConfig(2, 2, 1, 1), db.n_tokens, seed=1)
    with torch.no_grad():
        # the first head asks for the second coordinate alone, which all predicates share
        layer.W_Q[0] = torch.tensor([[0.0], [1.0]])
        layer.W_E[torch.as_tensor(db.predicate_ids.astype(np.int64)), 1] = 0.75
    assert attention_ranks(layer, db).tolist() == numerical(layer, db) == [8, 10]


def test_one_pair_apart_is_a_component_whose_matrices_are_parallel() -> None:
    # a tree of pairs: any score is a sum
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("c", "q", "x")])
    layer = AttentionLayer(LayerConfig(3, 1, 2, 1), db.n_tokens)
    assert attention_ranks(layer, db).tolist() == numerical(layer, db) == [3]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 2))
def test_exact_ranks_are_those_of_singular_values(seed: int, heads: int, coarse: int) -> None:
    db = random_database(seed, subjects=(2, 5), triples=(4, 40))
    layer = AttentionLayer(LayerConfig(3, heads, 1, 1), db.n_tokens, seed=seed)
    with torch.no_grad():
        # weights of few values, so that some scores are sums
        for weight in (layer.W_E, layer.W_Q, layer.W_K):
            weight.copy_((weight * 2**coarse).round() / 2**coarse)
    assert attention_ranks(layer, db).tolist() == numerical(layer, db)


def test_what_has_no_such_rank_is_refused() -> None:
    both = Database.from_triples([("a", "p", "x"), ("p", "q", "y")])
    with pytest.raises(InvalidArgumentError, match="p is both"):
        attention_ranks(AttentionLayer(LayerConfig(2, 1, 1, 1), both.n_tokens), both)
    db = Database.from_triples(FACTS)
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    with torch.no_grad():
        layer.W_K[0, 0, 0] = torch.nan
    with pytest.raises(InvalidArgumentError, match="W_K has NaN"):
        attention_ranks(layer, db)
    with pytest.raises(InvalidArgumentError, match="norm"):
        attention_ranks(AttentionLayer(LayerConfig(2, 1, layer_norm=True), db.n_tokens), db)
