import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, label
from capacity.layer import AttentionLayer, LayerConfig, layer_rank_upper
from capacity.layer.model.tensor import layer_tensor, tensor_of_circuits
from capacity.rank import matrix_rank
from capacity.testing import databases, layers
from tests.oracles import figure_1
from tests.tiers import examples


@given(st.data())
@settings(max_examples=examples(60))
def test_fibers_on_the_domain_are_the_logits_of_the_forward_pass(data: st.DataObject) -> None:
    db = data.draw(databases())
    layer = data.draw(layers(db.n_tokens))
    L = layer_tensor(layer, db).L
    objects = torch.as_tensor(db.object_ids.astype(np.int64))
    logits = layer(torch.as_tensor(db.token_triples[:, :2].astype(np.int64)))[:, -1, objects]
    k, q, _ = db.triples.T.astype(np.int64)
    # Proposition 3.1, in float64
    torch.testing.assert_close(L[k, q], logits, rtol=1e-9, atol=1e-9)


def test_a_token_asked_about_itself_is_answered_the_same() -> None:
    db = Database.from_triples([("a", "a", "b"), ("c", "a", "d")])
    layer = AttentionLayer(LayerConfig(3, 2, 2, 2), db.n_tokens, seed=1, dtype=torch.float64)
    L = layer_tensor(layer, db).L
    k = int(db.token_triples[0, 0])
    logits = layer(torch.tensor([[k, k]]))[0, -1, torch.as_tensor(db.object_ids.astype(np.int64))]
    torch.testing.assert_close(L[0, 0], logits)


@given(st.data())
@settings(max_examples=examples(40))
def test_off_the_domain_attention_is_zero_and_l_is_e(data: st.DataObject) -> None:
    db = data.draw(databases())
    layer = data.draw(layers(db.n_tokens))
    t = layer_tensor(layer, db)
    domain = np.zeros(db.shape[:2], dtype=bool)
    domain[db.triples[:, 0], db.triples[:, 1]] = True
    outside = torch.as_tensor(~domain)
    assert torch.equal(t.L[outside], t.E[outside])
    assert not t.A[:, outside].any()
    # on the domain attention goes to k and q alone, and sums to 1 (5)
    sums = t.A.sum(dim=-1)[:, ~outside]
    torch.testing.assert_close(sums, torch.ones_like(sums))
    assert int((t.A != 0).sum(dim=-1).max()) <= 2


@given(st.data())
@settings(max_examples=examples(40))
def test_rank_of_l_stays_below_the_sharper_bound(data: st.DataObject) -> None:
    db = data.draw(databases())
    layer = data.draw(layers(db.n_tokens))
    L = layer_tensor(layer, db).L.detach()
    bound = layer_rank_upper(layer.config, db.shape)
    # every unfolding rank is below the tensor's rank, so it must be below its bound
    for mode in range(3):
        unfolded = L.movedim(mode, 0).flatten(1)
        assert int(torch.linalg.matrix_rank(unfolded)) <= bound


def example_3_3() -> tuple[Database, torch.Tensor, torch.Tensor]:
    """The slices born_in and lives_in of Figure 1, and the circuits W_QK and W_VO of one head."""
    people = figure_1().subset(np.arange(8) < 6)
    ids = {t.text: i for i, t in enumerate(people.tokens)}
    n = people.n_tokens
    W_QK = torch.zeros(1, n, n, dtype=torch.float64)
    W_VO = torch.zeros(1, n, n, dtype=torch.float64)
    for q in ("born_in", "lives_in"):
        for t in ("Astrid", "Bernard", "Colin", "born_in", "lives_in"):
            W_QK[0, ids[q], ids[t]] = 1
    m, s = ids["Malaysia"], ids["Singapore"]
    for token, (to_m, to_s) in {
        "Astrid": (0, 0), "Bernard": (0, 4), "Colin": (4, 0), "born_in": (0, 2), "lives_in": (2, 0),
    }.items():  # fmt: skip
        W_VO[0, ids[token], m], W_VO[0, ids[token], s] = to_m, to_s
    return people, W_QK, W_VO


def test_example_3_3_gives_the_papers_products_and_argmax() -> None:
    db, W_QK, W_VO = example_3_3()
    assert [t.text for t in db.objects] == ["Malaysia", "Singapore"]
    t = tensor_of_circuits(torch.zeros_like(W_QK[0]), W_QK, W_VO, db)
    born, lives = (db.predicates.index(label(q)) for q in ("born_in", "lives_in"))
    # keys in order: Astrid, Bernard, Colin, born_in, lives_in
    half = torch.tensor([[0.5, 0, 0], [0, 0.5, 0], [0, 0, 0.5]], dtype=torch.float64)
    column = torch.full((3, 1), 0.5, dtype=torch.float64)
    none = torch.zeros(3, 1, dtype=torch.float64)
    assert torch.equal(t.A[0, :, born], torch.cat([half, column, none], dim=1))
    assert torch.equal(t.A[0, :, lives], torch.cat([half, none, column], dim=1))
    # columns m, s
    assert t.L[:, born].tolist() == [[0, 1], [0, 3], [2, 1]]
    assert t.L[:, lives].tolist() == [[1, 0], [1, 2], [3, 0]]
    argmax = torch.nn.functional.one_hot(t.L.argmax(dim=-1), 2)
    assert np.array_equal(argmax.numpy(), db.to_numpy())


def unfolding_ranks(tensor: np.ndarray) -> list[int]:
    return [matrix_rank(np.moveaxis(tensor, m, 0).reshape(tensor.shape[m], -1)) for m in range(3)]


def test_the_product_of_example_3_3_has_rank_3() -> None:
    db, W_QK, W_VO = example_3_3()
    L = tensor_of_circuits(torch.zeros_like(W_QK[0]), W_QK, W_VO, db).L.long().numpy()
    assert max(unfolding_ranks(L)) == 3
    # three terms: the subjects' (predicate x object) matrices are orthogonal to (1,-1)(1,1)^T,
    # so they lie in the span of (1,1)e_m^T, (1,1)e_s^T and e_born(1,-1)^T
    subjects = np.array([[1, 0, -1], [1, 2, -1], [3, 0, -1]])
    predicates = np.array([[1, 1, 1], [1, 1, 0]])
    objects = np.array([[1, 0, 1], [0, 1, -1]])
    assert np.array_equal(np.einsum("kr,qr,vr->kqv", subjects, predicates, objects), L)


def test_the_attention_of_example_3_3_has_rank_4_though_its_circuit_has_rank_1() -> None:
    db, W_QK, W_VO = example_3_3()
    A = (2 * tensor_of_circuits(torch.zeros_like(W_QK[0]), W_QK, W_VO, db).A[0]).long().numpy()
    assert int(torch.linalg.matrix_rank(W_QK[0])) == 1
    assert max(unfolding_ranks(A)) == 4
    # four terms: e_k x 1 x (e_k + e_lives) for three k, and 1 x e_born x (e_born - e_lives)
    subjects = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]])
    predicates = np.array([[1, 1, 1, 1], [1, 1, 1, 0]])
    keys = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, -1]])
    assert np.array_equal(np.einsum("kr,qr,tr->kqt", subjects, predicates, keys), A)


def test_zero_attention_logits_attend_as_equal_ones_do() -> None:
    db, W_QK, W_VO = example_3_3()
    zero = torch.zeros_like(W_QK[0])
    ones = tensor_of_circuits(zero, torch.ones_like(W_QK), W_VO, db)
    zeros = tensor_of_circuits(zero, torch.zeros_like(W_QK), W_VO, db)
    assert torch.equal(ones.A, zeros.A)


def test_another_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="must have the database's 10 tokens; its d_vocab is 9"):
        layer_tensor(AttentionLayer(LayerConfig(2, 1, 1, 1), 9), figure_1())
