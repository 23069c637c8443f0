"""Orders of the indices of each mode in which a cyclic permutation of the modes preserves a tensor.

Such a permutation may hold in other orders than the given: the product of n x n matrices has it
after the transposition of one mode. Let a relabelling g turn T into the tensor with its modes
permuted,

    T[g0[i], g1[j], g2[k]] = T[j, k, i],

so (x, y, z) -> (g0[z], g1[x], g2[y]) preserves T. Its third power permutes each mode, by h0 = g0 g2
g1 in the first. Let m be its order. If 3 doesn't divide m, 3 q + 1 = 0 modulo m for some q, and the
power 3 q + 1 is of order 3: it has g0 h2^q, g1 h0^q and g2 h1^q. Then g0 g2 g1 = 1, and the entry
T[x, g1[y], g2[g1[z]]] is the same for (z, x, y).
"""

from __future__ import annotations

from math import lcm

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.reductions.relabelling import relabelling
from capacity.tensor.dense import from_dense

# random orders of the indices from which a relabelling is looked for
_TRIES = 4


def identification(bits: Mask, seed: int) -> tuple[Indices, Indices, Indices] | None:
    """Find an order of each mode's indices in which a cyclic permutation preserves a tensor.

    Parameters
    ----------
    bits : ndarray of bool, shape (n, n, n)
        The tensor.
    seed : int
        Seed of the orders that are tried.

    Returns
    -------
    tuple of ndarrays of int64, or None
        Indices x, y and z so that ``t = bits[np.ix_(x, y, z)]`` is ``t.transpose(1, 2, 0)``; None
        if none were found.

    Examples
    --------
    >>> from capacity.tensor import matrix_multiplication
    >>> bits = matrix_multiplication(2, 2, 2).to_numpy() != 0
    >>> [of.tolist() for of in identification(bits, 0)]
    [[0, 1, 2, 3], [0, 1, 2, 3], [0, 2, 1, 3]]
    """
    n = len(bits)
    if bits.shape != (n, n, n):
        return None
    here = np.arange(n)
    if _is_cyclic(bits):
        return here, here, here
    counts = [np.sort(bits.sum(axis=tuple(q for q in range(3) if q != m))) for m in range(3)]
    if any((one != counts[0]).any() for one in counts):
        return None
    rng = np.random.default_rng(seed)
    for turn in range(_TRIES):
        orders = [rng.permutation(n) if turn else here for _ in range(3)]
        turned = bits[np.ix_(*orders)]
        as_integers = turned.astype(np.int64)
        found = relabelling(from_dense(as_integers), from_dense(as_integers.transpose(2, 0, 1)))
        if found is None:
            return None
        places = _of_order_three(found.indices)
        if places is not None and _is_cyclic(turned[np.ix_(*places)]):
            x, y, z = (order[place] for order, place in zip(orders, places, strict=True))
            return x, y, z
    return None


def _is_cyclic(bits: Mask) -> bool:
    return np.array_equal(bits, bits.transpose(1, 2, 0))


def _of_order_three(g: tuple[Indices, ...]) -> tuple[Indices, Indices, Indices] | None:
    """Return the orders of indices by a power of a relabelling; None if none has the order 3."""
    g0, g1, g2 = g
    h0, h1 = g0[g2[g1]], g1[g0[g2]]
    order = _order(h0)
    if order % 3 == 0:
        return None
    q = -pow(3, -1, order) % order
    second = g1[_power(h0, q)]
    third = g2[_power(h1, q)][second]
    return np.arange(len(g0)), second, third


def _order(permutation: Indices) -> int:
    """The least positive power of a permutation that is the identity."""
    order, left = 1, set(range(len(permutation)))
    while left:
        start = here = left.pop()
        length = 1
        while (here := int(permutation[here])) != start:
            left.remove(here)
            length += 1
        order = lcm(order, length)
    return order


def _power(permutation: Indices, exponent: int) -> Indices:
    found, square = np.arange(len(permutation)), permutation
    while exponent:
        found = square[found] if exponent % 2 else found
        square, exponent = square[square], exponent // 2
    return found
