"""Cells that a rule determines, filled with objects so that all of these occur."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.display import briefly_shown


@briefly_shown
@dataclass(frozen=True)
class Rule:
    """Origin of the object of each cell: a table, or a free draw that cells may share.

    Attributes
    ----------
    draw : ndarray of int64, shape (n_subjects, n_predicates)
        Number of the free draw that the cell has, or -1 for a cell of the table. Cells with the
        same draw repeat each other.
    table : ndarray of int64, shape (n_subjects, n_predicates)
        Objects of the cells without a draw.
    names : ndarray of int64, shape (n_predicates, n_objects)
        Permutation for each predicate: the object that a draw stands for in its cells.
    """

    draw: NDArray[np.int64]
    table: NDArray[np.int64]
    names: NDArray[np.int64]


def filled(rng: np.random.Generator, rule: Rule, n_objects: int) -> NDArray[np.int64] | None:
    """Draw objects for the cells of a rule, all of which occur.

    The draws are uniform. Then each object that doesn't occur, in random order, is given to a cell
    drawn at random, with all that repeat it, if fewer objects are missing afterwards.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of the draws.
    rule : Rule
        The rule.
    n_objects : int
        Number of objects.

    Returns
    -------
    ndarray of int64, shape (n_subjects, n_predicates), or None
        An object for each cell; None if some object can be given to no cell.

    Examples
    --------
    >>> twice = Rule(np.array([[0, 0], [1, 1]]), np.zeros((2, 2), int), np.array([[0, 1], [0, 1]]))
    >>> sorted(filled(np.random.default_rng(0), twice, 2).tolist())
    [[0, 0], [1, 1]]
    """
    numbers, draw = np.unique(rule.draw.ravel(), return_inverse=True)
    predicate = np.tile(np.arange(len(rule.names)), len(rule.draw))
    drawn = rng.integers(n_objects, size=len(numbers))
    cells = rule.names[predicate, drawn[draw]]
    fixed = rule.draw.ravel() < 0
    cells[fixed] = rule.table.ravel()[fixed]
    # cells of each draw side by side
    order = np.argsort(draw, kind="stable")
    ends = np.cumsum(np.bincount(draw))
    used = np.bincount(cells, minlength=n_objects)
    for missing in rng.permutation(np.flatnonzero(used == 0)):
        # one that was given before may have brought this one along
        for cell in rng.permutation(np.flatnonzero(~fixed)) if not used[missing] else ():
            those = order[ends[draw[cell] - 1] if draw[cell] else 0 : ends[draw[cell]]]
            value = np.flatnonzero(rule.names[predicate[cell]] == missing)[0]
            new = rule.names[predicate[those], value]
            counts = used - np.bincount(cells[those], minlength=n_objects)
            counts += np.bincount(new, minlength=n_objects)
            if (counts == 0).sum() < (used == 0).sum():
                cells[those], used = new, counts
                break
    return cells.reshape(rule.draw.shape) if used.all() else None
