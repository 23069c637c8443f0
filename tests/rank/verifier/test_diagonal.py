import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.rank import Diagonalization, View, pencil_rank, rank_interval
from capacity.rank.lower.diagonalization import nonsingular_combination
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.procedures.simultaneous_diagonalization import (
    all_singular,
    why_not_diagonal,
)
from tests.oracles import KNOWN_RANKS, database
from tests.second_checker import claim, second_checker
from tests.tiers import examples

entries = st.integers(-2, 2)


@given(st.integers(1, 3), st.data())
@settings(max_examples=examples(200))
def test_two_square_slices_agree_with_their_pencil(n: int, data: st.DataObject) -> None:
    flat = data.draw(st.lists(entries, min_size=2 * n * n, max_size=2 * n * n))
    slices = np.array(flat).reshape(2, n, n)
    combination = nonsingular_combination(slices, seed=0, tries=50)
    if combination is None:
        return
    assert all_singular(slices) is False
    # the rank is n, or at least n + 1
    assert (why_not_diagonal(slices, combination) is None) == (pencil_rank(*slices) == n)


@given(st.integers(2, 4), st.integers(1, 4), st.data())
@settings(max_examples=examples(100))
def test_slices_made_diagonal_in_common_bases_pass(n: int, m: int, data: st.DataObject) -> None:
    def unitriangular() -> np.ndarray:
        flat = data.draw(st.lists(entries, min_size=n * n, max_size=n * n))
        return np.triu(np.array(flat).reshape(n, n), 1) + np.eye(n, dtype=int)

    diagonals = np.array(data.draw(st.lists(entries, min_size=m * n, max_size=m * n)))
    A, B = unitriangular(), unitriangular().T
    slices = np.einsum("ir,mr,rj->mij", A, diagonals.reshape(m, n), B)
    combination = nonsingular_combination(slices, seed=0)
    assert combination is None or why_not_diagonal(slices, combination) is None


def test_a_singular_combination_says_nothing() -> None:
    with pytest.raises(ValueError, match="nonsingular"):
        why_not_diagonal(np.ones((1, 2, 2), int), np.array([1]))


@pytest.mark.parametrize(("name", "n"), [("Z/3", 3), ("Z/4", 4)])
def test_cyclic_groups_have_eigenvalues_that_are_not_real(name: str, n: int) -> None:
    db = KNOWN_RANKS[name][0]()
    interval = rank_interval(db, methods=["diagonalization"])
    # over the complex numbers the rank is n: unfoldings show no more
    assert (interval.lower, interval.certificates.lower.by) == (n + 1, "diagonalization")
    assert verify(interval.certificates.lower, db).proved


def test_slices_that_do_not_commute_are_named() -> None:
    slices = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]])
    assert why_not_diagonal(slices, np.array([1, 0, 0])) == "slices 1 and 2 do not commute"


# all combinations are singular: skew-symmetric 3 x 3 in absolute values has determinant 2abc, so
# take the compression 3 x 3 with a zero block of 2 x 2
SINGULAR = [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 0, 1), (2, 0, 2), (1, 0, 2)]


def test_slices_that_are_all_singular_show_n_plus_one() -> None:
    # rows k = 1, 2 live in the column q = 0 alone
    db = database(SINGULAR)
    slices = np.moveaxis(db.to_numpy().astype(np.int64), 2, 0)
    assert all_singular(slices)
    view = View((np.arange(3), np.arange(3), np.arange(3)))
    argument = Diagonalization(view, 2, np.zeros(0, np.int64), 4)
    certificate = claim(db, argument)
    assert verify(certificate, db).reason is None
    assert second_checker(certificate, db)


def test_what_does_not_follow_is_refused() -> None:
    db = database([(i, i, i) for i in range(3)])
    view = View((np.arange(3), np.arange(3), np.arange(3)))
    ones, nothing = np.ones(3, np.int64), np.zeros(0, np.int64)

    def reason(argument: Diagonalization, side: str) -> str | None:
        certificate = claim(db, argument, side=side)
        assert verify(certificate, db).proved == second_checker(certificate, db)
        return verify(certificate, db).reason

    assert reason(Diagonalization(view, 0, ones, 3), "upper") is None
    assert reason(Diagonalization(view, 0, ones, 4), "lower") == (
        "the slices are diagonal in common bases"
    )
    assert reason(Diagonalization(view, 0, nothing, 4), "lower") == (
        "some combination of the slices may be nonsingular"
    )
    singular = Diagonalization(view, 0, np.array([1, 0, 0]), 3)
    assert reason(singular, "upper") == "The combination of the slices must be nonsingular."
    # a part of the facts doesn't stand for all of them: one component, rank 3, of which 2 are seen
    joined = database([(0, 0, 0), (1, 1, 1), (2, 2, 2), (0, 1, 1), (1, 2, 2)])
    part = View((np.arange(2), np.arange(2), np.arange(2)))
    argument = Diagonalization(part, 2, np.array([1, 1]), 2)
    verdict = verify(claim(joined, argument, side="upper"), joined)
    assert "do not span" in str(verdict.reason) or "not diagonal" in str(verdict.reason)
