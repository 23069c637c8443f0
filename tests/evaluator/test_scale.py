import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from capacity.evaluator import accuracy_of_logits, margins, memorises, pair_logits, smallest_scale
from capacity.layer import AttentionLayer, LayerConfig, Recipe, train
from tests.oracles import figure_1
from tests.tiers import examples

LOGITS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(2, 8)),
    elements=st.floats(-50, 50).map(lambda x: round(x, 3)),
)


@given(LOGITS, st.sampled_from([0.51, 0.75, 0.95, 0.999999]))
@settings(max_examples=examples(200))
def test_a_little_less_than_the_smallest_scale_is_too_little(z: np.ndarray, tau: float) -> None:
    targets = z.argmax(axis=1)
    c = smallest_scale(z, targets, tau)
    if accuracy_of_logits(z, targets).argmax < 1:
        assert c == math.inf
        return
    at = [accuracy_of_logits(scale * z, targets, [tau]).softmax[tau]
          for scale in (c * (1 - 1e-6), c * (1 + 1e-6))]  # fmt: skip
    assert at[0] < 1.0
    assert at[1] == 1.0


@given(LOGITS, st.floats(0.1, 10))
@settings(max_examples=examples(50))
def test_scaled_logits_need_so_much_less_scale(z: np.ndarray, by: float) -> None:
    targets = z.argmax(axis=1)
    c = smallest_scale(z, targets, 0.9)
    assert smallest_scale(by * z, targets, 0.9) == pytest.approx(c / by, rel=1e-9)
    assert margins(by * z, targets) == pytest.approx(by * margins(z, targets))


@given(LOGITS, st.sampled_from([0.51, 0.95, 0.999999]))
@settings(max_examples=examples(100))
def test_facts_need_together_what_the_worst_of_them_needs_alone(z: np.ndarray, tau: float) -> None:
    targets = z.argmax(axis=1)
    alone = [
        smallest_scale(row[None], target[None], tau) for row, target in zip(z, targets, strict=True)
    ]
    assert smallest_scale(z, targets, tau) == pytest.approx(max(alone), rel=1e-12)


def test_margins_are_positive_where_argmax_is_right() -> None:
    z = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, -1.0], [1.0, 4.0, 0.0]])
    # 3 - 2; a tie; 1 - 4
    assert margins(z, np.zeros(3, dtype=int)).tolist() == [1.0, 0.0, -3.0]


def test_without_rivals_any_scale_is_enough() -> None:
    assert smallest_scale(np.array([[-3.0]]), np.array([0]), 0.9) == 0.0


def test_logits_that_are_not_finite_have_no_scale() -> None:
    z = np.array([[np.nan, 1.0], [2.0, 1.0]])
    assert math.isnan(smallest_scale(z, np.array([0, 0]), 0.9))
    assert np.isnan(margins(z, np.array([0, 0]))).tolist() == [True, False]


@pytest.mark.slow
def test_a_layer_memorises_when_its_unembedding_is_scaled_so() -> None:
    db = figure_1()
    layer = AttentionLayer(LayerConfig(4, 2, 1, 2), db.n_tokens, dtype=torch.float64)
    train(layer, db, Recipe(epochs=80, learning_rate=0.03, stop_tau=0))
    facts = db.token_triples
    c = smallest_scale(pair_logits(layer, facts[:, :2]), facts[:, 2], 0.999)
    assert 1 < c < math.inf
    assert not memorises(layer, db, 0.999)
    with torch.no_grad():
        layer.W_U *= c * (1 + 1e-9)
    assert memorises(layer, db, 0.999)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="must be a fact"):
        smallest_scale(np.zeros((0, 3)), np.zeros(0, dtype=int), 0.9)
    with pytest.raises(ValueError, match="strictly between"):
        smallest_scale(np.zeros((1, 3)), np.zeros(1, dtype=int), 0.5)
