"""Completions of rank one, by all sets of objects."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from capacity.rank import RankOneCompletion
from tests.second_checker.views import indices_of, rational_rank, tensor_of


def proves_completion(
    argument: RankOneCompletion, D: np.ndarray, observed: np.ndarray, effective: bool
) -> set[tuple[int, int]] | None:
    seen = tensor_of(argument.view, D, observed if effective else None)
    if seen is None or argument.mode not in range(D.ndim):
        return None
    form = argument.form.tolist()
    along: dict[tuple[tuple[int, int], ...], list[int | None]] = {}
    for place, x in sorted(seen.items()):
        others = tuple((m, i) for m, i in enumerate(place) if m != argument.mode)
        along.setdefault(others, []).append(x)
    fibers: list[tuple[tuple[tuple[int, int], ...], int | None]] = []
    for others, values in along.items():
        if len(values) != len(form):
            return None
        if all(x is None for x in values):
            continue
        if sorted((x is None, x) for x in values) not in (
            [(False, 0)] * len(form),
            [(False, 0)] * (len(form) - 1) + [(False, 1)],
        ):
            return None
        fibers.append((others, values.index(1) if 1 in values else None))
    n = len(form)
    if not any(form) or {v for _, v in fibers} - {None} != {*range(n)}:
        return None
    for size in range(1, n + 1):
        for support in itertools.combinations(range(n), size):
            if not _vanishes(fibers, support, form):
                return None
    return indices_of(argument.view)


def _vanishes(fibers: list, support: tuple[int, ...], form: list[int]) -> bool:
    mine = [(places, v) for places, v in fibers if v in support]
    nonzero = {place for places, _ in mine for place in places}
    if any({*places} <= nonzero for places, v in fibers if v not in support):
        return True  # there is no completion
    unknowns = [*support, *sorted(nonzero)]
    rows = [[(x == v) - (x in places) for x in unknowns] for places, v in mine]
    left = {*support}
    while left:
        v = min(left)
        equal = {w for w in left if entries_equal(rows, unknowns, v, w)}
        if sum(form[w] for w in equal):
            return False
        left -= equal
    return True


def entries_equal(rows: list[list[int]], unknowns: list, v: int, w: int) -> bool:
    """Whether g[v] = g[w] follows, in absolute value and in sign."""
    row = [(x == v) - (x == w) for x in unknowns]
    over_q = [[Fraction(x) for x in one] for one in (*rows, row)]
    return rational_rank(over_q) == rational_rank(over_q[:-1]) and _rank_of_bits(
        [*rows, row]
    ) == _rank_of_bits(rows)


def _rank_of_bits(rows: list[list[int]]) -> int:
    basis: list[int] = []
    for row in rows:
        bits = sum((x % 2) << i for i, x in enumerate(row))
        for one in basis:
            bits = min(bits, bits ^ one)
        if bits:
            basis.append(bits)
    return len(basis)
