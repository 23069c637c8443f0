"""Random arguments for lower bounds that don't add, valid by construction.

They are flattenings, pencils, algebras, forms on rank one, and distinctions of cases; those by
diagonalization are separate. A certificate may have one of them.
"""

from __future__ import annotations

import itertools
import math

import flint
import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.rank import (
    AlderStrassen,
    Cases,
    Koszul,
    Pencil,
    RankOneCompletion,
    RankOneLocus,
    View,
)
from capacity.rank.lower.koszul import koszul_matrix
from capacity.rank.lower.rank_one_completions import spanning
from capacity.rank.lower.rank_one_loci import linear_form
from capacity.rank.reductions.subtensor import concise_core
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.kinds.algebra import n_maximal_ideals, products
from capacity.rank.verifier.kinds.cases import NONZERO, VALUE, State, removed
from capacity.rank.verifier.kinds.rank_one_completion import fibers_of
from capacity.rank.verifier.procedures.pencils import pencil_rank
from capacity.testing.arguments.area import Area, Maker, seen
from capacity.testing.arguments.diagonalizations import diagonalization
from capacity.testing.arguments.lower_arguments import FEW, PRIMES, random_view
from capacity.testing.arguments.published import published_bound
from capacity.testing.choices import Choices

# most indices of a mode: the independent checker goes through all triples of them
MOST = 4
# cores that are looked at
TRIES = 8
# probability that a step distinguishes cases is one in this; most levels and cases of a tree
SPLITS, MOST_LEVELS, MOST_CASES = 3, 2, 8


def koszul(choose: Choices, area: Area) -> Koszul | None:
    """Choose a Koszul flattening of a view, modulo a prime."""
    if area.order != 3:
        return None
    small = area.all_known(choose)
    if not small.indices[0]:
        return None
    view = random_view(choose, small, most=FEW)
    mode, prime = choose.integer(0, 2), choose.one(PRIMES)
    slices = np.moveaxis(seen(area, view)[0], mode, 0)
    p = choose.integer(0, len(slices) - 1)
    matrix = koszul_matrix(slices, p)
    m, n = matrix.shape
    rank = flint.nmod_mat(m, n, (matrix % prime).ravel().tolist(), prime).rank()
    value = -(-rank // math.comb(len(slices) - 1, p))
    return Koszul(view, mode, p, prime, value) if value else None


def pencil(choose: Choices, area: Area) -> Pencil | None:
    """Choose two slices that lie in the area and whose fibers are all known."""
    found: list[tuple[int, int, int]] = []
    for mode in range(3) if area.order == 3 else ():
        T = np.moveaxis(area.tensor, mode, 0) != 0
        for i, j in itertools.combinations(choose.some(area.indices[mode], most=8), 2):
            sides = [np.flatnonzero((T[i] | T[j]).any(axis=axis)).tolist() for axis in (1, 0)]
            sides.insert(mode, [i, j])
            inside = all(set(x) <= set(y) for x, y in zip(sides, area.indices, strict=True))
            # for effective ranks the verifier requires a fact of these slices in every object fiber
            facts = area.tensor[np.ix_(*sides)].any(axis=2).all() or not area.effective
            if inside and facts:
                found.append((mode, i, j))
    return drawn_pencil(choose, area, found)


def drawn_pencil(choose: Choices, area: Area, pairs: list[tuple[int, int, int]]) -> Pencil | None:
    """Choose a pencil among pairs of slices, each a mode and two indices; None without any."""
    if not pairs:
        return None
    mode, i, j = choose.one(pairs)
    slices = np.array(choose.order([i, j]), np.int64)
    first, second = area.tensor.take(slices, axis=mode).swapaxes(0, mode)
    return Pencil(mode, slices, pencil_rank(first, second))


def algebra(choose: Choices, area: Area) -> AlderStrassen | None:
    """Choose a cube that is the product of an algebra: a core, or some indices."""
    view = _core(choose, area)
    if view is None:
        return None
    T = seen(area, view)[0]
    n = len(T)
    for mode in choose.order(range(3)):
        turned = np.moveaxis(T, mode, 2)
        for attempt in range(3):
            u, v = (
                np.array([choose.integer(-2, 2) if attempt else 1 for _ in range(n)], np.int64)
                for _ in range(2)
            )
            if T.shape != (n, n, n) or not (u.any() and v.any()):
                break
            try:
                t = n_maximal_ideals(products(turned, u, v))
            except Refuted:
                continue
            return AlderStrassen(view, mode, u, v, 2 * n - t)
    return None


def rank_one_locus(choose: Choices, area: Area) -> RankOneLocus | None:
    """Choose slices of a core that aren't spanned by combinations of rank one."""
    view = _core(choose, area)
    if view is None:
        return None
    T = seen(area, view)[0]
    for mode in choose.order(range(3)):
        form = linear_form(np.moveaxis(T, mode, 0), seed=choose.seed())
        if form is not None:
            return RankOneLocus(view, mode, form * choose.one([1, -1, 7]))
    return None


def rank_one_completion(choose: Choices, area: Area) -> RankOneCompletion | None:
    """Choose indices whose known fibers have at most one entry, and a form on their objects."""
    modes = [area.order - 1] if area.effective else choose.order(range(area.order))
    for _ in range(TRIES):
        small = area.some(choose, most=choose.one([MOST, MOST, 2]))
        for mode in modes:
            fibers = fibers_of(small.part(), small.sure(), mode)
            # objects without a fiber are omitted
            present = np.intersect1d(fibers.objects, range(fibers.n_objects)) if fibers else ()
            sides = [*small.indices]
            sides[mode] = [sides[mode][v] for v in present]
            view = View(tuple(np.array(choose.order(side), np.int64) for side in sides))
            fibers = fibers_of(*seen(area, view), mode) if len(present) else None
            if fibers is None:
                continue
            try:
                _, form = spanning(fibers, CheckBudget(10**8))
            except MemoryBudgetError:
                continue
            if form is not None:
                return RankOneCompletion(view, mode, form * choose.one([1, -1, 7]))
    return None


def _core(choose: Choices, area: Area) -> View | None:
    """Choose known indices whose slices are independent in each mode, more than one if possible."""
    if area.order != 3:
        return None
    for _ in range(TRIES):
        known = area.all_known(choose)
        if not known.indices[0]:
            return None
        small = known.some(choose, most=choose.one([MOST, 2]))
        core = concise_core(small.part())
        if core.tensor.size > 1 or (core.tensor.size and choose.chance(1, 5)):
            return View(
                tuple(
                    np.array(side)[of] for side, of in zip(small.indices, core.chosen, strict=True)
                )
            )
    return None


def cases(choose: Choices, area: Area) -> Cases | None:
    """Choose steps of the substitution method on a view, and slices whose multipliers matter."""
    view = random_view(choose, area, most=MOST)
    tensor, known = seen(area, view)
    tree = _Tree(choose)
    try:
        value = tree.grow(State.of(tensor, known), MOST_LEVELS)
    except Refuted:
        # entries of the view or of differences are too large
        return None
    if not value:
        return None
    steps = np.array(tree.steps, np.int64).reshape(-1, 2)
    return Cases(view, steps, np.array(tree.nodes), np.array(tree.split, np.int64), value)


class _Tree:
    """A tree in preorder, as a certificate has it."""

    def __init__(self, choose: Choices) -> None:
        self._choose = choose
        self.nodes: list[tuple[int, int]] = []
        self.steps: list[tuple[int, int]] = []
        self.split: list[int] = []

    def grow(self, state: State, levels: int) -> int:
        """Add a node and all below it; return the fewest steps of a path."""
        number, n_steps = len(self.nodes), 0
        self.nodes.append((0, 0))
        while True:
            playable = [
                (mode, int(i)) for mode, alive in enumerate(state.alive)
                for i in np.flatnonzero(alive) if _is_nonzero(state, mode, int(i))
            ]  # fmt: skip
            if not playable:
                self.nodes[number] = n_steps, 0
                return n_steps
            mode, i = self._choose.one(playable)
            self.steps.append((mode, i))
            n_steps += 1
            others = [int(j) for j in np.flatnonzero(state.alive[mode]) if j != i]
            if levels and others and self._choose.chance(1, SPLITS):
                some = self._choose.some(others, most=2)
                each = _few(state, mode, i, some)
                if each:
                    self.split += some
                    self.nodes[number] = n_steps, len(some)
                    return n_steps + min([self.grow(case, levels - 1) for case in each])
            (state,) = removed(state, mode, i, [])


def _few(state: State, mode: int, i: int, split: list[int]) -> list[State]:
    """Return the cases of some multipliers; none if there are too many."""
    try:
        return removed(state, mode, i, split, most=MOST_CASES)
    except Refuted:
        return []


def _is_nonzero(state: State, mode: int, i: int) -> bool:
    status = state.slice(mode, i)[0]
    return bool((((status == VALUE) | (status == NONZERO)) & state.live(mode)).any())


STRONG: dict[str, Maker] = {
    "koszul": koszul,
    "pencil": pencil,
    "diagonalization": diagonalization,
    "algebra": algebra,
    "rank-one locus": rank_one_locus,
    "rank-one completion": rank_one_completion,
    "cases": cases,
    "published": published_bound,
}
