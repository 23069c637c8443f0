"""Search for trees of the substitution method with distinctions of cases.

Of small tensors every tree is searched. Of others an order of slices is drawn greedily, and cut at
random; the multiplier of a slice that its last removal touches is distinguished there, and each
case must reach the rest of the steps, by a greedy order or with fewer distinctions.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.lower.substitution.dense import sparser, work_of_sparser
from capacity.rank.lower.substitution.exhaustive import (
    SMALL,
    Exhaustive,
    Node,
    UnfinishedError,
    tree_of,
)
from capacity.rank.lower.substitution.greedy import greedy_removals
from capacity.rank.method import Goal, Method, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.kinds.cases import (
    MOST_NODES,
    NONZERO,
    UNKNOWN,
    VALUE,
    ZERO,
    State,
    removed,
)

# greedy orders for a node, and a draw's at most
ORDERS, ORDERS_OF_DRAW = 12, 3
DRAWS = 60
# share of the work for trees of one level, two, ...
SHARES = (0.4, 0.4, 0.2)
# nanoseconds that a call of the greedy search takes whatever the size, and each order and state
CALL, EACH = 200_000, 40_000


def case_trees(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Look for one step more than the lower bound so far, in the given bases and in sparser ones.

    Half of the work is for trees, with an equal share for each attempt, and half for changes of
    bases: where one takes more than its share, bases are left as they are. The core is taken for
    the whole tensor.
    """
    lower, of = goal.lower, problem.parts[-1]
    tensor, known = problem.part(of)
    if not tensor.size:
        return
    each = goal.work // 2 // (goal.limits.bases + 1)
    attempts = goal.limits.bases + 1 if work_of_sparser(tensor) <= each else 1
    for attempt in range(attempts):
        if lower >= goal.upper:
            return
        seed, rebased, sure, bases = goal.seed + attempt, tensor, known, ()
        if attempt:
            rebased, sure, bases = sparser(tensor, known, np.random.default_rng(seed))
        try:
            tree = case_tree(rebased, sure, lower + 1, work=each, seed=seed)
        except Refuted:
            # entries become too large for the checker
            continue
        if tree is not None:
            lower += 1
            yield (tree_of(tree, View(of, bases), lower),)


def case_tree(tensor: Indices, known: Mask, needed: int, *, work: int, seed: int) -> Node | None:
    """Search for a tree of steps, with more and more levels of cases.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n0, n1, ...)
        The tensor.
    known : ndarray of bool, of the same shape
        Entries that are known from the start.
    needed : int
        Steps that each path of the tree must have.
    work : int
        Work allowed, in units of about a nanosecond.
    seed : int
        Seed of the random choices.

    Returns
    -------
    Node or None
        The root of a tree; None if none was found.

    Raises
    ------
    Refuted
        If entries become too large for the checker.
    """
    root = State.of(tensor, known)
    if np.count_nonzero(root.status == VALUE) <= SMALL:
        try:
            tree = Exhaustive(work // 2).tree(root, needed)
        except UnfinishedError:
            work //= 2
        else:
            small = tree is not None and sum(1 for _ in tree.preorder()) <= MOST_NODES
            return tree if small else None
    search = _Search(seed)
    # a level gains a step or two
    lacking = needed - len(search.order(root, ORDERS, needed))
    for levels, share in enumerate(SHARES, 1):
        if levels < lacking - 1:
            continue
        search.work = int(work * share)
        while search.work > 0:
            found = search.proved(root, needed, levels)
            if found is not None:
                return found
    return None


class _Search:
    """A search that counts down its work."""

    def __init__(self, seed: int) -> None:
        self.work = 0
        self._rng = np.random.default_rng(seed)

    def proved(self, state: State, needed: int, levels: int) -> Node | None:
        """Prove a number of steps from a state, by an order or a tree of some levels."""
        steps = self.order(state, ORDERS, needed)
        if len(steps) >= needed:
            return Node(steps[: max(needed, 0)], [], [])
        if not levels or len(steps) < needed - 1 - levels:
            return None
        for draw in range(DRAWS):
            if self.work <= 0:
                return None
            steps = self.order(state, 1 if draw % 3 else ORDERS_OF_DRAW, needed)
            if not steps or len(steps) < needed - 1 - levels:
                continue
            found = self._split(state, steps[: int(self._rng.integers(len(steps))) + 1], needed,
                                levels)  # fmt: skip
            if found is not None:
                return found
        return None

    def _split(
        self, state: State, steps: list[tuple[int, int]], needed: int, levels: int
    ) -> Node | None:
        """Distinguish the multiplier of a slice at the last of some steps."""
        after = state.copy()
        for mode, index in steps[:-1]:
            (after,) = removed(after, mode, index, [])
        mode, index = steps[-1]
        slices = np.moveaxis(after.status, mode, 0)
        touched = (slices[index] != ZERO) & (slices != UNKNOWN) & after.live(mode)
        others = touched.any(axis=tuple(range(1, touched.ndim))) & after.alive[mode]
        others[index] = False
        if not others.any():
            return None
        numbers: Indices = np.flatnonzero(others)
        j = int(numbers[self._rng.integers(len(numbers))])
        children: list[Node] = []
        for case in removed(after, mode, index, [j]):
            self.work -= EACH
            child = self.proved(case, needed - len(steps), levels - 1)
            if child is None:
                return None
            children.append(child)
        return Node(steps, [j], children)

    def order(self, state: State, orders: int, target: int) -> list[tuple[int, int]]:
        """Find steps from a state greedily."""
        alive = [np.flatnonzero(x) for x in state.alive]
        status = state.status[np.ix_(*alive)]
        nonzero = (status == VALUE) | (status == NONZERO)
        self.work -= CALL + orders * (EACH + status.size * sum(status.shape))
        if not nonzero.any():
            return []
        seed = int(self._rng.integers(2**31))
        found = greedy_removals(nonzero, status != UNKNOWN, orders=orders, seed=seed, target=target)
        pairs: list[tuple[int, int]] = found.tolist()
        return [(mode, int(alive[mode][index])) for mode, index in pairs]


CASES = Method(
    "cases",
    case_trees,
    sides=("lower",),
    limit="bases",
    cost=lambda problem: 2 * 100 * problem.size,
    times=2,
    any_order=True,
    effective="yes",
)
