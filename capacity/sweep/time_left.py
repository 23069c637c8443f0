"""Estimate of a sweep's remaining time, from the costs of its runs and the pace so far.

Costs of runs differ by a factor of a thousand, so that their number alone says little: an hour may
remain after nine runs of ten. The estimated costs may all be off by a common factor, on another
machine or with many workers; the pace so far corrects it.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class TimeLeft:
    """Remaining time of work that is done in pieces of known cost.

    Parameters
    ----------
    cost : float
        Total cost of the work, in any unit.
    clock : callable, optional
        Returns the time in seconds.

    Examples
    --------
    A tenth of the work takes one second, so that nine remain:

    >>> seconds = iter([100.0, 101.0])
    >>> left = TimeLeft(50.0, clock=lambda: next(seconds))
    >>> left.done(5.0)
    >>> left.seconds()
    9.0
    """

    def __init__(self, cost: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._cost, self._clock = cost, clock
        self._done, self._began = 0.0, clock()

    def done(self, cost: float) -> None:
        """Record that work of some cost is done."""
        self._done += cost

    def seconds(self) -> float | None:
        """Estimate the seconds left; None before anything is done."""
        if not self._done:
            return None
        return max(0.0, self._cost - self._done) * (self._clock() - self._began) / self._done
