import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from capacity.errors import MemoryBudgetError
from capacity.rank import exact, matrix_rank


def rational_rank(matrix: np.ndarray) -> int:
    """Gaussian elimination over the rationals, by another library's routine."""
    rows, columns = matrix.shape
    return flint.fmpq_mat(flint.fmpz_mat(rows, columns, matrix.ravel().tolist())).rank()


small = st.tuples(st.integers(1, 8), st.integers(1, 8))


@given(arrays(np.int64, small, elements=st.integers(-2, 2)))
def test_rank_agrees_with_rational_elimination(matrix: np.ndarray) -> None:
    assert matrix_rank(matrix) == rational_rank(matrix)


@given(arrays(np.int64, small, elements=st.integers(0, 1)))
def test_rank_of_zeros_and_ones_agrees_with_rational_elimination(matrix: np.ndarray) -> None:
    assert matrix_rank(matrix) == rational_rank(matrix) == matrix_rank(matrix.T)


@given(st.integers(0, 2**32), st.integers(1, 6))
def test_rank_of_a_dense_product_is_found(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-9, 10, (12, rank)), rng.integers(-9, 10, (rank, 15))
    a[:rank] = np.eye(rank)
    b[:, :rank] = np.eye(rank)
    assert matrix_rank(a @ b) == rank


def test_a_rank_that_the_first_primes_miss_is_still_found() -> None:
    first = exact._previous_prime(2**62)
    # determinant `first`: singular modulo the first prime, regular over the rationals
    matrix = np.array([[first + 1, 1], [1, 1]])
    modulo = flint.nmod_mat(flint.fmpz_mat(2, 2, matrix.ravel().tolist()), first).rank()
    assert modulo == 1
    assert matrix_rank(matrix) == 2


def test_zero_and_empty_matrices_have_rank_zero() -> None:
    assert matrix_rank(np.zeros((3, 4), int)) == 0
    assert exact.sparse_rank(np.zeros(0, np.int64), np.zeros(0, np.int64)) == 0


def test_groups_get_their_own_ranks() -> None:
    # a 3 x 3 circulant of rank 3, a 2 x 2 block of ones, and a diagonal of 4
    blocks = [
        np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]),
        np.ones((2, 2), int),
        np.eye(4, dtype=int),
    ]
    rows, columns, groups = [], [], []
    offset = 0
    for g, block in enumerate(blocks):
        i, j = np.nonzero(block)
        rows.append(i + offset)
        columns.append(j + offset)
        groups.append(np.full(len(i), g))
        offset += 10
    got = exact.sparse_rank_by_group(*(np.concatenate(x) for x in (rows, columns, groups)))
    assert got.tolist() == [3, 1, 4]


def test_a_dense_block_over_the_budget_is_refused_before_it_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact, "DENSE_BUDGET", 100)
    # nothing peels: each row and column of ones less the identity has seven entries
    with pytest.raises(MemoryBudgetError, match="8 x 8 entries is left"):
        matrix_rank(np.ones((8, 8), int) - np.eye(8, dtype=int))


def test_matrices_of_other_numbers_are_refused() -> None:
    for bad in (np.array([[1.5, 1], [1, 1]]), np.array([[1, 2**64 - 1]], dtype=np.uint64)):
        with pytest.raises(TypeError, match="integers of 64 bits"):
            matrix_rank(bad)
