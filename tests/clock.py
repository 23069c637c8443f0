"""How slow this machine is, for limits that are seconds of a core.

A processor of another kind, and one whose time others take, computes the same work in more seconds
of its own count. So a limit is held against what a loop takes here, as the work is done.
"""

from __future__ import annotations

import time

# what the loop takes on the core of which the limits are seconds
LOOP, LOOP_SECONDS = 500_000, 0.025


def slowness() -> float:
    """How many times as long as there a loop takes here: 1 at least."""
    start = time.process_time()
    total = 0
    for i in range(LOOP):
        total += i
    return max(1.0, (time.process_time() - start) / LOOP_SECONDS)
