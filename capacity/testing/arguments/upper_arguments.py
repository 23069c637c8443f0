"""Random arguments for upper bounds, valid by construction: boxes, simple tensors, pairs of slices.

Simple tensors sum to given entries, with rational coefficients or over a real number field.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from capacity.exact.elimination import factors
from capacity.exact.types import Indices, Mask, Term, Vector, vector
from capacity.rank import (
    AlgebraicDecomposition,
    AlgebraicTerm,
    ComplexDecomposition,
    PairedSlices,
    pencil_rank,
)
from capacity.testing.arguments.area import Area, Sides
from capacity.testing.choices import Choices

SCALES = (Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 3), Fraction(-5, 7))


def partition(choose: Choices, area: Area, mine: Mask) -> list[Sides]:
    """Choose boxes that contain each of some entries once, and otherwise unknown entries alone.

    The entries of a box are equal. The first index of each side is the place of one of them.
    """
    left = mine.copy()
    boxes: list[Sides] = []
    while left.any():
        start = choose.one(np.argwhere(left).tolist())
        sides: Sides = tuple([i] for i in start)
        allowed = (left & (area.tensor == area.tensor[tuple(start)])) | ~area.known
        for _ in range(choose.integer(0, 6)):
            grown = [
                (mode, i)
                for mode in range(area.order)
                for i in np.flatnonzero(_all_across(allowed, sides, mode)).tolist()
                if i in area.indices[mode] and i not in sides[mode]
            ]
            if not grown:
                break
            mode, i = choose.one(grown)
            sides[mode].append(i)
        left[np.ix_(*sides)] = False
        boxes.append(sides)
    return boxes


def _all_across(allowed: Mask, sides: Sides, mode: int) -> Mask:
    """Mask of the indices of a mode whose slice is allowed on all of the other sides."""
    others = [side for m, side in enumerate(sides) if m != mode]
    across = np.moveaxis(allowed, mode, 0)[np.ix_(range(allowed.shape[mode]), *others)]
    return np.asarray(across.reshape(len(across), -1).all(axis=1))


def value_of(area: Area, box: Sides) -> int:
    """Entry that fills a box that `partition` chose."""
    return int(area.tensor[tuple(side[0] for side in box)])


def terms(choose: Choices, area: Area, boxes: list[Sides]) -> list[Term]:
    """Choose simple tensors that sum to some boxes: the boxes themselves, or factored slices."""
    found: list[Term] = []
    if boxes and choose.chance(1, 3):
        found = _of_slices(choose, area, boxes)
    else:
        for sides in boxes:
            first, *others = (vector(side, [1] * len(side)) for side in sides)
            found.append((_sum(((), ()), first, Fraction(value_of(area, sides))), *others))
    for _ in range(choose.integer(0, 6)):
        found = _disguised(choose, found)
    return found


def _of_slices(choose: Choices, area: Area, boxes: list[Sides]) -> list[Term]:
    """Factors of the slices that fixing the indices of all modes but two leaves."""
    dense = np.zeros(area.tensor.shape, np.int64)
    for sides in boxes:
        dense[np.ix_(*sides)] = value_of(area, sides)
    dense *= area.known
    free = sorted(choose.order(range(area.order))[:2])
    fixed = [m for m in range(area.order) if m not in free]
    found: list[Term] = []
    for at in itertools.product(*(range(area.tensor.shape[m]) for m in fixed)):
        matrix = dense.transpose([*fixed, *free])[at]
        for column, row in factors(matrix) if matrix.any() else ():
            units = [vector([i], [1]) for i in at]
            others = [vector(range(len(x)), x) for x in (column, row)]
            parts = dict(zip([*fixed, *free], [*units, *others], strict=True))
            found.append(tuple(parts[m] for m in range(area.order)))
    return found


def _disguised(choose: Choices, found: list[Term]) -> list[Term]:
    """Change terms but not their sum: scale or split one, flip or merge two."""
    found = found[:]
    x = choose.one(SCALES)
    n = choose.integer(0, len(found) - 1)
    a, b, *rest = choose.order(range(len(found[n])))
    same = [i for i, one in enumerate(found)
            if i != n and all(one[m] == found[n][m] for m in rest)]  # fmt: skip
    if same:
        # u b c + u b' c' = u (b + x b') c + u b' (c' - x c)
        other = choose.one(same)
        first, second = found[n], found[other]
        found[n] = _with(first, a, _sum(first[a], second[a], x))
        found[other] = _with(second, b, _sum(second[b], first[b], -x))
    elif choose.chance(1, 2):
        # u b c = u (b - x b') c + u (x b') c
        other = found[choose.integer(0, len(found) - 1)][a]
        piece = _sum(((), ()), other, x)
        found.append(_with(found[n], a, piece))
        found[n] = _with(found[n], a, _sum(found[n][a], piece, Fraction(-1)))
    else:
        found[n] = _with(found[n], a, _sum(((), ()), found[n][a], x))
        found[n] = _with(found[n], b, _sum(((), ()), found[n][b], 1 / x))
    # a term with an empty vector is zero
    return [one for one in found if all(indices for indices, _ in one)]


def _with(one: Term, mode: int, instead: Vector) -> Term:
    return tuple(instead if m == mode else part for m, part in enumerate(one))


def _sum(x: Vector, y: Vector, times: Fraction) -> Vector:
    total = dict(zip(*x, strict=True))
    for i, value in zip(*y, strict=True):
        total[i] = total.get(i, Fraction(0)) + times * value
    return vector(list(total), list(total.values()))


# an element of a field, as the coefficients of a polynomial of lower degree than f
Element: TypeAlias = tuple[Fraction, ...]
SparseElements: TypeAlias = dict[int, Element]


@dataclass(frozen=True)
class Field:
    """A polynomial f with a root between two numbers, and the inverse of that root modulo f."""

    f: tuple[int, ...]
    lo: Fraction
    hi: Fraction
    inverse: Element


# the square root of 2, (sqrt(5) - 1) / 2, the cube root of 2, 2 cos(2 pi / 7), and a rational
FIELDS = (
    Field((-2, 0, 1), Fraction(1), Fraction(2), (Fraction(0), Fraction(1, 2))),
    Field((-1, 1, 1), Fraction(0), Fraction(3, 4), (Fraction(1), Fraction(1))),
    Field((-2, 0, 0, 1), Fraction(-1), Fraction(7), (Fraction(0), Fraction(0), Fraction(1, 2))),
    Field((-1, -2, 1, 1), Fraction(1), Fraction(2), (Fraction(-2), Fraction(1), Fraction(1))),
    Field((-3, 2), Fraction(1), Fraction(9, 5), (Fraction(2, 3),)),
)


# the Gaussian rationals: i is no root between two numbers
GAUSSIAN = Field((1, 0, 1), Fraction(0), Fraction(0), (Fraction(0), Fraction(-1)))


def algebraic_decomposition(choose: Choices, terms: list[Term]) -> AlgebraicDecomposition:
    """Choose a field, and terms over it that have the sum of some rational terms."""
    field = choose.one(FIELDS)
    return AlgebraicDecomposition(field.f, field.lo, field.hi, _terms_over(field, choose, terms))


def complex_decomposition(choose: Choices, terms: list[Term]) -> ComplexDecomposition:
    """Choose complex terms that have the sum of some rational terms."""
    return ComplexDecomposition(_terms_over(GAUSSIAN, choose, terms))


def _terms_over(field: Field, choose: Choices, terms: list[Term]) -> tuple[AlgebraicTerm, ...]:
    zero = (Fraction(0),) * (len(field.f) - 1)
    found: list[list[SparseElements]] = [
        [
            {i: (x, *zero[1:]) for i, x in zip(indices, values, strict=True)}
            for indices, values in term
        ]
        for term in terms
    ]
    alpha = _times_root(field, (Fraction(1), *zero[1:]))
    for _ in range(choose.integer(1, 4)):
        n = choose.integer(0, len(found) - 1)
        a, b, *_ = choose.order(range(len(found[n])))
        if choose.chance(1, 2):
            # u b c = u (alpha b) (c / alpha)
            found[n][a] = _scaled(field, found[n][a], alpha)
            found[n][b] = _scaled(field, found[n][b], field.inverse)
        else:
            # u b c = u (b - alpha b') c + u (alpha b') c
            piece = _scaled(field, choose.one(found)[a], alpha)
            found.append([piece if m == a else dict(part) for m, part in enumerate(found[n])])
            found[n][a] = _less(found[n][a], piece)
    kept = [one for one in found if all(one)]
    return tuple(tuple((tuple(part), tuple(part.values())) for part in one) for one in kept)


def _times_root(field: Field, x: Element) -> Element:
    """Multiply by the root: x^d is replaced by its value by f."""
    *low, top = (Fraction(0), *x)
    return tuple(y - top * c / field.f[-1] for y, c in zip(low, field.f, strict=False))


def _product(field: Field, x: Element, y: Element) -> Element:
    total = [Fraction(0)] * len(x)
    for c in y:
        total = [t + c * z for t, z in zip(total, x, strict=True)]
        x = _times_root(field, x)
    return tuple(total)


def _scaled(field: Field, part: SparseElements, by: Element) -> SparseElements:
    return {i: _product(field, x, by) for i, x in part.items()}


def _less(x: SparseElements, y: SparseElements) -> SparseElements:
    total = dict(x)
    for i, value in y.items():
        old = total.get(i, (Fraction(0),) * len(value))
        total[i] = tuple(a - b for a, b in zip(old, value, strict=True))
    return {i: value for i, value in total.items() if any(value)}


# most pairs; in some draws, one entry of this many is omitted
MOST_PAIRS, OMITTED = 3, 3


def paired_slices(
    choose: Choices, tensor: Indices, places: Indices, mine: Mask
) -> PairedSlices | None:
    """Choose entries of pairs of slices.

    Parameters
    ----------
    choose : Choices
        Source of the choices.
    tensor : ndarray of int64, of order 3
        The dense tensor.
    places : ndarray of int64, shape (n_entries, 3)
        Places of its nonzero entries.
    mine : ndarray of bool, of the shape of the tensor
        Places that may be chosen.
    """
    mode = choose.integer(0, 2)
    whole = choose.chance(1, 2)
    slices = choose.order(np.unique(np.argwhere(mine)[:, mode]).tolist())
    label, value = np.full(tensor.shape, -1), 0
    for number in range(choose.integer(1, MOST_PAIRS)):
        # of one slice alone, too
        two = slices[2 * number : 2 * number + choose.one([2, 2, 2, 1])]
        part = np.zeros(tensor.shape, np.int64)
        for place in np.argwhere(mine):
            if place[mode] in two and (whole or not choose.chance(1, OMITTED)):
                part[tuple(place)] = tensor[tuple(place)]
        if part.any():
            both = np.moveaxis(part, mode, 0)[[two[0], two[-1]]]
            both[1] *= len(two) - 1
            label[part != 0] = number
            value += pencil_rank(*both)
    pair = label[tuple(places.T)]
    return PairedSlices(mode, pair, value) if value else None
