"""Write tests/durations.json: what each quick test took, of the report of a run on an idle machine.

make durations
python tools/durations.py build/durations.xml

It fails if a test took longer than a quick one may, and writes the record all the same. What tests
share, such as a sweep that a module's tests read, is the time of none of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
# the longest that a test may take which isn't marked slow
MOST = 2.0
# quicker ones are counted alone
LEAST = 0.5


def main(report: str) -> None:
    """Read a report of pytest in JUnit's format, and write those that take longest first."""
    suite = ElementTree.parse(report).getroot()[0]
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    taken = {
        f"{case.get('classname')}::{case.get('name')}": float(case.get("time", 0))
        for case in suite.iter("testcase")
    }
    longest = sorted(taken.items(), key=lambda one: -one[1])
    record = {
        "commit": commit,
        "cores": os.cpu_count(),
        "tests": len(taken),
        "wall_seconds": round(float(suite.get("time", 0))),
        "seconds_of_all": round(sum(taken.values())),
        "seconds": {name: round(s, 1) for name, s in longest if s >= LEAST},
        # by which tests/test_house.py sees that a record has grown old
        "tests_of": dict(sorted(Counter(name.partition("::")[0] for name in taken).items())),
    }
    text = json.dumps(record, indent=1) + "\n"
    (ROOT / "tests" / "durations.json").write_text(text, encoding="utf-8")
    too_long = [f"{name} took {s:.1f} s" for name, s in longest if s > MOST]
    if too_long:
        sys.exit("\n".join([*too_long, f"A test over {MOST:g} s must be marked slow, or do less."]))


if __name__ == "__main__":
    main(*sys.argv[1:])
