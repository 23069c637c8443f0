"""Write tests/durations.json: what each quick test took, of the report of a run on an idle machine.

make durations
python tools/durations.py build/durations.xml
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).parents[1]
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
    }
    text = json.dumps(record, indent=1) + "\n"
    (ROOT / "tests" / "durations.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
