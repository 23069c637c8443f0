"""The list of faults fits the code of today: each has one place, and its record is of this list."""

from __future__ import annotations

import json
import tomllib

from tests.oracles import ROOT

LIST = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]


def test_each_fault_has_one_place() -> None:
    places = [(ROOT / one["file"]).read_text(encoding="utf-8").count(one["old"]) for one in LIST]
    assert places == [1] * len(LIST)


def test_the_record_is_of_these_faults() -> None:
    record = json.loads((ROOT / "tests" / "mutants.json").read_text(encoding="utf-8"))
    faults = [{key: row[key] for key in ("file", "old", "new")} for row in record["rows"]]
    assert faults == [{key: one[key] for key in ("file", "old", "new")} for one in LIST]
