"""What both sides look at: ranks over the rationals, components, and the tensor of a view."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

from capacity.database import Database
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
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def matrix_rank(M: np.ndarray) -> int:
    return rational_rank([[Fraction(int(x)) for x in row] for row in M])


def component_names(db: Database) -> dict[tuple[int, int], int]:
    name = {(m, i): 100 * m + i for m in range(3) for i in range(db.shape[m])}
    for _ in range(sum(db.shape)):
        for row in db.triples.tolist():
            least = min(name[m, i] for m, i in enumerate(row))
            name |= dict.fromkeys(enumerate(row), least)
    return name


def of_components(D: np.ndarray, names: dict[tuple[int, int], int], wanted: set[int]) -> np.ndarray:
    part = D.copy()
    for place in np.argwhere(D):
        if names[0, int(place[0])] not in wanted:
            part[tuple(place)] = 0
    return part


def indices_of(view: View) -> set[tuple[int, int]]:
    return {(m, i) for m in range(3) for i in view.indices[m].tolist()}


def tensor_of(view: View, D: np.ndarray, observed: np.ndarray | None) -> dict[Any, Any] | None:
    """The tensor of a view, entry by entry in exact integers; None for unknown ones."""
    if any(len(set(i.tolist())) < len(i) or not len(i) for i in view.indices):
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
    for a, b, c in itertools.product(*(range(len(of)) for of in rows)):
        parts = list(itertools.product(rows[0][a], rows[1][b], rows[2][c]))
        if observed is not None and not all(
            observed[k, q] for (k, _), (q, _) in itertools.product(rows[0][a], rows[1][b])
        ):
            seen[a, b, c] = None
        else:
            seen[a, b, c] = sum(int(D[k, q, v]) * x * y * z for (k, x), (q, y), (v, z) in parts)
    return seen


def dense(view: View, D: np.ndarray) -> np.ndarray | None:
    seen = tensor_of(view, D, None)
    if seen is None:
        return None
    dense = np.zeros([x + 1 for x in max(seen)], dtype=object)
    for place, x in seen.items():
        dense[place] = x
    return dense
