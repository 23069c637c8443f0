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

Slice i of a mode hides, in the fibers f where it is nonzero or unknown, the known entries of all
other slices: with W[f] known nonzeros in a fiber, sum over these f of (W[f] - its own). These sums
are kept for all slices, and corrected when an entry becomes unknown or goes. That happens twice to
an entry at most, and concerns the slices that its fibers cross; so a whole order takes no more than
twice `size * sum(shape)` steps, however many slices are removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.kept_code import run_kernel

# states of an entry
GONE, ZERO, NONZERO, UNKNOWN = 0, 1, 2, 3
# of a known zero that is hidden, beside a nonzero: one is drawn for each order
WEIGHTS_OF_ZEROS = (0.0, 0.05, 0.2)


def greedy_removals(
    values: Mask, known: Mask, *, orders: int, seed: int, target: int | None = None
) -> Indices:
    """Search greedily for a long order of slices to remove.

    Parameters
    ----------
    values : ndarray of bool, shape (n0, n1, ...)
        Where the tensor, of any order, is nonzero.
    known : ndarray of bool, shape (n0, n1, ...)
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
    shape = np.array(values.shape, np.int64)
    strides = np.cumprod(np.append(1, shape[:0:-1]))[::-1].copy()
    state = np.where(known, np.where(values, NONZERO, ZERO), UNKNOWN).astype(np.int8).ravel()
    # at m len(state) + e the index of the entry e in the mode m
    places = np.indices(values.shape, np.int32).ravel()
    n_slices = int(shape.sum())
    # counts at the start, and of the order that is being made
    counts = [
        [np.zeros(len(places), np.int32) for _ in range(2)]
        + [np.zeros(n_slices, np.int64) for _ in range(3)]
        for _ in range(2)
    ]
    lists = *(np.zeros(n_slices, np.int64) for _ in range(2)), np.zeros(len(state), np.int64)
    best = run_kernel(
        _longest_order,
        orders * len(state) * n_slices,
        state,
        state.copy(),
        shape,
        strides,
        places,
        *counts[0],
        *counts[1],
        *lists,
        np.array(WEIGHTS_OF_ZEROS),
        orders,
        n_slices + 1 if target is None else target,
        np.random.default_rng(seed),
    )
    best = np.array(best, np.int64)
    first = np.cumsum(shape) - shape
    modes = np.searchsorted(first, best, side="right") - 1
    return np.stack([modes, best - first[modes]], axis=1)


def _longest_order(
    entries: Any,
    state: Any,
    shape: Any,
    strides: Any,
    places: Any,
    ones_in_at_first: Any,
    zeros_in_at_first: Any,
    ones_of_at_first: Any,
    lost_ones_at_first: Any,
    lost_zeros_at_first: Any,
    ones_in: Any,
    zeros_in: Any,
    ones_of: Any,
    lost_ones: Any,
    lost_zeros: Any,
    removed: Any,
    longest: Any,
    changing: Any,
    weights_of_zeros: Any,
    orders: Any,
    target: Any,
    rng: Any,
) -> Any:
    """Return the slices that the longest greedy order removes, numbered through all modes.

    For the fiber along a mode m through the entry e, of index 0 in that mode, `ones_in` and
    `zeros_in` count known entries, at m len(entries) + e. For a slice, `ones_of` counts known
    nonzeros, `lost_ones` and `lost_zeros` the known entries that its removal would hide in others.
    """
    size = len(entries)
    first = 0
    for m in range(len(shape)):
        n, s = shape[m], strides[m]
        for h in range(0, size, n * s):
            for start in range(h, h + s):
                fiber = m * size + start
                ones = known_zeros = 0
                for i in range(n):
                    ones += entries[start + i * s] == NONZERO
                    known_zeros += entries[start + i * s] == ZERO
                ones_in_at_first[fiber], zeros_in_at_first[fiber] = ones, known_zeros
                for i in range(n):
                    nonzero = entries[start + i * s] == NONZERO
                    ones_of_at_first[first + i] += nonzero
                    if entries[start + i * s] >= NONZERO:
                        lost_ones_at_first[first + i] += ones - nonzero
                        lost_zeros_at_first[first + i] += known_zeros
        first += n
    n_longest = 0
    for _ in range(orders):
        state[:] = entries
        ones_in[:], zeros_in[:], ones_of[:] = ones_in_at_first, zeros_in_at_first, ones_of_at_first
        lost_ones[:], lost_zeros[:] = lost_ones_at_first, lost_zeros_at_first
        weights = rng.uniform(0.2, 2, len(shape))
        zeros = weights_of_zeros[rng.integers(0, len(weights_of_zeros))]
        n_removed = 0
        while True:
            least, mode, index = np.inf, -1, -1
            first = 0
            for m in range(len(shape)):
                playable = False
                for i in range(shape[m]):
                    playable = playable or ones_of[first + i] > 0
                if playable:
                    for i in range(shape[m]):
                        number = first + i
                        noise = rng.random() * 1e-3
                        lost = lost_ones[number] + zeros * lost_zeros[number] + ones_of[number]
                        if ones_of[number] > 0 and lost * weights[m] + noise < least:
                            least, mode, index = lost * weights[m] + noise, m, i
                            removed[n_removed] = number
                first += shape[m]
            if mode < 0:
                break
            n_removed += 1
            n, s = shape[mode], strides[mode]
            n_changing = 0
            for h in range(0, size, n * s):
                for start in range(h, h + s):
                    if state[start + index * s] >= NONZERO:
                        for i in range(n):
                            before = state[start + i * s]
                            if i != index and before in (ZERO, NONZERO):
                                changing[n_changing] = start + i * s
                                n_changing += 1
            n_hidden = n_changing
            for h in range(index * s, size, n * s):
                for e in range(h, h + s):
                    changing[n_changing] = e
                    n_changing += state[e] != GONE
            for number in range(n_changing):
                e = changing[number]
                before, after = state[e], UNKNOWN if number < n_hidden else GONE
                first = 0
                for m in range(len(shape)):
                    n_m, s_m = shape[m], strides[m]
                    i = places[m * size + e]
                    start = e - i * s_m
                    fiber = m * size + start
                    if before == NONZERO:
                        ones_of[first + i] -= 1
                        ones_in[fiber] -= 1
                        for j in range(n_m):
                            lost_ones[first + j] -= state[start + j * s_m] >= NONZERO
                        # a slice doesn't hide its own entries
                        lost_ones[first + i] += 1
                    elif before == ZERO:
                        zeros_in[fiber] -= 1
                        # without a weight they aren't asked for
                        for j in range(n_m if zeros > 0 else 0):
                            lost_zeros[first + j] -= state[start + j * s_m] >= NONZERO
                    # what the entry hides in its fiber, which no longer counts the entry itself
                    if before >= NONZERO and after == GONE:
                        lost_ones[first + i] -= ones_in[fiber]
                        lost_zeros[first + i] -= zeros_in[fiber]
                    elif before == ZERO and after == UNKNOWN:
                        lost_ones[first + i] += ones_in[fiber]
                        lost_zeros[first + i] += zeros_in[fiber]
                    first += n_m
                state[e] = after
        if n_removed > n_longest:
            n_longest = n_removed
            longest[:n_removed] = removed[:n_removed]
        if n_longest >= target:
            break
    return longest[:n_longest]
