"""Files that something has hit: an answer or one clear line, soon, and within a gigabyte.

1,200 of them here; `make soak-hostile` meets 12,000, and its record is
benchmarks/results/soak_hostile.json.
"""

import json
import subprocess
import sys

import pytest

from tests.hostile_rdf import WHOLE
from tests.oracles import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "files"),
    [("certificates", 160), ("sweeps", 60), ("checkpoints", 80), *((name, 100) for name in WHOLE)],
)
def test_a_file_that_was_hit_ends_in_an_answer_or_in_one_line(kind: str, files: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile", kind, str(files), "1"],
        cwd=ROOT, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["not_right"] == []
    # each sweep is read, and gone on with
    assert counts["answer"] + counts["line"] == files * (2 if kind == "sweeps" else 1)
    assert counts["line"] > files / 10
