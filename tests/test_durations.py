"""No quick test takes over five seconds, by the record of the last run on an idle machine."""

from __future__ import annotations

import json

from tests.oracles import ROOT

# seconds of a test that isn't marked slow
MOST = 5


def test_quick_tests_take_at_most_five_seconds() -> None:
    record = json.loads((ROOT / "tests" / "durations.json").read_text(encoding="utf-8"))
    assert record["tests"] > 1_000
    assert {name: s for name, s in record["seconds"].items() if s > MOST} == {}
