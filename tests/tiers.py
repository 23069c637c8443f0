"""How much of a law is tried: a part in `make test`, all of it in `make test-full`."""

from __future__ import annotations

from hypothesis import settings

# of the profiles in conftest.py, by their numbers of examples
FULL, PART = 100, 30


def examples(n: int, *, part: int = PART) -> int:
    """The number of examples of a law: n under the profile ``full``, and a part of them else."""
    return n if settings().max_examples >= FULL else min(n, part)
