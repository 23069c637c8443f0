"""The size of database that half of the runs of a layer memorise, found by bisection.

Many sizes of many layers are a costly grid to train, and most of its cells are all or nothing. A
bisection trains only where a layer changes from one to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from capacity.checks import shown
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError


@briefly_shown
@dataclass(frozen=True)
class HalfSize:
    """Size at which the share that memorises falls below one half, between two sizes tried.

    Attributes
    ----------
    size : float
        The size, interpolated between `above` and `below` in its logarithm; NaN if one is None.
    above : int or None
        Largest size tried at which at least half memorised; None if that was at none.
    below : int or None
        The next size tried, at which fewer did; None if there was none.
    shares : mapping of int to float
        Share that memorised at each size tried, by increasing size.
    """

    size: float
    above: int | None
    below: int | None
    shares: Mapping[int, float]

    @property
    def rises(self) -> tuple[tuple[int, int], ...]:
        """Pairs of neighbouring sizes tried between which the share rises.

        Where it does so beyond chance, failed training decides and not size, and the size at which
        half memorise means little. That there is none is weak evidence: a bisection never looks
        again beyond the half, and with few runs per size the shares rise by chance.
        """
        return tuple((a, b) for a, b in pairwise(self.shares) if self.shares[a] < self.shares[b])


def half_size(share_at: Callable[[int], float], sizes: Sequence[int]) -> HalfSize:
    """Bisect a grid of sizes for the one at which half of the runs memorise.

    Parameters
    ----------
    share_at : callable
        Returns the share of runs that memorise databases of a size, between 0 and 1: the
        reliability of one start, or the reach of several (`reach_and_reliability`). It should fall
        with the size, up to chance. It is called about log2(len(sizes)) times.
    sizes : sequence of int
        Sizes that may be tried, positive and increasing.

    Returns
    -------
    HalfSize
        The size and what was tried. Without a size at which at least half memorise `above` is None,
        and without one at which fewer do `below` is.

    Raises
    ------
    InvalidArgumentError
        If the sizes aren't positive and increasing, or a share isn't between 0 and 1.

    Examples
    --------
    >>> found = half_size(lambda size: 1.0 if size < 300 else 0.0, [100, 200, 400, 800])
    >>> found.above, found.below, round(found.size)
    (200, 400, 283)
    >>> list(found.shares), found.rises
    ([200, 400], ())
    """
    if not sizes or sizes[0] <= 0 or any(a >= b for a, b in pairwise(sizes)):
        raise InvalidArgumentError(
            f"`sizes` must be positive numbers that increase; got {shown(list(sizes))}. Sort them, "
            "each once."
        )
    shares: dict[int, float] = {}
    # at least half memorise sizes before `low`, fewer do from `high` on
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high - 1) // 2
        share = share_at(sizes[middle])
        if not isinstance(share, float | int | np.number) or not 0 <= share <= 1:
            raise InvalidArgumentError(
                "`share_at` must return shares between 0 and 1; got "
                f"{shown(share)} at {sizes[middle]}."
            )
        share = float(share)
        shares[sizes[middle]] = share
        if share >= 0.5:
            low = middle + 1
        else:
            high = middle
    above = sizes[low - 1] if low > 0 else None
    below = sizes[low] if low < len(sizes) else None
    size = math.nan
    if above is not None and below is not None:
        of_way = (shares[above] - 0.5) / (shares[above] - shares[below])
        size = above * (below / above) ** of_way
    return HalfSize(size, above, below, dict(sorted(shares.items())))
