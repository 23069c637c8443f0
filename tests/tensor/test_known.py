"""Tensors of the literature are what their names say, and the table of ranks is right."""

import itertools
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.rank import rank_interval
from capacity.tensor import (
    KNOWN_RANKS,
    KnownTensor,
    SparseTensor,
    complex_numbers,
    cyclic_group,
    determinant,
    from_factors,
    ghz_state,
    group_algebra,
    grouped,
    kronecker,
    matrix_multiplication,
    permanent,
    polynomial_product,
    polynomials_modulo,
    product_group,
    quaternions,
    symmetric_group,
    triangular_matrices,
    truncated_polynomials,
    w_state,
)

NAMES = {known.name: known for known in KNOWN_RANKS}
SEEDS = st.integers(0, 2**16)


def product(tensor: SparseTensor, x: Any, y: Any) -> np.ndarray:
    """T(x, y), the product of two elements whose coefficients are given."""
    return np.einsum("ijk,i,j->k", tensor.to_numpy(), np.ravel(x), np.ravel(y))


def rank_of(matrix: np.ndarray) -> int:
    m, n = matrix.shape
    return flint.fmpz_mat(m, n, matrix.ravel().tolist()).rank()


def two(seed: int, *shapes: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(-9, 10, shape) for shape in shapes]


# ---- what they are ------------------------------------------------------------------------------


@given(SEEDS, *[st.integers(1, 3)] * 3)
def test_matrix_multiplication_multiplies_matrices(seed: int, n: int, m: int, p: int) -> None:
    x, y = two(seed, (n, m), (m, p))
    assert np.array_equal(product(matrix_multiplication(n, m, p), x, y), (x @ y).ravel())


@given(SEEDS, st.integers(1, 5), st.integers(1, 5))
def test_polynomial_product_convolves(seed: int, m: int, n: int) -> None:
    x, y = two(seed, m, n)
    assert np.array_equal(product(polynomial_product(m, n), x, y), np.convolve(x, y))


@given(SEEDS, st.lists(st.integers(-3, 3), min_size=1, max_size=5))
def test_polynomials_are_reduced_by_the_modulus(seed: int, low: list[int]) -> None:
    n = len(low)
    x, y = two(seed, n, n)
    rest = np.convolve(x, y)
    # long division, the highest coefficient first
    for k in range(len(rest) - 1, n - 1, -1):
        rest[k - n : k + 1] -= rest[k] * np.array([*low, 1])
    assert np.array_equal(product(polynomials_modulo([*low, 1]), x, y), rest[:n])


@given(SEEDS)
def test_complex_numbers_and_quaternions_keep_norms(seed: int) -> None:
    x, y = two(seed, 2, 2)
    z = complex(*x.tolist()) * complex(*y.tolist())
    assert product(complex_numbers(), x, y).tolist() == [z.real, z.imag]
    x, y = two(seed, 4, 4)
    assert (product(quaternions(), x, y) ** 2).sum() == (x**2).sum() * (y**2).sum()
    # i j = k, j k = i, k i = j
    one = np.eye(4, dtype=np.int64)
    for a, b, c in ((1, 2, 3), (2, 3, 1), (3, 1, 2)):
        assert product(quaternions(), one[a], one[b]).tolist() == one[c].tolist()
        assert product(quaternions(), one[b], one[a]).tolist() == (-one[c]).tolist()


@given(SEEDS, st.integers(1, 4))
def test_triangular_matrices_are_multiplied(seed: int, n: int) -> None:
    x, y = (np.triu(M) for M in two(seed, (n, n), (n, n)))
    upper = np.triu_indices(n)
    assert np.array_equal(product(triangular_matrices(n), x[upper], y[upper]), (x @ y)[upper])


@pytest.mark.parametrize(
    "tensor",
    [polynomials_modulo([2, -1, 0, 1]), quaternions(), triangular_matrices(3),
     group_algebra(cyclic_group(6)), group_algebra(symmetric_group(3)),
     group_algebra(product_group(cyclic_group(2), symmetric_group(3))),
     matrix_multiplication(2, 2, 2), truncated_polynomials(4)],
)  # fmt: skip
def test_algebras_are_associative_and_have_a_unit(tensor: SparseTensor) -> None:
    T = tensor.to_numpy()
    assert np.array_equal(
        np.einsum("ijm,mkl->ijkl", T, T), np.einsum("jkm,iml->ijkl", T, T)
    )  # (x y) z = x (y z)
    n = len(T)
    # u with u x = x for every x: a linear system
    left = T.transpose(1, 2, 0).reshape(n * n, n).astype(float)
    unit = np.linalg.lstsq(left, np.eye(n).ravel(), rcond=None)[0].round()
    assert np.array_equal(np.einsum("ijk,i->jk", T, unit), np.eye(n))
    assert np.array_equal(np.einsum("ijk,j->ik", T, unit), np.eye(n))


def test_groups_are_what_they_are_called() -> None:
    # the only group of order 6 that doesn't commute, and the two of order 4
    S3, Z6 = symmetric_group(3), product_group(cyclic_group(2), cyclic_group(3))
    assert not np.array_equal(S3, S3.T)
    assert np.array_equal(Z6, Z6.T)
    assert [int((np.diag(G) == 0).sum()) for G in (cyclic_group(4), product_group(
        cyclic_group(2), cyclic_group(2)))] == [2, 4]  # fmt: skip
    a, b = group_algebra(cyclic_group(2)), group_algebra(cyclic_group(3))
    assert group_algebra(Z6) == kronecker(a, b)
    assert product_group().tolist() == [[0]]


@given(SEEDS, st.integers(1, 4))
def test_determinants_and_permanents_are_those_of_matrices(seed: int, n: int) -> None:
    (M,) = two(seed, (n, n))
    for tensor, value in (
        (determinant(n), int(flint.fmpz_mat(n, n, M.ravel().tolist()).det())),
        (permanent(n), sum(int(np.prod([M[i, p[i]] for i in range(n)]))
                           for p in itertools.permutations(range(n)))),
    ):  # fmt: skip
        array: Any = tensor.to_numpy()
        for row in M:
            array = np.tensordot(row, array, axes=(0, 0))
        assert array == value


def test_states_have_the_entries_of_their_names() -> None:
    for place in itertools.product(range(2), repeat=4):
        assert w_state(4).to_numpy()[place] == (sum(place) == 1)
        assert ghz_state(4).to_numpy()[place] == (len(set(place)) == 1)
    assert ghz_state(3, 5).shape == (5, 5, 5)
    assert w_state(32).n_entries == 32


@pytest.mark.slow
def test_wrong_sizes_are_refused_in_words() -> None:
    nested: Any = [[1]]
    wrong: Any = [
        (lambda: matrix_multiplication(0, 1, 1), "`n` must be an integer of at least 1"),
        (lambda: polynomials_modulo([1, 2]), "the last 1; got"),
        (lambda: polynomials_modulo([1]), "degree 1 to"),
        (lambda: polynomials_modulo(nested), "degree 1 to"),
        (lambda: polynomials_modulo([9] * 100 + [1]), r"to 2\^63 - 1; got"),
        (lambda: truncated_polynomials(10**9), "at most 1,024"),
        (lambda: group_algebra([[0, 1], [0, 1]]), "must be that of a group"),
        (lambda: group_algebra([[0, 1, 2], [1, 0, 2]]), "must be that of a group"),
        (lambda: group_algebra([[5]]), "must be that of a group"),
        (lambda: group_algebra([]), "must be that of a group"),
        # x y = x - y modulo 3: a Latin square that isn't associative
        (lambda: group_algebra([[0, 2, 1], [1, 0, 2], [2, 1, 0]]), "must be that of a group"),
        (lambda: symmetric_group(7), "at most 6"),
        (lambda: product_group(*[symmetric_group(4)] * 3), "at most 1,024"),
        (lambda: w_state(33), "at most 32"),
        (lambda: determinant(10), "at most 9"),
        (lambda: ghz_state(3, 0), "`levels`"),
    ]
    for make, reason in wrong:
        with pytest.raises(InvalidArgumentError, match=reason):
            make()
    with pytest.raises(MemoryBudgetError, match="would take"):
        matrix_multiplication(10**4, 10**4, 10**4)


# ---- ranks --------------------------------------------------------------------------------------


def test_the_table_is_in_order() -> None:
    assert len(NAMES) == len(KNOWN_RANKS) > 50
    for known in KNOWN_RANKS:
        assert 0 < known.lower <= known.upper <= known.tensor.n_entries
        assert known.rank == (known.lower if known.lower == known.upper else None)
        assert known.source
    assert {known.tensor.order for known in KNOWN_RANKS} == {3, 4, 5, 6}


@pytest.mark.parametrize("name", NAMES)
def test_matricizations_never_exceed_a_known_rank(name: str) -> None:
    known = NAMES[name]
    modes = range(known.tensor.order)
    for n in range(1, known.tensor.order // 2 + 1):
        for rows in itertools.combinations(modes, n):
            columns = [mode for mode in modes if mode not in rows]
            matrix = grouped(known.tensor, [list(rows), columns]).to_numpy()
            assert rank_of(matrix) <= known.upper


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_certified_intervals_never_contradict_the_table(name: str) -> None:
    known = NAMES[name]
    interval = rank_interval(known.tensor)
    assert interval.lower <= known.upper
    assert known.lower <= interval.upper


def test_matrix_products_of_known_rank_follow_strassen() -> None:
    # M1..M7 of Strassen 1969, in the order a11, a12, a21, a22
    a = [[1, 0, 0, 1], [0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 1, 0, 0], [-1, 0, 1, 0],
         [0, 1, 0, -1]]  # fmt: skip
    b = [[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, -1], [-1, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0],
         [0, 0, 1, 1]]  # fmt: skip
    c = [[1, 0, 0, 1], [0, 0, 1, -1], [0, 1, 0, 1], [1, 0, 1, 0], [-1, 1, 0, 0], [0, 0, 0, 1],
         [1, 0, 0, 0]]  # fmt: skip
    assert from_factors([np.transpose(M) for M in (a, b, c)]) == matrix_multiplication(2, 2, 2)
    assert NAMES["matrices 2 x 2 times 2 x 2"].upper == len(a)


def test_the_determinant_of_three_rows_follows_derksen() -> None:
    # twice the formula of Derksen 2016, section 3.1
    a = [[0, 1, 1], [1, 1, 0], [0, 2, 0], [0, -1, 1], [1, -1, 0]]
    b = [[1, -1, 0], [0, 1, -1], [-1, 0, 1], [1, 1, 0], [0, 1, 1]]
    c = [[1, 1, 0], [0, 1, 1], [1, 0, 1], [-1, 1, 0], [0, -1, 1]]
    total = from_factors([np.transpose(M) for M in (a, b, c)])
    assert total == 2 * determinant(3)
    assert NAMES["determinant 3 x 3"].upper == len(a)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_permanents_follow_glynn(n: int) -> None:
    # 2^(n - 1) perm = sum over signs d with d_1 = 1 of d_1 ... d_n (x) d (x) ... (x) d
    signs = np.array([(1, *rest) for rest in itertools.product((1, -1), repeat=n - 1)]).T
    first = signs * signs.prod(axis=0)
    assert from_factors([first, *[signs] * (n - 1)]) == 2 ** (n - 1) * permanent(n)
    if n > 2:
        assert NAMES[f"permanent {n} x {n}"].upper == signs.shape[1]


def test_quaternions_follow_howell_and_lafon() -> None:
    # eight products of sums of the coefficients of 1, i, j, k; twice the result
    a = [[1, 1, 0, 0], [0, 0, -1, 1], [1, -1, 0, 0], [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, -1],
         [1, 0, 1, 0], [1, 0, -1, 0]]  # fmt: skip
    b = [[1, 1, 0, 0], [0, 0, 1, -1], [0, 0, 1, 1], [1, -1, 0, 0], [0, 1, 1, 0], [0, 1, -1, 0],
         [1, 0, 0, -1], [1, 0, 0, 1]]  # fmt: skip
    c = [[0, 2, 0, 0], [2, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2], [-1, -1, 1, 1], [-1, -1, -1, -1],
         [1, -1, 1, -1], [1, -1, -1, 1]]  # fmt: skip
    assert from_factors([np.transpose(M) for M in (a, b, c)]) == 2 * quaternions()
    assert NAMES["quaternions"].upper == len(a)


@pytest.mark.parametrize(("m", "n"), [(2, 2), (2, 3), (3, 4)])
def test_polynomial_products_follow_karatsuba_and_toom(m: int, n: int) -> None:
    # evaluate at m + n - 1 points, multiply, interpolate: c holds the inverse of the Vandermonde
    # matrix, times its determinant
    points = np.arange(m + n - 1)
    V: Any = flint.fmpz_mat(np.vander(points, increasing=True).tolist())
    scale = int(V.det())
    inverse = np.array([[int(x * scale) for x in row] for row in V.inv().tolist()], object)
    a, b = (np.vander(points, k, increasing=True).T for k in (m, n))
    assert from_factors([a, b, inverse]) == scale * polynomial_product(m, n)
    assert NAMES[f"polynomials of {m} and {n} coefficients"].rank == m + n - 1


def test_w_states_are_sums_of_as_many_terms_as_modes() -> None:
    assert all(NAMES[f"W state of {n} qubits"].rank == n == w_state(n).n_entries
               for n in range(3, 7))  # fmt: skip


def test_a_row_without_a_known_rank_has_none() -> None:
    known = NAMES["matrices 3 x 3 times 3 x 3"]
    assert isinstance(known, KnownTensor)
    assert (known.lower, known.upper, known.rank) == (19, 23, None)
