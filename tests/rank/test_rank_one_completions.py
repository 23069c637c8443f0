"""The number of objects as the rank: forms that prove that it is larger, and terms if it is."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import MemoryBudgetError
from capacity.rank import (
    RankAnalysis,
    RankOneCompletion,
    View,
    effective_rank_interval,
    rank_interval,
    verify,
)
from capacity.rank.lower.completions import completions
from capacity.rank.lower.rank_one_completions import components, spanning
from capacity.rank.verifier.budget import STEPS, CheckBudget
from capacity.rank.verifier.kinds.rank_one_completion import (
    Fibers,
    fibers_of,
    supports,
)
from capacity.tensor import SparseTensor, from_dense
from experiments.atlas.classes import database_of
from tests.oracles import database
from tests.second_checker import claim, second_checker
from tests.tiers import examples


def fibers_drawn(seed: int, *, zeros: bool = False) -> Fibers:
    rng = np.random.default_rng(seed)
    k, q = rng.integers(2, 5, 2)
    # -2 for no fiber, -1 for one of zeros
    objects = rng.integers(-2, rng.integers(2, 6), (k, q))
    used = sorted({*objects[objects >= 0].tolist()})
    of = [[[int(i), int(k + j)] for i, j in np.argwhere(objects == v)] for v in (*used, -1)]
    return Fibers(of[:-1], of[-1] if zeros else [])


def each_fiber(fibers: Fibers) -> list[tuple[int, list[int]]]:
    """The object of each fiber, -1 for none, and its indices."""
    named = [(v, places) for v, of in enumerate(fibers.of_object) for places in of]
    return [*named, *((-1, places) for places in fibers.zeros)]


@given(st.integers(0, 2**20), st.booleans())
@settings(max_examples=examples(60))
def test_supports_are_those_of_the_definition(seed: int, zeros: bool) -> None:
    fibers = fibers_drawn(seed, zeros=zeros)
    of = [(v, {*places}) for v, places in each_fiber(fibers)]

    def possible(support: set[int]) -> bool:
        reached = set[int]().union(*(places for v, places in of if v in support))
        return all(v in support for v, places in of if places <= reached)

    every = itertools.product((0, 1), repeat=fibers.n_objects)
    expected = [{v for v, x in enumerate(bits) if x} for bits in every]
    found = [*map(frozenset, supports(fibers, CheckBudget()))]
    assert len(found) == len({*found})
    assert {*found} == {frozenset(s) for s in expected if s and possible(s)}


@given(st.integers(0, 2**20), st.booleans())
@settings(max_examples=examples(60))
def test_completions_have_the_entries_of_the_fibers_and_the_form_vanishes(
    seed: int, zeros: bool
) -> None:
    fibers = fibers_drawn(seed, zeros=zeros)
    if not fibers.n_objects:
        return
    for part, _ in components(fibers):
        basis, form = spanning(part, CheckBudget(), seed=seed)
        # a basis, or a form; the one shows that there isn't the other
        assert form is not None or len(basis) == part.n_objects
        M = np.array([[float(x) for x in one.entries] for one in basis])
        assert not len(basis) or np.linalg.matrix_rank(M) == len(basis)
        drawn = [
            one
            for support in supports(part, CheckBudget())
            for one in completions(part, support, 2, np.random.default_rng(seed), CheckBudget())
        ]
        for one in [*basis, *drawn]:
            for v, places in each_fiber(part):
                product = np.prod([float(one.factors.get(i, 0)) for i in places])
                assert product == pytest.approx(0 if v < 0 else float(one.entries[v]))
            if form is not None:
                assert sum(int(c) * x for c, x in zip(form, one.entries, strict=True)) == 0


@given(st.integers(0, 2**20))
@settings(max_examples=examples(60))
def test_it_decides_whether_the_effective_rank_is_the_number_of_objects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, q, v = rng.integers(2, 6), rng.integers(2, 6), rng.integers(2, 6)
    rows = [(i, j, int(rng.integers(v))) for i in range(k) for j in range(q) if rng.random() < 0.6]
    if not rows:
        return
    db = database(rows)
    one = effective_rank_interval(db, methods=["rank-one completion"])
    assert verify(one, db).proved
    assert one.lower.value > db.shape[2] or one.upper.value == db.shape[2]
    for end in (one.lower, one.upper):
        assert second_checker(end, db)
    rank = rank_interval(db, methods=["rank-one completion"])
    assert verify(rank, db).proved


@pytest.mark.parametrize("code", ["001/122/220", "012/120/201", "012/133/321"])
def test_effective_ranks_of_the_atlas_that_were_open(code: str) -> None:
    db = database_of(code)
    found = RankAnalysis(db, effort="standard").effective_rank
    assert (found.lower.value, found.upper.value) == (db.shape[2] + 1, db.shape[2] + 1)
    assert found.lower.by == "rank-one completion"
    assert second_checker(found.lower, db)


def test_signs_and_absolute_values_are_told_apart() -> None:
    # a square: g0 g0 = g1 g1 means |g0| = |g1|, so that (1, 1) and (1, -1) are a basis
    square = from_dense(np.eye(2, dtype=int)[np.array([[0, 1], [1, 0]])])
    assert rank_interval(square, methods=["rank-one completion"]).upper.value == 2
    # a cycle of length three in each: g0^3 = g1^3 leaves g0 = g1 over the reals
    cube = database_of("012/120/201")
    assert effective_rank_interval(cube, methods=["rank-one completion"]).lower.value == 3


@pytest.mark.parametrize(("a", "b"), [(2, 8), (2, 15), (3, 8), (5, 5), (6, 6)])
def test_products_of_polynomials_are_found(a: int, b: int) -> None:
    # Toom and Cook: a + b - 1 terms, from as many points
    db = database([(i, j, i + j) for i in range(a) for j in range(b)])
    found = rank_interval(db, methods=["rank-one completion"])
    assert (found.lower.value, found.upper.value) == (a + b - 1, a + b - 1)
    assert found.upper.by == "rank-one completion"
    assert verify(found, db).proved


def test_components_are_joined_to_one_decomposition() -> None:
    # facts that share nothing, of effective rank 2 and 3
    first, second = [(0, 0, 0), (0, 1, 1), (1, 0, 1)], [(2, 2, 2), (2, 3, 3), (3, 2, 4)]
    db = database([*first, *second])
    found = effective_rank_interval(db, methods=["rank-one completion"])
    assert (found.lower.value, found.upper.value) == (5, 5)
    # one that isn't the number of its objects, beside one that is
    code = [(k, q, v) for k, row in enumerate(("001", "122", "220"))
            for q, v in enumerate(map(int, row)) if v]  # fmt: skip
    other = database([*code, *((k + 3, q + 3, v + 3) for k, q, v in first)])
    found = effective_rank_interval(other, methods=["rank-one completion"])
    assert found.lower.value == 2 + 1 + 2
    assert found.lower.by == "unfolding + rank-one completion"
    assert verify(found, other).proved
    assert second_checker(found.lower, other)


def whole(shape: tuple[int, ...]) -> View:
    return View(tuple(map(np.arange, shape)))


def test_what_a_form_must_be() -> None:
    # W, as facts: three facts of two objects, and a fiber of zeros for the rank
    w = database([(0, 0, 0), (0, 1, 1), (1, 0, 1)])

    def reason(of: Database | SparseTensor, form: list[int], **changed: Any) -> str | None:
        shape = of.shape if isinstance(of, SparseTensor) else of.tensor().shape
        fields = {"view": whole(shape), "mode": 2} | changed
        quantity = fields.pop("quantity", "rank")
        said = claim(of, RankOneCompletion(form=np.array(form), **fields), quantity=quantity)
        verdict = verify(said, of)
        assert second_checker(said, of) == verdict.proved
        return verdict.reason

    assert reason(w, [0, 1]) is None
    assert reason(w, [0, -7]) is None
    assert reason(w, [1, 1]) == "the form doesn't vanish at a completion"
    # an unobserved fiber may have any entries
    assert "doesn't vanish" in str(reason(w, [0, 1], quantity="effective_rank"))
    assert reason(w, [0, 0]) == "the linear form is zero"
    assert reason(w, [0, 1, 0]) == "each object must have a coefficient"
    assert "known in part" in str(reason(w, [0, 1], mode=0, quantity="effective_rank"))
    several = from_dense(np.array([[[1, 1]], [[0, 1]]]))
    assert "a single 1" in str(reason(several, [0, 1]))
    twos = from_dense(2 * w.to_numpy().astype(np.int64))
    assert "a single 1" in str(reason(twos, [0, 1]))
    without = View((np.array([1]), np.arange(2), np.arange(2)))
    assert reason(w, [1, 0], view=without) == "an object has no known fiber"


def test_supports_are_paid_for() -> None:
    n = 30
    diagonal = database([(i, i, i) for i in range(n)])
    said = claim(
        diagonal, RankOneCompletion(whole((n,) * 3), 2, np.ones(n, np.int64)),
        quantity="effective_rank",
    )  # fmt: skip
    # every form fails at the first support; a search of all would need 2^30
    assert verify(said, diagonal).reason == "the form doesn't vanish at a completion"
    T = diagonal.to_numpy().astype(np.int64)
    fibers = fibers_of(T, np.broadcast_to(T.any(axis=2, keepdims=True), T.shape), 2)
    assert fibers is not None
    with pytest.raises(MemoryBudgetError, match="20,001 supports of completions"):
        for _ in supports(fibers, CheckBudget()):
            pass
    budget = CheckBudget(10**6)
    with pytest.raises(MemoryBudgetError, match="more steps"):
        spanning(fibers, budget)
    assert budget.steps < STEPS


@pytest.mark.slow
def test_wide_views_are_paid_for() -> None:
    def cost(of: Database | SparseTensor, shape: tuple[int, ...], form: list[int]) -> str:
        said = claim(of, RankOneCompletion(whole(shape), len(shape) - 1, np.array(form)))
        with pytest.raises(MemoryBudgetError, match="too costly to check") as caught:
            verify(said, of)
        return str(caught.value)

    n = 3000
    assert "steps" in cost(from_dense(np.eye(n, dtype=int)[:, :, None]), (n, n, 1), [1])
    long = np.eye(2, dtype=int)[np.arange(60_000) % 2]
    assert "bytes" in cost(from_dense(long), long.shape, [1, -1])
    # a chain in which each support has one object more: no recursion
    q = 1_100
    db = database([(0, j, j) for j in range(q)] + [(1, j, j + 1) for j in range(q)])
    first = RankOneCompletion(whole((2, q, q + 1)), 2, np.eye(1, q + 1, dtype=np.int64)[0])
    with pytest.raises(MemoryBudgetError, match="too costly to check"):
        verify(claim(db, first, quantity="effective_rank"), db)
