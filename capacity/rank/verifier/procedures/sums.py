"""Sums of simple tensors, entry by entry, in any ring that contains the rational numbers.

They are added up by first index and by fiber of the last mode, because a term of a few bytes can
have more entries than fit in memory.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from capacity.rank.verifier.entries import Entries, Given, Refuted, require

# steps for a fiber of the last mode, for an index, and for a first index of any term
FIBER, INDEX, FIRST = 1_100, 500, 6_000
# bytes for a fiber, and for each of its indices
FIBER_BYTES, INDEX_BYTES = 250, 20
# sums stay below this, so that those of several arguments can be added in 64 bits
LARGEST_SUM = 2**40
# numbers that can be added and multiplied
Number: TypeAlias = Any
# a vector: indices of one mode, and a number for each
Sparse: TypeAlias = tuple[tuple[int, ...], Sequence[Number]]


def require_terms(terms: Sequence[Sequence[Sparse]], entries: Entries) -> None:
    """End the check unless each term has a vector for each mode, with distinct indices in range."""
    require(len(terms) > 0, "a decomposition must have terms")
    for number, term in enumerate(terms):
        entries.budget.spend(INDEX * (1 + sum(len(indices) for indices, _ in term)))
        whole = len(term) == entries.order
        require(whole, f"term {number} must have a vector for each mode")
        for (indices, values), n in zip(term, entries.shape, strict=True):
            require(all(0 <= i < n for i in indices), f"term {number} has an index out of range")
            require(len(set(indices)) == len(indices), f"term {number} has an index twice")
            fits = len(values) == len(indices)
            require(fits, f"term {number} must have a coefficient for each index")


def sums_of_terms(
    terms: Sequence[Sequence[Sparse]],
    entries: Entries,
    *,
    of_rational: Callable[[Number], int | Fraction | None],
    steps: Callable[[Number], int],
    longer: int = 0,
    size: int = 0,
) -> Given:
    """Check that terms add up to integers at some entries, and to 0 elsewhere; return these.

    Parameters
    ----------
    terms : sequence of terms
        Terms that `require_terms` has checked. The products along fibers of the last mode, and
        their addition, are paid for already.
    entries : Entries
        The entries. For the effective rank, the sum need be 0 only in observed fibers.
    of_rational : callable
        Converts a number to an integer or a fraction; None if it is no rational number.
    steps : callable
        Steps that a sum takes because it has become longer than the terms.
    longer : int
        Steps by which a product takes longer than one of integers.
    size : int
        Bytes that a product takes beside those of an integer of 64 bits.

    Returns
    -------
    Given
        The sums that aren't 0.
    """
    of_first: defaultdict[int, list[tuple[int, Number]]] = defaultdict(list)
    fibers: defaultdict[int, int] = defaultdict(int)
    for number, ((first, values), *middle, _) in enumerate(terms):
        for i, x in zip(first, values, strict=True):
            of_first[i].append((number, x))
            fibers[i] += math.prod(len(indices) for indices, _ in middle)
    entries.budget.spend(FIRST * len(fibers))
    entries.budget.spend(
        (FIBER + longer) * max(1, entries.order - 2) * sum(fibers.values()),
        (FIBER_BYTES + INDEX_BYTES * entries.order + size) * max(fibers.values(), default=0),
    )
    given: dict[int, int] = {}
    for i in sorted(of_first):
        parts = _by_fiber(of_first[i], terms)
        mine: defaultdict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
        rows = entries.of_first(i)
        for row, (_, *at, last) in zip(rows, entries.indices[rows].tolist(), strict=True):
            mine[tuple(at)][last] = row
        for at, some in parts.items():
            if entries.effective and at not in mine:
                continue
            for last, total in _sum(some, terms, entries, steps).items():
                place = (i, *at, last)
                # the sum itself may have too many digits for a message
                x = of_rational(total)
                if x is None or x.denominator != 1:
                    raise Refuted(f"the terms don't add up to an integer at {place}")
                if x:
                    zero = f"the terms don't add up to 0 at {place}, where T is 0"
                    require(last in mine[at], zero)
                    require(
                        abs(x) < LARGEST_SUM, f"the terms add up to too large a number at {place}"
                    )
                    given[mine[at][last]] = int(x)
    rows = sorted(given)
    return Given(np.array(rows, np.int64), np.array([given[row] for row in rows], np.int64))


def _by_fiber(
    members: list[tuple[int, Number]], terms: Sequence[Sequence[Sparse]]
) -> dict[tuple[int, ...], list[tuple[int, Number]]]:
    """The terms of a first index, with their coefficients, by fiber of the last mode."""
    fibers: defaultdict[tuple[int, ...], list[tuple[int, Number]]] = defaultdict(list)
    for number, x in members:
        _, *middle, _ = terms[number]
        for at, y in _products(middle):
            fibers[at].append((number, x * y))
    return fibers


def _products(vectors: Sequence[Sparse]) -> Iterator[tuple[tuple[int, ...], Number]]:
    """Yield each place of the outer product of some vectors, with the entry there."""
    if not vectors:
        yield (), 1
        return
    (indices, values), *others = vectors
    rest = list(_products(others))
    for j, y in zip(indices, values, strict=True):
        for at, z in rest:
            yield (j, *at), y * z


def _sum(
    parts: list[tuple[int, Number]],
    terms: Sequence[Sequence[Sparse]],
    entries: Entries,
    steps: Callable[[Number], int],
) -> dict[int, Number]:
    """Entries of a fiber of the sum, by its index."""
    total: dict[int, Number] = {}
    for number, xy in parts:
        indices, values = terms[number][-1]
        for v, z in zip(indices, values, strict=True):
            total[v] = value = total[v] + xy * z if v in total else xy * z
            if longer := steps(value):
                entries.budget.spend(longer)
    return total
