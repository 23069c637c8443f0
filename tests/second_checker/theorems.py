"""Published theorems: a second table of them, and the named tensors by their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from capacity.rank import Published
from tests.second_checker.views import dense, indices_of

# rank over R, and whether the bound holds over C
SINGLE = {"quaternions:": (8, False), "determinant:4": (12, True), "permanent:4": (8, True)}
UNITS = ["1", "i", "j", "k"]
CYCLE = {("i", "j"): "k", ("j", "k"): "i", ("k", "i"): "j"}


def proves_published(argument: Published, D: np.ndarray) -> set[tuple[int, int]] | None:
    T = dense(argument.view, D)
    known = theorem(argument.name)
    if T is None or known is None or argument.value > known[0]:
        return None
    shape, entries = named(argument.name)
    if T.shape != shape:
        return None
    N = np.zeros(shape, dtype=object)
    for place, value in entries:
        N[place] += value
    return indices_of(argument.view) if (T == N).all() else None


def theorem(name: str) -> tuple[int, bool] | None:
    """A bound of the rank over R, and whether it holds over C."""
    family, _, text = name.partition(":")
    try:
        numbers = [int(x) for x in text.split("x")] if text else []
    except ValueError:
        return None
    if name in SINGLE:
        return SINGLE[name]
    if family == "w" and len(numbers) == 1 and numbers[0] > 1:
        return numbers[0], True
    if family == "groups" and len(numbers) == 1 and numbers[0] > 0:
        n = numbers[0]
        # x^n - 1: x - 1, x + 1 for even n, and pairs of complex roots
        real = 2 - n % 2
        return 2 * n - real - (n - real) // 2, False
    if family != "matrices" or len(numbers) != 3 or min(numbers) < 2:
        return None
    n, m, p = sorted(numbers)
    best = max(a * b + b * c + a - b + c - 3 for a, b, c in itertools.permutations(numbers))
    for equal, other in ((n, p), (p, n)):
        if m == equal and other >= equal >= 3:
            best = max(best, 2 * other * equal + 2 * equal - other - 2)
    return max(best, {(2, 2, 3): 11, (2, 2, 4): 14, (2, 2, 5): 17}.get((n, m, p), 0)), True


def named(name: str) -> tuple[tuple[int, ...], Iterator[tuple[tuple[int, ...], int]]]:
    """The shape and the entries of a named tensor, by the definition of its product."""
    family, _, text = name.partition(":")
    numbers = [int(x) for x in text.split("x")] if text else []
    if family == "matrices":
        n, m, p = numbers
        places = ((i * m + j, j * p + k, i * p + k)
                  for i in range(n) for j in range(m) for k in range(p))  # fmt: skip
        return (n * m, m * p, n * p), ((place, 1) for place in places)
    if family == "groups":
        (n,) = numbers
        return (n, n, n), (((a, b, (a + b) % n), 1) for a in range(n) for b in range(n))
    if family == "w":
        (n,) = numbers
        one_each = (tuple(int(i == k) for i in range(n)) for k in range(n))
        return (2,) * n, ((place, 1) for place in one_each)
    if family == "quaternions":
        return (4, 4, 4), _products_of_units()
    sign = _sign if family == "determinant" else lambda _: 1
    return (4,) * 4, ((order, sign(order)) for order in itertools.permutations(range(4)))


def _products_of_units() -> Iterator[tuple[tuple[int, ...], int]]:
    for a, b in itertools.product(UNITS, repeat=2):
        if a == b:
            result, sign = "1", 1 if a == "1" else -1
        elif "1" in (a, b):
            result, sign = (a if b == "1" else b), 1
        else:
            result, sign = (CYCLE[a, b], 1) if (a, b) in CYCLE else (CYCLE[b, a], -1)
        yield (UNITS.index(a), UNITS.index(b), UNITS.index(result)), sign


def _sign(order: tuple[int, ...]) -> int:
    return (-1) ** sum(a > b for a, b in itertools.combinations(order, 2))
