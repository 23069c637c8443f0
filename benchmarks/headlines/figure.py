"""Headline figures, and ratios of interleaved runs: medians of CPU seconds."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["ratio", "count"]


@dataclass(frozen=True)
class Figure:
    """A number that `make bench` holds against its limit.

    Attributes
    ----------
    kind : {"ratio", "count"}
        A ratio of times, of which several tries may be made, or a count that is the same on any
        machine.
    beside : str
        What a ratio is to, in the same run; what a count is of.
    measure : callable
        Returns the number.
    """

    kind: Kind
    beside: str
    measure: Callable[[], float]


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that have ended below it."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def ratio(
    ours: Callable[[], object],
    peer: Callable[[], object],
    *,
    repeats: int,
    clock: Callable[[], float] = cpu_seconds,
) -> float:
    """Median of the ratios of pairs of runs that follow one another; the first pair isn't counted.

    What else the machine does falls on both of a pair.
    """
    found: list[float] = []
    for _ in range(repeats + 1):
        seconds = []
        for run in (ours, peer):
            start = clock()
            run()
            seconds.append(clock() - start)
        found.append(seconds[0] / seconds[1])
    return statistics.median(found[1:])


def calibration() -> None:
    """Take a few tens of milliseconds, half of it in Python, half in numpy's small operations."""
    kept: dict[int, int] = {}
    for i in range(120_000):
        kept[i & 1023] = i
    rows = np.arange(64) * 37 % 64
    for _ in range(2_500):
        order = np.argsort(rows)
        np.bincount(rows[order])


def wall_seconds() -> float:
    """Seconds of the clock, for what runs in several processes."""
    return time.perf_counter()
