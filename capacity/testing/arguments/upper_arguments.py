"""Random boxes and simple tensors that sum to given entries, valid by construction."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from capacity.exact.factorization import factors
from capacity.exact.types import Mask, Term, Vector, vector
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
