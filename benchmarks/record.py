"""One record for every benchmark: what, beside which peer, the ratio, medians, and on what machine.

Ours and the peer's runs are interleaved, so that what else the machine does falls on both.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from digests import digest_here, registered
from rich.progress import track

RESULTS = Path(__file__).parent / "results"
Task = TypeVar("Task")
# stands for the commit, among the tasks
COMMIT = "commit"


def cpu_flags() -> list[str]:
    """Vector extensions of this processor, where the system tells."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    return sorted(f for f in flags if f.startswith(("sse4", "avx", "fma")))


def medians(runs: dict[str, Callable[[], object]], *, repeats: int) -> dict[str, float]:
    """Median CPU seconds of each run, interleaved."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def run_all(
    run: Callable[[Task], dict[str, Any]], tasks: list[Task], *, kept: Path, workers: int
) -> list[dict[str, Any]]:
    """Run all tasks, and keep each row in a file as it comes: what is there isn't run again.

    But for what has "failed". The file is of one commit: others' rows are refused. Each worker has
    one thread: threads of several, waiting for each other, took three times the CPU seconds.
    """
    # an earlier version, beside which some benchmarks run, has it elsewhere
    from capacity.installation.parts import THREADS

    os.environ.update(dict.fromkeys(THREADS, "1"))
    kept.parent.mkdir(parents=True, exist_ok=True)
    rows = {task: row for task, row in _kept(kept) if "failed" not in row}
    of = rows.setdefault(COMMIT, {"is": commit()})["is"]
    if of != commit():
        raise SystemExit(f"{kept} holds rows of commit {of}; here is {commit()}. Remove it.")
    todo = [task for task in tasks if str(task) not in rows]
    context = multiprocessing.get_context("spawn")
    with kept.open("a") as file, context.Pool(workers) as pool:
        # a line that was cut off stays alone
        file.write("\n" + json.dumps([COMMIT, rows[COMMIT]]) + "\n")
        for task, row in track(pool.imap_unordered(_Keyed(run), todo), kept.stem, total=len(todo)):
            rows[str(task)] = row
            file.write(json.dumps([str(task), row]) + "\n")
            file.flush()
    return [rows[str(task)] for task in tasks]


def commit() -> str:
    """The commit; on a machine without its repository, what CAPACITY_COMMIT says it is."""
    if given := os.environ.get("CAPACITY_COMMIT"):
        return given
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    return subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True
    ).stdout.strip()


class _Keyed:
    """A run that says of which task its row is."""

    def __init__(self, run: Callable[[Any], dict[str, Any]]) -> None:
        self._run = run

    def __call__(self, task: Any) -> tuple[Any, dict[str, Any]]:
        return task, self._run(task)


def _kept(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """What is done; a line that was cut off is done again."""
    found: list[tuple[str, dict[str, Any]]] = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            task, row = json.loads(line)
        except ValueError:
            continue
        found.append((task, row))
    return found


def write(
    name: str, *, what: str, peer: str, rows: list[dict[str, Any]], packages: list[str]
) -> None:
    """Write the record of a benchmark, and print it; `records.toml` has what it measures."""
    record = {
        "commit": commit(),
        "digest": digest_here(registered()[name]["modules"]),
        "what": what,
        "peer": peer,
        "rows": rows,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "machine": {"cores": os.cpu_count(), "cpu_flags": cpu_flags(), "load": os.getloadavg()[0]},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(rows, indent=1))


def environment(**more: str) -> dict[str, str]:
    """Variables for a process of its own: modules are compiled once, as where they are installed.

    Nothing is written beside them.
    """
    compiled = Path(__file__).parents[1] / "build" / "bytecode"
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(compiled), **more}
