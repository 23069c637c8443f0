"""Files that something has hit: how many end in an answer, and how many in one clear line.

    make soak-hostile     (some minutes)

2,000 certificates; 1,000 manifests, rank files, tables and checkpoints; 1,000 files of each format
of facts, seeded; and the files that were made to harm (tests/harmful.py, and for each reader
tests/harmful_files.py). Each kind is met in one process that may take a gigabyte more than its
imports. What isn't an answer or one line within five seconds of its CPU is an error.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from record import write

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.harmful import CASES
from tests.harmful_files import OTHERS, kinds_of
from tests.hostile import READERS

FACTS = "turtle", "trig", "n3", "ntriples", "nquads", "rdfxml", "jsonld", "tsv", "csv"
FILES = {
    "certificates": 2_000,
    "sweeps": 600,
    "checkpoints": 400,
    **dict.fromkeys(FACTS, 1_000),
    "harmful": len(CASES),
    **{f"harmful {one}": len(OTHERS if one == "others" else kinds_of(one)) for one in READERS},
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = []
    for kind, files in FILES.items():
        command = [sys.executable, "-m", "tests.hostile", kind, str(files), str(options.seed)]
        done = subprocess.run(
            command, cwd=Path(__file__).parent.parent, check=True, stdout=subprocess.PIPE, text=True
        )
        rows.append(json.loads(done.stdout))
    write(
        "soak_hostile",
        what="files that something has hit: answers, clear lines, and anything else (none may be)",
        peer="none: anything else is an error",
        rows=rows,
        packages=["numpy", "pyarrow", "pyoxigraph", "python-flint", "safetensors", "torch"],
    )
    if any(row["not_right"] for row in rows):
        raise SystemExit("some file ended in neither an answer nor one line")


if __name__ == "__main__":
    main()
