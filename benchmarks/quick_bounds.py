"""How long `quick` bounds take a database, beside an earlier version of this library.

    git worktree add /tmp/before 54e84fe
    python benchmarks/quick_bounds.py /tmp/before [--repeats 5]

CPU seconds of `rank_interval(db)`, at effort quick, in two processes that take turns at each
database: one of this checkout and one of the other. Both have bounded all databases once before
they are timed, so that no import and no compilation is included. These are told apart: wall seconds
of the first interval in a new process, with compiled kernels on disk and without.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from interval_width import FAMILIES
from record import write

from capacity.database import Database, random_database
from capacity.rank import rank_interval

HERE = Path(__file__).parents[1]
# databases of each family
COUNT = 40
# whose interval is open after all bounds that need no search
TYPICAL = ("random", 12)


def drawn(family: str, seed: int) -> Database:
    if family == "random":
        return random_database(seed, triples=(4, 200))
    return FAMILIES[family](seed)


def answer() -> None:
    """Bound each database that standard input names, and print the seconds and both ends."""
    for line in sys.stdin:
        db = drawn(*json.loads(line))
        wall, start = time.perf_counter(), time.process_time()
        found = rank_interval(db)
        seconds = time.process_time() - start, time.perf_counter() - wall
        # earlier versions had certificates there
        lower, upper = (getattr(end, "value", end) for end in (found.lower, found.upper))
        print(json.dumps([*seconds, lower, upper, db.n_triples]), flush=True)


class Version:
    """A process that bounds databases by the code of a checkout."""

    def __init__(self, root: Path, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--answer"],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root), **environment},
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def bound(self, family: str, seed: int) -> list[Any]:
        """Return CPU seconds, wall seconds, both ends and the number of facts."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([family, seed]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """Let the process end."""
        self._process.communicate()


def first_interval(root: Path, **environment: str) -> float:
    """Wall seconds of the first interval of a process, after its imports."""
    version = Version(root, **environment)
    seconds = version.bound(*TYPICAL)[1]
    version.end()
    return seconds


def compared(versions: dict[str, Version], family: str, repeats: int) -> dict[str, Any]:
    """Seconds a database of one family, and how the ends compare."""
    cells = [(family, seed) for seed in range(COUNT)]
    answers = {
        name: {cell: [version.bound(*cell)] for cell in cells} for name, version in versions.items()
    }
    for _ in range(repeats):
        for cell in cells:
            for name, version in versions.items():
                answers[name][cell].append(version.bound(*cell))
    seconds = {
        name: np.array([statistics.median(a[0] for a in of[cell][1:]) for cell in cells])
        for name, of in answers.items()
    }
    now, before = (
        np.array([answers[name][cell][0][2:4] for cell in cells]) for name in ("now", "before")
    )
    assert all(
        a[2:] == of[cell][0][2:] for of in answers.values() for cell in cells for a in of[cell]
    )
    return {
        "family": family,
        "databases": COUNT,
        "mean_facts": round(statistics.mean(answers["now"][cell][0][4] for cell in cells), 1),
        "repeats": repeats,
        **{name: summary(of) for name, of in seconds.items()},
        "ratio_of_means": round(float(seconds["before"].mean() / seconds["now"].mean()), 1),
        "equal": int((now == before).all(axis=1).sum()),
        "narrower": int(((now[:, 1] - now[:, 0]) < (before[:, 1] - before[:, 0])).sum()),
        "with_a_worse_end": int(((now[:, 0] < before[:, 0]) | (now[:, 1] > before[:, 1])).sum()),
    }


def summary(seconds: np.ndarray) -> dict[str, float]:
    return {
        "mean_s": round(float(seconds.mean()), 4),
        "median_s": round(float(np.median(seconds)), 4),
        "p90_s": round(float(np.quantile(seconds, 0.9)), 4),
        "max_s": round(float(seconds.max()), 4),
    }


def cold(before: Path, repeats: int) -> dict[str, Any]:
    times: dict[str, list[float]] = {"before": [], "kernels_on_disk": [], "kernels_compiled": []}
    for _ in range(repeats):
        times["before"].append(first_interval(before))
        times["kernels_on_disk"].append(first_interval(HERE))
        with tempfile.TemporaryDirectory() as folder:
            times["kernels_compiled"].append(first_interval(HERE, NUMBA_CACHE_DIR=folder))
    return {
        "what": "wall seconds of the first interval of a process, numba's import included",
        "facts": drawn(*TYPICAL).n_triples,
        "repeats": repeats,
        **{f"{name}_s": round(statistics.median(taken), 3) for name, taken in times.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--answer", action="store_true")
    options = parser.parse_args()
    if options.answer:
        answer()
        return
    if options.before is None:
        parser.error("give the folder of a checkout of the version before")
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=options.before, check=True,
                            capture_output=True, text=True).stdout.strip()  # fmt: skip
    versions = {"now": Version(HERE), "before": Version(options.before)}
    rows = [compared(versions, family, options.repeats) for family in ("random", *FAMILIES)]
    for version in versions.values():
        version.end()
    rows.append(cold(options.before.resolve(), 3))
    write(
        "quick_bounds",
        what="CPU seconds of rank_interval(db) at effort quick, a database",
        peer=f"this library at commit {commit}",
        rows=rows,
        packages=["numpy", "scipy", "python-flint", "numba"],
    )


if __name__ == "__main__":
    main()
