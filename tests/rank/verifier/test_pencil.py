import flint
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import MemoryBudgetError
from capacity.rank import Pencil, pencil_rank, rank_interval
from capacity.rank.options import BUDGETS
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.kinds.pencil import DEPENDENT
from capacity.rank.verifier.procedures.kronecker_form import distinct_real_roots
from capacity.rank.verifier.procedures.pencils import LARGEST_BLOCK, sparse_pencil_rank
from capacity.testing import databases
from tests.oracles import database
from tests.second_checker import claim, rank_of_two_slices, second_checker
from tests.tiers import examples

ONE = np.eye(2, dtype=int)
entries = st.integers(-2, 2)


def polynomials(n: int) -> np.ndarray:
    """Multiplying a0 + a1 x by n coefficients: one L block of size n."""
    A = np.eye(n, n + 1, dtype=int)
    return np.stack([A, np.roll(A, 1, axis=1)])


def block_diagonal(*blocks: np.ndarray) -> np.ndarray:
    m, n = (sum(b.shape[i] for b in blocks) for i in (1, 2))
    whole, i, j = np.zeros((2, m, n), int), 0, 0
    for b in blocks:
        whole[:, i : i + b.shape[1], j : j + b.shape[2]] = b
        i, j = i + b.shape[1], j + b.shape[2]
    return whole


@pytest.mark.parametrize(
    ("B", "rank"),
    [
        (np.diag([1, 2]), 2),  # two eigenvectors
        (np.array([[0, -1], [1, 0]]), 3),  # complex eigenvalues
        (np.array([[0, 1], [0, 0]]), 3),  # a Jordan block
        (np.array([[0, 2], [1, 0]]), 2),  # eigenvalues +-sqrt(2), real and irrational
        (ONE, 2),  # one slice twice
        (0 * ONE, 2),
    ],
)
def test_two_by_two_by_two(B: np.ndarray, rank: int) -> None:
    assert pencil_rank(ONE, B) == pencil_rank(B, ONE) == rank


def test_l_blocks_need_one_more_than_their_size() -> None:
    # products of polynomials with 2 and n coefficients: n + 1 (Winograd)
    for n in range(1, 7):
        A, B = polynomials(n)
        assert pencil_rank(A, B) == pencil_rank(A.T, B.T) == n + 1


def test_delta_counts_the_root_with_the_most_bad_blocks() -> None:
    rotation = np.stack([ONE, np.array([[0, -1], [1, 0]])])
    jordan = np.stack([ONE, np.array([[0, 1], [0, 0]])])
    # three blocks of one pair of roots, one of another root: 8 + max(3, 1)
    whole = block_diagonal(rotation, rotation, rotation, jordan)
    assert pencil_rank(*whole) == 11
    # the same, hidden by a change of bases of all three modes
    P = np.triu(np.ones((8, 8), int))
    hidden = P @ whole @ P.T
    assert pencil_rank(hidden[0] + 3 * hidden[1], hidden[1]) == 11


def test_a_jordan_block_of_the_rotation_counts_once() -> None:
    # the real Jordan block of i of size two: one invariant polynomial, (x^2 + 1)^2
    J = np.array([[0, -1, 1, 0], [1, 0, 0, 1], [0, 0, 0, -1], [0, 0, 1, 0]])
    assert pencil_rank(np.eye(4, dtype=int), J) == 5


@given(st.integers(1, 4), st.integers(1, 4), st.data())
@settings(max_examples=examples(300))
def test_invariants_agree_with_determinantal_divisors(m: int, n: int, data: st.DataObject) -> None:
    flat = data.draw(st.lists(entries, min_size=2 * m * n, max_size=2 * m * n))
    two = np.array(flat).reshape(2, m, n)
    assert pencil_rank(*two) == rank_of_two_slices(two)


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4), st.data())
@settings(max_examples=examples(200))
def test_the_rank_never_exceeds_a_decomposition_and_no_basis_changes_it(
    m: int, n: int, r: int, data: st.DataObject
) -> None:
    def matrix(rows: int, columns: int) -> np.ndarray:
        size = rows * columns
        return np.array(data.draw(st.lists(entries, min_size=size, max_size=size))).reshape(
            rows, columns
        )

    two = np.einsum("sr,ir,jr->sij", matrix(2, r), matrix(m, r), matrix(n, r))
    rank = pencil_rank(*two)
    assert rank <= r
    P, Q = matrix(2, 2), matrix(m, m)
    assume(round(np.linalg.det(P)) and round(np.linalg.det(Q)))
    turned = np.einsum("ab,ij,bjk->aik", P, Q, two)
    assert pencil_rank(*turned) == pencil_rank(*turned.transpose(0, 2, 1)) == rank


@given(databases(max_predicates=2))
@settings(max_examples=examples(300))
def test_two_predicates_are_solved(db: Database) -> None:
    interval = rank_interval(db)
    assert interval.closed
    dense = db.to_numpy().astype(np.int64)
    slices = [dense[:, q] for q in range(dense.shape[1])] + [0 * dense[:, 0]]
    rank = pencil_rank(slices[0], slices[1])
    assert interval.lower == rank
    # the argument itself is an interval of its own
    if dense.shape[1] == 2:
        argument = Pencil(1, np.array([0, 1]), rank)
        # of two predicates with the same facts it is true too, but the checker refuses it
        same = np.array_equal(slices[0], slices[1])
        for side in ("lower", "upper"):
            certificate = claim(db, argument, side=side)
            reason = DEPENDENT if same and side == "upper" else None
            assert verify(certificate, db).reason == reason
            assert second_checker(certificate, db)
        wrong = claim(db, Pencil(1, np.array([0, 1]), rank + 1))
        assert verify(wrong, db).reason == f"the two slices have rank {rank}"


def test_two_predicates_with_the_same_facts_are_no_pencil_from_above() -> None:
    db = database([(0, "a", 0), (0, "b", 0)])
    argument = Pencil(1, np.array([0, 1]), 1)
    assert verify(claim(db, argument, side="upper"), db).reason == DEPENDENT
    assert verify(claim(db, argument, side="lower"), db).proved


def test_many_predicates_that_span_two_dimensions_are_solved() -> None:
    # a rotation: rank 3; a third predicate is the union of the other two
    rows = [(0, "a", 0), (1, "a", 1), (0, "b", 1), (1, "b", 2), (2, "b", 0), (2, "a", 2)]
    rows += [(k, "c", v) for k, _, v in rows]
    db = database(rows)
    interval = rank_interval(db)
    assert interval.closed
    argument = Pencil(1, np.array([0, 1]), interval.lower)
    assert verify(claim(db, argument, side="upper"), db).proved
    # with a predicate that isn't a combination of the two, it proves nothing from above
    more = database([*rows, (0, "d", 0)])
    verdict = verify(claim(more, argument, side="upper"), more)
    assert verdict.reason == "slice 3 is no combination of the two"


@pytest.mark.slow
def test_large_sparse_slices_are_solved() -> None:
    # 3,000 subjects, two predicates, objects shared by few: thousands of small blocks
    rng = np.random.default_rng(0)
    rows = [(k, q, int(rng.integers(2500))) for k in range(3000) for q in range(2)
            if rng.random() < 0.4]  # fmt: skip
    db = database(rows)
    interval = rank_interval(db)
    assert interval.closed
    assert verify(interval.certificates.lower, db).proved
    assert verify(interval.certificates.upper, db).proved


def test_too_large_a_block_is_refused_before_it_is_solved() -> None:
    n = 60
    places = np.arange(n * n)
    values = np.random.default_rng(0).integers(1, 9, (n * n, 2))
    with pytest.raises(MemoryBudgetError, match="2,000 entries at most; got one of 3,600"):
        sparse_pencil_rank(*np.divmod(places, n), values)
    # what the search tries, the checker takes
    assert max(budget.limits.pencil for budget in BUDGETS.values()) <= LARGEST_BLOCK


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=4), st.integers(0, 2))
def test_sturm_counts_distinct_real_roots(roots: list[int], pairs: int) -> None:
    f = flint.fmpq_poly([1])
    for root in roots:
        f = f * flint.fmpq_poly([-root, 1])
    for i in range(pairs):
        f = f * flint.fmpq_poly([i + 1, 0, 1])
    assert distinct_real_roots(-f) == distinct_real_roots(f) == len(set(roots))


def test_entries_that_would_wrap_around_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 2\\^31"):
        pencil_rank(2**61 * ONE, ONE)


@pytest.mark.slow
def test_long_l_blocks_and_dense_singular_pencils_take_no_minutes() -> None:
    A, B = polynomials(300)
    assert pencil_rank(A, B) == 301
    rng = np.random.default_rng(0)
    # generic pencils of n x (n + 3) have L blocks alone: rank n + 3
    A, B = rng.integers(0, 2, (2, 25, 28))
    assert pencil_rank(A, B) == 28
