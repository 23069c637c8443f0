"""Covers by fibers: upper bounds that are proved, and never above the sums of slice ranks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.rank import RankAnalysis, database_bounds, rank_interval, verify
from capacity.rank.method import Goal, Problem
from capacity.rank.options import BUDGETS
from capacity.rank.reductions.equal_slices import merge_equal_slices
from capacity.rank.search import rank_ledger
from capacity.rank.upper.fiber_cover import fiber_cover, paired_slices
from capacity.rank.upper.spanning_tree import spanning_tree, spanning_tree_terms, spanning_trees
from capacity.rank.verifier.budget import STEPS, CheckBudget
from capacity.rank.verifier.kinds.boxes import Boxes
from capacity.rank.verifier.kinds.decomposition import Decomposition
from capacity.rank.verifier.kinds.paired_slices import PairedSlices
from capacity.tensor import SparseTensor
from tests.second_checker import claim, second_checker
from tests.tiers import examples


def some_tensor(seed: int) -> SparseTensor:
    """A sum of tensors with equal slices, of several components, with entries from -2 to 2."""
    rng = np.random.default_rng(seed)
    parts, first = [], np.zeros(3, np.int64)
    for _ in range(rng.integers(1, 3)):
        shape = rng.integers(1, 5, 3)
        values = rng.integers(-2, 3, shape) * (rng.random(shape) < rng.uniform(0.2, 0.9))
        values = values if rng.random() < 0.4 else np.abs(np.sign(values))
        values = values[rng.integers(0, shape[0], shape[0] + 1)]
        at = np.argwhere(values)
        parts.append((at + first, values[tuple(at.T)]))
        first += values.shape
    places, values = (np.concatenate(x) for x in zip(*parts, strict=True))
    order = np.lexsort(places.T[::-1])
    return SparseTensor(places[order], values[order], first.tolist())


@given(st.integers(0, 10**9))
@settings(max_examples=examples(150), deadline=None)
def test_equal_slices_are_merged_and_come_back(seed: int) -> None:
    tensor = some_tensor(seed)
    if not tensor.n_entries:
        return
    merged = merge_equal_slices(tensor)
    whole, small = tensor.to_numpy(), merged.tensor.to_numpy()
    for mode in range(3):
        slices = {part.tobytes() for part in np.moveaxis(small, mode, 0)}
        assert len(slices) == small.shape[mode]
        known = np.concatenate(merged.members[mode])
        assert sorted(known) == np.unique(tensor.indices[:, mode]).tolist()
        for number, members in enumerate(merged.members[mode]):
            again = np.moveaxis(whole, mode, 0)[members]
            assert (again == again[0]).all(), number
    for row, (place, value) in enumerate(zip(tensor.indices, tensor.values, strict=True)):
        other = merged.tensor.indices[merged.rows[row]]
        pairs = zip(merged.members, other, place, strict=True)
        assert all(p in members[i] for members, i, p in pairs)
        assert merged.tensor.values[merged.rows[row]] == value


@pytest.mark.slow
@given(st.integers(0, 10**9))
@settings(max_examples=examples(150), deadline=None)
def test_covers_are_proved_and_at_most_the_slices(seed: int) -> None:
    tensor = some_tensor(seed)
    if not tensor.n_entries:
        return
    bounds = database_bounds(tensor)
    n = len(bounds.slices_by_component)
    which = np.random.default_rng(seed).random(n) < 0.8
    which[0] = True
    cover = fiber_cover(tensor, bounds.component, which, steps=10**9)
    assert (cover.values[which] <= bounds.slices_by_component.min(axis=1)[which]).all()
    assert (cover.values[which] >= bounds.unfoldings_by_component.max(axis=1)[which]).all()
    box, terms, pairs = cover.decomposed(bounds.component, which)
    rest = np.flatnonzero(~which[bounds.component])
    box[rest] = box.max(initial=-1) + 1 + np.arange(len(rest))
    boxes = (Boxes(box),) if (box >= 0).any() else ()
    sums = (Decomposition(tuple(terms)),) if terms else ()
    certificate = claim(tensor, *boxes, *pairs, *sums, side="upper")
    assert verify(certificate, tensor).reason is None
    assert second_checker(certificate, tensor)
    # a block that is too large to factor takes more terms than its rank; these are small
    assert certificate.value == cover.values[which].sum() + len(rest)


def stars(n: int) -> SparseTensor:
    """A fiber of n entries along each mode, three simple tensors, joined at one index a mode."""
    places = [(i, 0, 1) for i in range(n)]
    places += [(1, i, 0) for i in range(n)] + [(0, 1, i) for i in range(n)]
    return SparseTensor(np.unique(places, axis=0), np.ones(3 * n, np.int64), (n, n, n))


def test_fibers_along_different_modes_make_fewer_terms_than_slices() -> None:
    tensor = stars(150)
    assert min(database_bounds(tensor).slices) > 100
    interval = rank_interval(tensor, methods=[])
    assert interval.upper == 3
    assert interval.certificates.upper.by == "fiber cover"
    assert interval.closed
    assert verify(interval, tensor).proved


def codes() -> SparseTensor:
    """Two predicates that give the same 152 subjects the same objects, in cycles of 2 to 17."""
    lengths = range(2, 18)
    n = sum(lengths)
    cycles = np.split(np.arange(n), np.cumsum(lengths)[:-1])
    order = np.concatenate([np.roll(cycle, 1) for cycle in cycles])
    places = [(i, 0, i) for i in range(n)] + [(i, 1, int(order[i])) for i in range(n)]
    places += [(i, 2, n + i) for i in range(n)]
    return SparseTensor(sorted(places), np.ones(3 * n, np.int64), (n, 3, 2 * n))


@pytest.mark.slow
def test_two_slices_on_the_same_indices_cost_little_more_than_one() -> None:
    tensor, n = codes(), 152
    assert min(database_bounds(tensor).slices) == 3 * n
    assert rank_interval(tensor, methods=[]).upper == 3 * n
    interval = rank_interval(tensor, methods=[], effort="standard")
    # the cube roots of one that aren't real are roots of the cycles of 3, 6, 9, 12 and 15
    assert interval.upper == 2 * n + 5
    assert [a.kind for a in interval.certificates.upper.arguments] == ["paired slices", "boxes"]
    assert verify(interval, tensor).proved


def test_pairs_cost_what_the_verifier_is_told() -> None:
    tensor = codes()
    n, chosen = tensor.n_entries, tensor.indices[:, 1] < 2
    (pair,) = paired_slices(tensor, 1, chosen, 10**9)
    assert (pair.rank, pair.saved) == (157, 304 - 157)
    label = np.where(chosen, 0, -1)
    rest = Boxes(np.where(chosen, -1, np.cumsum(~chosen)))
    paired = PairedSlices(1, label, pair.rank)
    budget = CheckBudget()
    assert verify(claim(tensor, paired, rest, side="upper"), tensor, budget=budget).proved
    # the search charges the pair, which is most of what the verifier does
    charged = STEPS - budget.steps
    assert paired_slices(tensor, 1, chosen, charged)
    assert not paired_slices(tensor, 1, chosen, charged // 2)
    for wrong, reason in (
        (replace(paired, value=pair.rank - 1), "the pairs have rank 157"),
        (replace(paired, pair=np.zeros(n, np.int64)), "pair 0 has entries in 3 slices"),
        (replace(paired, mode=3), "a mode must be from 0 to 2"),
        (replace(paired, pair=label[1:]), "each entry must have a pair"),
        (replace(paired, pair=np.full(n, -1)), "there is no pair"),
    ):
        verdict = verify(claim(tensor, wrong, rest, side="upper"), tensor)
        assert reason in str(verdict.reason)


def test_without_a_solution_the_bounds_are_those_of_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capacity.rank.upper.fiber_cover.ITERATIONS", 0)
    monkeypatch.setattr("capacity.rank.upper.fiber_cover.AN_ITERATION", 10**9)
    places = np.unique(np.random.default_rng(0).integers(0, 20, (900, 3)), axis=0)
    tensor = SparseTensor(places, np.ones(len(places), np.int64), (20, 20, 20))
    interval = rank_interval(tensor, methods=[])
    assert interval.upper <= min(database_bounds(tensor).slices)
    assert verify(interval, tensor).proved


def test_a_cover_whose_terms_are_too_costly_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    places = np.unique(np.minimum(rng.integers(0, 12, (900, 3)), [11, 3, 11]), axis=0)
    tensor = SparseTensor(places, np.ones(len(places), np.int64), (12, 4, 12))
    monkeypatch.setattr(rank_ledger, "OF_AN_END", -1)
    interval = rank_interval(tensor, methods=[])
    assert interval.certificates.upper.by == "slices"
    assert verify(interval, tensor).proved


def test_a_cover_that_is_too_costly_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_ledger, "A_COVERED_ENTRY", 10**9)
    told: list[str] = []
    analysis = RankAnalysis(
        stars(150), methods=[], progress=lambda what, *_: told.append(what.split(": ")[-1])
    )
    assert analysis.rank.certificates.upper.by == "slices"
    assert "fiber cover" not in told


def goal(upper: int) -> Goal:
    return Goal(0, upper, 10**9, BUDGETS["quick"].limits, 0)


@given(st.integers(0, 10**6), st.sampled_from([0, 1, 2]))
@settings(max_examples=examples(60))
def test_a_tree_gives_as_many_terms_as_it_weighs_and_they_add_up(seed: int, mode: int) -> None:
    rng = np.random.default_rng(seed)
    tensor = rng.integers(-2, 3, rng.integers(1, 6, 3))
    tree = spanning_tree(tensor, mode)  # type: ignore[arg-type]
    terms = spanning_tree_terms(tensor, tree)
    # the minors of so small a tensor are below the prime
    assert len(terms) == tree.weight
    total = np.zeros(tensor.shape, object)
    for term in terms:
        for i, x in zip(*term[0], strict=True):
            for j, y in zip(*term[1], strict=True):
                for k, z in zip(*term[2], strict=True):
                    total[i, j, k] += x * y * z
    assert (total == tensor).all()


@pytest.mark.parametrize("seed", range(3))
def test_terms_are_made_only_for_a_tree_that_improves_the_bound(seed: int) -> None:
    problem = Problem((np.random.default_rng(seed).random((5, 4, 6)) < 0.4).astype(np.int8))
    least = min(spanning_tree(problem.core.tensor, mode).weight for mode in (0, 1, 2))
    ((found,),) = spanning_trees(problem, goal(least + 1))
    assert found.value == least
    assert not list(spanning_trees(problem, goal(least)))
