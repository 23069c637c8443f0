from dataclasses import replace

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from capacity.database import Database
from capacity.errors import MemoryBudgetError
from capacity.exact import block_rank
from capacity.exact import ranks as exact
from capacity.exact.elimination import eliminate
from capacity.rank import Unfolding, matrix_rank, rank_interval
from capacity.rank.verifier.checker import verify
from tests.tiers import examples


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
    first = block_rank.PRIME
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
    for g, dense in enumerate(blocks):
        i, j = np.nonzero(dense)
        rows.append(i + offset)
        columns.append(j + offset)
        groups.append(np.full(len(i), g))
        offset += 10
    got = exact.sparse_rank_by_group(*(np.concatenate(x) for x in (rows, columns, groups)))
    assert got.tolist() == [3, 1, 4]


def test_a_dense_block_over_the_budget_is_refused_before_it_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_rank, "DENSE_BUDGET", 100)
    # nothing peels: each row and column of ones less the identity has seven entries
    with pytest.raises(MemoryBudgetError, match="8 x 8 entries is left"):
        matrix_rank(np.ones((8, 8), int) - np.eye(8, dtype=int))


def test_matrices_of_other_numbers_are_refused() -> None:
    for bad in (np.array([[1.5, 1], [1, 1]]), np.array([[1, 2**64 - 1]], dtype=np.uint64)):
        with pytest.raises(TypeError, match="integers of 64 bits"):
            matrix_rank(bad)


def test_a_sample_of_rows_is_enough_for_tall_matrices() -> None:
    # a table: 5,000 rows of three categories with 20, 30 and 40 values; the columns of each
    # category add up to the same ones, so the rank is 90 - 2
    rng = np.random.default_rng(0)
    values = np.stack([rng.integers(0, n, 5000) for n in (20, 30, 40)], axis=1)
    values += np.array([0, 20, 50])
    # one value that a sample of rows is unlikely to see, twice so that it doesn't peel
    values[[17, 18], 2] = 90
    rows = np.repeat(np.arange(5000), 3)
    places = np.unique(np.stack([rows, values.ravel()], axis=1), axis=0).T
    ones = np.ones(places.shape[1], np.int64)
    for i, j in (places, places[::-1]):
        basis = block_rank.block_basis(i, j, ones, minor=True)
        assert basis.rank == len(basis.rows) == len(basis.columns) == 91 - 2
        # the basis is one: the submatrix is nonsingular
        dense = np.zeros((int(i.max()) + 1, int(j.max()) + 1), np.int64)
        dense[i, j] = 1
        assert rational_rank(dense[np.ix_(basis.rows, basis.columns)]) == 89


@given(st.integers(0, 2**32), st.sampled_from([0, block_rank.SMALL]))
@settings(max_examples=examples(30), deadline=None)
def test_sparse_elimination_keeps_the_rank(seed: int, small: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.integers(-2, 3, (25, 20)) * (rng.random((25, 20)) < 0.25)
    # dependent rows, so that fractions and kernels matter
    dense[:5] = dense[5:10] + dense[10:15]
    i, j = np.nonzero(dense)
    found = eliminate(i, j, dense[i, j])
    rest = np.zeros_like(dense)
    rest[found.rows, found.columns] = found.values
    assert len(found.pivot_rows) + rational_rank(rest) == rational_rank(dense)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_rank, "LONG", 3)
        patch.setattr(block_rank, "SMALL", small)
        basis = block_rank.block_basis(i, j, dense[i, j], minor=True)
    assert basis.rank == rational_rank(dense)
    assert rational_rank(dense[np.ix_(basis.rows, basis.columns)]) == basis.rank
    assert basis.eliminated > 0


def test_kernels_with_fractions_are_read_off_the_prime() -> None:
    # x = (1, -3/2, 5/7): columns 14 a, and what makes them dependent
    rng = np.random.default_rng(0)
    a, b = rng.integers(-5, 6, (2, 9))
    dense = np.stack([3 * a, 2 * a, 7 * b, 5 * b, a + b], axis=1)
    assert rational_rank(dense) == matrix_rank(dense) == 2


@pytest.mark.slow
def test_a_large_sparse_graph_is_certified() -> None:
    # a random relation of 3,000 x 3,000 with 4 facts a row: a core of thousands doesn't peel
    rng = np.random.default_rng(0)
    edges = np.unique(rng.integers(0, 3000, 12_000) * 3000 + rng.integers(0, 3000, 12_000))
    k, v = np.divmod(edges, 3000)
    db = Database.from_triples([(f"k{a}", "knows", f"v{b}") for a, b in zip(k, v, strict=True)],
                               multi="keep")  # fmt: skip
    interval = rank_interval(db)
    assert interval.closed
    (argument,) = interval.certificates.lower.arguments
    assert isinstance(argument, Unfolding)
    assert argument.eliminated.max() > 500
    assert verify(interval.certificates.lower, db).proved
    # a pivot that moves behind the row that needs it is noticed
    rows = argument.rows.copy()
    start = len(rows) - int(argument.blocks[-1])
    rows[[start, start + 1]] = rows[[start + 1, start]]
    moved = replace(interval.certificates.lower, arguments=(replace(argument, rows=rows),))
    assert not verify(moved, db).proved
