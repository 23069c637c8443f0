"""Certified recall against an oracle of its own in decimal fractions, and against floats."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError, MultiValuedError
from capacity.evaluator import CertifiedRecall, certified_recall, memorises, pair_logits
from capacity.layer import (
    AttentionLayer,
    LayerConfig,
    store_in_query_key,
    store_in_value_output,
)
from capacity.testing import databases
from tests.oracles import figure_1
from tests.tiers import examples

WRITERS = [store_in_query_key, store_in_value_output]
CONFIGS = st.builds(
    lambda d, h, qk, vo, scale: LayerConfig(d, h, min(d, qk), min(d, vo), scale=scale),
    st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.booleans(),
)  # fmt: skip


def margins_in_decimal(layer: AttentionLayer, db: Database, tau: float) -> list[Decimal]:
    """The margins by the formulas of the paper, number by number, with 60 digits."""
    w = {
        name: [[[Decimal(x) for x in row] for row in matrix] for matrix in np.atleast_3d(
            p.detach().double().numpy()[None] if p.ndim == 2 else p.detach().double().numpy()
        ).tolist()]
        for name, p in layer.named_parameters()
    }  # fmt: skip

    def times(row: list[Decimal], matrix: list[list[Decimal]]) -> list[Decimal]:
        return [sum((x * y for x, y in zip(row, column, strict=True)), Decimal(0))
                for column in zip(*matrix, strict=True)]  # fmt: skip

    c = layer.config
    scale = 1 / Decimal(c.d_head_qk).sqrt() if c.scale else Decimal(1)
    found = []
    for k, q, v in db.token_triples.tolist():
        first, second = w["W_E"][0][k], w["W_E"][0][q]
        r = list(second)
        for h in range(c.n_heads):
            query = times(second, w["W_Q"][h])
            keys = list(zip(*w["W_K"][h], strict=True))
            s = [scale * sum((a * b for a, b in zip(query, times(x, [list(y) for y in keys]),
                                                    strict=True)), Decimal(0))
                 for x in (first, second)]  # fmt: skip
            powers = [(x - max(s)).exp() for x in s]
            mixed = [(powers[0] * a + powers[1] * b) / sum(powers)
                     for a, b in zip(first, second, strict=True)]  # fmt: skip
            r = [a + b for a, b in zip(r, times(times(mixed, w["W_V"][h]), w["W_O"][h]),
                                       strict=True)]  # fmt: skip
        z = times(r, w["W_U"][0])
        found.append(-sum(((x - z[v]).exp() for x in z), Decimal(0)).ln() - Decimal(tau).ln())
    return found


@given(databases(functional=True), CONFIGS, st.integers(0, 99), st.sampled_from([16, 128]))
@settings(max_examples=examples(60), deadline=None)
def test_an_enclosure_has_the_margin_in_it(
    db: Database, config: LayerConfig, seed: int, bits: int
) -> None:
    layer = AttentionLayer(config, db.n_tokens, seed=seed)
    recall = certified_recall(layer, db, 0.75, precision=bits, most_precision=bits)
    with localcontext() as context:
        context.prec = 60
        exact = margins_in_decimal(layer, db, 0.75)
        for low, margin, high in zip(recall.lower, exact, recall.upper, strict=True):
            assert Decimal(low) <= margin <= Decimal(high)
    if bits == 128:
        # neighbouring floats at most: the balls are narrower
        assert np.allclose(recall.lower, recall.upper, rtol=1e-15, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(databases(functional=True), CONFIGS, st.integers(0, 99), st.sampled_from([0.51, 0.99]))
@settings(max_examples=examples(60), deadline=None)
def test_the_verdicts_are_those_of_float64_where_the_margin_is_large(
    dtype: torch.dtype, db: Database, config: LayerConfig, seed: int, tau: float
) -> None:
    layer = AttentionLayer(config, db.n_tokens, seed=seed, dtype=dtype)
    with torch.no_grad():
        layer.W_U *= 20
    recall = certified_recall(layer, db, tau)
    z = pair_logits(layer.double(), db.token_triples[:, :2])
    log_p = torch.from_numpy(z).log_softmax(-1).numpy()[np.arange(len(z)), db.token_triples[:, 2]]
    margin = log_p - math.log(tau)
    assert recall.proved[margin > 1e-9].all()
    assert recall.refuted[margin < -1e-9].all()
    assert recall.n_proved + recall.n_refuted + recall.n_undecided == db.n_triples


@given(databases(functional=True), CONFIGS, st.integers(0, 99), st.floats(0.501, 0.999))
@settings(max_examples=examples(40), deadline=None)
def test_another_threshold_shifts_the_enclosures(
    db: Database, config: LayerConfig, seed: int, tau: float
) -> None:
    layer = AttentionLayer(config, db.n_tokens, seed=seed)
    shifted = certified_recall(layer, db, 0.75).at(tau)
    assert shifted.tau == tau
    with localcontext() as context:
        context.prec = 60
        exact = margins_in_decimal(layer, db, tau)
        for low, margin, high in zip(shifted.lower, exact, shifted.upper, strict=True):
            assert Decimal(low) <= margin <= Decimal(high)
    assert np.allclose(shifted.lower, certified_recall(layer, db, tau).lower, rtol=0, atol=1e-14)
    with pytest.raises(InvalidArgumentError, match="tau"):
        shifted.at(1.0)


def test_facts_that_are_left_open_stay_open_at_another_threshold() -> None:
    open_ends = np.array([-np.inf]), np.array([np.inf])
    recall = CertifiedRecall(0.75, *open_ends, 16).at(0.9)
    assert (recall.n_undecided, recall.lower[0], recall.upper[0]) == (1, -np.inf, np.inf)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("tau", [0.51, 0.95, 0.99999])
def test_facts_written_by_hand_are_proved(write, tau: float) -> None:
    db = random_database(3, triples=(60, 200))
    recall = certified_recall(write(db, tau), db, tau)
    assert recall.memorises
    assert (recall.n_proved, recall.n_refuted, recall.n_undecided) == (db.n_triples, 0, 0)
    assert 0 < recall.least_margin == recall.lower.min()
    # probabilities are at most 1
    assert recall.upper.max() <= -math.log(tau) + 1e-12


@pytest.mark.parametrize("write", WRITERS)
def test_the_fact_that_a_changed_weight_breaks_is_refuted_alone(write) -> None:
    db = random_database(1, triples=(30, 60))
    layer = write(db, 0.9)
    k, q, v = db.triples[7]
    assert len(db.object_ids) > 1
    # u is the number of v: that of another object is written in its place
    other = db.triples[db.triples[:, 2] != v][0]
    with torch.no_grad():
        layer.W_E[db.subject_ids[k], q] = layer.W_E[db.subject_ids[other[0]], other[1]]
    recall = certified_recall(layer, db, 0.9)
    assert np.flatnonzero(recall.refuted).tolist() == [7]
    assert not recall.memorises
    assert recall.least_margin < 0
    assert not memorises(layer, db, 0.9)


def test_an_exchange_of_two_columns_of_the_unembedding_is_refuted() -> None:
    db = figure_1()
    layer = store_in_value_output(db, 0.95)
    a, b = db.object_ids[:2].tolist()
    with torch.no_grad():
        layer.W_U[:, [a, b]] = layer.W_U[:, [b, a]].clone()
    recall = certified_recall(layer, db, 0.95)
    wrong = np.isin(db.token_triples[:, 2], [a, b])
    assert (recall.refuted == wrong).all()


def two_tokens(x: float) -> tuple[AttentionLayer, Database]:
    """A layer that gives the object of one fact the probability 1 / (1 + e^-x)."""
    db = Database.from_triples([("a", "a", "b")])
    weights = {name: torch.zeros(shape, dtype=torch.float64)
               for name, shape in LayerConfig(1, 1, 1, 1).shapes(2).items()}  # fmt: skip
    weights["W_E"][:] = 1.0
    weights["W_U"][0, db.object_ids[0]] = x
    return AttentionLayer.of_weights(LayerConfig(1, 1, 1, 1), weights), db


def test_tokens_with_one_column_share_their_probability() -> None:
    layer, db = two_tokens(3.0)
    with torch.no_grad():
        layer.W_U[:] = 3.0
    recall = certified_recall(layer, db, 0.75)
    assert recall.refuted.all()
    # 1/2 of 3/4
    assert recall.lower[0] == pytest.approx(math.log(2 / 3), rel=1e-15)
    assert 0 < recall.upper[0] - recall.lower[0] < 1e-15


@given(st.floats(0.5, 5))
@settings(max_examples=examples(100))
def test_neighbouring_thresholds_are_told_apart_where_floats_round(x: float) -> None:
    layer, db = two_tokens(x)
    with localcontext() as context:
        context.prec = 60
        p = 1 / (1 + (-Decimal(x)).exp())
        near = float(p)
        for tau in (math.nextafter(near, 0), near, math.nextafter(near, 1)):
            recall = certified_recall(layer, db, tau)
            assert recall.memorises == (p >= Decimal(tau))
            assert recall.n_undecided == 0


def test_few_bits_leave_facts_undecided_and_more_decide_them() -> None:
    # logits of 10^5 with margins of a few units: 16 bits don't tell
    db = Database.from_triples([(f"k{i}", "q", f"v{i}") for i in range(60)])
    layer = store_in_query_key(db, 0.95)
    few = certified_recall(layer, db, 0.95, precision=16, most_precision=16)
    assert few.n_undecided > 0
    assert few.n_refuted == 0
    assert few.precision == 16
    more = certified_recall(layer, db, 0.95, precision=16)
    assert more.memorises
    assert more.precision > 16
    assert (few.lower <= more.upper).all()
    assert (few.upper >= more.lower).all()


def test_a_layer_of_float32_is_certified_with_its_own_weights() -> None:
    db = random_database(2)
    layer = store_in_query_key(db, 0.95, dtype=torch.float32)
    same = certified_recall(layer, db, 0.95)
    assert (same.lower == certified_recall(layer.double(), db, 0.95).lower).all()


def test_the_precision_of_flint_is_left_as_it_was() -> None:
    import flint

    before = flint.ctx.prec
    db = figure_1()
    certified_recall(store_in_query_key(db), db, 0.95, precision=300)
    assert flint.ctx.prec == before


def test_what_cannot_be_certified_is_refused() -> None:
    db = figure_1()
    layer = store_in_query_key(db)
    with pytest.raises(InvalidArgumentError, match="strictly between"):
        certified_recall(layer, db, 0.5)
    with pytest.raises(InvalidArgumentError, match="`precision` must be an integer of at least 16"):
        certified_recall(layer, db, 0.9, precision=8)
    with pytest.raises(InvalidArgumentError, match="at least 200"):
        certified_recall(layer, db, 0.9, precision=200, most_precision=100)
    with pytest.raises(InvalidArgumentError, match="must be plain"):
        certified_recall(AttentionLayer(LayerConfig(2, 1, 1, 1, bias=True), db.n_tokens), db, 0.9)
    many = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep")
    with pytest.raises(MultiValuedError):
        certified_recall(AttentionLayer(LayerConfig(1, 1, 1, 1), many.n_tokens), many, 0.9)
    with torch.no_grad():
        layer.W_U[0, 0] = torch.nan
    with pytest.raises(InvalidArgumentError, match="W_U has NaN"):
        certified_recall(layer, db, 0.9)
