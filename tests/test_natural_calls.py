"""Calls that people write before they read anything, each of which answers."""

from __future__ import annotations

import pytest

import capacity
from capacity import Database, rank_interval, verify
from capacity.errors import CapacityError
from capacity.rank import CertificatePair
from capacity.tensor import matrix_multiplication, w_state

# the rank of the W state is 3 (its border rank is 2), and that of a 2 x 2 x 2 product is 7, which
# quick bounds don't reach from both sides
CLOSED = rank_interval(w_state(3))
OPEN = rank_interval(matrix_multiplication(2, 2, 2))

# intervals


def test_the_ends_of_an_interval_are_integers() -> None:
    assert (type(CLOSED.lower), type(CLOSED.upper)) == (int, int)
    assert CLOSED.lower == 3
    assert CLOSED.upper <= 7
    assert OPEN.lower < OPEN.upper


def test_an_interval_unpacks_and_contains_and_formats() -> None:
    lower, upper = OPEN
    assert (lower, upper) == (OPEN.lower, OPEN.upper) == tuple(OPEN)
    assert [n in OPEN for n in (lower - 1, lower, upper, upper + 1)] == [False, True, True, False]
    assert f"{CLOSED}" == str(CLOSED) == "[3, 3]"
    assert f"{CLOSED:>4}" == "[   3,    3]"
    assert OPEN.to_dict()["lower"] == lower


def test_intervals_with_equal_ends_are_equal() -> None:
    again = rank_interval(w_state(3))
    assert again == CLOSED
    assert CLOSED == (3, 3)
    assert OPEN not in (CLOSED, (3, 3))
    assert {again, CLOSED, (3, 3)} == {CLOSED}
    assert CLOSED != "[3, 3]"


@pytest.mark.parametrize("number", [3, 4, 3.0, True])
def test_an_interval_is_not_compared_with_a_number_in_silence(number: float) -> None:
    with pytest.raises(CapacityError, match=rf"`{number} in interval`"):
        assert number == CLOSED


def test_proofs_of_the_ends_are_verified_alone_and_together() -> None:
    lower, upper = CLOSED.certificates
    assert (lower.value, upper.value) == tuple(CLOSED)
    for proof in (CLOSED, CLOSED.certificates, lower, upper, [upper, lower]):
        assert verify(proof, w_state(3))
    with pytest.raises(CapacityError, match="of a lower and of an upper bound"):
        verify(CertificatePair(upper, lower), w_state(3))


def test_an_interval_is_saved_and_loaded() -> None:
    db = Database.from_triples([("Ada", "born in", "London"), ("Alan", "born in", "London")])
    assert capacity.verify(capacity.rank_interval(db), db)
