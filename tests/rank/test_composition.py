"""Upper ends composed of those of parts: ideals of algebras, Kronecker factors, blocks.

Ranks of algebras over a field: 2 n - t for polynomials modulo one of degree n with t irreducible
factors there (Winograd 1977), and sums of such (Alder, Strassen 1981).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upper_ends import in_other_bases, permuted

from capacity.exact.types import Term
from capacity.rank import Goal, Problem, rank_interval, verify, verify_decomposition
from capacity.rank.composition.composing import COMPOSITION, compositions
from capacity.rank.composition.ideals import Ideal
from capacity.rank.composition.kronecker import halves, kronecker_factors, product_of_terms
from capacity.rank.composition.remainders import REMAINDERS
from capacity.rank.composition.simple_algebras import entries_of_matrices
from capacity.rank.composition.w_states import W_STATES
from capacity.rank.method import findings
from capacity.rank.options import BUDGETS
from capacity.rank.reductions.unital_algebras import algebras_of
from capacity.tensor import (
    SparseTensor,
    cyclic_group,
    direct_sum,
    from_dense,
    group_algebra,
    kronecker,
    matrix_multiplication,
    polynomials_modulo,
    product_group,
    quaternions,
    symmetric_group,
    truncated_polynomials,
    w_state,
)
from tests.tiers import examples


def group(*orders: int) -> SparseTensor:
    return group_algebra(product_group(*map(cyclic_group, orders)))


def upper(tensor: SparseTensor, field: Any = "R") -> int:
    """The upper end by Chinese remainders alone, verified."""
    interval = rank_interval(tensor, methods=[REMAINDERS], field=field)
    assert verify(interval, tensor).proved
    return interval.upper


# 2 n - t with the numbers of factors over Q and over R
ALGEBRAS: dict[str, tuple[SparseTensor, int, int]] = {
    "x^5": (truncated_polynomials(5), 9, 9),
    "x^8": (truncated_polynomials(8), 15, 15),
    # x^7 - 1 has 2 factors over Q; over R a linear one and 3 of degree 2, with 2 cos(2 pi / 7)
    "Z/7": (group(7), 12, 10),
    # x - 1, x + 1, x^2 + 1, x^4 + 1, of which the last has 2 with the square root of 2
    "Z/8": (group(8), 12, 11),
    "Z/9": (group(9), 15, 13),
    "Z/10": (group(10), 16, 14),
    # 9 ideals over C, so Q and 4 times that of a cube root of 1
    "Z/3 x Z/3": (group(3, 3), 13, 13),
    "Z/2 x Z/4": (group(2, 4), 10, 10),
    # x^2 - 2 squared is (x - sqrt 2)^2 (x + sqrt 2)^2
    "(x^2 - 2)^2": (polynomials_modulo([4, 0, -4, 0, 1]), 7, 6),
    # one real root, and two pairs of others; the field of their coefficients has a high degree
    "x^5 - x - 1": (polynomials_modulo([-1, -1, 0, 0, 0, 1]), 9, 9),
    # 2 x 2 matrices take 7 (Strassen 1969), Q twice
    "S3": (group_algebra(symmetric_group(3)), 9, 9),
    "2 x 2 matrices": (matrix_multiplication(2, 2, 2), 7, 7),
    # 8: Howell, Lafon 1975
    "H": (quaternions(), 8, 8),
    "H x Z/2 = H + H": (kronecker(quaternions(), group(2)), 16, 16),
    "H + Z/5": (direct_sum(quaternions(), group(5)), 16, 15),
}


@pytest.mark.parametrize("name", ALGEBRAS)
def test_algebras_take_the_sum_of_what_their_ideals_take(name: str) -> None:
    tensor, over_q, over_r = ALGEBRAS[name]
    assert upper(tensor) == over_r
    assert upper(tensor, "Q") == over_q
    assert upper(permuted(tensor, 0)) == over_r


@pytest.mark.parametrize("name", ["x^5", "Z/7", "Z/8", "H", "S3", "2 x 2 matrices"])
def test_algebras_are_recognised_in_other_bases(name: str) -> None:
    tensor, _, over_r = ALGEBRAS[name]
    assert upper(in_other_bases(tensor, 0)) == over_r


@pytest.mark.slow
def test_the_symmetric_group_of_four_takes_what_its_matrices_take() -> None:
    # Q, Q, and matrices of 2, 3 and 3 rows, which take 7 and 23 (Laderman 1976)
    table = symmetric_group(4)
    interval = rank_interval(group_algebra(table), methods=[REMAINDERS], effort="standard")
    assert interval.upper == 1 + 1 + 7 + 23 + 23
    assert verify(interval, group_algebra(table)).proved


def test_matrices_are_found_in_other_bases() -> None:
    tensor = in_other_bases(matrix_multiplication(3, 3, 3), 0)
    (algebra, *_) = algebras_of(tensor.to_numpy().astype(np.int64))
    whole = Ideal.of(algebra)
    entries = entries_of_matrices(whole)
    assert entries is not None
    basis = [np.array(row, object).reshape(3, 3) for row in entries.tolist()]
    for a, M in enumerate(whole.products):
        for b, product_of in enumerate(M.tolist()):
            total = sum((x * w for x, w in zip(product_of, basis, strict=True)), 0 * basis[0])
            assert np.array_equal(total, basis[a] @ basis[b])
    for other in (quaternions(), group(9), truncated_polynomials(4)):
        algebra = algebras_of(other.to_numpy().astype(np.int64))[0]
        assert entries_of_matrices(Ideal.of(algebra)) is None


def test_groups_of_up_to_ten_elements_are_closed_at_quick() -> None:
    for n in range(2, 11):
        # over R, x^n - 1 has as many factors as there are pairs of roots
        assert rank_interval(group(n)) == (2 * n - 1 - n // 2,) * 2


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=2, max_size=4))
def test_polynomials_modulo_another_take_no_more_than_interpolation(low: list[int]) -> None:
    modulus, degree = [*low, 1], len(low)
    factors = flint.fmpz_poly(modulus).factor()[1]
    tensor = polynomials_modulo(modulus)
    assert upper(tensor, "Q") <= 2 * degree - len(factors)
    assert upper(tensor) <= upper(tensor, "Q")


def test_ideals_are_direct_factors() -> None:
    for tensor in (group(6), group_algebra(symmetric_group(3)), group(2, 4)):
        whole = Ideal.of(algebras_of(tensor.to_numpy().astype(np.int64))[0])
        ideals = whole.direct_factors()
        n = whole.dimension
        assert sum(ideal.dimension for ideal in ideals) == n
        # the coordinates in all ideals together are those of a basis, and products are theirs
        together = np.hstack(
            [np.array([list(row) for row in one.coordinates.tolist()]) for one in ideals]
        )
        assert flint.fmpq_mat(together.tolist()).rank() == n
        for ideal in ideals:
            C = ideal.coordinates
            for a in range(n):
                row = flint.fmpq_mat([C.tolist()[a]])
                assert whole.products[a] * C == C * ideal.times(row)


def test_what_is_no_algebra_is_left_alone() -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 3, 3), (3, 3, 4), (2, 2, 2, 2)):
        dense = rng.integers(-2, 3, shape)
        problem = Problem(dense)
        assert not problem.algebras
    # an algebra without associativity: the octonions' cousin of dimension 3, e_i e_j = e_{j - i}
    table = (np.arange(3)[None] * 2 + np.arange(3)[:, None]) % 3
    dense = np.eye(3, dtype=np.int64)[table]
    dense[1, 1] = [0, 2, 1]
    assert not algebras_of(dense)


# ---- Kronecker factors and blocks ----------------------------------------------------------------


def standard(tensor: SparseTensor) -> list[Term]:
    """The terms that the method finds at standard, without any other."""
    budget = BUDGETS["standard"]
    goal = Goal(1, tensor.n_entries + 1, budget.work // 4, budget.limits, 0)
    (found,) = compositions(Problem(tensor.to_numpy()), goal)
    return list(found[0].terms)  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", [None, 1])
def test_matrices_of_blocks_are_multiplied_by_strassen_twice(seed: int | None) -> None:
    tensor = matrix_multiplication(4, 4, 4)
    tensor = tensor if seed is None else permuted(tensor, seed)
    factors = list(kronecker_factors(tensor.to_numpy().astype(np.int64)))
    assert any(A.shape == B.shape == (4, 4, 4) for A, B, _ in factors)
    for A, B, order in factors:
        assert (tensor.to_numpy()[np.ix_(*order)] == np.kron(A, B)).all()
    strassen = Problem(matrix_multiplication(2, 2, 2).to_numpy())
    goal = Goal(1, 9, 10**9, BUDGETS["quick"].limits, 0)
    (found,) = REMAINDERS.find(strassen, goal)  # type: ignore[misc]
    A, _, order = next(one for one in factors if one[0].shape == (4, 4, 4))
    seven = list(found[0].terms)  # type: ignore[attr-defined]
    if np.array_equal(A, strassen.tensor):
        terms = product_of_terms(seven, seven, (4, 4, 4), order)
        assert len(terms) == 49
        assert adds_up(terms, tensor)


def adds_up(terms: list[Term], tensor: SparseTensor) -> bool:
    matrices = [np.zeros((n, len(terms)), object) for n in tensor.shape]
    for r, term in enumerate(terms):
        for matrix, (indices, values) in zip(matrices, term, strict=True):
            for i, x in zip(indices, values, strict=True):
                matrix[i, r] = x
    return verify_decomposition(tensor, matrices).proved


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tensor", "at_most"),
    [
        # 7 x 7, also in another order of all indices
        (matrix_multiplication(4, 4, 4), 49),
        (permuted(matrix_multiplication(4, 4, 4), 0), 49),
        # twice that of 2 x 2 and 2 x 4, which is twice 7
        (matrix_multiplication(2, 4, 4), 28),
        # 3 x 7
        (kronecker(w_state(3), matrix_multiplication(2, 2, 2)), 21),
        # 7 x 5: matrices of elements of Q[Z/4]
        (kronecker(matrix_multiplication(2, 2, 2), group(4)), 35),
    ],
    ids=str,
)
def test_compositions_have_the_terms_of_their_parts(tensor: SparseTensor, at_most: int) -> None:
    terms = standard(tensor)
    assert len(terms) <= at_most
    assert adds_up(terms, tensor)
    interval = rank_interval(tensor, methods=[COMPOSITION], effort="standard")
    assert interval.upper <= at_most
    assert verify(interval, tensor).proved


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**30))
def test_kronecker_products_have_their_factors(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = (rng.integers(-2, 3, rng.integers(1, 3, 3)) for _ in range(2))
    if not (A.any() and B.any()) or 1 in (A.size, B.size):
        return
    T = np.kron(A, B)
    found = list(kronecker_factors(T))
    # up to a factor that one has and the other hasn't
    assert any((np.kron(first, second) == T).all() and first.shape == A.shape
               for first, second, _ in found)  # fmt: skip
    for first, second, order in found:
        assert (T[np.ix_(*order)] == np.kron(first, second)).all()


def test_a_product_of_primes_has_no_factors() -> None:
    tensor = matrix_multiplication(3, 3, 3).to_numpy().astype(np.int64)
    # but those of a row or a column, whose entries are as many as their terms
    for A, B, _ in kronecker_factors(tensor):
        assert min(np.count_nonzero(A), np.count_nonzero(B)) == 3
    dense = np.random.default_rng(0).integers(1, 9, (4, 4, 4))
    assert not list(kronecker_factors(dense))
    assert not list(halves(dense))


def test_three_w_states_take_sixteen_terms_over_the_rationals() -> None:
    W = w_state(3)
    cube = kronecker(W, W, W).to_numpy().astype(np.int64)
    rng = np.random.default_rng(0)
    moved = permuted(from_dense(cube)).to_numpy().astype(np.int64)
    for mode in range(3):
        signs = rng.choice([-1, 1], 8)
        moved = moved * signs.reshape([8 if m == mode else 1 for m in range(3)])
    for dense in (cube, moved):
        interval = rank_interval(dense, field="Q", methods=["substitution", W_STATES])
        assert interval == (16, 16)
        assert verify(interval, from_dense(dense)).proved
        assert interval.decomposition().rank == 16
    changed = cube.copy()
    changed[tuple(np.argwhere(cube)[0])] = 2
    assert rank_interval(changed, methods=[W_STATES]).certificates.upper.by != W_STATES.name


@pytest.mark.slow
def test_a_product_with_an_algebra_of_irrational_ideals_takes_what_both_take() -> None:
    # over R, x^5 - 1 has three factors, with sqrt(5): 7 products, and 8 over Q; a W state takes 3
    for factors in ((w_state(3), group(5)), (group(5), w_state(3))):
        tensor = kronecker(*factors)
        ends = {
            field: rank_interval(tensor, effort="standard", methods=[COMPOSITION], field=field)
            for field in ("R", "Q")
        }
        assert [end.upper for end in ends.values()] == [3 * 7, 3 * 8]
        assert all(verify(end, tensor).proved for end in ends.values())


@pytest.mark.slow
def test_four_w_states_are_composed_of_three_and_one() -> None:
    W = w_state(3)
    tensor = kronecker(W, kronecker(W, W, W))
    interval = rank_interval(tensor, effort="standard", methods=[COMPOSITION])
    assert interval.upper == 3 * 16
    assert verify(interval, tensor).proved


def test_halves_add_up() -> None:
    tensor = matrix_multiplication(2, 3, 4).to_numpy().astype(np.int64)
    found = list(halves(tensor))
    # once for each of the three sides
    assert len(found) == 3
    for blocks in found:
        total = np.zeros_like(tensor)
        for block in blocks:
            total[np.ix_(*block)] += tensor[np.ix_(*block)]
        assert (total == tensor).all()


def test_zeros_and_matrices_are_left_alone() -> None:
    goal = Goal(0, 9, 10**9, BUDGETS["standard"].limits, 0)
    zeros = np.zeros((2, 2, 2), np.int64)
    for method in (COMPOSITION, REMAINDERS):
        assert not list(findings(method, Problem(zeros), goal))
    for shape in product((1, 2), repeat=3):
        dense = np.arange(1, 1 + np.prod(shape)).reshape(shape)
        for found in compositions(Problem(dense), goal):
            assert adds_up(list(found[0].terms), from_dense(dense))  # type: ignore[attr-defined]
