"""Random boxes and simple tensors that sum to given facts, valid by construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from capacity.rank.exact.factorization import factors
from capacity.rank.exact.sparse_terms import Term, Vector, term, vector
from capacity.rank.reductions.coefficients import coefficients_of
from capacity.rank.types import Mask
from capacity.rank.verifier.kinds.algebraic import AlgebraicDecomposition, polynomial
from capacity.testing.area import Area, Sides
from capacity.testing.choices import Choices

# numbers that terms are scaled by, with their inverses
Scales: TypeAlias = Sequence[tuple[Any, Any]]
SCALES: Scales = tuple(
    (x, 1 / x) for x in (Fraction(1), Fraction(-1), Fraction(2), Fraction(1, 3), Fraction(-5, 7))
)
# polynomials, and numbers between which they have a root: irreducible ones, one with rational
# roots, and one of them twice
FIELDS = (
    ((-2, 0, 1), 1, 2),
    ((-1, -1, 1), 1, 2),
    ((-1, -2, 1, 1), 1, 2),
    ((-1, 0, 3), 0, 1),
    ((2, -3, 1), Fraction(3, 2), 3),
    ((-1, 3, -3, 1), 0, 3),
)


def partition(choose: Choices, area: Area, mine: Mask) -> list[Sides]:
    """Choose boxes that contain each of some facts once, and otherwise unknown entries alone."""
    left = mine.copy()
    boxes: list[Sides] = []
    while left.any():
        k, q, v = choose.one(np.argwhere(left).tolist())
        sides: Sides = ([k], [q], [v])
        allowed = left | ~area.known
        for _ in range(choose.integer(0, 6)):
            grown = [
                (mode, i)
                for mode in range(3)
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
    """Mask of the indices of a mode whose slice is allowed on all of the other two sides."""
    a, b = (side for m, side in enumerate(sides) if m != mode)
    across = np.moveaxis(allowed, mode, 0)[:, a][:, :, b]
    return np.logical_and.reduce(across, axis=(1, 2))


def terms(choose: Choices, area: Area, boxes: list[Sides]) -> list[Term]:
    """Choose simple tensors that sum to some boxes: the boxes themselves, or factored slices."""
    found: list[Term] = []
    if boxes and choose.chance(1, 3):
        dense = np.zeros(area.tensor.shape, np.int64)
        for sides in boxes:
            dense[np.ix_(*sides)] = 1
        dense *= area.known
        mode = choose.integer(0, 2)
        for i, matrix in enumerate(np.moveaxis(dense, mode, 0)):
            for column, row in factors(matrix) if matrix.any() else ():
                a, b = (vector(range(len(x)), x) for x in (column, row))
                found.append(term(mode, vector([i], [1]), a, b))
    else:
        for sides in boxes:
            a, b, c = (vector(side, [1] * len(side)) for side in sides)
            found.append((a, b, c))
    for _ in range(choose.integer(0, 6)):
        found = _disguised(choose, found, SCALES)
    return found


def algebraic(choose: Choices, area: Area, boxes: list[Sides]) -> AlgebraicDecomposition:
    """Choose simple tensors over a number field that sum to some boxes."""
    f, lo, hi = choose.one(FIELDS)
    empty = AlgebraicDecomposition(f, Fraction(lo), Fraction(hi), ())
    field = coefficients_of(empty)
    # f = f_0 + x g, so that the inverse of the root x is -g(x) / f_0
    root, inverse = (
        polynomial([Fraction(0), Fraction(1)]),
        polynomial([Fraction(-c, f[0]) for c in f[1:]]),
    )
    scales: Scales = [(root, inverse), (inverse, root), (-root, -inverse), (root, inverse)]
    found: list[Any] = [
        tuple((indices, tuple(map(field.rational, values))) for indices, values in one)
        for one in terms(choose, area, boxes)
    ]
    for _ in range(choose.integer(1, 6)):
        found = _disguised(choose, found, scales)
    kept = tuple(
        tuple(field.vector(dict(zip(indices, values, strict=True))) for indices, values in one)
        for one in found
    )
    return replace(empty, terms=kept)


def _disguised(choose: Choices, found: list[Term], scales: Scales) -> list[Term]:
    """Change terms but not their sum: scale or split one, flip or merge two."""
    found = found[:]
    x, inverse = choose.one(scales)
    n, mode = choose.integer(0, len(found) - 1), choose.integer(0, 2)
    a, b = (m for m in range(3) if m != mode)
    same = [i for i, one in enumerate(found) if i != n and one[mode] == found[n][mode]]
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
        found[n] = _with(found[n], a, _sum(found[n][a], piece, -1))
    else:
        found[n] = _with(found[n], a, _sum(((), ()), found[n][a], x))
        found[n] = _with(found[n], b, _sum(((), ()), found[n][b], inverse))
    # a term with an empty vector is zero
    return [one for one in found if all(indices for indices, _ in one)]


def _with(one: Term, mode: int, instead: Vector) -> Term:
    parts = [instead if m == mode else part for m, part in enumerate(one)]
    return parts[0], parts[1], parts[2]


def _sum(x: Vector, y: Vector, times: Any) -> Vector:
    total = dict(zip(*x, strict=True))
    for i, value in zip(*y, strict=True):
        total[i] = total[i] + times * value if i in total else times * value
    kept = {i: value for i, value in total.items() if value}
    return tuple(kept), tuple(kept.values())
