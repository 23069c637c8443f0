"""Modes taken together to three groups: the same for small orders, and as many for every order."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from capacity.rank import database_bounds, effective_rank_interval, rank_interval
from capacity.rank.lower.koszul import best_flattening, koszul_matrix
from capacity.rank.options import BUDGETS
from capacity.rank.search import groupings as module
from capacity.rank.search.groupings import MOST, groupings
from capacity.rank.upper.spanning_tree import spanning_tree_work
from capacity.rank.verifier.checker import verify
from capacity.tensor import SparseTensor, grouped
from capacity.testing import KnownRank, tensors_of_known_rank
from tests.oracles import KNOWN_RANKS, database, matrix_product
from tests.tiers import examples


def diagonal(order: int, n: int) -> SparseTensor:
    """The sum of n simple tensors on a diagonal, whose rank is n, as that of every unfolding."""
    return SparseTensor([[i] * order for i in range(n)], [1] * n, (n,) * order)


@pytest.mark.parametrize("effective", [False, True])
def test_the_number_of_partitions_that_are_listed_does_not_grow_with_the_order(
    monkeypatch: pytest.MonkeyPatch, effective: bool
) -> None:
    listed: list[int] = []
    of = module._promise

    def counted(*arguments: Any) -> int:
        listed[-1] += 1
        return of(*arguments)

    monkeypatch.setattr(module, "_promise", counted)
    for order in (8, 9, 10, 32):
        listed.append(0)
        groupings(diagonal(order, 2), effective=effective)
    # Stirling numbers: 966 partitions of 8 parts into 3 sets, 127 of 8 into 2 beside the last mode
    assert max(listed) <= (127 if effective else 966)


@pytest.mark.parametrize("order", [4, 5, 6, 7, 9, 20, 32])
@pytest.mark.parametrize("effective", [False, True])
def test_groups_hold_each_mode_once_and_the_last_one_alone(order: int, effective: bool) -> None:
    sides = [1 + mode % 3 for mode in range(order)]
    tensor = SparseTensor([[side - 1 for side in sides]], [1], sides)
    found = groupings(tensor, effective=effective)
    assert 1 <= len(found) <= MOST
    for groups, of in found:
        assert len(groups) == 3
        assert sorted(mode for group in groups for mode in group) == list(range(order))
        assert all(group == tuple(sorted(group)) for group in groups)
        assert not effective or groups[-1] == (order - 1,)
        assert of == grouped(tensor, groups)
    assert len({groups for groups, _ in found}) == len(found)


def test_modes_of_size_one_join_others_before_any_other_mode_does() -> None:
    # of the modes 1, 3 and 4 alone there is one way to three groups
    found = groupings(SparseTensor([[0, 1, 0, 1, 2]], [1], (1, 2, 1, 2, 3)), effective=False)
    assert [groups for groups, _ in found] == [((0, 1, 2), (3,), (4,))]
    # without three modes of several indices some modes of size one are groups
    found = groupings(SparseTensor([[0] * 5], [1], (1, 1, 1, 1, 1)), effective=False)
    assert len(found) == 1


def test_every_grouping_of_up_to_30_is_tried_when_no_side_is_one() -> None:
    # Stirling numbers of the second kind: 6 partitions of 4 modes into 3 sets, 25 of 5, 90 of 6
    for order, n in ((4, 6), (5, 25), (6, MOST)):
        assert len(groupings(diagonal(order, 2), effective=False)) == n


@pytest.mark.parametrize(("order", "most"), [(12, 9), (18, 9), (32, 3)])
def test_ranks_of_high_orders_are_closed_and_proved(order: int, most: int) -> None:
    for n in (1, most):
        tensor = diagonal(order, n)
        found = rank_interval(tensor)
        assert (found.lower, found.upper) == (n, n)
        assert verify(found.certificates.lower, tensor).proved
        assert verify(found.certificates.upper, tensor).proved
        effective = effective_rank_interval(tensor)
        assert effective.lower <= effective.upper <= n
        assert verify(effective.certificates.lower, tensor).proved


def test_the_estimate_of_trees_over_slices_does_not_take_an_order_of_modes_at_a_time() -> None:
    # by the definition: for each pair of slices, and the root, the trees of all other modes
    def by_definition(shape: tuple[int, ...], mode: int) -> int:
        others = (*shape[:mode], *shape[mode + 1 :])
        if len(others) == 2:
            return 2 * shape[mode] ** 2 * math.prod(others) * min(others)
        each = sum(20_000 + by_definition(others, m) for m in range(len(others)))
        return math.comb(shape[mode] + 1, 2) * each

    for shape in ((2, 3, 4), (3, 2, 2, 4), (2, 4, 3, 2, 1), (1, 2, 3, 1, 2, 2)):
        for mode in range(len(shape)):
            assert spanning_tree_work(shape, mode) == by_definition(shape, mode)
    # 31! summands, were they added one by one
    assert spanning_tree_work((2,) * 32, 0) > BUDGETS["thorough"].work
    assert spanning_tree_work((1,) * 13, 0) > BUDGETS["thorough"].work


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
