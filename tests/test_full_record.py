"""`make test-full` leaves a record of what passed, and none of what failed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracles import ROOT

CASE = '<testcase classname="tests.a" name="test_b" time="1.5"/>'
REPORT = '<testsuites><testsuite errors="0" failures="{n}" skipped="1" tests="3" time="9">{case}'


def test_the_record_is_of_a_run_without_failures() -> None:
    record = json.loads((ROOT / "tests" / "full.json").read_text(encoding="utf-8"))
    # a run of all laws and of the tests of minutes has some hundred
    assert record["passed"] > 300
    assert len(record["commit"]) == 40
    known = subprocess.run(["git", "cat-file", "-t", record["commit"]], cwd=ROOT,
                           capture_output=True, text=True, check=False)  # fmt: skip
    # a shallow clone may not have it
    assert known.stdout.strip() in ("commit", "")


@pytest.mark.parametrize("n", [1, 2])
def test_a_run_with_failures_leaves_no_record(n: int, tmp_path: Path) -> None:
    before = (ROOT / "tests" / "full.json").read_bytes()
    report = tmp_path / "full.xml"
    report.write_text(REPORT.format(n=n, case=CASE) + "</testsuite></testsuites>")
    done = subprocess.run([sys.executable, ROOT / "tools" / "full_tests.py", report],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert f"{n} of 3 tests failed" in done.stderr
    assert (ROOT / "tests" / "full.json").read_bytes() == before
