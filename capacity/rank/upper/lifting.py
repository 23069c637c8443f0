"""Decompositions over F_2 lifted to the rationals, by Hensel's lemma.

Let factors U add up to the tensor T modulo 2^k. Then U + 2^k X do so modulo 2^(k + 1) if

    J X = (T - the sum of U) / 2^k    modulo 2,

where J is the derivative of the sum, which is the same at every k. If the right side is in its
column space the lift continues. Which of the solutions X is taken matters: a 0 should stay 0, and a
1 become 1 or -1. So X changes coefficients that are 1 rather than others, and a change is added
with the sign that makes the coefficient small. Others are tried by other orders of the unknowns.

Numbers that aren't whole are known modulo a power of 2 in the end; the smallest numerator and
denominator with that residue are a guess. What is found is checked over the rationals, and nothing
else is returned.

References
----------
M. Kauers, J. Moosbauer, Flip graphs for matrix multiplication, 2022, arXiv 2212.01175, section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import gcd, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask, Term, vector
from capacity.exact.words import Words, packed, unpacked

# powers of 2 up to which whole numbers are looked for, and at which fractions are guessed
_WHOLE, _GUESSES = 16, (24, 40, 60)
# how many bits smaller than the largest residue a guess must be
_SPARE = 5
# orders of the unknowns that are tried
ORDERS = 4


def rational_lift(
    tensor: Indices, factors: list[Mask], observed: Mask | None = None
) -> list[Term] | None:
    """Lift a decomposition over F_2 to one over the rationals, with as many terms.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor.
    factors : list of ndarrays of bool, shapes (rank, n_m)
        Terms that add up to the tensor modulo 2, wherever it is observed.
    observed : ndarray of bool, shape (n_0, n_1), optional
        Fibers of the last mode on which the terms must add up to the tensor; all if omitted.

    Returns
    -------
    list of Term or None
        Terms that add up to the tensor exactly; None if the factors can't be lifted, or if those
        that lift them are no small numbers.

    Examples
    --------
    Three terms whose sum is 1 modulo 2, and lifts to 1 by a change of sign:

    >>> ones = np.ones((3, 1), bool)
    >>> terms = rational_lift(np.array([[[1]]]), [ones, ones, ones])
    >>> sum(a[1][0] * b[1][0] * c[1][0] for a, b, c in terms)
    Fraction(1, 1)
    """
    seen = np.ones(tensor.shape, bool)
    if observed is not None:
        seen &= observed[:, :, None]
    changes = packed(derivative(factors, seen))
    ones = np.concatenate([f.ravel() for f in factors])
    return by_orders(ones, lambda order: _lifted(tensor, factors, seen, changes, order))


def by_orders(
    nonzero: Mask, lifted: Callable[[Indices], list[NDArray[Any]] | None]
) -> list[Term] | None:
    """Lift with the unknowns in some orders, of which those that aren't 0 are first.

    Parameters
    ----------
    nonzero : ndarray of bool, shape (n_unknowns,)
        Which coefficients aren't 0.
    lifted : callable
        Function that lifts with the unknowns in an order, and returns the factors, or None.
    """
    rng = np.random.default_rng(0)
    for turn in range(ORDERS):
        order = rng.permutation(len(nonzero)) if turn else np.arange(len(nonzero))
        found = lifted(order[np.argsort(~nonzero[order], kind="stable")])
        if found is not None:
            return [
                tuple(vector(range(f.shape[1]), f[r].tolist()) for f in found)
                for r in range(len(found[0]))
            ]
    return None


def _lifted(
    tensor: Indices, factors: list[Mask], seen: Mask, changes: Words, order: Indices
) -> list[NDArray[Any]] | None:
    """Lift with unknowns in an order, of which the first are changed if that is enough."""
    from capacity.exact.binary_rows import echelon, reduce_row

    n_words = changes.shape[1]
    rows = np.hstack([changes[order], packed(np.eye(len(order), dtype=bool))])
    pivots = np.zeros(len(order), np.int64)
    rank = echelon(rows, n_words, pivots)
    shapes = [f.shape for f in factors]
    numbers = np.concatenate([f.ravel() for f in factors]).astype(np.int64)
    for k in range(1, _GUESSES[-1] + 1):
        # modulo 2^64, which is enough
        left = tensor - np.einsum("ri,rj,rk->ijk", *split(numbers, shapes))
        if k <= _WHOLE and not left[seen].any():
            whole = split(numbers.astype(object), shapes)
            return whole if adds_up(whole, tensor, seen) else None
        if k in _GUESSES and (guess := guessed(numbers, 2**k)) is not None:
            fractions = split(guess, shapes)
            if adds_up(fractions, tensor, seen):
                return fractions
        row = np.zeros(rows.shape[1], np.uint64)
        row[:n_words] = packed(((left >> k) & 1).astype(bool)[seen][None])[0]
        reduce_row(row, rows, pivots, rank)
        if row[:n_words].any():
            return None
        changed = order[unpacked(row[n_words:], len(order))]
        numbers[changed] += np.where(numbers[changed] > 0, -1, 1) << k
    return None


def split(numbers: NDArray[Any], shapes: list[tuple[int, ...]]) -> list[NDArray[Any]]:
    """Split the coefficients of all factors, in a row, into factors of some shapes."""
    ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
    parts = np.split(numbers, ends)
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def work_of_lift(n_terms: int, shape: tuple[int, ...]) -> int:
    """Estimate the nanoseconds of a lift, most of which are the elimination."""
    unknowns, entries = n_terms * sum(shape), int(np.prod(shape, dtype=np.int64))
    rank = min(unknowns, entries)
    return 100_000 + unknowns * rank * (entries + unknowns) // 128 + 400 * n_terms * entries


def derivative(factors: Sequence[NDArray[Any]], seen: Mask) -> NDArray[Any]:
    """Compute what each coefficient changes of the sum at the observed entries.

    Parameters
    ----------
    factors : sequence of ndarrays of bool or int8, shapes (rank, n_m)
        Factors of the terms, whose products are of the same type.
    seen : ndarray of bool, shape (n_0, n_1, n_2)
        The observed entries.

    Returns
    -------
    ndarray, shape (rank * (n_0 + n_1 + n_2), n_seen)
        A row for each coefficient.
    """
    changes: list[NDArray[Any]] = []
    numbers = np.cumsum(seen.ravel()).reshape(seen.shape) - 1
    for m, f in enumerate(factors):
        a, b = (factors[q] for q in range(3) if q != m)
        products = a[:, :, None] * b[:, None, :]
        across, places = np.moveaxis(seen, m, 0), np.moveaxis(numbers, m, 0)
        of_mode = np.zeros((*f.shape, int(seen.sum())), f.dtype)
        for i in range(f.shape[1]):
            of_mode[:, i, places[i][across[i]]] = products[:, across[i]]
        changes.append(of_mode.reshape(f.size, -1))
    return np.concatenate(changes)


def guessed(numbers: Indices, modulus: int) -> NDArray[Any] | None:
    """Return the smallest fractions with these residues, or None if one of them isn't small.

    Examples
    --------
    >>> guessed(np.array([11184811]), 2**24), guessed(np.array([88574]), 3**11)
    (array([Fraction(1, 3)], dtype=object), array([Fraction(1, 2)], dtype=object))
    """
    distinct, places = np.unique(numbers % modulus, return_inverse=True)
    values = [_smallest(int(x), modulus) for x in distinct]
    if any(x is None for x in values):
        return None
    return np.array(values, object)[places.ravel()]


def _smallest(residue: int, modulus: int) -> Fraction | None:
    """The fraction of small numerator and denominator with a residue, if there is one."""
    # by the extended Euclidean algorithm: v * residue = b modulo the modulus
    a, b, u, v = modulus, residue, 0, 1
    most = isqrt(modulus)
    while b >= most:
        quotient = a // b
        a, b, u, v = b, a - quotient * b, v, u - quotient * v
    small = most >> _SPARE
    return Fraction(b, v) if gcd(v, modulus) == 1 and b < small and abs(v) < small else None


def adds_up(factors: list[NDArray[Any]], tensor: Indices, seen: Mask) -> bool:
    """Return whether factors add up to a tensor wherever it is seen, exactly."""
    whole = all(isinstance(x, int) or x.denominator == 1 for f in factors for x in f.ravel())
    largest = max((abs(x) for f in factors for x in f.ravel()), default=0)
    if whole and len(factors[0]) * largest**3 < 2**62:
        exact = [f.astype(np.int64) for f in factors]
        return bool((np.einsum("ri,rj,rk->ijk", *exact) == tensor)[seen].all())
    total = np.zeros(tensor.shape, object)
    for r in range(len(factors[0])):
        product = np.multiply.outer(np.multiply.outer(factors[0][r], factors[1][r]), factors[2][r])
        total = total + product
    return bool((total == tensor)[seen].all())
