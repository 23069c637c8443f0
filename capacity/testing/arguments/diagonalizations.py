"""Random slices that aren't diagonal in common bases, with the argument that shows it."""

from __future__ import annotations

import itertools

import flint
import numpy as np

from capacity.exact.types import Indices
from capacity.rank import Diagonalization, View, matrix_rank
from capacity.rank.lower.diagonalization import nonsingular_combination
from capacity.rank.reductions.subtensor import concise_core
from capacity.rank.verifier.procedures.simultaneous_diagonalization import (
    all_singular,
    why_not_diagonal,
)
from capacity.testing.arguments.area import Area, seen
from capacity.testing.arguments.lower_arguments import FEW, NONE
from capacity.testing.choices import Choices


def diagonalization(choose: Choices, area: Area) -> Diagonalization | None:
    """Choose square slices that aren't diagonal in common bases: of a core, or two by two.

    The checker is `capacity.rank.verifier.kinds.diagonalization`. Returns None where none is found.
    """
    if area.order != 3:
        return None
    known = area.all_known(choose)
    if not known.indices[0]:
        return None
    if choose.chance(1, 3):
        argument = _of_the_core(choose, known)
        if argument is not None:
            return argument
    return _of_two_by_two(choose, known.some(choose, most=FEW))


def _of_the_core(choose: Choices, area: Area) -> Diagonalization | None:
    """Argument for independent slices of all modes, in a random order."""
    tensor = area.part()
    orders = [choose.order(range(n)) for n in tensor.shape]
    core = concise_core(tensor[np.ix_(*orders)])
    positions = [
        [order[i] for i in independent]
        for order, independent in zip(orders, core.chosen, strict=True)
    ]
    return _not_diagonal(choose, area, positions)


def _of_two_by_two(choose: Choices, area: Area) -> Diagonalization | None:
    """Argument for two indices of each mode whose tensor has rank 3, and some more of one mode."""
    tensor = area.part()
    cubes = _cubes_of_rank_3(tensor)
    if not cubes:
        return None
    positions = [list(pair) for pair in choose.one(cubes)]
    mode = choose.integer(0, 2)
    # further slices don't lower the rank
    others = [i for i in range(tensor.shape[mode]) if i not in positions[mode]]
    further = choose.some(others, most=3) if others else []
    positions[mode] = choose.order(positions[mode] + further)
    return _not_diagonal(choose, area, positions)


def _cubes_of_rank_3(tensor: Indices) -> list[tuple[tuple[int, int], ...]]:
    """Pairs of indices of each mode whose 2 x 2 x 2 tensor has rank 3 (de Silva, Lim 2008).

    Cayley's hyperdeterminant is negative, or vanishes although the tensor is concise.
    """
    pairs = [list(itertools.combinations(range(n), 2)) for n in tensor.shape]
    cubes = []
    for cube in itertools.product(*pairs):
        T = tensor[np.ix_(*cube)]
        (a, b), (c, d), (e, f), (g, h) = T.reshape(4, 2).tolist()
        delta = (a * h + e * d - b * g - f * c) ** 2 - 4 * (a * d - b * c) * (e * h - f * g)
        if delta < 0 or (delta == 0 and all(_independent(T.swapaxes(0, m)) for m in range(3))):
            cubes.append(cube)
    return cubes


def _independent(two: Indices) -> bool:
    x, y = two.reshape(2, -1)
    return bool((np.outer(x, y) != np.outer(y, x)).any())


def _not_diagonal(
    choose: Choices, area: Area, positions: list[list[int]]
) -> Diagonalization | None:
    """Argument for a sub-tensor, given by positions in an area, if it is square and valid."""
    k, q, v = (np.array(side)[of] for side, of in zip(area.indices, positions, strict=True))
    view = View((k, q, v))
    for mode in choose.order(range(3)):
        slices = np.moveaxis(seen(area, view)[0], mode, 0)
        n = slices.shape[1]
        if n != slices.shape[2]:
            continue
        combination = some_combination(choose, slices)
        if combination is None:
            ranks = [matrix_rank(of.transpose(1, 0, 2).reshape(n, -1))
                     for of in (slices, slices.transpose(0, 2, 1))]  # fmt: skip
            if ranks == [n, n] and all_singular(slices):
                return Diagonalization(view, mode, NONE, n + 1)
        elif why_not_diagonal(slices, combination) is not None:
            return Diagonalization(view, mode, combination, n + 1)
    return None


def some_combination(choose: Choices, slices: Indices) -> Indices | None:
    """Coefficients of a nonsingular combination of square slices, if any are found."""
    n = slices.shape[1]
    drawn = np.array([choose.integer(-2, 2) for _ in slices], np.int64)
    total = np.tensordot(drawn, slices, axes=1)
    if flint.fmpz_mat(n, n, total.ravel().tolist()).det() != 0:
        return drawn
    return nonsingular_combination(slices, seed=0)
