"""Random arguments for lower bounds that add, valid by construction: one function for each kind.

They are minors of unfoldings, and the substitution method, with several slices at once too. Each
takes an `Area`, and returns None if it finds no argument there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank import BlockSubstitution, Substitution, Unfolding, View
from capacity.rank.lower.substitution.greedy import greedy_removals
from capacity.rank.verifier.entries import LARGEST_VALUE
from capacity.testing.arguments.area import Area, Maker, seen
from capacity.testing.choices import Choices

# the last is the largest below 2^62
PRIMES = (2**31 - 1, 2, 3, 2**62 - 57)
# most indices in a mode of views that an independent checker takes long for
FEW = 4
# entries of a tensor in other bases stay below this
MOST_GROWTH = 2**62
NONE = np.zeros(0, np.int64)


def unfolding(choose: Choices, area: Area) -> Unfolding | None:
    """Choose a minor of an unfolding of some indices: pivots of one entry first, then blocks."""
    last = area.order - 1
    mode = last if area.effective else choose.integer(0, last)
    prime = choose.one(PRIMES)
    rows = choose.order(choose.some(area.indices[mode]))
    sides = [choose.some(side) for m, side in enumerate(area.indices) if m != mode]
    used = np.moveaxis(area.tensor, mode, 0)[np.ix_(rows, *sides)]
    flat = used.reshape(len(rows), -1)
    places = np.flatnonzero(flat.any(axis=0))
    if not len(places):
        return None
    places = np.roll(places, choose.integer(0, len(places) - 1))
    matrix = flat[:, places]
    pivots = leading_pivots(matrix, prime)
    if not pivots:
        # all entries are multiples of the prime
        prime = PRIMES[-1]
        pivots = leading_pivots(matrix, prime)
    if choose.chance(1, 4):
        # leading minors of pivots in this order are nonsingular too
        pivots = pivots[: choose.integer(1, len(pivots))]
    i, j = (list(x) for x in zip(*pivots, strict=True))
    order, blocks, eliminated = _arranged(choose, matrix[np.ix_(i, j)], prime)
    columns = np.unravel_index(places[[j[c] for _, c in order]], [len(side) for side in sides])
    return Unfolding(
        mode,
        np.array([rows[i[r]] for r, _ in order], np.int64),
        np.stack([np.array(of)[x] for of, x in zip(sides, columns, strict=True)], axis=1),
        np.array(blocks, np.int64),
        np.array(eliminated, np.int64),
        prime,
    )


def leading_pivots(matrix: Indices, prime: int) -> list[tuple[int, int]]:
    """Rows and columns of a largest nonsingular minor whose leading minors are nonsingular too."""
    left = matrix.astype(object) % prime
    found: list[tuple[int, int]] = []
    for i, row in enumerate(left):
        places = np.flatnonzero(row)
        if len(places):
            j = int(places[0])
            found.append((i, j))
            factors = left[i + 1 :, j] * pow(int(row[j]), -1, prime) % prime
            left[i + 1 :] = (left[i + 1 :] - np.outer(factors, row)) % prime
    return found


def _arranged(
    choose: Choices, minor: Indices, prime: int
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Rows and columns in a certificate's order, sizes of the blocks, and of what is eliminated.

    Removing a one that is alone in its row, or column, leaves a nonsingular minor; so is each part
    of it that has no row or column in common with the others.
    """
    rows, columns = set(range(len(minor))), set(range(len(minor)))
    order: list[tuple[int, int]] = []
    most = choose.integer(0, len(minor)) if choose.chance(1, 4) else len(minor)
    while rows and len(order) < most:
        left = [(i, j) for i, j in np.argwhere(minor).tolist() if i in rows and j in columns]
        in_row, in_column = ([one[n] for one in left] for n in (0, 1))
        alone = [(i, j) for i, j in left if 1 in (in_row.count(i), in_column.count(j))]
        if not alone:
            break
        i, j = choose.one(alone)
        order.append((i, j))
        rows.discard(i)
        columns.discard(j)
    blocks: list[int] = []
    eliminated: list[int] = []
    for mine, across in _parts(minor, rows, columns, whole=choose.chance(1, 3)):
        some = choose.order(mine)
        pivots = leading_pivots(minor[np.ix_(some, across)], prime)
        order += [(some[i], across[j]) for i, j in pivots]
        blocks.append(len(pivots))
        eliminated.append(choose.integer(0, len(pivots)))
    return order, blocks, eliminated


def _parts(
    minor: Indices, rows: set[int], columns: set[int], *, whole: bool
) -> Iterator[tuple[list[int], list[int]]]:
    """Parts of a minor that have no row or column in common; with `whole`, all as one part."""
    while rows:
        mine, across = {min(rows)}, set[int]()
        grown = 0
        while len(mine) + len(across) > grown:
            grown = len(mine) + len(across)
            across = {j for j in columns if minor[sorted(mine), j].any()}
            mine |= {i for i in rows if minor[i, sorted(across)].any()}
        if whole:
            mine, across = rows, columns
        yield sorted(mine), sorted(across)
        rows, columns = rows - mine, columns - across


def random_view(choose: Choices, area: Area, *, most: int | None = None) -> View:
    """Choose some indices of an area, possibly in other bases."""
    small = area.some(choose, most=FEW if most is None and choose.chance(1, 2) else most)
    bases: list[Indices | None] = []
    growth = LARGEST_VALUE
    for side in small.indices:
        P = _basis(choose, len(side)) if len(side) <= FEW and choose.chance(1, 4) else None
        larger = growth if P is None else growth * max(1, int(np.abs(P).sum(axis=1).max()))
        # entries in these bases must fit 64 bits
        bases.append(P if larger < MOST_GROWTH else None)
        growth = larger if larger < MOST_GROWTH else growth
    indices = tuple(np.array(choose.order(side), np.int64) for side in small.indices)
    return View(indices, tuple(bases))


def _basis(choose: Choices, n: int) -> Indices:
    """Choose an integer matrix of n columns: a unimodular one, or any with at most n rows."""
    if choose.chance(1, 2):
        m = choose.integer(1, n)
        entries = [choose.integer(-2, 2) for _ in range(m * n)]
        return np.array(entries, np.int64).reshape(m, n) * choose.one([1, -1, 1000])
    P = np.eye(n, dtype=np.int64)
    for _ in range(choose.integer(1, n)):
        i, j = choose.integer(0, n - 1), choose.integer(0, n - 1)
        P[i] += choose.one([1, -1, 3]) * P[j] * (i != j)
    return P


def substitution(choose: Choices, area: Area) -> Substitution | None:
    """Choose substitution steps on a view: at random, or greedily; not always all that can be."""
    view = random_view(choose, area)
    tensor, known = seen(area, view)
    values = tensor != 0
    if choose.chance(1, 2):
        removals = _any_removals(choose, values, known)
    else:
        removals = greedy_removals(values, known, orders=2, seed=choose.seed())
    if choose.chance(1, 4):
        removals = removals[: choose.integer(1, max(1, len(removals)))]
    return Substitution(view, removals) if len(removals) else None


def playable_slices(certain: Mask) -> list[tuple[int, int]]:
    """Mode and index of each slice with an entry that is left, known and nonzero."""
    return [
        (mode, int(i))
        for mode in range(certain.ndim)
        for i in np.flatnonzero(
            certain.any(axis=tuple(m for m in range(certain.ndim) if m != mode))
        )
    ]


def _any_removals(choose: Choices, values: Mask, known: Mask) -> Indices:
    live, known = np.ones(values.shape, bool), known.copy()
    removals: list[tuple[int, int]] = []
    while playable := playable_slices(values & known & live):
        mode, i = choose.one(playable)
        removals.append((mode, i))
        hidden = values.take(i, mode) | ~known.take(i, mode)
        known &= ~np.expand_dims(hidden, mode)
        np.moveaxis(live, mode, 0)[i] = False
    return np.array(removals, np.int64).reshape(-1, 2)


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


ADDING: dict[str, Maker] = {
    "unfolding": unfolding,
    "substitution": substitution,
    "block substitution": block_substitution,
}
