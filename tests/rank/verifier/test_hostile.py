"""Certificates that nobody honest writes: refused, and soon.

The fields are found by a walk over the forms that a kind declares and over what is written to JSON,
so that a new kind, or a new field, is met without a line here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from capacity.database import Database
from capacity.errors import CapacityError, CertificateError, InvalidArgumentError
from capacity.rank import (
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    Koszul,
    View,
)
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.kinds import KINDS
from capacity.testing.arguments.combined import KINDS as OF_SIDES
from capacity.testing.arguments.combined import drawn_certificate
from capacity.testing.choices import Choices
from capacity.testing.known_databases import known_rank
from tests.oracles import database
from tests.second_checker import claim, second_checker

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


Path = tuple[Any, ...]
NUMBERS: tuple[Any, ...] = (
    -1, 0, 1, 2, 3, 999_999, -999_999, 2**20 + 1, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1,
    2**63, -(2**63), 10**30, True, 0.5, 1e300, None,
)  # fmt: skip
# of coefficients, which are texts
TEXTS = ("0", "-1", "2", "999999", "1/0", "-7/3", "9" * 400, "1e9", "", "nan")
# places of a field that are changed
PLACES = 3
# forms that have other names in JSON
UNNAMED = ("view",)


def leaves(data: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of all numbers and texts."""
    if isinstance(data, dict | list):
        inside = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in inside:
            yield from leaves(value, (*path, key))
    elif data is not None:
        yield path


def at(data: Any, path: Path) -> Any:
    return at(data[path[0]], path[1:]) if path else data


def changes(data: Any) -> Iterator[tuple[str, Any]]:
    """The field, and the data with another number there, for every field and number."""
    times: Counter[Path] = Counter()
    for path in leaves(data):
        field = tuple("*" if isinstance(key, int) else key for key in path)
        old, beside = at(data, path), at(data, path[:-1])
        times[field] += 1
        if times[field] > PLACES or path[-1] in ("kind", "format", "by"):
            continue
        equal = [x for x in beside if x != old][:1] if isinstance(beside, list) else []
        near = [old + 1, old - 1, -old] if isinstance(old, int) else []
        for new in (*(TEXTS if isinstance(old, str) else NUMBERS), *near, *equal):
            other = json.loads(json.dumps(data))
            at(other, path[:-1])[path[-1]] = new
            yield ".".join(field), other


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "kind"), [(side, kind) for side, kinds in OF_SIDES.items() for kind in kinds]
)
def test_any_number_in_any_field_is_refused_or_true(side: Any, kind: str) -> None:
    choose = Choices.seeded(sum(map(ord, kind)))
    forms = KINDS[kind].argument.forms
    missing = {name for name, form in forms.items() if form not in UNNAMED}
    drawn = 0
    while drawn < 3 or missing:
        known = known_rank(choose)
        db = known.database
        try:
            one = drawn_certificate(choose, db, quantity="rank", side=side, kind=kind)
        except InvalidArgumentError:
            # no argument of this kind is there
            continue
        drawn += 1
        for field, data in changes(one.to_dict()):
            missing -= {*field.split(".")}
            try:
                claim = Certificate.from_dict(data)
                if not verify(claim, db, budget=CheckBudget(10**9)).proved:
                    continue
            except CapacityError:
                continue
            assert second_checker(claim, db), data
            if known.rank is not None and claim.quantity == "rank":
                low = claim.value <= known.rank
                assert low if claim.side == "lower" else claim.value >= known.rank, data
