"""Search for trees of the substitution method with distinctions of cases.

An order of slices is drawn greedily, and cut at random; the multiplier of a slice that its last
removal touches is distinguished there, and each case must reach the rest of the steps, by a greedy
order or with fewer distinctions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from capacity.rank.lower.greedy_substitution import greedy_removals
from capacity.rank.method import Method
from capacity.rank.problem import Goal, Problem
from capacity.rank.reductions.subtensor import Finding
from capacity.rank.types import Indices
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.cases import (
    LARGEST,
    NONZERO,
    UNKNOWN,
    VALUE,
    ZERO,
    Cases,
    State,
    removed,
)

# greedy orders for a node, and a draw's at most
ORDERS, ORDERS_OF_DRAW = 30, 6
# draws at a node, and levels of the tree
DRAWS, MOST_LEVELS = 60, 4
# nanoseconds that a state, or a call of the greedy search, takes whatever its size
CALL = 150_000


@dataclass(frozen=True)
class Node:
    """A node of a tree: steps, slices whose multipliers are distinguished, a child for each."""

    steps: list[tuple[int, int]]
    split: list[int]
    children: list[Node]

    def preorder(self) -> Iterable[Node]:
        """Yield the node and what is below it, in the order of a certificate."""
        yield self
        for child in self.children:
            yield from child.preorder()


def case_trees(problem: Problem, goal: Goal) -> Iterable[Finding]:
    """Look for one step more than the lower bound so far, on each of `Problem.parts`."""
    for of in problem.parts:
        tensor, known = problem.part(of)
        if tensor.size and np.abs(tensor).max() < LARGEST:
            search = _Search(goal.work // len(problem.parts), goal.seed)
            tree = search.tree(_state(tensor, known), goal.lower + 1)
            if tree is not None:
                yield (_certified(tree, View(of), goal.lower + 1),)
                return


class _Search:
    """A search that counts its work."""

    def __init__(self, work: int, seed: int) -> None:
        self._work = work
        self._rng = np.random.default_rng(seed)

    def tree(self, state: State, needed: int) -> Node | None:
        """Look for a tree with more and more levels, each with a share of the work."""
        work = self._work
        for level in range(1, MOST_LEVELS + 1):
            self._work = work * level // (MOST_LEVELS * (MOST_LEVELS + 1) // 2)
            while self._work > 0:
                found = self._proved(state, needed, level)
                if found is not None:
                    return found
                if self._work == work:
                    break
        return None

    def _proved(self, state: State, needed: int, levels: int) -> Node | None:
        steps = self._order(state, ORDERS, needed)
        if len(steps) >= needed:
            return Node(steps[: max(needed, 0)], [], [])
        if not levels or len(steps) < needed - 1 - levels:
            return None
        for draw in range(DRAWS):
            if self._work <= 0:
                return None
            steps = self._order(state, 1 if draw % 3 else ORDERS_OF_DRAW, needed)
            if not steps or len(steps) < needed - 2 - levels:
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
        j = int(self._rng.choice(np.flatnonzero(others)))
        children: list[Node] = []
        for case in removed(after, mode, index, [j]):
            self._work -= CALL
            child = self._proved(case, needed - len(steps), levels - 1)
            if child is None:
                return None
            children.append(child)
        return Node(steps, [j], children)

    def _order(self, state: State, orders: int, target: int) -> list[tuple[int, int]]:
        alive = [np.flatnonzero(x) for x in state.alive]
        status = state.status[np.ix_(*alive)]
        nonzero = (status == VALUE) | (status == NONZERO)
        self._work -= CALL + 2 * orders * status.size * sum(status.shape)
        if not nonzero.any():
            return []
        found = greedy_removals(
            nonzero,
            status != UNKNOWN,
            orders=orders,
            seed=int(self._rng.integers(2**31)),
            target=target,
        )
        return [(mode, int(alive[mode][index])) for mode, index in found.tolist()]


def _state(tensor: Indices, known: np.ndarray) -> State:
    status = np.where(known, np.where(tensor != 0, VALUE, ZERO), UNKNOWN).astype(np.int8)
    return State(status, tensor.copy(), [np.ones(n, bool) for n in tensor.shape])


def _certified(tree: Node, view: View, value: int) -> Cases:
    nodes = list(tree.preorder())
    steps = [step for node in nodes for step in node.steps]
    return Cases(
        view,
        np.array(steps, np.int64).reshape(-1, 2),
        np.array([(len(node.steps), len(node.split)) for node in nodes], np.int64),
        np.array([j for node in nodes for j in node.split], np.int64),
        value,
    )


CASES = Method(
    "cases",
    case_trees,
    sides=("lower",),
    limit="bases",
    cost=lambda problem: 100 * problem.size,
    any_order=True,
    effective="yes",
)
