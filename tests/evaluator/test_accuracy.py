import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from capacity.database import Database
from capacity.errors import MultiValuedError
from capacity.evaluator import accuracy_of_logits, evaluate, memorises, pair_logits
from capacity.layer import AttentionLayer, Edits, LayerConfig, Recipe, train
from capacity.rank import matrix_rank
from tests.oracles import figure_1
from tests.tiers import examples

logits = arrays(np.float64, (6, 4), elements=st.sampled_from([-3.0, 0.0, 0.0, 1.0, 5.0, 9.0]))
targets = arrays(np.int64, 6, elements=st.integers(0, 3))


@given(logits, targets)
def test_accuracies_are_ordered(z: np.ndarray, v: np.ndarray) -> None:
    a = accuracy_of_logits(z, v)
    assert a.argmax_paper >= a.argmax >= a.majority
    assert a.majority >= a.softmax[0.75] >= a.softmax[0.95] >= a.softmax[0.99]
    assert a.argmax + a.tied == pytest.approx(a.argmax_paper)


@given(logits, targets)
def test_accuracies_are_the_papers_counts(z: np.ndarray, v: np.ndarray) -> None:
    a = accuracy_of_logits(z, v, taus=[0.6])
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    rows = range(len(v))
    assert a.argmax_paper == np.mean([z[i, v[i]] == z[i].max() for i in rows])
    assert a.softmax[0.6] == np.mean([p[i, v[i]] >= 0.6 for i in rows])
    unique = [np.count_nonzero(z[i] >= z[i, v[i]]) == 1 for i in rows]
    assert a.argmax == np.mean(unique)


def test_a_constant_layer_knows_nothing_though_the_paper_counts_it_right() -> None:
    a = accuracy_of_logits(np.zeros((5, 3)), np.zeros(5, int))
    assert (a.argmax, a.argmax_paper, a.tied) == (0.0, 1.0, 1.0)


def test_a_probability_of_one_half_is_no_majority() -> None:
    a = accuracy_of_logits(np.array([[0.0, 0.0]]), np.array([0]))
    assert a.majority == 0.0


def test_huge_logits_do_not_overflow() -> None:
    a = accuracy_of_logits(np.array([[1e300, -1e300]]), np.array([0]))
    assert a.softmax[0.99] == 1.0


def test_no_argmax_is_taken_of_nan() -> None:
    a = accuracy_of_logits(np.array([[np.nan, 1.0], [2.0, 1.0]]), np.array([0, 0]))
    assert all(map(math.isnan, (a.argmax, a.argmax_paper, a.tied, a.majority, a.softmax[0.95])))


@pytest.mark.parametrize("tau", [0.5, 0.2, 1.0, 1.5])
def test_tau_lies_strictly_between_one_half_and_one(tau: float) -> None:
    with pytest.raises(ValueError, match=r"strictly between 0\.5 and 1"):
        accuracy_of_logits(np.zeros((1, 2)), np.zeros(1, int), taus=[tau])


@pytest.fixture(scope="module")
def trained() -> tuple[AttentionLayer, Database]:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens)
    train(layer, db, Recipe(learning_rate=0.05))
    return layer, db


def test_a_layer_that_memorises_scores_one(trained: tuple[AttentionLayer, Database]) -> None:
    layer, db = trained
    a = evaluate(layer, db)
    assert (a.argmax, a.softmax[0.99], a.tied, a.n_facts) == (1.0, 1.0, 0.0, 8)
    assert memorises(layer, db, 0.99)
    assert not memorises(layer, db, 0.999999)


def test_objects_alone_may_be_the_candidates(trained: tuple[AttentionLayer, Database]) -> None:
    layer, db = trained
    blind = AttentionLayer(layer.config, db.n_tokens)
    blind.load_state_dict(layer.state_dict())
    with torch.no_grad():
        # a token that is no object gets every answer
        blind.W_U[:, int(db.predicate_ids[0])] += 100 * layer.W_U.sum(dim=1)
    everything, objects = evaluate(blind, db), evaluate(blind, db, over="objects")
    assert objects.argmax == 1.0
    assert everything.argmax <= objects.argmax
    with pytest.raises(ValueError, match="`over` must be"):
        evaluate(layer, db, over="facts")  # type: ignore[arg-type]


def test_batches_change_no_answer(trained: tuple[AttentionLayer, Database]) -> None:
    layer, db = trained
    pairs = db.token_triples[:, :2]
    np.testing.assert_allclose(pair_logits(layer, pairs, batch_size=3), pair_logits(layer, pairs))


@given(
    st.tuples(*(st.integers(1, 9) for _ in range(4)), st.booleans()),
    st.integers(1, 12),
    st.sampled_from([torch.float32, torch.float64]),
    st.integers(0, 99),
)
@settings(max_examples=examples(200))
def test_numpy_predicts_what_the_forward_pass_does(
    sizes: tuple[int, int, int, int, bool], d_vocab: int, dtype: torch.dtype, seed: int
) -> None:
    d, heads, qk, vo, scale = sizes
    config = LayerConfig(d, heads, min(qk, d), min(vo, d), scale=scale)
    layer = AttentionLayer(config, d_vocab, seed=seed, dtype=dtype)
    pairs = np.random.default_rng(seed).integers(d_vocab, size=(7, 2))
    with torch.no_grad():
        # attention far from even, too
        layer.W_Q *= 30 ** (seed % 3)
        expected = layer(torch.from_numpy(pairs))[:, -1].double().numpy()
    slack = 1e-4 if dtype == torch.float32 else 1e-11
    size = 1 + float(np.abs(expected).max())
    assert np.abs(pair_logits(layer, pairs) - expected).max() <= slack * size


def test_a_layer_that_was_changed_predicts_by_its_own_forward_pass(
    trained: tuple[AttentionLayer, Database],
) -> None:
    layer, db = trained
    pairs = db.token_triples[:, :2]

    class Louder(AttentionLayer):
        def forward(self, tokens: torch.Tensor, *, edits: Edits | None = None) -> torch.Tensor:
            return 2 * super().forward(tokens, edits=edits)

    weights = {name: p.detach() for name, p in layer.named_parameters()}
    expected = 2 * pair_logits(layer, pairs)
    np.testing.assert_allclose(
        pair_logits(Louder.of_weights(layer.config, weights), pairs), expected, rtol=1e-4, atol=1e-4
    )
    hooked = AttentionLayer.of_weights(layer.config, weights)
    hooked.register_forward_hook(lambda *given: 2 * given[2])
    np.testing.assert_allclose(pair_logits(hooked, pairs), expected, rtol=1e-4, atol=1e-4)
    # an ablation: no head attends to the subject
    ablated = AttentionLayer.of_weights(layer.config, weights)
    ablated.attention = lambda x: torch.eye(x.shape[-2]).expand(len(x), 2, -1, -1)  # type: ignore[method-assign]
    assert np.abs(pair_logits(ablated, pairs) - expected / 2).max() > 1e-3
    loud = AttentionLayer.of_weights(layer.config, {n: w * 1e25 for n, w in weights.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not np.isfinite(pair_logits(loud, pairs)).all()
    halves = AttentionLayer.of_weights(layer.config, weights).to(torch.bfloat16)
    assert np.isfinite(pair_logits(halves, pairs)).all()


def test_accuracy_needs_a_function() -> None:
    db = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep")
    with pytest.raises(MultiValuedError, match="Accuracy needs one object"):
        evaluate(AttentionLayer(LayerConfig(1, 1, 1, 1), db.n_tokens), db)


def gram_of_points_on_a_circle(n: int, r: int) -> np.ndarray:
    """The proof of Proposition 3.6: n distinct points on the sphere in R^r, spanning it."""
    angles = np.pi * np.arange(n) / n + 0.1  # half a circle: no two points are opposite
    points = np.zeros((n, r))
    points[:, 0], points[:, 1] = np.cos(angles), np.sin(angles)
    for axis in range(2, r):
        # a point of its own in every further dimension, and still distinct points of norm one
        points[axis] = 0.6 * points[axis]
        points[axis, axis] = 0.8
    return points @ points.T


@pytest.mark.parametrize(("n", "r"), [(n, r) for n in range(2, 9) for r in range(2, n + 1)])
def test_proposition_3_6_argmax_makes_rank_n_of_rank_r(n: int, r: int) -> None:
    M = gram_of_points_on_a_circle(n, r)
    assert np.linalg.matrix_rank(M) == r
    argmax = (M.max(axis=1, keepdims=True) - 1e-12 <= M).astype(int)
    # the points differ, so the diagonal is the only maximum of each row
    assert np.array_equal(argmax, np.eye(n, dtype=int))
    assert matrix_rank(argmax) == n
    assert accuracy_of_logits(M, np.arange(n)).argmax_paper == 1.0


@pytest.mark.parametrize(("n", "r"), [(n, r) for n in range(2, 9) for r in range(2, n + 1)])
def test_proposition_3_7_softmax_makes_rank_n_of_rank_r(n: int, r: int) -> None:
    M = gram_of_points_on_a_circle(n, r)
    gap = 1 - (M - 2 * np.eye(n)).max()
    c = math.log(2 * n) / gap  # then the diagonal outweighs the rest of its row
    assert np.linalg.matrix_rank(c * M) == r
    softmax = np.exp(c * M) / np.exp(c * M).sum(axis=1, keepdims=True)
    diagonal = np.diag(softmax)
    # strictly diagonally dominant, hence regular
    assert (diagonal > softmax.sum(axis=1) - diagonal).all()
    # and softmax >= 1/2 is the identity too (footnote 4)
    assert accuracy_of_logits(c * M, np.arange(n)).majority == 1.0
