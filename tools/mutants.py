"""Which tests catch which faults: put each into a copy of the tree, and run the tests concerned.

    python tools/mutants.py [tests/mutants.toml]

Writes what caught each beside the list, tests/mutants.json. A fault is a text of a file that is
there once, what stands in its place, and what pytest is told to run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "mutants.toml"


def caught_by(mutant: dict[str, Any], tree: Path) -> str | None:
    """Name the first test that fails with the fault, or None."""
    path = tree / mutant["file"]
    source = path.read_text(encoding="utf-8")
    if source.count(mutant["old"]) != 1:
        sys.exit(
            f"{mutant['file']} must have {mutant['old']!r} once; it has it "
            f"{source.count(mutant['old'])} times. Mend the list."
        )
    path.write_text(source.replace(mutant["old"], mutant["new"]), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "-m", "not full",
               *mutant["tests"]]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
    path.write_text(source, encoding="utf-8")
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode > 1 and found is None:
        sys.exit(f"{mutant['tests']}: the tests can't be run: {done.stdout}{done.stderr}")
    return found and found[1]


def main(listed: Path) -> None:
    """Try all faults of a list, and tell of each as it comes."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        for name in names:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
        for mutant in tomllib.loads(listed.read_text(encoding="utf-8"))["mutant"]:
            start = time.monotonic()
            by = caught_by(mutant, tree)
            rows.append({**mutant, "caught_by": by})
            seconds = time.monotonic() - start
            print(mutant["file"], repr(mutant["new"]), by or "NOT CAUGHT", f"({seconds:.0f} s)")
    caught = sum(row["caught_by"] is not None for row in rows)
    record = {"commit": commit, "mutants": len(rows), "caught": caught, "rows": rows}
    listed.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else LIST)
