"""Seconds that a run of an experiment takes, also of one that was stopped and went on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


@contextmanager
def spending(kept: Path) -> Iterator[dict[str, float]]:
    """Add what the body takes to what earlier parts of the run took, even if it is stopped.

    Parameters
    ----------
    kept : pathlib.Path
        Where the sum waits for the next part; whoever has all of the run removes the file.

    Yields
    ------
    dict of str to float
        Filled when the body ends: `seconds` by the clock, and `processor_seconds` of this process
        and of those that it started, which other work on the machine hardly changes.
    """
    total: dict[str, float] = {"seconds": 0.0, "processor_seconds": 0.0}
    begun, clock = _processor_seconds(), time.monotonic()
    try:
        yield total
    finally:
        before = json.loads(kept.read_text()) if kept.exists() else total
        total.update(
            seconds=before["seconds"] + time.monotonic() - clock,
            processor_seconds=before["processor_seconds"] + _processor_seconds() - begun,
        )
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(total))


def _processor_seconds() -> float:
    """Those of this process, of what it started, and of what these started and waited for."""
    here = psutil.Process()
    return sum(sum(each.cpu_times()[:4]) for each in (here, *here.children(recursive=True)))
