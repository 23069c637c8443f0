"""Trees of the substitution method with distinctions of cases: each of them, for small tensors.

More distinctions never prove less: a proof without them holds in each case. So at each removal the
multipliers of all slices that it touches are distinguished, and the choice of the slice alone is
searched, from the least hidden to the most. States are met again and again, and are kept. A search
that ends without a tree shows that the method proves no more in this basis.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from capacity.exact.types import Indices
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.entries import Refuted
from capacity.rank.verifier.kinds.cases import NONZERO, UNKNOWN, VALUE, ZERO, Cases, State, removed


@dataclass(frozen=True)
class Node:
    """A node of a tree.

    Attributes
    ----------
    steps : list of (int, int)
        Mode and index of each slice that is removed.
    split : list of int
        Slices whose multipliers are distinguished at the last step.
    children : list of Node
        A node for each case.
    """

    steps: list[tuple[int, int]]
    split: list[int]
    children: list[Node]

    def preorder(self) -> Iterable[Node]:
        """Yield the node and what is below it, in the order of a certificate."""
        yield self
        for child in self.children:
            yield from child.preorder()


def tree_of(root: Node, view: View, value: int) -> Cases:
    """Write a tree as an argument about a view."""
    nodes = list(root.preorder())
    return Cases(
        view,
        np.array([step for node in nodes for step in node.steps], np.int64).reshape(-1, 2),
        np.array([(len(node.steps), len(node.split)) for node in nodes], np.int64),
        np.array([j for node in nodes for j in node.split], np.int64),
        value,
    )


def joined(step: tuple[int, int], split: list[int], children: list[Node]) -> Node:
    """Return a node of a step; without cases its only child's steps follow it."""
    if split:
        return Node([step], split, children)
    (child,) = children
    return Node([step, *child.steps], child.split, child.children)


def renumbered(tree: Node, numbers: list[Indices]) -> Node:
    """Return a tree whose slices have other numbers, by mode."""
    steps = [(mode, int(numbers[mode][index])) for mode, index in tree.steps]
    split = [int(numbers[tree.steps[-1][0]][j]) for j in tree.split]
    return Node(steps, split, [renumbered(child, numbers) for child in tree.children])


# nonzero entries up to which trees are searched exhaustively
SMALL = 12
# nanoseconds for a state, and for each of its cases
STATE, CASE = 150_000, 80_000


class UnfinishedError(Exception):
    """The work is spent, or a removal has too many cases, or entries that are too large."""


class Exhaustive:
    """A search of all trees, which keeps what it has shown of each state.

    Parameters
    ----------
    work : int
        Work allowed, in units of about a nanosecond.
    """

    def __init__(self, work: int) -> None:
        self.work = work
        # of each state the most steps that are proved, with their tree, and the least that aren't
        self._proved: dict[tuple[object, ...], tuple[int, Node]] = {}
        self._refused: dict[tuple[object, ...], int] = {}

    def tree(self, state: State, needed: int) -> Node | None:
        """Return a tree of that many steps; None if there is none.

        Raises
        ------
        UnfinishedError
            If the work is spent before, or not all cases of a removal can be distinguished.
        """
        if needed <= 0:
            return Node([], [], [])
        status, values = _what_remains(state)
        if needed > _at_most(status):
            return None
        key = (status.shape, status.tobytes(), np.where(status == VALUE, values, 0).tobytes())
        most, tree = self._proved.get(key, (0, None))
        alive = [np.flatnonzero(x) for x in state.alive]
        if tree is not None and most >= needed:
            return renumbered(tree, alive)
        if needed >= self._refused.get(key, needed + 1):
            return None
        found = self._by_some_slice(state, needed)
        if found is None:
            self._refused[key] = needed
        else:
            self._proved[key] = needed, renumbered(found, [_places(x) for x in state.alive])
        return found

    def _by_some_slice(self, state: State, needed: int) -> Node | None:
        for _, mode, index, touched in sorted(_removals(state)):
            split = touched if needed > 1 else []
            self.work -= STATE
            try:
                cases = removed(state, mode, index, split)
            except Refuted as error:
                # entries become too large for the checker, or cases too many: fewer distinctions
                # may be possible
                raise UnfinishedError from error
            self.work -= CASE * len(cases)
            if self.work < 0:
                raise UnfinishedError
            # where least is known there is no tree first
            order = sorted(range(len(cases)), key=lambda i: _at_most(_what_remains(cases[i])[0]))
            children: dict[int, Node] = {}
            for i in order:
                child = self.tree(cases[i], needed - 1)
                if child is None:
                    break
                children[i] = child
            else:
                return joined((mode, index), split, [children[i] for i in range(len(cases))])
        return None


def _removals(state: State) -> list[tuple[int, int, int, list[int]]]:
    """Removals that are possible: known entries that are hidden, mode, index, slices touched."""
    found: list[tuple[int, int, int, list[int]]] = []
    for mode, remain in enumerate(state.alive):
        live, slices = state.live(mode), np.moveaxis(state.status, mode, 0)
        for index in np.flatnonzero(remain).tolist():
            gone = slices[index]
            if not ((gone != ZERO) & (gone != UNKNOWN) & live).any():
                continue
            hidden = (gone != ZERO) & (slices != UNKNOWN) & live
            counts = hidden.reshape(len(remain), -1).sum(axis=1) * remain
            counts[index] = 0
            found.append((int(counts.sum()), mode, index, np.flatnonzero(counts).tolist()))
    return found


def _what_remains(state: State) -> tuple[np.ndarray, Indices]:
    """Return the status and the values at the slices that remain."""
    remain = np.ix_(*(np.flatnonzero(x) for x in state.alive))
    return state.status[remain], state.values[remain]


def _at_most(status: np.ndarray) -> int:
    """Return the number of nonzero fibers of a mode: no tree proves more than a tensor's rank."""
    nonzero = (status == VALUE) | (status == NONZERO)
    return min(int(nonzero.any(axis=mode).sum()) for mode in range(status.ndim))


def _places(remain: np.ndarray) -> Indices:
    """Return the number of each slice among those that remain."""
    return np.cumsum(remain) - 1
