"""Loci of rank one, and trees of cases, by definition."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

from capacity.rank import Cases, RankOneLocus
from tests.second_checker.views import dense, indices_of, rational_rank, tensor_of


def proves_locus(argument: RankOneLocus, D: np.ndarray) -> set[tuple[int, int]] | None:
    T = dense(argument.view, D)
    if T is None or argument.mode not in (0, 1, 2):
        return None
    X = np.moveaxis(T, argument.mode, 0)
    n, b, c = X.shape
    form = argument.form.tolist()
    if len(form) != n or not any(form):
        return None
    if rational_rank([[Fraction(int(x)) for x in M.ravel()] for M in X]) < n:
        return None

    def times(first: list[int], second: list[int]) -> list[Fraction]:
        """The product of two linear forms, as a symmetric matrix."""
        return [
            Fraction(int(first[i] * second[j] + first[j] * second[i])) / 2
            for i, j in itertools.combinations_with_replacement(range(n), 2)
        ]

    minors = [
        [x - y for x, y in zip(times(list(X[:, i, k]), list(X[:, j, m])),
                               times(list(X[:, i, m]), list(X[:, j, k])), strict=True)]
        for i, j in itertools.combinations(range(b), 2)
        for k, m in itertools.combinations(range(c), 2)
    ]  # fmt: skip
    if rational_rank([*minors, times(form, form)]) > rational_rank(minors):
        return None
    return indices_of(argument.view)


# an entry is a number, known not to be 0, or unknown (None)
NONZERO = "*"


def proves_cases(
    argument: Cases, D: np.ndarray, observed: np.ndarray, effective: bool
) -> set[tuple[int, int]] | None:
    state = tensor_of(argument.view, D, observed if effective else None)
    if state is None:
        return None
    nodes, removals = argument.nodes.tolist(), argument.removals.tolist()
    split = argument.split.tolist()
    if any(min(node) < 0 for node in nodes):
        return None
    if sum(n for n, _ in nodes) != len(removals) or sum(m for _, m in nodes) != len(split):
        return None
    exact = {p: None if x is None else Fraction(x) for p, x in state.items()}

    def walk(state: dict[Any, Any], needed: int) -> bool:
        """Read a node and all below it."""
        if not nodes:
            return False
        n_steps, n_splits = nodes.pop(0)
        steps = [removals.pop(0) for _ in range(n_steps)]
        slices = [split.pop(0) for _ in range(n_splits)]
        if n_splits and not n_steps:
            return False
        for number, (mode, i) in enumerate(steps, 1):
            if mode not in range(D.ndim):
                return False
            gone = {p: x for p, x in state.items() if p[mode] == i}
            if not any(x == NONZERO or x for x in gone.values()):
                return False
            rest = {p: x for p, x in state.items() if p[mode] != i}
            if slices and number == n_steps:
                return _cases(rest, gone, mode, i, slices, needed - n_steps)
            state = {p: _less(x, gone[(*p[:mode], i, *p[mode + 1 :])]) for p, x in rest.items()}
        return n_steps >= needed

    def _cases(
        rest: dict[Any, Any],
        gone: dict[Any, Any],
        mode: int,
        i: int,
        slices: list[int],
        needed: int,
    ) -> bool:
        if len(set(slices)) < len(slices) or i in slices:
            return False
        if any(not any(p[mode] == j for p in rest) for j in slices):
            return False
        kinds: list[list[Any]] = []
        for j in slices:
            ratios = set()
            for p, x in rest.items():
                y = gone[(*p[:mode], i, *p[mode + 1 :])]
                if p[mode] == j and isinstance(x, Fraction) and isinstance(y, Fraction) and x * y:
                    ratios.add(x / y)
            kinds.append([Fraction(0), *sorted(ratios), "other"])
        for chosen in itertools.product(*kinds):
            multiplier = dict(zip(slices, chosen, strict=True))
            after = {
                p: _less(x, gone[(*p[:mode], i, *p[mode + 1 :])], multiplier.get(p[mode], "any"))
                for p, x in rest.items()
            }
            if not walk(after, needed):
                return False
        return True

    if not walk(exact, argument.value) or nodes:
        return None
    return indices_of(argument.view)


def _less(x: Any, y: Any, c: Any = "any") -> Any:
    """What is known of x - c y: c is a number, any number, or any other than 0 and the ratios."""
    if c == 0 or (isinstance(y, Fraction) and y == 0):
        return x
    if c == "any" or x is None or y is None:
        return None
    if isinstance(x, Fraction) and x == 0:
        return -c * y if isinstance(c, Fraction) and y != NONZERO else NONZERO
    if x == NONZERO or y == NONZERO:
        return None
    return x - c * y if isinstance(c, Fraction) else NONZERO
