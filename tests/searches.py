"""Progress of a search for a rank, taken apart."""

from __future__ import annotations

import re
from collections.abc import Callable

from capacity import Progress


def progress_of(hear: Callable[[int, int, str], object]) -> Progress:
    """Progress that hands on the interval so far and the name of the method that is tried."""

    def progress(what: str, done: int, total: int, left: float | None) -> None:
        found = re.fullmatch(r"(?:effective )?rank in \[(\d+), (\d+)\]: (.+)", what)
        assert found, what
        assert 0 <= done <= total
        assert left is None
        if found[3] == "done":
            assert done == total
            return
        hear(int(found[1]), int(found[2]), found[3])

    return progress
