"""Decompositions of n terms of a tensor that represents the facts about n objects.

Vectors g of the space of objects have a *completion* if a simple tensor M has the entry g[v] in the
place of each observed fiber of v (`capacity.rank.verifier.kinds.rank_one_completion`). If n of them
are a basis, with dual basis c_r, then sum_r M_r (x) c_r represents the facts: its fiber there is
sum_r g_r[v] c_r, the unit vector of v.

The completions with one support are +-exp(w), with w in the kernel of a matrix of integers, and the
signs in its kernel modulo 2. Drawn are products of powers of 2, 3 and 5 with small exponents: those
of 2 alone are few points of a curve, and the decompositions by Toom and Cook need n - 2 of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np

from capacity.rank.exact.sparse_terms import term, vector
from capacity.rank.types import Indices, Term
from capacity.rank.verifier.budget import CheckBudget
from capacity.rank.verifier.kinds.rank_one_completion import Fibers, kernels, relations

# bases of powers, their largest exponent, and draws for each completion that is wanted
PRIMES, LARGEST_EXPONENT, DRAWS = (2, 3, 5), 24, 24


@dataclass(frozen=True)
class Completion:
    """A simple tensor, and its entry at the fibers of each object.

    Attributes
    ----------
    entries : list of Fraction
        Entry at the fibers of each object.
    factors : dict of int to Fraction
        Coefficients that aren't zero, by the numbers that `Fibers.indices` has.
    """

    entries: list[Fraction]
    factors: dict[int, Fraction]


def completions(
    fibers: Fibers,
    support: list[int],
    wanted: int,
    rng: np.random.Generator,
    budget: CheckBudget,
) -> Iterator[Completion]:
    """Draw completions that differ from zero on a set of objects, the simplest first.

    Parameters
    ----------
    fibers : Fibers
        The known fibers.
    support : list of int
        One of the sets that `supports` yields.
    wanted : int
        Number of independent ones that are looked for.
    rng : numpy.random.Generator
        Generator of the combinations.
    budget : CheckBudget
        Work that is left.
    """
    M, numbers = relations(fibers, support, budget)
    powers, signs = kernels(M)
    for draw in range(DRAWS * wanted + len(powers)):
        # a vector of the basis, signs alone, or any combination for one prime or for all of them
        combinations = np.zeros((len(PRIMES), len(powers)), np.int64)
        if draw < len(powers):
            combinations[0, draw] = 1
        elif draw % 4:
            chosen = slice(None) if draw % 4 == 1 else [int(rng.integers(len(PRIMES)))]
            combinations[chosen] = rng.integers(-1, 2, combinations[chosen].shape)
        exponents = combinations @ powers
        negative = rng.integers(0, 2, len(signs)) @ signs % 2 if draw else 0 * M[0]
        if np.abs(exponents).max(initial=0) > LARGEST_EXPONENT:
            continue
        values = [
            math.prod((Fraction(p) ** int(w) for p, w in zip(PRIMES, of, strict=True)),
                      start=Fraction(-1 if minus else 1))
            for of, minus in zip(exponents.T, negative.tolist(), strict=True)
        ]  # fmt: skip
        entries = [Fraction(0)] * fibers.n_objects
        for v, value in zip(support, values[: len(support)], strict=True):
            entries[v] = value
        yield Completion(entries, dict(zip(numbers, values[len(support) :], strict=True)))


def terms_of(basis: list[Completion], shape: tuple[int, ...], mode: int) -> tuple[Term, ...]:
    """Write the sum of simple tensors that n completions give, whose entries are a basis.

    Parameters
    ----------
    basis : list of Completion
        The completions; none of their numbers is of the mode.
    shape : tuple of int
        Shape of the tensor.
    mode : int
        Mode of the objects.
    """
    n = len(basis)
    flat = [flint.fmpq(x.numerator, x.denominator) for one in basis for x in one.entries]
    dual = flint.fmpq_mat(n, n, flat).inv()
    others = [size for m, size in enumerate(shape) if m != mode]
    first: Indices = np.cumsum([0, *others])
    found: list[Term] = []
    for r, one in enumerate(basis):
        across = [Fraction(int(dual[w, r].p), int(dual[w, r].q)) for w in range(n)]
        sides = [
            vector(range(size), [one.factors.get(int(at) + i, Fraction(0)) for i in range(size)])
            for at, size in zip(first, others, strict=False)
        ]
        found.append(term(mode, vector(range(n), across), *sides))
    return tuple(found)
