"""Small 0/1 tensors whose rank over the reals is a theorem.

The table of known ranks in the project's `tests/oracles.py` is taken from here.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from capacity.display import briefly_shown
from capacity.exact.types import Indices
from capacity.testing.choices import Choices

Place: TypeAlias = tuple[int, int, int]


@briefly_shown
@dataclass(frozen=True)
class Block:
    """A 0/1 tensor whose rank is known.

    Attributes
    ----------
    places : tuple of triples
        Indices of its ones.
    rank : int
        Rank over the reals.
    why : str
        The theorem, and its source.
    """

    places: tuple[Place, ...]
    rank: int
    why: str


def cyclic(n: int) -> Block:
    """Multiplication in R[x]/(x^n - 1), with ones at (i, j, i + j modulo n).

    x^n - 1 has 1 + n // 2 distinct irreducible factors over R: x - 1, x + 1 for even n, and
    quadratics. Modulo a polynomial of degree n with k distinct irreducible factors the rank is
    2 n - k.
    """
    places = tuple((i, j, (i + j) % n) for i in range(n) for j in range(n))
    return Block(places, 2 * n - (1 + n // 2), f"R[x]/(x^{n} - 1), Winograd 1977")


def truncated(n: int) -> Block:
    """Multiplication in R[x]/(x^n): x is the only irreducible factor. For n = 2 it is W."""
    places = tuple((i, j, i + j) for i in range(n) for j in range(n - i))
    return Block(places, 2 * n - 1, f"R[x]/(x^{n}), Winograd 1977")


def polynomials(m: int, n: int) -> Block:
    """Multiplication of polynomials with m and n coefficients, of rank m + n - 1."""
    places = tuple((i, j, i + j) for i in range(m) for j in range(n))
    return Block(places, m + n - 1, f"polynomials of {m} x {n} coefficients, Winograd 1980")


MATRIX_PRODUCTS = {
    (2, 2, 2): (7, "Strassen 1969, Winograd 1971"),
    (2, 2, 3): (11, "Alekseyev 1985"),
}


def matrix_places(a: int, b: int, c: int) -> tuple[Place, ...]:
    """Ones of the product of an a x b and a b x c matrix, a tensor of shape (ab, bc, ac)."""
    ranges = itertools.product(range(a), range(b), range(c))
    return tuple((i * b + j, j * c + k, i * c + k) for i, j, k in ranges)


def matrix_product(a: int, b: int, c: int) -> Block:
    """Multiplication of an a x b and a b x c matrix, for sizes whose rank is known."""
    if 1 in (a, b, c):
        # in some unfolding each of the abc products has a row or column of its own
        rank, who = a * b * c, "an unfolding"
    else:
        rank, who = MATRIX_PRODUCTS[a, b, c]
    return Block(matrix_places(a, b, c), rank, f"{a} x {b} times {b} x {c} matrices, {who}")


def triangular(choose: Choices) -> Block:
    """Draw a single slice, a triangular matrix with ones on its diagonal."""
    n = choose.integer(1, 3)
    places = [(0, i, i) for i in range(n)]
    places += [(0, i, j) for i in range(n) for j in range(i) if choose.chance(1, 2)]
    return Block(tuple(places), n, f"a matrix of rank {n}")


def pencil_cells(choose: Choices) -> Block:
    """Draw two slices that are a direct sum of Kronecker blocks.

    By Jaja (1979) the rank is the sum of e + 1 for each block of e x (e + 1) or (e + 1) x e, the
    size of the regular part, and delta, the number of its invariant polynomials that aren't
    products of distinct linear factors over R. As each divides the next, delta is the largest
    number of spoiling Jordan blocks of one root: of size two or more for a real root, of any size
    for any other.
    """
    pairs: list[tuple[Indices, Indices]] = []
    simple, spoils = 0, Counter[str]()
    for _ in range(choose.integer(1, 3)):
        n = choose.integer(1, 3)
        one, shift = np.eye(n, dtype=np.int64), np.eye(n, k=1, dtype=np.int64)
        turn = np.roll(one, 1, axis=1)
        edge = np.zeros((n, 1), np.int64)
        wide = np.hstack([one, edge]), np.hstack([edge, one])
        spoiled: Iterable[str] = ()
        match choose.integer(0, 6):
            case 0:
                pair, spoiled = (one, shift), ["0"] * (n > 1)
            case 1:
                pair, spoiled = (shift, one), ["infinity"] * (n > 1)
            case 2:
                pair, spoiled = (one, one + shift), ["1"] * (n > 1)
            case 3:
                # x^n - 1 has the roots of order d, for each divisor d of n
                pair = one, turn
                spoiled = [f"order {d}" for d in range(3, n + 1) if n % d == 0]
            case 4:
                # x^2 - x - 1 has distinct real roots
                pair, n = (np.eye(2, dtype=np.int64), np.array([[1, 1], [1, 0]])), 2
            case 5:
                pair, n = wide, n + 1
            case _:
                pair, n = (wide[0].T, wide[1].T), n + 1
        pairs.append(pair)
        simple += n
        spoils.update(spoiled)
    rank = simple + max(spoils.values(), default=0)
    places: list[Place] = []
    row = column = 0
    for pair in pairs:
        for number, M in enumerate(pair):
            places += [(number, row + i, column + j) for i, j in np.argwhere(M).tolist()]
        row, column = row + pair[0].shape[0], column + pair[0].shape[1]
    return Block(tuple(places), rank, f"two slices of rank {rank}, Jaja 1979")


def thin(choose: Choices) -> Block:
    """Draw a block with a side of one or two."""
    return pencil_cells(choose) if choose.chance(2, 3) else triangular(choose)


def thick(choose: Choices) -> Block:
    """Draw a block whose sides may all be larger."""
    match choose.integer(0, 3):
        case 0:
            return cyclic(choose.integer(2, 5))
        case 1:
            return truncated(choose.integer(2, 4))
        case 2:
            return polynomials(choose.integer(2, 3), choose.integer(2, 4))
        case _:
            a, b, c = choose.one([(2, 2, 2), (1, 2, 2), (1, 2, 3), (2, 2, 3)])
            return matrix_product(a, b, c)
