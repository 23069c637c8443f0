"""A layer's logits, taken apart and put together again; what heads and facts determine."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from capacity import Database, evaluate
from capacity.database import random_database
from capacity.errors import InvalidArgumentError, MultiValuedError
from capacity.evaluator import attention_of_pairs, layer_terms, query_key_freedom, term_accuracy
from capacity.layer import AttentionLayer, LayerConfig, store_in_value_output
from capacity.layer.model.tensor import tensor_of_circuits
from capacity.layer.recall import pair_logits
from capacity.testing import databases
from tests.tiers import examples

DTYPES = [(torch.float64, 1e-10), (torch.float32, 1e-4)]


def varied(config: LayerConfig, d_vocab: int, dtype: torch.dtype) -> AttentionLayer:
    """A layer whose biases and gains are random too."""
    layer = AttentionLayer(config, d_vocab, seed=0, dtype=dtype)
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=g, dtype=dtype))
    return layer


@pytest.mark.parametrize(("dtype", "slack"), DTYPES)
@pytest.mark.parametrize(
    "options", [{}, {"layer_norm": True}, {"bias": True}, {"n_positions": 2},
                {"layer_norm": True, "bias": True, "n_positions": 2, "scale": True}]
)  # fmt: skip
def test_the_terms_sum_to_the_logits_of_the_forward_pass(
    options: dict[str, int], dtype: torch.dtype, slack: float
) -> None:
    layer = varied(LayerConfig(5, 3, 2, 2, **options), 12, dtype)  # pyright: ignore[reportArgumentType]
    pairs = np.array([[0, 7], [3, 8], [11, 2]])
    terms = layer_terms(layer, pairs)
    for by_head, count in ((False, 3), (True, 7)):
        named = terms.named(by_head=by_head)
        assert len(named) == count + bool(options)
        assert np.abs(sum(named.values()) - pair_logits(layer, pairs)).max() < slack


@pytest.mark.parametrize(("dtype", "slack"), DTYPES)
@settings(max_examples=examples(20))
@given(databases())
def test_the_terms_are_those_of_the_layer_tensor(
    dtype: torch.dtype, slack: float, db: Database
) -> None:
    layer = varied(LayerConfig(4, 2, 2, 2), db.n_tokens, dtype)
    facts = db.triples
    terms = layer_terms(layer, db.token_triples[:, :2])
    with torch.no_grad():
        whole = tensor_of_circuits(layer.W_EU, layer.W_QK, layer.W_VO, db)
    at = tuple(facts[:, :2].T)
    objects = db.object_ids
    assert np.allclose(terms.embedding[:, objects], whole.E.numpy()[at], atol=slack)
    said = np.sum(list(terms.named().values()), axis=0)[:, objects]
    # where a token is asked about itself the two agree as well (layer_tensor's docstring)
    assert np.allclose(said, whole.L.numpy()[at], atol=slack)


def test_all_terms_together_are_as_right_as_the_layer() -> None:
    db = random_database(3).with_policy("first")
    layer = varied(LayerConfig(4, 2, 2, 2), db.n_tokens, torch.float32)
    table = term_accuracy(layer, db)
    assert len(table) == 7
    whole = table[table[["embedding", "subject", "predicate"]].all(axis=1)].iloc[0]
    own = evaluate(layer, db)
    assert whole["accuracy_argmax"] == own.argmax
    assert whole["accuracy_p50"] == own.majority
    assert whole["accuracy_p95"] == own.softmax[0.95]
    assert len(term_accuracy(layer, db, by_head=True)) == 2**5 - 1


def test_facts_written_into_values_are_in_the_embedding_and_the_subject_terms() -> None:
    # the value of a predicate is 0 in this construction, and E holds what all answers need
    db = random_database(5).with_policy("first")
    layer = store_in_value_output(db, tau=0.95)
    assert not layer_terms(layer, db.token_triples[:, :2]).predicate.any()
    table = term_accuracy(layer, db, taus=[0.95])
    enough = table["embedding"] & table["subject"]
    assert (table.loc[enough, "accuracy_p95"] == 1).all()
    assert (table.loc[~enough, "accuracy_p95"] < 1).all()


def test_heads_beyond_the_model_s_dimension_are_not_identifiable() -> None:
    db = random_database(4).with_policy("first")
    for n_heads, identifiable in ((3, True), (4, False)):
        # vectors of heads lie in d_model = 3 dimensions
        layer = varied(LayerConfig(3, n_heads, 2, 2), db.n_tokens, torch.float64)
        table = attention_of_pairs(layer, db)
        assert len(table) == db.n_pairs * n_heads
        assert set(table["head_rank"]) == {3}
        assert table["identifiable"].eq(identifiable).all()


def test_two_equal_heads_are_not_identifiable() -> None:
    db = random_database(4).with_policy("first")
    layer = varied(LayerConfig(4, 2, 2, 2), db.n_tokens, torch.float64)
    with torch.no_grad():
        for name in ("W_V", "W_O"):
            getattr(layer, name)[1] = getattr(layer, name)[0]
    assert set(attention_of_pairs(layer, db)["head_rank"]) == {1}


def test_heads_whose_values_don_t_differ_or_don_t_reach_the_logits_say_nothing() -> None:
    db = random_database(4).with_policy("first")
    layer = varied(LayerConfig(4, 1, 2, 2), db.n_tokens, torch.float64)
    with torch.no_grad():
        # the value of every token is the same
        layer.W_E[:, 0] = 1
        layer.W_V[0, 1:] = 0
    assert set(attention_of_pairs(layer, db)["head_rank"]) == {0}
    layer = varied(LayerConfig(4, 1, 2, 2), db.n_tokens, torch.float64)
    with torch.no_grad():
        # what the head writes is unembedded to nothing
        layer.W_O[..., 1:] = 0
        layer.W_U[0] = 0
    assert set(attention_of_pairs(layer, db)["head_rank"]) == {0}


def test_values_of_one_dimension_lose_attention_and_of_two_keep_it() -> None:
    db = random_database(4).with_policy("first")
    for d_head_vo in (1, 2):
        layer = varied(LayerConfig(4, 2, 2, d_head_vo), db.n_tokens, torch.float64)
        table = attention_of_pairs(layer, db)
        # by circuits: a = sigmoid of a difference of logits
        with torch.no_grad():
            S = layer.W_QK.numpy()
        pairs = {(k, q) for k, q, _ in db.triples.tolist()}
        assert {(k, q) for k, q in zip(table["subject"], table["predicate"], strict=True)} == pairs
        k, q = db.subject_ids[table["subject"]], db.predicate_ids[table["predicate"]]
        h = table["head"]
        assert np.allclose(table["to_subject"], 1 / (1 + np.exp(S[h, q, q] - S[h, q, k])))
        kept = np.allclose(table["to_subject"], table["effective_to_subject"])
        kept &= np.allclose(1 - table["to_subject"], table["effective_to_predicate"])
        # two tokens have independent values in two dimensions, and not in one
        assert kept == (d_head_vo == 2)


@pytest.mark.parametrize("d_head_qk", [1, 2, 3])
def test_all_pairs_determine_as_much_of_w_qk_as_its_rank_allows(d_head_qk: int) -> None:
    # a complete database of many subjects: W_Q W_K has d_qk (2 d - d_qk) directions, all seen
    db = Database.from_triples([(f"k{k}", f"q{q}", f"v{(k + q) % 4}") for k, q in np.ndindex(9, 5)])
    layer = varied(LayerConfig(3, 2, d_head_qk, 2), db.n_tokens, torch.float64)
    table = query_key_freedom(layer, db)
    assert table["rank_of_pairs"].tolist() == [d_head_qk * (6 - d_head_qk)] * 2
    assert table["free"].tolist() == [0, 0]


def test_few_facts_leave_attention_free_elsewhere() -> None:
    # three facts are three equations, and W_Q W_K of rank 1 has 1 (2 * 3 - 1) = 5 directions
    db = Database.from_triples([("a", "p", "x"), ("b", "q", "y"), ("c", "r", "x")])
    layer = varied(LayerConfig(3, 1, 1, 2), db.n_tokens, torch.float64)
    found = query_key_freedom(layer, db).iloc[0]
    assert found["rank_of_facts"] == 3
    assert found["free"] == found["rank_of_pairs"] - 3 == 2


def test_the_ranks_are_those_of_the_jacobian_that_autograd_gives() -> None:
    # unequal numbers of subjects and predicates, and pairs without a fact
    facts = [("a", "p", "x"), ("b", "p", "y"), ("c", "p", "x"), ("d", "q", "y"), ("e", "q", "x")]
    db = Database.from_triples(facts)
    layer = varied(LayerConfig(3, 2, 2, 2), db.n_tokens, torch.float64)
    k, q = (torch.as_tensor(ids.astype(int)) for ids in (db.subject_ids, db.predicate_ids))
    x = layer.W_E.detach()
    inside = np.zeros(db.shape[:2], dtype=bool)
    inside[tuple(db.triples[:, :2].T)] = True

    def logits(W_Q: torch.Tensor, W_K: torch.Tensor) -> torch.Tensor:
        S = x[q] @ W_Q @ W_K @ x.T
        return (S[:, k] - S[torch.arange(len(q)), q][:, None]).T.flatten()

    table = query_key_freedom(layer, db)
    for head in range(2):
        weights = (layer.W_Q[head].detach(), layer.W_K[head].detach())
        J = torch.cat([part.flatten(1) for part in torch.func.jacrev(logits, (0, 1))(*weights)], 1)
        row = table.iloc[head]
        assert row["rank_of_pairs"] == torch.linalg.matrix_rank(J, rtol=1e-9)
        of_facts = J[torch.as_tensor(inside.flatten())]
        assert row["rank_of_facts"] == torch.linalg.matrix_rank(of_facts, rtol=1e-9)


def test_bad_questions_are_refused() -> None:
    multi = Database.from_triples([("a", "r", "b"), ("a", "r", "c")], multi="keep")
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), multi.n_tokens)
    with pytest.raises(MultiValuedError):
        term_accuracy(layer, multi)
    db = random_database(4).with_policy("first")
    with pytest.raises(ValueError, match="must have the database's"):
        attention_of_pairs(layer, db)
    wide = AttentionLayer(LayerConfig(2, 6, 1, 1), db.n_tokens)
    with pytest.raises(InvalidArgumentError, match=r"At most 12 terms .* got 13"):
        term_accuracy(wide, db, by_head=True)
    biased = AttentionLayer(LayerConfig(2, 1, 1, 1, bias=True), db.n_tokens)
    with pytest.raises(ValueError, match="Circuits are defined for layers without"):
        query_key_freedom(biased, db)
    normed = AttentionLayer(LayerConfig(2, 1, 1, 1, layer_norm=True), db.n_tokens)
    with pytest.raises(InvalidArgumentError, match="the layer must have no norm"):
        attention_of_pairs(normed, db)
    with pytest.raises(InvalidArgumentError, match=r"array of integers, shape .*; got float64"):
        layer_terms(layer, np.array([[0.7, 1.0]]))
    with pytest.raises(InvalidArgumentError, match="got -1"):
        layer_terms(layer, np.array([[0, -1]]))
