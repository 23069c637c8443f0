"""Trees of the substitution method with distinctions of cases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from capacity.exact.types import Indices
from capacity.rank.verifier.argument import View
from capacity.rank.verifier.kinds.cases import Cases


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
