"""The time that a sweep has left, from the costs of its runs and how fast they have gone so far.

Runs differ a thousandfold in what they cost, so that their number alone says little: an hour may
be left after nine runs of ten. Their estimates may all be wrong by a factor, for another machine or
many workers; the pace so far corrects it.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class TimeLeft:
    """A clock of work that is done in pieces of known cost.

    Parameters
    ----------
    cost : float
        Of all that is to be done, in any unit.
    clock : callable, optional
        Gives the time in seconds.

    Examples
    --------
    A second for a tenth of the work, so that nine are left:

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
        """Count work that is done now."""
        self._done += cost

    def seconds(self) -> float | None:
        """About how many seconds are left; None before anything is done."""
        if not self._done:
            return None
        return max(0.0, self._cost - self._done) * (self._clock() - self._began) / self._done
