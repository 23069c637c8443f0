"""No quick test takes over two seconds, by the record of the last run on an idle machine.

The record is of a commit: once a tenth of today's quick tests aren't in it, it has to be made anew.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.oracles import ROOT
from tools.durations import MOST

# a session of fewer tests is of some files alone
ALL = 1_000


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return json.loads((ROOT / "tests" / "durations.json").read_text(encoding="utf-8"))


def share_known(tests: list[str], record: dict[str, Any]) -> float:
    """The share of tests, by the names of their modules, that a record has at most."""
    today = Counter(tests)
    return sum(min(n, record["tests_of"].get(name, 0)) for name, n in today.items()) / len(tests)


def test_quick_tests_take_at_most_two_seconds(record: dict[str, Any]) -> None:
    assert record["tests"] > ALL
    assert {name: s for name, s in record["seconds"].items() if s > MOST} == {}


def test_the_record_knows_nearly_all_of_todays_quick_tests(
    request: pytest.FixtureRequest, record: dict[str, Any]
) -> None:
    quick = [
        item.nodeid.partition("::")[0].removesuffix(".py").replace("/", ".")
        for item in request.session.items
        if item.get_closest_marker("slow") is None and item.nodeid.startswith(("tests", "capacity"))
    ]
    if len(quick) < ALL:
        pytest.skip("some files alone were collected")
    assert share_known(quick, record) >= 0.9, "Run `make durations` on an idle machine."


def test_a_test_that_came_later_is_not_known() -> None:
    record = {"tests_of": {"tests.test_one": 2}}
    assert share_known(["tests.test_one"] * 2, record) == 1
    # one more in a file that is known, and a file that isn't
    assert share_known(["tests.test_one"] * 3 + ["tests.test_two"], record) == 0.5
