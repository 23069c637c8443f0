"""Decompositions over F_3 lifted to the rationals, by Hensel's lemma.

`capacity.rank.upper.lifting` has the lemma, for powers of 2. Modulo powers of 3 a half is a number
of its own, which no lifting from F_2 finds, and signs are known from the start. Numbers are kept
in the form of the smallest absolute value, so that small whole numbers appear at once. Coefficients
that aren't 0 change rather than others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask, Term
from capacity.exact.words import Words, packed_ternary, unpacked_ternary
from capacity.rank.upper.lifting import adds_up, by_orders, derivative, guessed, split

# the power of 3 up to which numbers are computed, and those at which fractions are guessed; the
# square of the next one fits 64 bits
_DIGITS, _GUESSES = 19, (11, 19)
_MODULUS = 3 ** (_DIGITS + 1)


def ternary_lift(
    tensor: Indices, factors: list[Indices], observed: Mask | None = None
) -> list[Term] | None:
    """Lift a decomposition over F_3 to one over the rationals, with as many terms.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor.
    factors : list of ndarrays of int64, shapes (rank, n_m)
        Terms with coefficients -1, 0 and 1 that add up to the tensor modulo 3, wherever it is
        observed.
    observed : ndarray of bool, shape (n_0, n_1), optional
        Fibers of the last mode on which the terms must add up to the tensor; all if omitted.

    Returns
    -------
    list of Term or None
        Terms that add up to the tensor exactly; None if the factors can't be lifted, or if those
        that lift them are no small numbers.

    Examples
    --------
    One is four modulo 3, and a factor 4 lifts it:

    >>> one = np.ones((1, 1), int)
    >>> terms = ternary_lift(np.array([[[4]]]), [one, one, one])
    >>> terms[0][0][1][0] * terms[0][1][1][0] * terms[0][2][1][0]
    Fraction(4, 1)
    """
    seen = np.ones(tensor.shape, bool)
    if observed is not None:
        seen &= observed[:, :, None]
    changes = packed_ternary(derivative([f.astype(np.int8) for f in factors], seen))
    nonzero = np.concatenate([f.ravel() for f in factors]) != 0
    return by_orders(nonzero, lambda order: _lifted(tensor, factors, seen, changes, order))


def _lifted(
    tensor: Indices, factors: list[Indices], seen: Mask, changes: Words, order: Indices
) -> list[NDArray[Any]] | None:
    """Lift with unknowns in an order, of which the first are changed if that is enough."""
    from capacity.rank.upper.ternary.compiled_rows import echelon, reduce_row

    n_words = changes.shape[1]
    identity = packed_ternary(np.eye(len(order), dtype=np.int8))
    rows = np.concatenate([changes[order], identity], axis=1)
    pivots = np.zeros(len(order), np.int64)
    rank = echelon(rows, n_words, pivots)
    shapes = [f.shape for f in factors]
    numbers = np.concatenate([f.ravel() for f in factors]).astype(np.int64)
    for k in range(1, _DIGITS + 1):
        left = _balanced(tensor - _sum(split(numbers, shapes)), _MODULUS)
        if not left[seen].any():
            whole = split(numbers.astype(object), shapes)
            return whole if adds_up(whole, tensor, seen) else None
        if k in _GUESSES and (guess := guessed(numbers, 3**k)) is not None:
            fractions = split(guess, shapes)
            if adds_up(fractions, tensor, seen):
                return fractions
        digit = _balanced(left[seen] // 3**k, 3)
        row = np.zeros(rows.shape[1:], np.uint64)
        row[:n_words] = packed_ternary(digit[None])[0]
        reduce_row(row, rows, pivots, rank)
        if row[:n_words].any():
            return None
        # what was subtracted of each row
        numbers[order] -= unpacked_ternary(row[n_words:], len(order)) * 3**k
    return None


def _balanced(numbers: Indices, modulus: int) -> Indices:
    """Numbers modulo an odd one, of the smallest absolute value."""
    return (numbers + modulus // 2) % modulus - modulus // 2


def _sum(factors: list[Indices]) -> Indices:
    """The sum of the terms modulo `_MODULUS`."""
    a, b, c = factors
    first = _balanced(a[:, :, None] * b[:, None, :], _MODULUS)
    # in two halves, so that sums of products fit 64 bits
    high, low = np.divmod(c, 2**16)
    total = _balanced(np.einsum("rij,rk->ijk", first, high), _MODULUS) * 2**16
    return total + np.einsum("rij,rk->ijk", first, low)


def work_of_ternary_lift(n_terms: int, shape: tuple[int, ...]) -> int:
    """Estimate the nanoseconds of a lift, most of which are the elimination."""
    unknowns, entries = n_terms * sum(shape), int(np.prod(shape, dtype=np.int64))
    rank = min(unknowns, entries)
    return 200_000 + unknowns * rank * (entries + unknowns) // 30 + 400 * n_terms * entries
