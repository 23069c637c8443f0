"""One record for every benchmark: what, beside which peer, the ratio, medians, and on what machine.

Ours and the peer's runs are interleaved, so that what else the machine does falls on both.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


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


def write(
    name: str, *, what: str, peer: str, rows: list[dict[str, Any]], packages: list[str]
) -> None:
    """Write the record of a benchmark, and print it."""
    record = {
        "what": what,
        "peer": peer,
        "rows": rows,
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "machine": {"cores": os.cpu_count(), "cpu_flags": cpu_flags(), "load": os.getloadavg()[0]},
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(rows, indent=1))
