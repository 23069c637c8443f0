"""Random arguments for upper bounds that cover all entries of some components, of order 3.

Each function takes an `Area` of whole components, and returns None if it finds no argument.
"""

from __future__ import annotations

import itertools

import numpy as np

from capacity.exact.types import Mask
from capacity.rank import Diagonalization, Enclosure, MaximalRank, Pencil, View, matrix_rank
from capacity.rank.cp.exact_fits import accepted
from capacity.rank.cp.levenberg_marquardt import fit_cp, random_start
from capacity.rank.cp.making_exact import enclose
from capacity.rank.reductions.subtensor import concise_core
from capacity.rank.verifier.kinds.maximal_rank import maximal_rank
from capacity.rank.verifier.procedures.simultaneous_diagonalization import why_not_diagonal
from capacity.testing.arguments.area import Area, Maker
from capacity.testing.arguments.diagonalizations import some_combination
from capacity.testing.arguments.strong_arguments import drawn_pencil
from capacity.testing.choices import Choices

# limits of an enclosure, since an independent checker takes long for larger ones
MOST_EQUATIONS = 36
MOST_FIBERS = 4


def whole_pencil(choose: Choices, area: Area) -> Pencil | None:
    """Choose two slices of which all others of their components are combinations."""
    found: list[tuple[int, int, int]] = []
    for mode in range(3) if area.order == 3 else ():
        T, labels = np.moveaxis(area.tensor, mode, 0), area.labels[mode]
        for i, j in itertools.combinations(choose.some(area.indices[mode], most=8), 2):
            mine = np.isin(labels, labels[[i, j]])
            whole = T[mine].reshape(int(mine.sum()), -1)
            if matrix_rank(whole) == 2 == matrix_rank(T[[i, j]].reshape(2, -1)):
                found.append((mode, i, j))
    return drawn_pencil(choose, area, found)


def whole_diagonalization(choose: Choices, area: Area) -> Diagonalization | None:
    """Diagonalization of a concise core, if its slices are diagonal in common bases."""
    if area.order != 3:
        return None
    view = _core(choose, area)
    tensor = area.tensor[np.ix_(*view.indices)]
    for mode in choose.order(range(3)):
        slices = np.moveaxis(tensor, mode, 0)
        n = slices.shape[1]
        if n != slices.shape[2]:
            continue
        combination = some_combination(choose, slices)
        if combination is not None and why_not_diagonal(slices, combination) is None:
            return Diagonalization(view, mode, combination, n)
    return None


def whole_format(choose: Choices, area: Area) -> MaximalRank | None:
    """Choose a core, or more slices, if a theorem states the largest rank of that format."""
    if area.order != 3:
        return None
    view = _core(choose, area)
    sides = [
        [*of.tolist(), *(i for i in side if i not in of and choose.chance(1, 4))]
        for of, side in zip(view.indices, area.indices, strict=True)
    ]
    larger = View(tuple(np.array(choose.order(side), np.int64) for side in sides))
    for one in (larger, view):
        value = maximal_rank([len(of) for of in one.indices])
        if value is not None:
            return MaximalRank(one, value)
    return None


def _core(choose: Choices, area: Area) -> View:
    """Independent slices of each mode, of which the others are combinations."""
    orders = [np.array(choose.order(side), np.int64) for side in area.indices]
    core = concise_core(area.tensor[np.ix_(*orders)])
    return View(tuple(order[of] for order, of in zip(orders, core.chosen, strict=True)))


def enclosure(choose: Choices, area: Area) -> Enclosure | None:
    """Numerical fit with a proof that an exact real decomposition is near.

    It fits a core, or all known entries; the entries of some fibers may be left to one simple
    tensor for each fiber.
    """
    if choose.chance(1, 3):
        view = _core(choose, area)
        return _fitted(choose, area, view, np.ones(area.tensor.shape, bool), area.order - 1, [])
    facts = np.zeros(area.tensor.shape, bool)
    facts[np.ix_(*area.indices)] = area.part() != 0
    mode, fibers = area.order - 1, []
    counts = area.known.copy()
    if area.order == 3 and choose.chance(1, 2):
        mode = 2 if area.effective else choose.integer(0, 2)
        fibers = choose.some(np.argwhere(facts.any(axis=mode)).tolist(), most=MOST_FIBERS)
        for array in (facts, counts):
            np.moveaxis(array, mode, 2)[tuple(np.array(fibers).T)] = False
    used = tuple(map(np.unique, np.nonzero(facts)))
    return _fitted(choose, area, View(used), counts, mode, fibers) if len(used[0]) else None


def _fitted(
    choose: Choices, area: Area, view: View, counts: Mask, mode: int, fibers: list[list[int]]
) -> Enclosure | None:
    """Fit the fibers of a view that count, with about as many unknowns as equations."""
    counts = counts[np.ix_(*view.indices)]
    equations = int(counts.sum())
    if not 0 < equations <= MOST_EQUATIONS:
        return None
    tensor = area.tensor[np.ix_(*view.indices)]
    last = tensor.ndim - 1
    turned = np.moveaxis(tensor, mode, last)
    rank = max(1, -(-equations // (sum(tensor.shape) - last)) + choose.integer(-1, 2))
    fit = fit_cp(
        turned.astype(np.float64),
        random_start(turned.shape, rank, np.random.default_rng(choose.seed())),
        observed=np.moveaxis(counts, mode, last)[..., 0],
        iterations=60,
    )
    if not accepted(fit):
        return None
    order = [*(m for m in range(last + 1) if m != mode), mode]
    found = enclose(tensor, tuple(fit.factors[order.index(m)] for m in range(last + 1)), counts)
    if found is None:
        return None
    return Enclosure(view, *found, mode, np.array(fibers, np.int64).reshape(-1, 2))


WHOLE: dict[str, Maker] = {
    "pencil": whole_pencil,
    "diagonalization": whole_diagonalization,
    "enclosure": enclosure,
    "maximal rank": whole_format,
}
