"""Random choices made by Hypothesis or from a seed, so that one generator serves both.

Hypothesis shrinks the values of its own ``draw``, which long runs from seeds don't need. So the
generators of this package ask for integers alone. The smallest integer is the simplest, and all
other choices are built of integers so that they become simpler as these become smaller.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Choices built of integers.

    Parameters
    ----------
    integer : callable
        Function of `low` and `high` that chooses an integer between them, both included.
    greedy : bool
        True if `some` always takes as many items as allowed.

    Examples
    --------
    >>> smallest = Choices(lambda low, high: low)
    >>> smallest.order("abc"), smallest.some("abc"), smallest.chance(1, 3)
    (['a', 'b', 'c'], ['a', 'b', 'c'], False)
    """

    def __init__(self, integer: Callable[[int, int], int], *, greedy: bool = False) -> None:
        self.integer = integer
        self._greedy = greedy

    @classmethod
    def drawn(cls, draw: st.DrawFn) -> Choices:
        """Let Hypothesis choose, and shrink."""
        return cls(lambda low, high: draw(st.integers(low, high)) if low < high else low)

    @classmethod
    def seeded(cls, seed: int) -> Choices:
        """Choose pseudo-randomly from a seed."""
        return cls(random.Random(seed).randint)

    def sometimes_greedy(self) -> Choices:
        """Copy these choices, greedy in one of three cases: then bounds are often tight."""
        return Choices(self.integer, greedy=self.chance(1, 3))

    def one(self, items: Sequence[T]) -> T:
        """Choose one of some items; the first is the simplest."""
        return items[self.integer(0, len(items) - 1)]

    def chance(self, wins: int, of: int) -> bool:
        """Return True in `wins` of `of` cases; False is simpler."""
        return self.integer(0, of - 1) >= of - wins

    def order(self, items: Iterable[T]) -> list[T]:
        """Choose an order of the items; the given one is the simplest."""
        left = list(items)
        return [left.pop(self.integer(0, len(left) - 1)) for _ in range(len(left))]

    def some(self, items: Iterable[T], *, most: int | None = None) -> list[T]:
        """Choose at least one of some items, in their order, often all; all is the simplest."""
        left = list(items)
        allowed = len(left) if most is None else min(most, len(left))
        n = allowed if self._greedy or not self.chance(1, 2) else self.integer(1, allowed)
        while len(left) > n:
            del left[self.integer(0, len(left) - 1)]
        return left

    def seed(self) -> int:
        """Choose a seed, for what isn't worth shrinking, such as the start of a numerical fit."""
        return self.integer(0, 2**16)
