"""A proof, in integer arithmetic, that a real decomposition exists near a floating-point fit.

Not every decomposition has rational factors. Let F(x) = sum_r a_r (x) b_r (x) ... - T, with a
vector for each of the d modes of T, on the M entries that count. M of the unknowns x vary, and are
called y; the others keep their floating-point values. With y_0 the fit, any matrix C, and the box Y
of radius rho around y_0, Krawczyk's theorem states: if

    |C F(y_0)| + |I - C J(y)| rho < rho    for all y in Y,

row by row, where |I - C J(y)| has the sums of absolute values of the rows, then K(y) = y - C F(y)
maps the box into itself: K(y) - K(y_0) is the average of I - C J along the segment from y_0 to y,
times y - y_0, and an average obeys every bound of the entries that holds along the segment. By
Brouwer's theorem, K has a fixed point in the box. There C F vanishes, and so does F, because
|I - C J| < 1 makes C nonsingular.
An entry of the Jacobian J is a product of d - 1 unknowns. With x + e, |e| <= rho, in the place of
each unknown x, it is the sum of 2^(d-1) products of an x or an e for each. All but the first, which
is the value at y_0, add up to at most

    (|x| + rho) (|x'| + rho) ... - |x| |x'| ...

Floating-point numbers are integers over a power of two, and C is rounded to such numbers too, so
everything is computed exactly. C approximates the inverse of the Jacobian; if it is a poor
approximation, the inequality fails.

References
----------
R. Krawczyk, Newton-Algorithmen zur Bestimmung von Nullstellen mit Fehlerschranken, Computing 1969;
P. Breiding, K. Rose, S. Timme, Certifying zeros of polynomial systems using interval arithmetic,
ACM TOMS 2023, arXiv 2011.05000.
"""

from __future__ import annotations

from functools import reduce

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask

Array = NDArray[np.float64]
Factors = tuple[Array, ...]
# largest number of equations, which takes about ten seconds, and of entries of the Jacobian with
# respect to all unknowns
MOST_EQUATIONS = 1_500
MOST_ENTRIES = 2**23
# binary places after the point of the inverse's entries; places before, and after, that of any
# number
INVERSE_BITS = 30
MOST_BITS = 256


def contracts(
    tensor: Indices,
    factors: Factors,
    varying: Indices,
    radius: float,
    known: Mask | None = None,
) -> bool:
    """Return True if a tensor is proved to have an exact real decomposition near some factors.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, ...)
        The tensor, of two modes or more.
    factors : tuple of ndarrays of float64, shapes (n_m, rank)
        Factors of the fit, one for each mode, taken as exact binary fractions.
    varying : ndarray of int64, shape (M,)
        Unknowns that vary, numbered along the rows of the factors; as many as there are known
        entries.
    radius : float
        Half the side of the box, between 0 and 1.
    known : ndarray of bool, shape (n_0, n_1, ...), optional
        Entries that the decomposition must have; all of them if omitted.

    Returns
    -------
    bool
        True if it is proved for the known entries. False decides nothing: the fit may be too rough,
        the system too large, or its Jacobian singular.

    Examples
    --------
    1 = sqrt(1/2) sqrt(1/2) 2, near floating-point roots:

    >>> root = np.array([[0.5**0.5]])
    >>> contracts(np.array([[[1]]]), (root, root, np.array([[2.0]])), np.array([0]), 1e-9)
    True
    """
    counts = np.ones(tensor.shape, bool) if known is None else known
    starts = np.cumsum([0, *(f.size for f in factors)])
    n = int(counts.sum())
    if not 0 < n <= MOST_EQUATIONS or len(varying) != n or not 0 < radius < 1:
        return False
    if len(np.unique(varying)) < n or varying.min() < 0 or varying.max() >= starts[-1]:
        return False
    places = np.argwhere(counts)
    numbers = np.concatenate([[radius], *(f.ravel() for f in factors)])
    if n * len(numbers) > MOST_ENTRIES or not (np.abs(numbers) < 2.0**MOST_BITS).all():
        return False
    bits = max(x.as_integer_ratio()[1].bit_length() - 1 for x in numbers.tolist())
    if bits > MOST_BITS:
        return False
    try:
        inverse = np.linalg.inv(jacobian(factors, places, starts)[:, varying]) * 2.0**INVERSE_BITS
    except np.linalg.LinAlgError:
        return False
    if not (np.abs(inverse) < 2.0**62).all():
        return False
    width = _scaled(np.array(radius), bits).item()
    order, rank = len(factors), factors[0].shape[1]
    exact_factors = [_scaled(f, bits) for f in factors]
    one = 1 << ((order - 1) * bits + INVERSE_BITS)
    # for each mode the numbers that are multiplied at each place, shape (n, rank)
    of_mode = [f[places[:, m]] for m, f in enumerate(exact_factors)]
    left = reduce(np.multiply, of_mode).sum(axis=1)
    left -= tensor[tuple(places.T)].astype(object) << (order * bits)
    J = np.zeros((n, n), object)
    grows = np.zeros(n, object)
    column = np.full(int(starts[-1]), -1)
    column[varying] = np.arange(n)
    for mode in range(order):
        others = [x for m, x in enumerate(of_mode) if m != mode]
        at = column[starts[mode] + places[:, mode, None] * rank + np.arange(rank)]
        rows = np.broadcast_to(np.arange(n)[:, None], at.shape)[at >= 0]
        J[rows, at[at >= 0]] = reduce(np.multiply, others)[at >= 0]
        sizes = [abs(x) for x in others]
        growth = reduce(np.multiply, [x + width for x in sizes]) - reduce(np.multiply, sizes)
        grows += ((at >= 0) * growth).sum(axis=1)
    C = np.rint(inverse).astype(np.int64)
    exact = flint.fmpz_mat(C.tolist())
    products = (exact * flint.fmpz_mat(J.tolist())).tolist()
    step = (exact * flint.fmpz_mat(n, 1, left.tolist())).tolist()
    growths = (flint.fmpz_mat(np.abs(C).tolist()) * flint.fmpz_mat(n, 1, grows.tolist())).tolist()
    for i, row in enumerate(products):
        row[i] -= one
        if not abs(step[i][0]) + (sum(map(abs, row)) + growths[i][0]) * width < one * width:
            return False
    return True


def cost_of_contraction(factors: Factors, varying: Indices, radius: float) -> tuple[int, int]:
    """Estimate the nanoseconds and the bytes that `contracts` takes for these arguments."""
    n, rank = len(varying), factors[0].shape[1]
    sizes = np.abs(np.concatenate([[radius], *(f.ravel() for f in factors)]))
    if not 0 < n <= MOST_EQUATIONS or n * len(sizes) > MOST_ENTRIES or not sizes.any():
        # refused before any work is done
        return 30 * len(sizes), 40 * len(sizes)
    least, most = np.log2([sizes[sizes > 0].min(), sizes.max()])
    # places of the longest number: up to 53 from the first of the smallest one
    bits = min(MOST_BITS, 53 - least) + max(0, most)
    # products of as many numbers as there are modes but one, for each mode
    order = len(factors)
    longer = max(1.0, bits / 64) * (order - 1) / 2
    return (
        int(longer * (1.3 * n**3 + 600 * n**2 + 700 * order * (n * rank + len(sizes)))),
        int(longer * (200 * n**2 + 400 * (n * rank + len(sizes)))),
    )


def _scaled(x: Array, bits: int) -> NDArray[np.object_]:
    """Numbers times 2^bits, as exact integers."""
    flat = [p * ((1 << bits) // q) for p, q in map(float.as_integer_ratio, x.ravel().tolist())]
    return np.array(flat, object).reshape(x.shape)


def jacobian(factors: Factors, places: Indices, starts: Indices) -> Array:
    """Derivatives of the entries at some places with respect to all unknowns."""
    rank = factors[0].shape[1]
    J = np.zeros((len(places), int(starts[-1])))
    rows, columns = (x.astype(np.int64) for x in np.ogrid[: len(places), :rank])
    of_mode = [f[places[:, m]] for m, f in enumerate(factors)]
    for mode in range(len(factors)):
        at: Indices = starts[mode] + places[:, mode, None] * rank + columns
        J[rows, at] = reduce(np.multiply, (x for m, x in enumerate(of_mode) if m != mode))
    return J
