"""Random arguments of the substitution method with several slices at once."""

from __future__ import annotations

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank import BlockSubstitution
from capacity.testing.arguments.area import Area, seen
from capacity.testing.arguments.lower_arguments import (
    PRIMES,
    leading_pivots,
    playable_slices,
    random_view,
)
from capacity.testing.choices import Choices


def block_substitution(choose: Choices, area: Area) -> BlockSubstitution | None:
    """Choose steps on a view, of a slice or of independent slices; not always all that can be."""
    view = random_view(choose, area)
    tensor, known = seen(area, view)
    prime = choose.one(PRIMES)
    if not (tensor % prime * known).any():
        prime = PRIMES[-1]
    live, known = np.ones(tensor.shape, bool), known.copy()
    removals: list[tuple[int, int]] = []
    groups: list[tuple[int, int]] = []
    columns: list[Indices] = []
    most = choose.integer(1, tensor.size) if choose.chance(1, 4) else tensor.size
    while len(removals) < most and (playable := playable_slices((tensor != 0) & known & live)):
        mode, i = choose.one(playable)
        rows = [i]
        if not groups or choose.chance(2, 3):
            rows, places = _independent(choose, tensor, known & live, mode, i, prime)
            if len(rows):
                groups.append((len(removals), len(rows)))
                columns.append(places)
            elif not groups:
                # another slice has an entry that isn't a multiple of the prime
                continue
            else:
                rows = [i]
        for row in rows:
            removals.append((mode, row))
            hidden = (tensor.take(row, mode) != 0) | ~known.take(row, mode)
            known &= ~np.expand_dims(hidden, mode)
            np.moveaxis(live, mode, 0)[row] = False
    if not groups:
        return None
    return BlockSubstitution(
        view,
        np.array(removals, np.int64),
        np.array(groups, np.int64),
        np.concatenate(columns),
        np.array([choose.integer(0, n) for _, n in groups], np.int64),
        prime,
    )


def _independent(
    choose: Choices, tensor: Indices, certain: Mask, mode: int, i: int, prime: int
) -> tuple[list[int], Indices]:
    """Slices, a chosen one perhaps with others, and as many places that prove them independent."""
    side, sure = np.moveaxis(tensor, mode, 0), np.moveaxis(certain, mode, 0)
    others = [j for j in range(len(side)) if j != i and sure[j].any()]
    rows = choose.order([i, *(j for j in others if choose.chance(1, 2))])
    places = np.argwhere(sure[rows].all(axis=0))
    if not len(places):
        rows, places = [i], np.argwhere(sure[i])
    matrix = side[(np.array(rows)[:, None], *places.T)]
    found = leading_pivots(matrix, prime)
    return [rows[a] for a, _ in found], places[[b for _, b in found]]
