"""Numbers out of range, negative, huge and equal in every field of every kind of certificate.

The fields are found by a walk over the forms that a kind declares and over what is written to JSON,
so that a new kind, or a new field, is met without a line here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.rank import Certificate
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.kinds import KINDS
from capacity.testing.arguments.combined import KINDS as OF_SIDES
from capacity.testing.arguments.combined import drawn_certificate
from capacity.testing.choices import Choices
from capacity.testing.known_databases import known_rank
from tests.second_checker import second_checker

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
