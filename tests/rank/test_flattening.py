import math

import numpy as np
import pytest
from hypothesis import given, settings

from capacity.rank import database_bounds, rank_interval
from capacity.rank.lower.koszul import best_flattening, koszul_matrix
from capacity.rank.verifier.checker import verify
from capacity.testing import KnownRank, tensors_of_known_rank
from tests.oracles import KNOWN_RANKS, database, matrix_product
from tests.tiers import examples


@pytest.mark.parametrize(("a", "p"), [(3, 1), (4, 1), (4, 2), (5, 2), (6, 2)])
def test_a_simple_tensor_has_the_rank_of_its_wedge(a: int, p: int) -> None:
    rng = np.random.default_rng(p)
    x, y, z = rng.integers(1, 9, a), rng.integers(1, 9, 3), rng.integers(1, 9, 4)
    matrix = koszul_matrix(np.einsum("i,j,k->ijk", x, y, z), p)
    assert np.linalg.matrix_rank(matrix.astype(float)) == math.comb(a - 1, p)


@given(tensors_of_known_rank())
@settings(max_examples=examples(60))
def test_flattenings_never_exceed_the_rank(known: KnownRank) -> None:
    found = best_flattening(known.tensor, seed=0, work=10**9)
    assert found is None or found[0] <= known.rank


def test_a_lopsided_tensor_needs_another_p_than_the_middle_one() -> None:
    # 2p + 1 slices show 11 terms at most, no more than an unfolding does
    tensor = np.random.default_rng(0).integers(0, 2, (6, 7, 11))
    found = best_flattening(tensor, seed=0, work=10**9)
    assert found is not None
    bound, mode, p, projection = found
    assert (bound, mode, p, len(projection)) == (14, 0, 2, 4)


@pytest.mark.parametrize(("shape", "at_least"), [((2, 2, 2), 6), ((2, 2, 3), 9)])
def test_flattenings_beat_unfoldings_on_matrix_products(
    shape: tuple[int, int, int], at_least: int
) -> None:
    db = matrix_product(*shape)
    interval = rank_interval(db, methods=["Koszul flattening"])
    assert interval.certificates.lower.by == "Koszul flattening"
    assert max(database_bounds(db).unfoldings) < at_least <= interval.lower
    assert KNOWN_RANKS[f"matrices {shape[0]} x {shape[1]} x {shape[2]}"][1] in interval
    assert verify(interval.certificates.lower, db).proved


def test_one_component_may_have_a_flattening_and_the_others_add() -> None:
    product = [tuple(t) for t in matrix_product(2, 2, 2).triples.tolist()]
    rows = product + [(10 + i, 10 + i, 10 + i) for i in range(3)]
    db = database([(k, q, v) for k, q, v in rows])
    interval = rank_interval(db, methods=["Koszul flattening"])
    assert interval.lower == 6 + 3
    assert verify(interval.certificates.lower, db).proved
