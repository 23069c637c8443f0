"""Search for an order of the substitution method by simulated annealing.

The state is an order of all slices of all modes. It is evaluated by removing each slice that is
known to be nonzero at its turn and skipping the others, which can't become removable later. A step
of annealing moves one slice to another place, or swaps two. Orders that are at least as good are
always accepted, worse ones with probability exp(-loss / temperature); the temperature falls
linearly.

Entries are stored as bits: the mode with the most slices is packed 64 entries per word, so that a
removal touches n_a n_b ceil(n_c / 64) words.

References
----------
S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Optimization by simulated annealing, Science 1983.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask
from capacity.kept_code import kept

HOTTEST = 0.6
# entries per compiled call, about a second, so that Ctrl-C is noticed in between
STRIDE = 5 * 10**8


def annealed_removals(
    values: Mask, known: Mask, start: Indices, *, steps: int, seed: int, target: int
) -> Indices:
    """Improve an order of slices to remove by simulated annealing.

    Parameters
    ----------
    values : ndarray of bool, shape (n0, n1, n2)
        Where the tensor is nonzero.
    known : ndarray of bool, shape (n0, n1, n2)
        Entries that are known from the start.
    start : ndarray of int64, shape (n_removals, 2)
        Pairs (mode, index) of the initial order; slices that it lacks follow in random order.
    steps : int
        Steps of annealing.
    seed : int
        Seed of the annealing.
    target : int
        Stop once this number of slices can be removed.

    Returns
    -------
    ndarray of int64, shape (n_removals, 2)
        The longest order found, as pairs (mode, index); `start` if none is longer.
    """
    rng = np.random.default_rng(seed)
    packed_mode = int(np.argmax(values.shape))
    modes = [m for m in range(3) if m != packed_mode] + [packed_mode]
    value, unknown = (_packed(x.transpose(modes)) for x in (values & known, ~known))
    slices = np.array([(place, i) for place in range(3) for i in range(values.shape[modes[place]])])
    pairs: list[tuple[int, int]] = slices.tolist()
    number = {(modes[place], i): n for n, (place, i) in enumerate(pairs)}
    first = [number[m, i] for m, i in start.tolist()]
    rest = rng.permutation([n for n in range(len(slices)) if n not in set(first)])
    order = np.array([*first, *rest], np.int64)
    _seed(int(rng.integers(2**31)))
    length, best = -1, np.zeros(0, np.int64)
    stride = max(1, STRIDE // values.size)
    for step in range(0, max(1, steps), stride):
        state, between = (order, length, best), (step, min(step + stride, steps))
        order, length, best = _anneal(value, unknown, slices, state, between, steps, target)
        if len(best) >= target:
            break
    if len(best) <= len(start):
        return start
    found = slices[best]
    return np.stack([np.array(modes)[found[:, 0]], found[:, 1]], axis=1)


def _packed(mask: Mask) -> NDArray[np.uint64]:
    """Pack the last axis, 64 entries per word."""
    n = mask.shape[2]
    padded = np.zeros((*mask.shape[:2], -(-n // 64) * 64), bool)
    padded[:, :, :n] = mask
    return np.packbits(padded, axis=2, bitorder="little").view(np.uint64)


@kept
def _play(value: Any, unknown: Any, order: Any, slices: Any, played: Any) -> int:
    """Count the slices removable in an order. Overwrites `value` (known nonzeros), `unknown`."""
    n0, n1, width = value.shape
    one = np.uint64(1)
    n_played = 0
    for number in order:
        place, i = slices[number]
        nonzero = False
        if place == 0:
            for b in range(n1):
                for w in range(width):
                    if value[i, b, w]:
                        nonzero = True
                        break
                if nonzero:
                    break
            if not nonzero:
                continue
            for b in range(n1):
                for w in range(width):
                    hides = value[i, b, w] | unknown[i, b, w]
                    if hides:
                        for a in range(n0):
                            unknown[a, b, w] |= hides
                            value[a, b, w] &= ~hides
            value[i] = 0
        elif place == 1:
            for a in range(n0):
                for w in range(width):
                    if value[a, i, w]:
                        nonzero = True
                        break
                if nonzero:
                    break
            if not nonzero:
                continue
            for a in range(n0):
                for w in range(width):
                    hides = value[a, i, w] | unknown[a, i, w]
                    if hides:
                        for b in range(n1):
                            unknown[a, b, w] |= hides
                            value[a, b, w] &= ~hides
            value[:, i] = 0
        else:
            word, bit = i >> 6, one << np.uint64(i & 63)
            for a in range(n0):
                for b in range(n1):
                    if value[a, b, word] & bit:
                        nonzero = True
                        break
                if nonzero:
                    break
            if not nonzero:
                continue
            for a in range(n0):
                for b in range(n1):
                    if (value[a, b, word] | unknown[a, b, word]) & bit:
                        unknown[a, b, :] = ~np.uint64(0)
                        value[a, b, :] = 0
        played[n_played] = number
        n_played += 1
    return n_played


@kept
def _seed(seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002 - the generator of compiled code


@kept
def _anneal(
    value: Any, unknown: Any, slices: Any, state: Any, between: Any, steps: int, target: int
) -> Any:
    """Continue annealing from a state: the order, its number of removals, and the best so far."""
    order, current, best = state
    n = len(order)
    played = np.empty(n, np.int64)
    v, u = value.copy(), unknown.copy()
    if current < 0:
        current = _play(v, u, order, slices, played)
        best = played[:current].copy()
    for step in range(*between):
        if len(best) >= target:
            break
        i, j = np.random.randint(n), np.random.randint(n)  # noqa: NPY002
        changed = order.copy()
        moved = changed[i]
        if np.random.randint(2):  # noqa: NPY002
            changed[i] = changed[j]
        elif i < j:
            changed[i:j] = order[i + 1 : j + 1]
        else:
            changed[j + 1 : i + 1] = order[j:i]
        changed[j] = moved
        v[:] = value
        u[:] = unknown
        length = _play(v, u, changed, slices, played)
        temperature = HOTTEST * (1 - step / steps) + 1e-3
        loss = current - length
        if loss <= 0 or np.random.random() < np.exp(-loss / temperature):  # noqa: NPY002
            order, current = changed, length
            if length > len(best):
                best = played[:length].copy()
    return order, current, best
