"""Lower bounds by the substitution method, with a greedy order of steps.

Removing a nonzero slice lowers the rank of a tensor by at least one, if suitable multiples of it
are subtracted from the other slices of its mode first (Alexeev, Forbes, Tsimerman 2011). The
multiples are unknown, so the entries they touch become unknown too; a slice can be removed as long
as some entry of it is known and nonzero. The number of removals bounds the rank from below and,
with the unobserved fibers unknown from the start, the effective rank. The proof is in
`capacity.rank.verifier.kinds.substitution`.

The order decides how many slices can be removed. It is chosen greedily: the next slice is the one
that hides the fewest known entries. This is repeated with random weights for the modes and for
known zeros.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from capacity.rank.types import Indices, Mask


def greedy_removals(
    values: Mask, known: Mask, *, orders: int, seed: int, target: int | None = None
) -> Indices:
    """Search greedily for a long order of slices to remove.

    Parameters
    ----------
    values : ndarray of bool, shape (n0, n1, n2)
        Where the tensor is nonzero.
    known : ndarray of bool, shape (n0, n1, n2)
        Entries that are known from the start.
    orders : int
        Number of greedy runs.
    seed : int
        Seed of the random weights and ties.
    target : int, optional
        Stop once an order has this many steps.

    Returns
    -------
    ndarray of int64, shape (n_removals, 2)
        The longest order found: a pair (mode, index) for each slice that is removed.

    Examples
    --------
    The W state, all of whose unfoldings have rank 2, has rank 3:

    >>> w = np.array([[[0, 1], [1, 0]], [[1, 0], [0, 0]]], bool)
    >>> len(greedy_removals(w, np.ones(w.shape, bool), orders=3, seed=0))
    3
    """
    rng = np.random.default_rng(seed)
    best = np.zeros((0, 2), np.int64)
    for _ in range(orders):
        weights = rng.uniform(0.2, 2, 3)
        removals = _order(values, known, weights, float(rng.choice([0.0, 0.05, 0.2])), rng)
        if len(removals) > len(best):
            best = removals
        if target is not None and len(best) >= target:
            break
    return best


def _order(
    values: Mask, known: Mask, weights: NDArray[np.float64], zeros: float, rng: np.random.Generator
) -> Indices:
    value, sure, live = values.copy(), known.copy(), np.ones(values.shape, bool)
    removals: list[tuple[int, int]] = []
    while True:
        ones = sure & value
        worth = ones + zeros * (sure & ~value)
        hides = live & (value | ~sure)
        best = (np.inf, -1, -1)
        for mode in range(3):
            a, b = (m for m in range(3) if m != mode)
            playable = np.flatnonzero(ones.any(axis=(a, b)))
            if not len(playable):
                continue
            # known entries that a removal would hide in all slices, less those of the slice itself
            lost = np.tensordot(
                np.moveaxis(hides, mode, 0), worth.sum(axis=mode), axes=([1, 2], [0, 1])
            ) - (hides * worth).sum(axis=(a, b))
            cost = (lost + ones.sum(axis=(a, b))) * weights[mode] + rng.random(len(lost)) * 1e-3
            i = playable[cost[playable].argmin()]
            if cost[i] < best[0]:
                best = (float(cost[i]), mode, int(i))
        if best[1] < 0:
            return np.array(removals, np.int64).reshape(-1, 2)
        _, mode, i = best
        removals.append((mode, i))
        sure &= ~np.expand_dims(hides.take(i, mode), mode)
        dead = [slice(None)] * 3
        dead[mode] = slice(i, i + 1)
        for array in (value, sure, live):
            array[tuple(dead)] = False
