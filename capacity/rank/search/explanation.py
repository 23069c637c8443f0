"""Say in words what an interval rests on, what stopped it, and what is left open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.rank.lower.koszul import highest_bound
from capacity.rank.types import Indices

# in words, of each component
Methods: TypeAlias = NDArray[np.object_]
# why a component isn't searched
TOO_LARGE = "too large for the searches of this effort: only bounds that scale"
AS_A_WHOLE = "too large as a whole: only components are searched, one by one"
TOO_MANY = "not searched: more components are open than this effort takes on"


@dataclass(frozen=True)
class Open:
    """Facts whose interval is open.

    Attributes
    ----------
    n_facts : int
    shape : tuple of int
        Subjects, predicates, objects.
    lower, upper : int
    notes : tuple of str
        What else is to be said of them: why they weren't searched, or a bound that doesn't add.
    flattened : bool
        Whether flattenings are tried: all entries must be known for that.
    """

    n_facts: int
    shape: tuple[int, int, int]
    lower: int
    upper: int
    notes: tuple[str, ...] = ()
    flattened: bool = True

    def in_words(self) -> list[str]:
        """What they are, and what stopped the search."""
        k, q, v = self.shape
        ends = f"[{self.lower:,}, {self.upper:,}]"
        lines = [f"{self.n_facts:,} facts, {k:,} x {q:,} x {v:,}, in {ends}", *self.notes]
        if self.flattened and (highest := highest_bound(self.shape)) < self.upper:
            lines.append(
                f"no flattening that is tried can show more than {highest:,}; the substitution "
                "game could"
            )
        return lines


def contributions(values: Indices, methods: Methods) -> str:
    """Which method gives how much of a bound, on how many components.

    Examples
    --------
    >>> contributions(np.array([3, 1, 1]), np.array(["flip graph", "slices", "slices"], object))
    '3 by flip graph, 2 by slices on 2 components'
    """
    parts: list[tuple[int, str]] = []
    for method in sorted(set(methods.tolist())):
        mine = methods == method
        where = f" on {mine.sum():,} components" if mine.sum() > 1 else ""
        parts.append((int(values[mine].sum()), f" by {method}{where}"))
    return ", ".join(f"{value:,}{words}" for value, words in sorted(parts, reverse=True))


def explained(
    lower: tuple[Indices, Methods],
    upper: tuple[Indices, Methods],
    widest: Open | None,
    n_open: int = 1,
    n_components: int = 1,
) -> tuple[str, ...]:
    """Say what both bounds rest on, and what is left.

    Parameters
    ----------
    lower, upper : (values, methods)
        What adds up to the bounds.
    widest : Open or None
        Of what is open; None if nothing is.
    n_open, n_components : int
    """
    lines = [
        f"at least {lower[0].sum():,}: {contributions(*lower)}",
        f"at most {upper[0].sum():,}: {contributions(*upper)}",
    ]
    if widest is None:
        return tuple(lines)
    first, *others = widest.in_words()
    several = n_components > 1
    open_ = f"{n_open:,} of {n_components:,} components; the widest, " if several else ""
    return (*lines, f"open: {open_}{first}", *others)
