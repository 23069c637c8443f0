"""Random arguments for lower bounds that don't add: algebras, rank one, distinctions of cases."""

from __future__ import annotations

import numpy as np

from capacity.errors import MemoryBudgetError
from capacity.rank import AlderStrassen, Cases, RankOneCompletion, RankOneLocus, View
from capacity.rank.lower.rank_one_completions import spanning
from capacity.rank.lower.rank_one_loci import linear_form
from capacity.rank.reductions.subtensor import concise_core
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.kinds.algebra import n_maximal_ideals, products
from capacity.rank.verifier.kinds.cases import NONZERO, VALUE, State, removed
from capacity.rank.verifier.kinds.rank_one_completion import fibers_of
from capacity.testing.arguments.area import Area, seen
from capacity.testing.arguments.lower_arguments import random_view
from capacity.testing.choices import Choices

# most indices of a mode: the independent checker goes through all triples of them
MOST = 4
# cores that are looked at
TRIES = 8
# probability that a step distinguishes cases is one in this; most levels and cases of a tree
SPLITS, MOST_LEVELS, MOST_CASES = 3, 2, 8


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
