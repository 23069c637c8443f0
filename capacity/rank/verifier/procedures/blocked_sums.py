"""Sums of simple tensors with rational coefficients, a slice at a time, by products of matrices.

Let D be a common denominator of all products of coefficients. D times the sum has integer entries

    D T[i, j, ..., k] = sum over r of a[r, i] (b[r, j] ... s[r] c[r, k]),

where a, b, ..., c are the numerators of term r and s[r] its share of D. The slice i is a product
of two matrices over the terms r in which a[r, i] isn't zero. It is computed in float64, exactly:

* Every entry, and every partial sum of one, is at most B = sum over r of |s[r]| max |a[r]| max
  |b[r]| ... max |c[r]|. If B <= 2^53, all numbers on the way are integers that float64 holds.
* Otherwise it is computed modulo primes p < 2^20. Residues are from 0 to p - 1, so that at most
  2^13 products of two of them add up to less than 2^53, and remainders of integers below 2^53 are
  exact. If the product P of the primes exceeds 2 B, an integer of absolute value at most B is 0 if
  all its residues are, and in general is the one between -P/2 and P/2 that has them (Chinese
  remainder theorem).

This takes less time than adding fiber by fiber (`sums`) unless the terms are sparse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Term
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import Entries, Given, Refuted, require
from capacity.rank.verifier.procedures.sums import LARGEST_SUM

# integers up to this are exact in float64, as are their sums and products
_EXACT = 2**53
# primes are smaller, and as many products of two residues add up to at most 2^53
_LARGEST_PRIME, _PRODUCTS = 2**20, 2**13
# common denominators of more bits are left to sums of fractions
_LONGEST = 1_024
# steps and bytes for writing a coefficient over a common denominator
_RATIO, _RATIO_BYTES = 1_500, 400
# steps for the residue of a coefficient, for a slice, for an entry of one, and for the residue of
# an entry of T; products of matrices take a quarter of a step for each product of numbers
_NUMBER, _SLICE, _PLACE, _RESIDUE = 600, 20_000, 12, 1_500
_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class IntegerTerms:
    """Numerators of some terms, over one common denominator.

    Attributes
    ----------
    n_terms : int
        Number of terms.
    denominator : int
        The common denominator D.
    rows, columns : tuple of list of int
        For each mode, the term and the index of each numerator.
    numerators : tuple of list of int
        The numerators; those of the last mode are multiplied by the term's share of D.
    bound : int
        B, which no sum of products exceeds in absolute value.
    """

    n_terms: int
    denominator: int
    rows: tuple[list[int], ...]
    columns: tuple[list[int], ...]
    numerators: tuple[list[int], ...]
    bound: int


def integer_terms(terms: Sequence[Term], budget: CheckBudget) -> IntegerTerms | None:
    """Write checked terms over a common denominator; None if that is long."""
    numbers = sum(len(indices) for term in terms for indices, _ in term)
    budget.spend(_RATIO * numbers, (_RATIO_BYTES + _LONGEST // 8) * numbers)
    ratios = [[[x.as_integer_ratio() for x in values] for _, values in term] for term in terms]
    own = [[_common(bottom for _, bottom in of) for of in vectors] for vectors in ratios]
    denominator = _common(map(math.prod, own)) if all(map(all, own)) else 0
    if not denominator:
        return None
    order = len(terms[0])
    rows: tuple[list[int], ...] = tuple([] for _ in range(order))
    columns: tuple[list[int], ...] = tuple([] for _ in range(order))
    numerators: tuple[list[int], ...] = tuple([] for _ in range(order))
    bound = 0
    for r, (term, vectors, lowest) in enumerate(zip(terms, ratios, own, strict=True)):
        largest = 1
        for mode, ((indices, _), of) in enumerate(zip(term, vectors, strict=True)):
            factor = lowest[mode]
            if mode == order - 1:
                factor *= denominator // math.prod(lowest)
            mine = [top * (factor // bottom) for top, bottom in of]
            # a vector without entries makes the term 0, and its other products must stay exact
            largest *= max(map(abs, mine), default=1)
            rows[mode].extend([r] * len(mine))
            columns[mode].extend(indices)
            numerators[mode].extend(mine)
        bound += largest
    return IntegerTerms(len(terms), denominator, rows, columns, numerators, bound)


def _common(denominators: Iterable[int]) -> int:
    """Least common multiple of some denominators; 0 if it is long."""
    common = 1
    for number in denominators:
        common = math.lcm(common, number)
        if common.bit_length() > _LONGEST:
            return 0
    return common


def steps_of_blocks(whole: IntegerTerms, entries: Entries) -> int:
    """Estimate the steps of `sums_by_blocks`."""
    shape, bits = entries.shape, whole.bound.bit_length()
    places, n_moduli = math.prod(shape[1:]), _most_moduli(whole)
    numbers = sum(map(len, whole.rows)) * (_NUMBER + bits // 8)
    products = len(whole.rows[0]) * (places // 4 + math.prod(shape[1:-1]) * _PLACE)
    slices = shape[0] * (_SLICE + places * _PLACE)
    residues = len(entries) * _RESIDUE * (1 + n_moduli // 50)
    return n_moduli * (numbers + products + slices + residues)


def _most_moduli(whole: IntegerTerms) -> int:
    # each prime that is used has 20 bits, for they are the largest below 2^20
    return 1 + (whole.bound.bit_length() + 1) // 19


def sums_by_blocks(whole: IntegerTerms, entries: Entries) -> Given:
    """Check that terms add up to integers at some entries, and to 0 elsewhere; return these.

    Parameters
    ----------
    whole : IntegerTerms
        Terms that `require_terms` has checked.
    entries : Entries
        The entries. For the effective rank, the sum need be 0 only in observed fibers.

    Returns
    -------
    Given
        The sums that aren't 0.
    """
    n, *middle, last = entries.shape
    block = math.prod(middle) * (last + min(whole.n_terms, _PRODUCTS))
    matrix = whole.n_terms * sum(entries.shape)
    entries.budget.spend(
        steps_of_blocks(whole, entries), 8 * (_most_moduli(whole) * matrix + 4 * block)
    )
    moduli = [0] if whole.bound <= _EXACT else list(_primes(2 * whole.bound))
    matrices = [_matrices(whole, p, entries.shape) for p in moduli]
    rows: list[int] = []
    values: list[int] = []
    for i in range(n):
        mine = np.array(entries.of_first(i), np.int64)
        at = np.asarray(
            np.ravel_multi_index(tuple(entries.indices[mine, 1:].T), (*middle, last)), np.int64
        )
        residues: list[list[int]] = []
        for p, factors in zip(moduli, matrices, strict=True):
            slice_ = _slice(factors, i, p)
            residues.append([int(x) for x in slice_.ravel()[at]])
            _require_zero_elsewhere(slice_, at, i, entries)
        for row, *some in zip(mine.tolist(), *residues, strict=True):
            if value := _quotient(_integer(some, moduli), whole.denominator, row, entries):
                rows.append(row)
                values.append(value)
    order = np.argsort(np.array(rows, np.int64), kind="stable")
    return Given(np.array(rows, np.int64)[order], np.array(values, np.int64)[order])


def _matrices(whole: IntegerTerms, p: int, shape: tuple[int, ...]) -> list[_Floats]:
    """Dense matrices of the numerators or their residues, shapes (n_terms, n_m)."""
    found: list[_Floats] = []
    for n, rows, columns, numbers in zip(
        shape, whole.rows, whole.columns, whole.numerators, strict=True
    ):
        matrix = np.zeros((whole.n_terms, n))
        matrix[rows, columns] = [x % p for x in numbers] if p else numbers
        found.append(matrix)
    return found


def _slice(factors: list[_Floats], i: int, p: int) -> _Floats:
    """The slice i of the sum, its fibers of the last mode as rows; residues unless p is 0."""
    first, *others, last = factors
    chosen = np.flatnonzero(first[:, i])
    width = math.prod(of.shape[1] for of in others)
    total = np.zeros((width, last.shape[1]))
    for begin in range(0, len(chosen), _PRODUCTS):
        some = chosen[begin : begin + _PRODUCTS]
        product = first[some, i][:, None]
        for of in others:
            product = (product[:, :, None] * of[some][:, None, :]).reshape(len(some), -1)
            if p:
                product %= p
        total += product.T @ last[some]
        if p:
            total %= p
    return total


def _require_zero_elsewhere(
    slice_: _Floats, at: NDArray[np.int64], i: int, entries: Entries
) -> None:
    """End the check unless a slice is 0 but for some places; in observed fibers, if that counts."""
    counts = slice_ != 0
    if entries.effective:
        observed = np.zeros(len(slice_), bool)
        observed[at // slice_.shape[1]] = True
        counts &= observed[:, None]
    counts.ravel()[at] = False
    if counts.any():
        wrong = np.unravel_index(int(np.argmax(counts)), entries.shape[1:])
        place = (i, *(int(x) for x in wrong))
        raise Refuted(f"the terms don't add up to 0 at {place}, where T is 0")


def _integer(residues: list[int], moduli: list[int]) -> int:
    """The integer of least absolute value that has these residues; the one itself without any."""
    if moduli == [0]:
        return residues[0]
    x, product = 0, 1
    for residue, p in zip(residues, moduli, strict=True):
        x += product * ((residue - x) * pow(product, -1, p) % p)
        product *= p
    return x - product if 2 * x > product else x


def _quotient(x: int, denominator: int, row: int, entries: Entries) -> int:
    value, rest = divmod(x, denominator)
    if rest or abs(value) >= LARGEST_SUM:
        place = tuple(entries.indices[row].tolist())
        require(not rest, f"the terms don't add up to an integer at {place}")
        raise Refuted(f"the terms add up to too large a number at {place}")
    return value


def _primes(least: int) -> Iterator[int]:
    """Yield primes below 2^20, from the largest, until their product exceeds a number."""
    p, product = _LARGEST_PRIME - 1, 1
    while product <= least:
        if all(p % d for d in range(3, math.isqrt(p) + 1, 2)):
            yield p
            product *= p
        p -= 2
