import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database, uniform_database
from capacity.errors import InvalidArgumentError
from capacity.testing import databases


@given(databases(), st.floats(0, 1), st.integers(0, 99))
def test_a_share_of_the_facts_gets_other_objects_that_occur(
    db: Database, share: float, seed: int
) -> None:
    if db.shape[-1] < 2:
        return
    noisy = db.with_noise(share, seed)
    assert noisy.shape[:-1] == db.shape[:-1]
    assert set(noisy.objects) <= set(db.objects)
    if db.is_functional:
        # keys stay, and so facts are compared row by row
        changed = [a != b for a, b in zip(db, noisy, strict=True)]
        assert sum(changed) == round(share * len(db))
        assert all(a[:-1] == b[:-1] for a, b in zip(db, noisy, strict=True))
    assert noisy == db.with_noise(share, seed)


def test_new_objects_are_drawn_evenly_from_the_others() -> None:
    db = uniform_database(0, subjects=100, predicates=40, objects=5, triples=4000)
    noisy = db.with_noise(1.0, seed=3)
    moved = (noisy.tuples[:, -1] - db.tuples[:, -1]) % 5
    counts = np.bincount(moved, minlength=5)
    assert counts[0] == 0
    # 1,000 each; the standard deviation is 27
    assert (abs(counts[1:] - 1000) < 140).all()


def test_facts_of_any_arity_and_no_noise() -> None:
    db = Database.from_tuples([("a", "b", "c", "x"), ("a", "b", "d", "y")])
    assert db.with_noise(0) == db
    assert db.with_noise(0.5, 1).n_facts == 2
    assert len(db.with_noise(0.5, 1) & db) == 1


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "half", True])
def test_other_shares_are_refused(share: float) -> None:
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    with pytest.raises(InvalidArgumentError, match="`share` must be"):
        db.with_noise(share)


def test_noise_needs_another_object() -> None:
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "x")])
    with pytest.raises(InvalidArgumentError, match="two or more objects"):
        db.with_noise(0.5)
    assert db.with_noise(0.1) == db
