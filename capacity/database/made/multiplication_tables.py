"""Multiplication tables of groups of a given order, and random Latin squares.

A Latin square of order n is an n x n table in which each of n symbols is once in every row and
every column; the table of a group is one. Two squares are *isotopic* if permutations of rows,
columns and symbols take one to the other.

References
----------
M. T. Jacobson, P. Matthews, Generating uniformly distributed random Latin squares,
J. Combin. Des. 4 (1996) 405-437.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from capacity.checks import Seed, generator, require_integer
from capacity.tensor.theory.algebras import LARGEST_TABLE, cyclic_group, product_group

# the chain visits the cube of this number of squares: 32,768 take three seconds
LARGEST_SQUARE = 32


def groups_of_order(n: int) -> dict[str, NDArray[np.int64]]:
    """Tables of groups of n elements by name: abelian, dihedral and dicyclic ones, and A4.

    No two are isomorphic. Up to order 15 these are all groups; from order 16 on some orders have
    others.

    Parameters
    ----------
    n : int
        Number of elements.

    Returns
    -------
    dict of str to ndarray of int64, shape (n, n)
        Number of the product of elements g and h, at (g, h).

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 1,024.

    Examples
    --------
    >>> list(groups_of_order(12))
    ['C12', 'C6xC2', 'D6', 'Dic3', 'A4']
    >>> list(groups_of_order(8))
    ['C8', 'C4xC2', 'C2xC2xC2', 'D4', 'Dic2']
    """
    n = require_integer("n", n, most=LARGEST_TABLE)
    groups = {
        "x".join(f"C{order}" for order in orders): product_group(*map(cyclic_group, orders))
        for orders in _invariant_factors(n, n)
    }
    # the groups of order 2 and 4 that these would be are abelian
    if n >= 6 and n % 2 == 0:
        groups[f"D{n // 2}"] = _two_cyclic_halves(n // 2, 0)
    if n >= 8 and n % 4 == 0:
        groups[f"Dic{n // 4}"] = _two_cyclic_halves(n // 2, n // 4)
    if n == 12:
        groups["A4"] = _alternating_group_of_4()
    return groups


def _invariant_factors(n: int, last: int) -> list[tuple[int, ...]]:
    """Orders of cyclic groups, each a divisor of the one before it, with product n.

    They are the invariant factors of an abelian group: each such group has exactly one row.
    """
    if n == 1:
        return [(1,)] if last == 1 else [()]
    rows: list[tuple[int, ...]] = []
    for first in range(n, 1, -1):
        if n % first == 0 and last % first == 0:
            rows += [(first, *rest) for rest in _invariant_factors(n // first, first)]
    return [tuple(order for order in row if order > 1) for row in rows]


def _two_cyclic_halves(m: int, square: int) -> NDArray[np.int64]:
    """Table of <a, x | a^m = 1, x^2 = a^square, x a = a^-1 x>; a^i x^j has the number j m + i.

    With square = 0 it is dihedral, with m = 2 square dicyclic.
    """
    j, i = np.divmod(np.arange(2 * m), m)
    # a^i x^j a^k x^l = a^(i +- k) x^(j + l), with - if j = 1; and x^2 gives a^square
    power = i[:, None] + np.where(j[:, None], -i, i) + square * (j[:, None] & j)
    return (j[:, None] ^ j) * m + power % m


def _alternating_group_of_4() -> NDArray[np.int64]:
    identity = range(4)
    even = [
        g for g in itertools.permutations(identity)
        if sum(g[i] > g[j] for i in identity for j in range(i + 1, 4)) % 2 == 0
    ]  # fmt: skip
    number = {g: place for place, g in enumerate(even)}
    return np.array([[number[tuple(g[x] for x in h)] for h in even] for g in even], np.int64)


def isotope(square: NDArray[np.int64], seed: Seed) -> NDArray[np.int64]:
    """Permute the rows, the columns and the symbols of a square at random.

    Parameters
    ----------
    square : ndarray of int64, shape (n, n)
        Symbols from 0 to n - 1.
    seed : int or numpy.random.Generator
        Seed of the three permutations.

    Returns
    -------
    ndarray of int64, shape (n, n)
        The isotopic square.

    Examples
    --------
    >>> isotope(cyclic_group(2), 0).sum(axis=0).tolist()
    [1, 1]
    """
    rng = generator(seed)
    rows, columns, symbols = (rng.permutation(len(square)) for _ in range(3))
    return symbols[square[rows][:, columns]]


def random_latin_square(seed: Seed, n: int) -> NDArray[np.int64]:
    """Draw a Latin square of order n by the Markov chain of Jacobson and Matthews.

    The chain joins all Latin squares of an order through *improper* ones, and the squares that it
    visits have a uniform stationary distribution. It starts at a random isotope of a cyclic group's
    table, and the square is the last of n^3 that it visits. Nobody has proved how many are enough.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        Seed of the start and of the moves.
    n : int
        Order.

    Returns
    -------
    ndarray of int64, shape (n, n)
        Symbols from 0 to n - 1, each once in every row and column.

    Raises
    ------
    InvalidArgumentError
        If `n` isn't an integer from 1 to 32.

    References
    ----------
    M. T. Jacobson, P. Matthews, J. Combin. Des. 4 (1996) 405-437.

    Examples
    --------
    >>> square = random_latin_square(0, 5)
    >>> [sorted(row) == [0, 1, 2, 3, 4] for row in square.tolist()]
    [True, True, True, True, True]
    """
    n = require_integer("n", n, most=LARGEST_SQUARE)
    rng = generator(seed)
    square = isotope(cyclic_group(n), rng)
    # there is one square of order 1, and no cell to move
    return _moved(square, rng, n**3) if n > 1 else square


def _moved(square: NDArray[np.int64], rng: np.random.Generator, squares: int) -> NDArray[np.int64]:
    """Move in the cube of incidences, which has a 1 at (row, column, symbol), over some squares.

    The ones of each line of the cube are the bits of an integer, so that a line is searched at
    once. An *improper* cube has one entry -1, which `minus` holds; a line through it has two ones.
    Squares are counted, not moves: the first square after a number of moves isn't uniform, for it
    ends a long way through improper cubes more often than a short one.
    """
    n = len(square)
    # lines along rows at [column][symbol], along columns at [row][symbol], along symbols
    along_rows, along_columns, along_symbols = ([[0] * n for _ in range(n)] for _ in range(3))

    def flip(r: int, c: int, s: int) -> None:
        along_rows[c][s] ^= 1 << r
        along_columns[r][s] ^= 1 << c
        along_symbols[r][c] ^= 1 << s

    for (r, c), s in np.ndenumerate(square):
        flip(r, c, int(s))
    minus: tuple[int, int, int] | None = None
    done = 0
    while done < squares:
        draws = rng.integers(n, size=(256, 3)).tolist()
        sides = rng.integers(2, size=(256, 3)).tolist()
        for (r, c, s), (i, j, k) in zip(draws, sides, strict=True):
            if done >= squares:
                break
            if minus is None:
                if along_symbols[r][c] >> s & 1:
                    # a move begins at a 0 of the cube, each as likely as the others
                    continue
                flip(r, c, s)
                # the bit just set is no end of the three lines
                one_r = along_rows[c][s] ^ (1 << r)
                one_c = along_columns[r][s] ^ (1 << c)
                one_s = along_symbols[r][c] ^ (1 << s)
            else:
                r, c, s = minus
                one_r = _one_of_two(along_rows[c][s], i)
                one_c = _one_of_two(along_columns[r][s], j)
                one_s = _one_of_two(along_symbols[r][c], k)
            r2, c2, s2 = (bit.bit_length() - 1 for bit in (one_r, one_c, one_s))
            for cell in ((r2, c, s), (r, c2, s), (r, c, s2), (r, c2, s2), (r2, c, s2), (r2, c2, s)):
                flip(*cell)
            if along_symbols[r2][c2] >> s2 & 1:
                flip(r2, c2, s2)
                minus, done = None, done + 1
            else:
                minus = (r2, c2, s2)
    return np.array([[line.bit_length() - 1 for line in row] for row in along_symbols], np.int64)


def _one_of_two(line: int, side: int) -> int:
    """Return the lower or the upper of the two bits of a line."""
    lower = line & -line
    return line ^ lower if side else lower
