"""The number of objects as the rank: forms that prove that it is larger, and terms if it is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
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
from capacity.rank import options as efforts
from capacity.rank.lower import rank_one_completions as search
from capacity.rank.lower.rank_one_completions import independent, spanning
from capacity.rank.method import Goal, Problem
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.kinds.rank_one_completion import (
    Fibers,
    fibers_of,
    grouped,
    solutions,
    supports,
)
from capacity.tensor import SparseTensor, from_dense
from experiments.atlas.classes import database_of
from tests.oracles import database
from tests.second_checker import claim, second_checker
from tests.second_checker.completions import entries_equal
from tests.tiers import examples


def fibers_drawn(seed: int, *, zeros: bool = False) -> Fibers:
    rng = np.random.default_rng(seed)
    k, q = rng.integers(2, 5, 2)
    # -2 for no fiber, -1 for one of zeros
    objects = rng.integers(-2, rng.integers(2, 6), (k, q))
    used, which = np.unique(objects[objects >= 0], return_inverse=True)
    T = np.zeros((k, q, len(used)), np.int64)
    T[objects >= 0, which] = 1
    known = objects >= (-1 if zeros else 0)
    found = fibers_of(T, np.broadcast_to(known[:, :, None], T.shape), 2)
    # there may be no fiber at all
    assume(found is not None)
    assert found is not None
    return found


def each_fiber(fibers: Fibers) -> list[tuple[int, set[int]]]:
    """The object of each fiber, the number of objects for none, and its indices."""
    return [
        (int(v), {*places})
        for v, places in zip(fibers.objects, fibers.places.tolist(), strict=True)
    ]


def every_support(fibers: Fibers) -> Iterator[set[int]]:
    """Sets of objects at which a completion may differ from zero, by their definition."""
    of = each_fiber(fibers)
    for bits in itertools.product((False, True), repeat=fibers.n_objects):
        support = {v for v, x in enumerate(bits) if x}
        reached = set[int]().union(*(places for v, places in of if v in support))
        if all(v in support for v, places in of if places <= reached):
            yield support


@given(st.integers(0, 2**20), st.booleans())
@settings(max_examples=examples(60))
def test_what_an_object_has_in_tow_is_in_every_support_with_it(seed: int, zeros: bool) -> None:
    fibers = fibers_drawn(seed, zeros=zeros)
    if not fibers.n_objects:
        return
    every = [*every_support(fibers)]
    for v, row in enumerate(supports(fibers, CheckBudget())):
        mine = [s for s in every if v in s]
        # one of them is in all others
        assert {*np.flatnonzero(row)} == (set[int].intersection(*mine) if mine else set())
        assert not mine or {*np.flatnonzero(row)} in mine


def spanned(fibers: Fibers) -> np.ndarray:
    """Vectors that span those with a completion: of each support, the classes of its objects."""
    found = [np.zeros(fibers.n_objects)]
    for support in every_support(fibers):
        named = [({(0, i) for i in places}, v) for v, places in each_fiber(fibers) if v in support]
        unknowns = [*support, *{place for places, _ in named for place in places}]
        rows = [[(x == v) - (x in places) for x in unknowns] for places, v in named]
        for v in support:
            found.append(np.zeros(fibers.n_objects))
            found[-1][[w for w in support if entries_equal(rows, unknowns, v, w)]] = 1
    return np.array(found)


@given(st.integers(0, 2**20), st.booleans())
@settings(max_examples=examples(60))
def test_what_is_found_spans_what_all_supports_span(seed: int, zeros: bool) -> None:
    fibers = fibers_drawn(seed, zeros=zeros)
    if not fibers.n_objects:
        return
    M = spanned(fibers)
    basis, form = spanning(fibers, CheckBudget(), seed=seed)
    full = np.linalg.matrix_rank(M) == fibers.n_objects
    assert (form is None) == full
    assert len(basis) == (fibers.n_objects if full else 0)
    if form is not None:
        assert form.any()
        assert not (M @ form).any()
    # the classes that the verifier forms leave as many dimensions
    towed = supports(fibers, CheckBudget())
    classes = [
        some
        for objects in grouped(towed)
        for some in solutions(fibers, towed[objects[0]], CheckBudget()).classes(objects)
    ]
    assert len(classes) == np.linalg.matrix_rank(M)


@given(st.integers(0, 2**20), st.booleans())
@settings(max_examples=examples(60))
def test_completions_have_the_entries_of_the_fibers(seed: int, zeros: bool) -> None:
    fibers = fibers_drawn(seed, zeros=zeros)
    if not fibers.n_objects:
        return
    basis, _ = spanning(fibers, CheckBudget(), seed=seed)
    towed = supports(fibers, CheckBudget())
    drawn = [
        one
        for objects in grouped(towed)
        for one in independent(
            solutions(fibers, towed[objects[0]], CheckBudget()),
            objects,
            np.random.default_rng(seed),
            CheckBudget(),
        )
    ]
    for found in (basis, drawn):
        M = np.array([[float(one.entries.get(v, 0)) for v in range(fibers.n_objects)]
                      for one in found])  # fmt: skip
        assert not found or np.linalg.matrix_rank(M) == len(found)
    for one in [*basis, *drawn]:
        for v, places in each_fiber(fibers):
            # exact: fractions
            assert math.prod(one.factors.get(i, 0) for i in places) == one.entries.get(v, 0)


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
    assert one.lower > db.shape[2] or one.upper == db.shape[2]
    for end in one.certificates:
        assert second_checker(end, db)
    rank = rank_interval(db, methods=["rank-one completion"])
    assert verify(rank, db).proved


@pytest.mark.slow
@pytest.mark.parametrize("code", ["001/122/220", "012/120/201", "012/133/321"])
def test_effective_ranks_of_the_atlas_that_were_open(code: str) -> None:
    db = database_of(code)
    found = RankAnalysis(db, effort="standard").effective_rank
    assert (found.lower, found.upper) == (db.shape[2] + 1, db.shape[2] + 1)
    assert found.certificates.lower.by == "rank-one completion"
    assert second_checker(found.certificates.lower, db)


def test_signs_and_absolute_values_are_told_apart() -> None:
    # a square: g0 g0 = g1 g1 means |g0| = |g1|, so that (1, 1) and (1, -1) are a basis
    square = from_dense(np.eye(2, dtype=int)[np.array([[0, 1], [1, 0]])])
    assert rank_interval(square, methods=["rank-one completion"]).upper == 2
    # a cycle of length three in each: g0^3 = g1^3 leaves g0 = g1 over the reals
    cube = database_of("012/120/201")
    assert effective_rank_interval(cube, methods=["rank-one completion"]).lower == 3


@pytest.mark.parametrize(("a", "b"), [(2, 8), (2, 15), (3, 8), (5, 5), (6, 6)])
def test_products_of_polynomials_are_found(a: int, b: int) -> None:
    # Toom and Cook: a + b - 1 terms, from as many points
    db = database([(i, j, i + j) for i in range(a) for j in range(b)])
    found = rank_interval(db, methods=["rank-one completion"])
    assert (found.lower, found.upper) == (a + b - 1, a + b - 1)
    assert found.certificates.upper.by == "rank-one completion"
    assert verify(found, db).proved


def test_components_are_joined_to_one_decomposition() -> None:
    # facts that share nothing, of effective rank 2 and 3
    first, second = [(0, 0, 0), (0, 1, 1), (1, 0, 1)], [(2, 2, 2), (2, 3, 3), (3, 2, 4)]
    db = database([*first, *second])
    found = effective_rank_interval(db, methods=["rank-one completion"])
    assert (found.lower, found.upper) == (5, 5)
    # one that isn't the number of its objects, beside one that is
    code = [(k, q, v) for k, row in enumerate(("001", "122", "220"))
            for q, v in enumerate(map(int, row)) if v]  # fmt: skip
    other = database([*code, *((k + 3, q + 3, v + 3) for k, q, v in first)])
    found = effective_rank_interval(other, methods=["rank-one completion"])
    assert found.lower == 2 + 1 + 2
    assert found.certificates.lower.by == "unfolding + rank-one completion"
    assert verify(found, other).proved
    assert second_checker(found.certificates.lower, other)


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


def diagonal(n: int) -> Fibers:
    T = np.eye(n, dtype=np.int64)[:, :, None] * np.eye(n, dtype=np.int64)
    found = fibers_of(T, np.broadcast_to(T.any(axis=2, keepdims=True), T.shape), 2)
    assert found is not None
    return found


def test_many_supports_are_decided_without_listing_them() -> None:
    # any set of the objects is a support: 2^30
    fibers, budget = diagonal(30), CheckBudget()
    before = budget.steps
    basis, form = spanning(fibers, budget)
    assert (len(basis), form) == (30, None)
    assert before - budget.steps < 10**7
    # objects in a cycle of length three beside these: g0^3 = g1^3 leaves g0 = g1
    T = np.zeros((33, 33, 32), np.int64)
    T[np.arange(30), np.arange(30), np.arange(30)] = 1
    T[[30, 31, 32, 30, 31, 32], [31, 30, 32, 32, 31, 30], [30, 30, 30, 31, 31, 31]] = 1
    form = np.zeros(32, np.int64)
    form[-2:] = 1, -1
    said = claim(
        from_dense(T), RankOneCompletion(whole(T.shape), 2, form), quantity="effective_rank"
    )
    assert said.value == 33
    assert verify(said, from_dense(T)).proved


def steps_of_search(problem: Problem, goal: Goal, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Steps that each mode may spend, and those that it spent."""
    made: list[CheckBudget] = []
    allowed: list[int] = []

    def budget(steps: int) -> CheckBudget:
        allowed.append(steps)
        made.append(CheckBudget(steps))
        return made[-1]

    monkeypatch.setattr(search, "CheckBudget", budget)
    found = [*search.rank_one_completions(problem, goal)]
    monkeypatch.undo()
    (most,), (one,) = allowed, made
    assert 0 <= one.steps <= most
    return [most, most - one.steps, len(found)]


@pytest.mark.parametrize("effort", efforts.EFFORTS)
@pytest.mark.parametrize("code", ["001/122/220", "012/123/234"])
def test_each_effort_has_a_budget_that_is_kept(
    effort: efforts.Effort, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a form, and a decomposition
    T = database_of(code).to_numpy().astype(np.int64)
    problem = Problem(T, np.broadcast_to(T.any(axis=2, keepdims=True), T.shape))
    budget = efforts.BUDGETS[effort]
    goal = Goal(T.shape[2], 9, budget.work, budget.limits, 0)
    most, spent, found = steps_of_search(problem, goal, monkeypatch)
    assert most == budget.limits.completions
    assert found == 1
    # what is found takes all these steps, and no more
    for fewer, n in ((0, 1), (1, 0)):
        limits = replace(budget.limits, completions=spent - fewer)
        some = steps_of_search(problem, replace(goal, limits=limits), monkeypatch)
        assert some[0] == spent - fewer
        assert some[2] == n


def test_steps_at_quick_are_fewer_than_at_other_efforts() -> None:
    quick, *others = (efforts.BUDGETS[effort].limits.completions for effort in efforts.EFFORTS)
    assert quick < min(others)


@pytest.mark.slow
def test_wide_views_are_paid_for() -> None:
    def cost(of: Database | SparseTensor, shape: tuple[int, ...], form: list[int]) -> str:
        said = claim(of, RankOneCompletion(whole(shape), len(shape) - 1, np.array(form)))
        with pytest.raises(MemoryBudgetError, match="too costly to check") as caught:
            verify(said, of)
        return str(caught.value)

    n = 3000
    assert "bytes" in cost(from_dense(np.eye(n, dtype=int)[:, :, None]), (n, n, 1), [1])
    # relations of 90,000 fibers
    wide = np.eye(2, dtype=int)[np.indices((300, 300)).sum(axis=0) % 2]
    assert "steps" in cost(from_dense(wide), wide.shape, [1, -1])
    # a chain in which each object has all others in tow, at a distance of up to 1,100
    q = 1_100
    db = database([(0, j, j) for j in range(q)] + [(1, j, j + 1) for j in range(q)])
    last = RankOneCompletion(whole((2, q, q + 1)), 2, np.eye(1, q + 1, q // 2, dtype=np.int64)[0])
    with pytest.raises(MemoryBudgetError, match="too costly to check"):
        verify(claim(db, last, quantity="effective_rank"), db)
