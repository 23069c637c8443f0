"""Exact decompositions from fits: explicit numbers, rational or algebraic, in any order."""

import random
from collections.abc import Iterator
from fractions import Fraction
from functools import reduce
from math import isqrt
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.rank import AlgebraicDecomposition, Decomposition, rank_interval, verify
from capacity.rank.cp.equations import Equations, Work, last_factor
from capacity.rank.cp.exact_fits import _shortest
from capacity.rank.cp.explicit import as_argument, explicit_terms
from capacity.rank.cp.levenberg_marquardt import (
    Fit,
    fit_cp,
    gradient_of,
    normal_matrix,
    random_start,
)
from capacity.rank.cp.levenberg_marquardt import product as product_of
from capacity.rank.cp.making_exact import Target
from capacity.rank.cp.recognition import RATIONALS, recognised, refined
from capacity.rank.cp.snapping import oddness, snapped
from capacity.rank.method import Problem
from capacity.rank.reductions.singleton_slices import peel_singles
from capacity.tensor import (
    SparseTensor,
    complex_numbers,
    cyclic_group,
    determinant,
    group_algebra,
    matrix_multiplication,
    permanent,
    polynomial_product,
    symmetric_group,
    truncated_polynomials,
    w_state,
)
from tests.oracles import database
from tests.second_checker import claim, second_checker
from tests.second_checker.upper import sum_at_a_root
from tests.tiers import examples

# the ranks are theorems (Winograd, Fiduccia-Zalcstein, Alder-Strassen; determinants and permanents
# by Ilten-Teitler, Derksen; W by de Silva-Lim), but none is used by the search
REACHED: dict[str, tuple[Any, int]] = {
    "complex numbers": (complex_numbers(), 3),
    "W": (w_state(3), 3),
    "W of order 4": (w_state(4), 4),
    "Z/4": (group_algebra(cyclic_group(4)), 5),
    "Z/5": (group_algebra(cyclic_group(5)), 7),
    "Z/6": (group_algebra(cyclic_group(6)), 8),
    "S3": (group_algebra(symmetric_group(3)), 9),
    "modulo x^4": (truncated_polynomials(4), 7),
    "polynomials 3 x 3": (polynomial_product(3, 3), 5),
    "determinant 3": (determinant(3), 5),
    "permanent 3": (permanent(3), 4),
    "matrices 2 x 2": (matrix_multiplication(2, 2, 2), 7),
}


def dense(tensor: SparseTensor) -> Any:
    return tensor.to_numpy().astype(np.int64)


def some_fits(T: Any, rank: int, *, observed: Any = None, starts: int = 20) -> Any:
    for seed in range(starts):
        start = random_start(T.shape, rank, np.random.default_rng([0, rank, seed]))
        fit = fit_cp(T.astype(float), start, observed=observed)
        if fit.residual < 1e-9 and fit.largest < 30:
            yield fit


def as_algebraic(found: Any) -> AlgebraicDecomposition:
    field, terms = found
    return AlgebraicDecomposition(field.f, field.lo, field.hi, tuple(terms))


def is_exact(found: Any, T: Any, observed: Any = None) -> bool:
    """By definition, densely, at a root that is computed to many digits."""
    given = sum_at_a_root(as_algebraic(found), T)
    if given is None:
        return False
    same = given == T
    return bool(same.all() if observed is None else same[observed].all())


@pytest.mark.slow
@pytest.mark.parametrize("name", REACHED)
def test_known_ranks_are_reached_by_explicit_decompositions(name: str) -> None:
    tensor, rank = REACHED[name]
    T = dense(tensor)
    found = next(
        found for fit in some_fits(T, rank) if (found := explicit_terms(T, fit)) is not None
    )
    assert len(found.terms) == rank
    assert is_exact(found, T)


@pytest.mark.slow
def test_the_cyclic_group_of_order_7_takes_10_terms_in_a_cubic_field() -> None:
    # x^7 - 1 has three real factors, (x - 1) and ... over Q(cos 2 pi / 7): 2 * 7 - 4 = 10 over R
    T = dense(group_algebra(cyclic_group(7)))
    found = next(found for fit in some_fits(T, 10) if (found := explicit_terms(T, fit)) is not None)
    assert is_exact(found, T)
    assert found.field.degree % 3 == 0


@pytest.mark.slow
def test_the_search_closes_from_above_what_needs_a_field() -> None:
    # 2 * 5 - 3 = 7, from x^5 - 1 = (x - 1) (x^2 - g x + 1) (x^2 + x / g + 1), g the golden ratio
    db = database([(i, j, (i + j) % 5) for i in range(5) for j in range(5)])
    upper = rank_interval(db, effort="standard", methods=["least squares"]).certificates.upper
    assert upper.value == 7
    assert verify(upper, db).proved
    assert second_checker(upper, db)


@pytest.mark.slow
def test_decompositions_of_a_core_are_those_of_the_whole() -> None:
    # Z/5 and a sixth subject with the facts of two others
    rows = [(i, j, (i + j) % 5) for i in range(5) for j in range(5)]
    db = database([*rows, *((5, j, (i + j) % 5) for i in (1, 3) for j in range(5))])
    upper = rank_interval(db, effort="standard", methods=["least squares"]).certificates.upper
    assert upper.value == 7
    assert verify(upper, db).proved
    assert second_checker(upper, db)


def golden_fit() -> AlgebraicDecomposition:
    T = dense(group_algebra(cyclic_group(5)))
    found = next(found for fit in some_fits(T, 7) if (found := explicit_terms(T, fit)) is not None)
    argument = as_argument(found)
    assert isinstance(argument, AlgebraicDecomposition)
    return argument


def test_single_entries_are_put_back_in_a_field() -> None:
    # two objects with a fact each, at pairs of Z/5; decompositions of Z/5 aren't 0 there
    rows = [(i, j, (i + j) % 5) for i in range(5) for j in range(5)]
    db = database([*rows, (1, 2, 8), (3, 3, 9)])
    peeled = peel_singles(db.tensor().indices, db.tensor().values, db.shape)
    assert peeled is not None
    assert (len(peeled.taken), peeled.tensor.shape) == (2, (5, 5, 5))
    (whole,) = peeled.of_whole((golden_fit(),))
    assert isinstance(whole, AlgebraicDecomposition)
    said = claim(db, whole, side="upper")
    assert said.value == 9
    assert verify(said, db).proved
    assert second_checker(said, db)


def test_unknown_fibers_are_left_free() -> None:
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(4):
        T = (rng.random((4, 4, 4)) < 0.4).astype(np.int64)
        observed = rng.random((4, 4)) < 0.6
        for fit in some_fits(T, 6, observed=observed, starts=4):
            found = explicit_terms(T, fit, observed=observed)
            if found is not None:
                assert is_exact(found, T, observed)
                reached += 1
                break
    assert reached >= 3


@pytest.mark.slow
@given(st.lists(st.integers(0, 1), min_size=16, max_size=16))
@settings(max_examples=examples(60), deadline=None)
def test_tensors_of_order_4_are_decomposed_exactly(entries: list[int]) -> None:
    # all of rank 4 at most, up to a few that are known to have rank 3 or 4
    T = np.array(entries).reshape(2, 2, 2, 2)
    if not T.any():
        return
    for fit in some_fits(T, 5, starts=3):
        found = explicit_terms(T, fit)
        if found is not None:
            assert is_exact(found, T)
            return


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2), (2, 2, 3, 2), (2, 2, 2, 2, 2)])
def test_sums_of_simple_tensors_are_found_again_in_any_order(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    factors = [rng.integers(-2, 3, (n, 2)) for n in shape]
    T: Any = sum(reduce(np.multiply.outer, [f[:, r] for f in factors]) for r in range(2))
    found = next(found for fit in some_fits(T, 2) if (found := explicit_terms(T, fit)) is not None)
    assert is_exact(found, T)


def test_the_same_seed_gives_the_same_terms_and_little_work_gives_none() -> None:
    T = dense(truncated_polynomials(3))
    fit = next(some_fits(T, 5))
    first, again = (explicit_terms(T, fit, work=Work(10**9)) for _ in range(2))
    assert first is not None
    assert first == again
    little = Work(10**5)
    assert explicit_terms(T, fit, work=little) is None
    assert little.left < 0


def test_work_is_shared_and_comes_back() -> None:
    work = Work(100)
    part = work.share(70)
    assert (work.left, part.left) == (30, 70)
    assert not part.spend(80)
    work.back(part)
    assert work.left == 20
    assert work.share(50).left == 20


@pytest.mark.slow
def test_an_isolated_solution_of_high_degree_is_left_to_the_enclosure() -> None:
    # 64 equations in 70 unknowns that no field of low degree solves: the rank is generic
    rng = np.random.default_rng(0)
    T = rng.integers(-3, 4, (4, 4, 4))
    target = Target(Problem(T), 10**10)
    fit = next(some_fits(T, 7))
    found = target.quickly(fit)
    assert found is not None
    assert found.kind == "enclosure"


# ---- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("masked", [False, True])
def test_derivatives_are_those_of_differences_in_any_order(order: int, masked: bool) -> None:
    rng = np.random.default_rng(order)
    shape, rank = (3, 2, 4, 2)[:order], 2
    factors = tuple(rng.standard_normal((n, rank)) for n in shape)
    observed = rng.random(shape[:-1]) < 0.6 if masked else None
    T = rng.integers(-2, 3, shape)
    equations = Equations.of(T, rank, observed)
    x = np.concatenate([f.ravel() for f in factors])
    h = 1e-5
    J = np.stack([(equations.residual(x + h * e) - equations.residual(x - h * e)) / (2 * h)
                  for e in np.eye(len(x))], axis=1)  # fmt: skip
    assert np.allclose(equations.jacobian(x), J, atol=1e-8)
    mask = None if observed is None else observed.astype(float)
    assert np.allclose(normal_matrix(factors, mask), J.T @ J, atol=1e-7)
    shown = 1.0 if mask is None else mask[..., None]
    difference = (T - product_of(factors)) * shown
    assert np.allclose(gradient_of(difference, factors), -J.T @ equations.residual(x), atol=1e-7)


def fixed_point(value: Fraction | float, bits: int) -> int:
    return round(Fraction(value) * (1 << bits))


def root(n: int, bits: int) -> int:
    """The square root of n, times 2^bits."""
    return isqrt(n << (2 * bits))


def test_numbers_of_one_field_are_recognised_together() -> None:
    bits = 600
    one = 1 << bits
    two, three = root(2, bits), root(3, bits)
    numbers = [0, fixed_point(Fraction(-7, 3), bits), two, three, two + 1, 3 * two - three]
    found = recognised(numbers, bits, 8, Work(10**10))
    assert found is not None
    field, elements = found
    # Q(sqrt 2, sqrt 3) has degree 4
    assert field.degree == 4
    assert elements[:2] == [(), (Fraction(-7, 3),)]
    lo, hi = field.lo, field.hi
    value = sum(c * lo**i for i, c in enumerate(field.f))
    for _ in range(60):
        middle = (lo + hi) / 2
        same = sum(c * middle**i for i, c in enumerate(field.f)) * value > 0
        lo, hi = (middle, hi) if same else (lo, middle)
    for number, element in zip(numbers, elements, strict=True):
        found_value = sum(c * lo**i for i, c in enumerate(element))
        assert abs(found_value - Fraction(number, one)) < 1e-9
    assert recognised([one, -one // 2], bits, 8, Work(10**10)) == (
        RATIONALS, [(Fraction(1),), (Fraction(-1, 2),)],
    )  # fmt: skip


def test_a_random_number_is_not_recognised() -> None:
    value = random.Random(0).getrandbits(600)
    assert recognised([value], 600, 6, Work(10**10)) is None


@given(st.fractions(-9, 9, max_denominator=40))
@settings(max_examples=examples(100))
def test_fractions_are_not_odd(x: Fraction) -> None:
    assert oddness(float(x)) == 0


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (3**0.5, 1),
        ((1 + 5**0.5) / 2, 1),
        (2 ** (1 / 3), 2),
        (2 * np.cos(2 * np.pi / 7), 2),
        (np.pi, 4),
    ],
)
def test_numbers_of_a_low_degree_are_less_odd(value: float, score: int) -> None:
    assert oddness(float(value)) == score


def test_the_last_factor_is_solved_for_over_a_field() -> None:
    # (1, r) x (1, -r) x c with r = sqrt(2): the entries are c, r c, -r c and -2 c
    r: Any = (Fraction(0), Fraction(1))
    a, b = [[(Fraction(1),)], [r]], [[(Fraction(1),)], [(Fraction(0), Fraction(-1))]]
    T = np.array([[[3], [0]], [[0], [-6]]])
    observed = np.array([[True, False], [False, True]])
    assert last_factor(T, [a, b], (-2, 0, 1), observed) == [[(Fraction(3),)]]
    assert last_factor(T, [a, b], (-2, 0, 1)) is None
    assert last_factor(T, [a, b], (-3, 0, 1), observed) is None


def test_refinement_goes_beyond_floating_point_where_equations_are_dependent() -> None:
    T = dense(matrix_multiplication(2, 2, 2))
    fit = next(some_fits(T, 7))
    equations = Equations.of(T, 7)
    work = Work(10**10)
    end = snapped(equations, fit.factors, work)
    assert end is not None
    fine = refined(equations, *end, 300, work)
    assert fine is not None
    left = equations.fixed_point_residual(fine, 300)
    assert max(abs(v) for v in left.tolist()) < 1 << (900 - 250)


def test_fits_have_the_size_of_their_terms_in_any_order() -> None:
    # a term of norm 16: each of its four factors has norm 2
    factors = tuple(np.array([[2.0], [0.0]]) for _ in range(4))
    assert Fit(factors, 0.0, 0).largest == pytest.approx(2)


def test_decompositions_over_the_rationals_are_plain() -> None:
    T = dense(w_state(3))
    found = next(found for fit in some_fits(T, 3) if (found := explicit_terms(T, fit)) is not None)
    argument = as_argument(found)
    if found.field.degree == 1:
        assert isinstance(argument, Decomposition)
    db = Database.from_triples([(f"{i}", f"{j}", f"{k}") for i, j, k in np.argwhere(T).tolist()])
    assert verify(claim(db, argument, side="upper"), db).proved


class _Scripted:
    """A search whose fits, and what they become, are given by their number of terms."""

    def __init__(
        self, fitted: set[int], enclosed: set[int], count: int, explicit: set[int] | None = None
    ) -> None:
        self._explicit = explicit or set()
        self.target, self.count, self.tried = self, count, list[int]()
        self._fitted, self._enclosed, self._used = fitted, enclosed, set[int]()
        self.work = SimpleNamespace(left=10**9)

    def accepted(self, rank: int, *_: int) -> Iterator[Any]:
        self.tried.append(rank)
        if self.work.left <= 0:
            return
        # starts at 13 that don't vanish take all the work
        self.work.left -= 10**9 if rank == 13 and rank not in self._fitted else 1
        if rank in self._fitted and rank not in self._used:
            self._used.add(rank)
            yield SimpleNamespace(rank=rank)

    def is_quick(self, rank: int) -> bool:
        return rank >= self.count

    def may_be_explicit(self, _rank: int) -> bool:
        return True

    def quickly(self, fit: Any) -> int | None:
        return fit.rank if self.is_quick(fit.rank) and fit.rank in self._enclosed else None

    def enclosed(self, _fit: Any) -> None:
        return None

    rounded = enclosed

    def explicitly(self, fit: Any) -> int | None:
        return fit.rank if fit.rank in self._explicit and self.work.left > 0 else None


@pytest.mark.parametrize(
    ("fitted", "enclosed", "reached"),
    [
        # 14, then a step of two to 12, which vanishes and is never exact: 13 has been passed over
        ({11, 12, 13, 14, 15}, {13, 14, 15}, 13),
        ({11, 12, 14, 15}, {14, 15}, 14),
        ({12, 13, 14, 15}, {14, 15}, 14),
        ({10, 11, 12, 13, 14, 15}, {11, 12, 13, 14, 15}, 12),
    ],
)
def test_numbers_that_a_step_has_passed_over_are_tried(
    fitted: set[int], enclosed: set[int], reached: int
) -> None:
    search = _Scripted(fitted, enclosed, count=12 if reached == 12 else 13)
    goal: Any = SimpleNamespace(lower=8, limits=SimpleNamespace(fits=16))
    proved = [exact for (exact,) in _shortest(cast(Any, search), goal, 16)]
    assert min(cast(list[Any], proved)) == reached


def test_numbers_that_are_passed_over_wait_for_fits_that_are_kept() -> None:
    search = _Scripted({12, 14, 15}, {14, 15}, count=13, explicit={12})
    goal: Any = SimpleNamespace(lower=8, limits=SimpleNamespace(fits=16))
    proved = [exact for (exact,) in _shortest(cast(Any, search), goal, 16)]
    assert min(cast(list[Any], proved)) == 12


@pytest.mark.slow
@pytest.mark.full
def test_more_terms_than_can_be_made_explicit_are_passed_on_the_way_to_fewer() -> None:
    # fits of up to 22 terms are too large for explicit coefficients, those of 10 aren't
    found = rank_interval(group_algebra(cyclic_group(7)), effort="standard")
    assert (found.lower, found.upper) == (10, 10)
    # of order four no fit is enclosed, so that none is held up there
    assert rank_interval(permanent(4), effort="standard").upper <= 8
