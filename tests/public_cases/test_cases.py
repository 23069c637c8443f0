"""Each public report of `cases.toml` has the tests that it names.

The table has a row for each report that was tried from outside, with its label there: what is
right, how that is known, and which tests hold it, here or beside what they test.
"""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
CASES: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("cases.toml").read_text(encoding="utf-8")
)["case"]
# the labels, by the kind of what was read
LABELS = {
    "R": (1, 3, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 20, 21, 22, 25, 27, 28, 30, 32, 33, 34,
          37, 38, 39),
    "T": (1, 3, 5, 6),
    "M": (1, 3, 4, 5, 6, 7, 9, 11),
    "S": (1, 3),
    "E": (1,),
}  # fmt: skip


@cache
def functions_of(file: str) -> frozenset[str]:
    """Return the names of the functions of a file."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_each_report_is_in_the_table_once() -> None:
    labels = [f"{kind}{number}" for kind, numbers in LABELS.items() for number in numbers]
    assert Counter(case["label"] for case in CASES) == Counter(labels)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["label"])
def test_a_report_has_its_tests_and_says_what_is_right(case: dict[str, Any]) -> None:
    assert all(case[key] for key in ("source", "case", "right", "known_by", "tests"))
    for test in case["tests"]:
        file, _, name = test.partition("::")
        assert name.startswith("test_")
        assert name in functions_of(file), test


def test_the_functions_of_this_folder_are_those_of_reports() -> None:
    named = {test for case in CASES for test in case["tests"]}
    for file in ("test_rdf.py", "test_others.py"):
        here = {name for name in functions_of(f"public_cases/{file}") if name.startswith("test_")}
        assert {f"public_cases/{file}::{name}" for name in here} <= named
