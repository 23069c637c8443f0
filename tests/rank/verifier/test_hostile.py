"""Certificates that nobody honest writes: refused, and soon."""

import json

import numpy as np
import pytest

from capacity.database import Database
from capacity.errors import CertificateError
from capacity.rank import (
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    Koszul,
    View,
)
from capacity.rank.verifier.checker import verify
from tests.oracles import database
from tests.second_checker import claim

CUBE = [(k, q, v) for k in range(3) for q in range(3) for v in range(2)]
VIEW = View((np.arange(3), np.arange(3), np.arange(2)))


def test_bases_whose_sums_pass_64_bits_are_refused() -> None:
    rng = np.random.default_rng(0)
    large = np.array([[2**62, 2**62, 2**62 + 1], [2**62 + 3, -(2**62), 2**62]], np.int64)
    small = rng.integers(-1000, 1000, (3, 3))
    db = database(CUBE)
    for P in (large, large.astype(float)):
        view = View(VIEW.indices, (P, small, None))
        for mode in range(3):
            certificate = claim(db, Koszul(view, mode, 0, 2**31 - 1, 2))
            assert not verify(certificate, db).proved


def test_a_diagonalization_needs_a_coefficient_a_slice() -> None:
    db = database([(i, i, i) for i in range(3)])
    view = View((np.arange(3), np.arange(3), np.arange(3)))
    for coefficients in ([], [1, 1], [1, 1, 1, 1]):
        bad = Diagonalization(view, 0, np.array(coefficients, np.int64), 3)
        assert not verify(claim(db, bad, side="upper"), db).proved


@pytest.mark.slow
def test_an_enclosure_of_a_few_facts_of_very_many() -> None:
    n = 200_000
    db = Database.from_triples([(f"k{i:06}", f"q{i:06}", f"v{i:06}") for i in range(n)])
    one = np.ones((1, 1))
    view = View((np.array([5]), np.array([5]), np.array([5])))
    near = Enclosure(view, (one, one, one), np.array([0]), 1e-9)
    reason = verify(claim(db, near, side="upper"), db).reason
    assert reason is not None
    assert reason == "the arguments add up to 0 at (0, 0, 0), which holds 1"


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300, 1e-300])
def test_factors_that_no_fit_has_are_refused(number: float) -> None:
    db = database([(0, 0, 0)])
    one = np.ones((1, 1))
    view = View((np.array([0]), np.array([0]), np.array([0])))
    near = Enclosure(view, (one, one * number, one), np.array([0]), 1e-9)
    assert not verify(claim(db, near, side="upper"), db).proved


def test_more_terms_than_anyone_needs_are_refused() -> None:
    db = database(CUBE)
    factors = tuple(np.ones((n, 700_000)) for n in db.shape)
    near = Enclosure(VIEW, factors, np.arange(18), 1e-9)  # type: ignore[arg-type]
    assert not verify(claim(db, near, side="upper"), db).proved


def test_arguments_that_repeat_themselves_are_refused() -> None:
    db = database(CUBE)
    data = claim(db, Decomposition(()), side="upper").to_dict()
    for arguments in ([{"kind": "decomposition", "terms": []}],
                      [{"kind": "decomposition", "terms": []}] * 1000):  # fmt: skip
        again = Certificate.from_dict({**data, "arguments": arguments})
        assert not verify(again, db).proved


@pytest.mark.slow
def test_a_format_of_any_kind_is_named() -> None:
    nested: object = []
    for _ in range(100_000):
        nested = [nested]
    for what in (nested, 10**5000, None, "other"):
        with pytest.raises(CertificateError, match="must have the format"):
            Certificate.from_dict({"format": what})
    with pytest.raises(CertificateError):
        Certificate.from_dict(json.loads("[]"))
