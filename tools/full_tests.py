"""Write tests/full.json: that `make test-full` passed, of which commit and when, of its report.

make test-full
python tools/full_tests.py build/full.xml [COMMIT]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(report: str, commit: str = "HEAD") -> None:
    """Read a report of pytest in JUnit's format; without a test that failed, write the record."""
    suite = ElementTree.parse(report).getroot()[0]
    numbers = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
    wrong = numbers["failures"] + numbers["errors"]
    if wrong or not numbers["tests"]:
        sys.exit(
            f"{report}: {wrong} of {numbers['tests']} tests failed; there is no record of them"
        )
    of = subprocess.run(
        ["git", "rev-parse", commit], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    record = {
        "commit": of,
        "date": str(suite.get("timestamp", ""))[:10],
        "passed": numbers["tests"] - numbers["skipped"],
        "skipped": numbers["skipped"],
        "wall_seconds": round(float(suite.get("time", 0))),
        "cores": os.cpu_count(),
        "tests_that_took_longest": {
            f"{case.get('classname')}::{case.get('name')}": round(float(case.get("time", 0)))
            for case in sorted(
                suite.iter("testcase"), key=lambda case: -float(case.get("time", 0))
            )[:10]
        },
    }
    text = json.dumps(record, indent=1) + "\n"
    (ROOT / "tests" / "full.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
