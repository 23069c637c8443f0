"""Lower bounds: each kind of argument by its definition."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from capacity.rank import (
    AlderStrassen,
    BlockSubstitution,
    Cases,
    Diagonalization,
    Koszul,
    Pencil,
    Published,
    RankOneCompletion,
    RankOneLocus,
    Substitution,
    Unfolding,
)
from tests.second_checker.algebras import proves_algebra
from tests.second_checker.completions import proves_completion
from tests.second_checker.slices import proves_more_than_n, rank_of_two_slices
from tests.second_checker.theorems import proves_published
from tests.second_checker.trees import proves_cases, proves_locus
from tests.second_checker.views import dense, indices_of, rational_rank, tensor_of


def vanishes(first: Unfolding, later: set[tuple[int, int]], D: np.ndarray) -> bool:
    """Whether what is removed first is zero at, and no index of, what the later one is about."""
    sides = [sorted(x for m, x in later if m == mode) for mode in range(D.ndim)]
    removed = first.rows.tolist()
    if set(removed) & set(sides[first.mode]):
        return False
    sides[first.mode] = removed
    return not (D[np.ix_(*sides)] != 0).any()


def proves_lower(
    argument: Any, D: np.ndarray, observed: np.ndarray, effective: bool
) -> set[tuple[int, int]] | None:
    if isinstance(argument, Unfolding):
        if argument.mode not in range(D.ndim) or (effective and argument.mode != D.ndim - 1):
            return None
        others = [m for m in range(D.ndim) if m != argument.mode]
        T = np.moveaxis(D, argument.mode, 0)
        rows, columns = argument.rows.tolist(), [tuple(c) for c in argument.columns.tolist()]
        if len(set(rows)) < len(rows) or len(set(columns)) != len(columns) or not rows:
            return None
        if len(rows) != len(columns) or any(len(c) != len(others) for c in columns):
            return None
        if min(map(min, (rows, *columns))) < 0:
            return None
        minor = [[Fraction(int(T[(i, *c)])) for c in columns] for i in rows]
        if rational_rank(minor) < len(rows):
            return None
        places = {(m, i) for c in columns for m, i in zip(others, c, strict=True)}
        return {(argument.mode, i) for i in rows} | places
    if isinstance(argument, Substitution | BlockSubstitution):
        return proves_removals(argument, D, observed, effective)
    if isinstance(argument, Cases):
        return proves_cases(argument, D, observed, effective)
    if isinstance(argument, Published):
        seen = tensor_of(argument.view, D, observed if effective else None)
        if seen is None or any(x is None for x in seen.values()):
            return None
        return proves_published(argument, D)
    if isinstance(argument, RankOneCompletion):
        return proves_completion(argument, D, observed, effective)
    if D.ndim != 3:
        return None
    if isinstance(argument, Koszul | Diagonalization | AlderStrassen | RankOneLocus):
        seen = tensor_of(argument.view, D, observed if effective else None)
        if seen is None or any(x is None for x in seen.values()):
            return None
        if isinstance(argument, Koszul):
            return _proves_flattening(argument, D)
        if isinstance(argument, AlderStrassen):
            return proves_algebra(argument, D)
        if isinstance(argument, RankOneLocus):
            return proves_locus(argument, D)
        return proves_more_than_n(argument, D)
    assert isinstance(argument, Pencil)
    if len(set(argument.slices.tolist())) != 2 or argument.mode not in (0, 1, 2):
        return None
    if argument.slices.min() < 0:
        return None
    two = np.moveaxis(D, argument.mode, 0)[argument.slices]
    if argument.value > rank_of_two_slices(two):
        return None
    facts = np.argwhere(D != 0)
    facts = facts[np.isin(facts[:, argument.mode], argument.slices)]
    if effective and not observed[np.ix_(np.unique(facts[:, 0]), np.unique(facts[:, 1]))].all():
        return None
    return {(m, int(i)) for row in facts for m, i in enumerate(row)}


def proves_removals(
    argument: Substitution | BlockSubstitution,
    D: np.ndarray,
    observed: np.ndarray,
    effective: bool,
    before: Any = None,
) -> set[tuple[int, int]] | None:
    state = tensor_of(argument.view, D, observed if effective else None)
    if state is None:
        return None
    if before is not None:
        # what is left is D with unknown multiples of the slices that went first
        gone = np.asarray((np.moveaxis(D, before.mode, 0)[before.rows] != 0).any(axis=0))
        others = [m for m in range(D.ndim) if m != before.mode]
        support = [
            [[i] for i in of.tolist()] if P is None
            else [of[row != 0].tolist() for row in P]
            for of, P in zip(argument.view.indices, argument.view.bases, strict=True)
        ]  # fmt: skip
        for p in state:
            if any(gone[at] for at in itertools.product(*(support[m][p[m]] for m in others))):
                state[p] = None
    steps = [[tuple(step)] for step in argument.removals.tolist()]
    columns: dict[int, list[tuple[int, ...]]] = {}
    if isinstance(argument, BlockSubstitution):
        together = _together(argument, D.ndim)
        if together is None:
            return None
        steps, columns = together
    for number, several in enumerate(steps):
        modes = {mode for mode, _ in several}
        if len(modes) != 1 or not modes <= set(range(D.ndim)) or len(set(several)) < len(several):
            return None
        state_after = _without(several, columns.get(number), state)
        if state_after is None:
            return None
        state = state_after
    return indices_of(argument.view)


def _together(argument: BlockSubstitution, order: int) -> tuple[Any, Any] | None:
    """The removals, those of a group as one step, and the columns of its minor by its number."""
    removals = [tuple(step) for step in argument.removals.tolist()]
    left = [tuple(place) for place in argument.columns.tolist()]
    steps: list[list[tuple[int, ...]]] = []
    columns: dict[int, list[tuple[int, ...]]] = {}
    done = 0
    if len(argument.eliminated) != len(argument.groups) or not len(argument.groups):
        return None
    for (first, n), eliminated in zip(
        argument.groups.tolist(), argument.eliminated.tolist(), strict=True
    ):
        if not (done <= first and 0 < n <= len(left) and first + n <= len(removals)):
            return None
        if not 0 <= eliminated <= n or any(len(place) != order - 1 for place in left):
            return None
        steps += [[one] for one in removals[done:first]]
        columns[len(steps)], left = left[:n], left[n:]
        steps.append(removals[first : first + n])
        done = first + n
    steps += [[one] for one in removals[done:]]
    return None if left else (steps, columns)


def _without(
    several: list[tuple[int, ...]], columns: list[tuple[int, ...]] | None, state: dict[Any, Any]
) -> dict[Any, Any] | None:
    """Remove some slices of a mode, if they are known to be independent; return what is left."""
    ((mode, *_), *_) = several
    rows = [i for _, i in several]
    mine = {p: x for p, x in state.items() if p[mode] in rows}
    if columns is None:
        if not any(x for x in mine.values()):
            return None
    else:
        minor = [[mine.get((*c[:mode], i, *c[mode:])) for c in columns] for i in rows]
        if any(x is None for row in minor for x in row):
            return None
        if rational_rank([[Fraction(int(x)) for x in row if x is not None] for row in minor]) < len(
            rows
        ):
            return None
    state = {p: x for p, x in state.items() if p[mode] not in rows}
    for p in state:
        for i in rows:
            across = mine.get((*p[:mode], i, *p[mode + 1 :]))
            if across is None or across != 0:
                state[p] = None
    return state


def _proves_flattening(argument: Koszul, D: np.ndarray) -> set[tuple[int, int]] | None:
    """By exterior products of basis vectors, written as sorted tuples with signs."""
    T = dense(argument.view, D)
    if T is None or argument.mode not in (0, 1, 2):
        return None
    X = np.moveaxis(T, argument.mode, 0)
    n, p, b, c = len(X), argument.p, X.shape[1], X.shape[2]
    if not 0 <= p < n:
        return None
    subsets = list(itertools.combinations(range(n), p))
    targets = list(itertools.combinations(range(n), p + 1))
    matrix: list[list[Fraction]] = []
    for subset, j in itertools.product(subsets, range(b)):
        image = {(u, k): Fraction(0) for u in targets for k in range(c)}
        for i, k in itertools.product(range(n), range(c)):
            word = [i, *subset]
            if len(set(word)) == p + 1:
                swaps = sum(x > y for x, y in itertools.combinations(word, 2))
                image[tuple(sorted(word)), k] += (-1) ** swaps * X[i][j][k]
        matrix.append(list(image.values()))
    # a simple tensor has rank C(n - 1, p)
    if argument.value > -(-rational_rank(matrix) // math.comb(n - 1, p)):
        return None
    return indices_of(argument.view)
