"""What both sides look at: ranks over the rationals, components, groups, the tensor of a view."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from capacity.rank import View


def rational_rank(matrix: list[list[Fraction]]) -> int:
    rows, rank = [row[:] for row in matrix], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            if factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def matrix_rank(M: np.ndarray) -> int:
    return rational_rank([[Fraction(int(x)) for x in row] for row in M])


def taken_together(T: np.ndarray, groups: Sequence[Sequence[int]]) -> np.ndarray | None:
    """The tensor with a mode for each group; of several modes, the places that have an entry."""
    if sorted(itertools.chain(*groups)) != list(range(T.ndim)) or not all(groups):
        return None
    turned = T.transpose(list(itertools.chain(*groups)))
    flat = turned.reshape([math.prod(T.shape[m] for m in group) for group in groups])
    for mode, group in enumerate(groups):
        if len(group) > 1:
            used = np.asarray((np.moveaxis(flat, mode, 0) != 0).reshape(flat.shape[mode], -1))
            kept = np.flatnonzero(used.any(axis=1)).tolist() or [0]
            flat = flat.take(kept, axis=mode)
    return flat


def component_names(T: np.ndarray) -> dict[tuple[int, int], int]:
    """A number for each index of each mode, the same for those that entries join."""
    vertices = [(mode, i) for mode, n in enumerate(T.shape) for i in range(n)]
    name = {vertex: number for number, vertex in enumerate(vertices)}
    before = None
    while before != name:
        before = dict(name)
        for place in np.argwhere(T != 0).tolist():
            least = min(name[vertex] for vertex in enumerate(place))
            name |= dict.fromkeys(enumerate(place), least)
    return name


def of_components(T: np.ndarray, names: dict[tuple[int, int], int], wanted: set[int]) -> np.ndarray:
    part = T.copy()
    for place in np.argwhere(T != 0).tolist():
        if names[0, place[0]] not in wanted:
            part[tuple(place)] = 0
    return part


def indices_of(view: View) -> set[tuple[int, int]]:
    return {(m, i) for m, of in enumerate(view.indices) for i in of.tolist()}


def tensor_of(view: View, T: np.ndarray, observed: np.ndarray | None) -> dict[Any, Any] | None:
    """The tensor of a view, entry by entry in exact integers; None for unknown ones."""
    if not len(view.indices) == len(view.bases) == T.ndim:
        return None
    if any(len(set(i.tolist())) < len(i) or not len(i) or min(i) < 0 for i in view.indices):
        return None
    rows: list[list[list[tuple[int, int]]]] = []
    for indices, P in zip(view.indices, view.bases, strict=True):
        whole = [[(i, 1)] for i in indices.tolist()]
        if P is not None:
            if P.shape[1] != len(indices):
                return None
            whole = [
                [(i, c) for i, c in zip(indices.tolist(), row, strict=True) if c]
                for row in P.tolist()
            ]
        rows.append(whole)
    seen: dict[Any, Any] = {}
    for place in itertools.product(*(range(len(of)) for of in rows)):
        summed = [of[i] for of, i in zip(rows, place, strict=True)]
        fibers = itertools.product(*([i for i, _ in side] for side in summed[:-1]))
        if observed is not None and not all(observed[fiber] for fiber in fibers):
            seen[place] = None
            continue
        total = 0
        for part in itertools.product(*summed):
            x = int(T[tuple(i for i, _ in part)])
            total += x * math.prod(c for _, c in part) if x else 0
        seen[place] = total
    return seen


def dense(view: View, T: np.ndarray) -> np.ndarray | None:
    seen = tensor_of(view, T, None)
    if seen is None:
        return None
    dense = np.zeros([x + 1 for x in max(seen)], dtype=object)
    for place, x in seen.items():
        dense[place] = x
    return dense
