"""Algebras over the rationals, split into the ideals that are their direct factors.

Let z be an element of the centre, and f = q_1 q_2 ... its minimal polynomial over Q, with powers
q_i of different irreducible polynomials. By the Chinese remainder theorem there are polynomials
that are 1 modulo q_i and 0 modulo the others. At z, they are idempotents e_i of the centre with the
sum 1 and products 0: the algebra A is the direct sum of the ideals e_i A, and so is its product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import flint
import numpy as np

from capacity.display import briefly_shown
from capacity.rank.reductions.unital_algebras import Algebra

# random elements that are looked at beside those of a basis, and their largest coefficient
ELEMENTS, LARGEST = 12, 3


@briefly_shown
@dataclass(frozen=True)
class Ideal:
    """A direct factor of an algebra, or the algebra itself.

    Attributes
    ----------
    products : list of fmpq_mat
        For each a the d x d matrix whose row b is the product w_a w_b of vectors of a basis.
    coordinates : fmpq_mat, shape (n, d)
        For each basis vector of the whole algebra the coordinates of its part in the ideal.
    """

    products: list[flint.fmpq_mat]
    coordinates: flint.fmpq_mat

    @classmethod
    def of(cls, algebra: Algebra) -> Ideal:
        """Make the ideal that is a whole algebra, up to a positive factor of all products."""
        n = len(algebra.products)
        return cls([flint.fmpq_mat(M) for M in algebra.products], identity(n))

    @property
    def dimension(self) -> int:
        """Number of basis vectors."""
        return len(self.products)

    @cached_property
    def unit(self) -> flint.fmpq_mat:
        """The coordinates of 1, a row."""
        d = self.dimension
        # the x with x w_b = w_b for all b
        rows = [
            [*(M[b, k] for M in self.products), flint.fmpq(int(b == k))]
            for b in range(d)
            for k in range(d)
        ]
        solved, _ = flint.fmpq_mat(rows).rref()
        return flint.fmpq_mat(1, d, [solved[a, d] for a in range(d)])

    @cached_property
    def centre(self) -> list[flint.fmpq_mat]:
        """A basis of the elements that commute with all, of small integers, as rows."""
        d, M = self.dimension, self.products
        rows = [[M[a][b, k] - M[b][a, k] for a in range(d)] for b in range(d) for k in range(d)]
        kernel, dimension = flint.fmpq_mat(rows).numer_denom()[0].nullspace()
        basis = flint.fmpz_mat([[kernel[a, i] for a in range(d)] for i in range(dimension)])
        return [flint.fmpq_mat(1, d, row) for row in basis.lll().tolist()]

    def times(self, x: flint.fmpq_mat) -> flint.fmpq_mat:
        """Return the matrix whose row b is x w_b."""
        total = flint.fmpq_mat(self.dimension, self.dimension)
        for a, M in enumerate(self.products):
            if x[0, a] != 0:
                total += M * x[0, a]
        return total

    def product(self, x: flint.fmpq_mat, y: flint.fmpq_mat) -> flint.fmpq_mat:
        """Return x y."""
        return y * self.times(x)

    def some(self, basis: list[flint.fmpq_mat]) -> Iterator[flint.fmpq_mat]:
        """Yield the elements of a basis of a subspace, and small combinations of them."""
        yield from basis
        rng = np.random.default_rng(0)
        for _ in range(ELEMENTS):
            coefficients = rng.integers(-LARGEST, LARGEST + 1, len(basis)).tolist()
            yield sum(
                (x * c for x, c in zip(basis, coefficients, strict=True)),
                flint.fmpq_mat(1, self.dimension),
            )

    def direct_factors(self) -> list[Ideal]:
        """Split the ideal by the element of its centre that splits it most."""
        f, z = max(
            ((self.times(z).minpoly(), z) for z in self.some(self.centre)),
            key=lambda one: len(one[0].factor()[1]),
        )
        parts = idempotents(f)
        if len(parts) == 1:
            return [self]
        return [self._generated_by(self.at(of, z, self.unit)) for of in parts]

    def at(self, f: flint.fmpq_poly, x: flint.fmpq_mat, one: flint.fmpq_mat) -> flint.fmpq_mat:
        """The value of a polynomial at an element x, whose power of exponent 0 is `one`."""
        through, total = self.times(x), flint.fmpq_mat(1, self.dimension)
        for c in reversed(f.coeffs()):
            total = total * through + one * c
        return total

    def _generated_by(self, idempotent: flint.fmpq_mat) -> Ideal:
        """The ideal of an idempotent of the centre, in an echelon basis."""
        projection = self.times(idempotent)
        reduced, d = projection.rref()
        basis = reduced.tolist()[:d]
        pivots = [next(k for k, x in enumerate(row) if x != 0) for row in basis]
        # in this basis, coordinates are the entries at its pivots
        chosen = flint.fmpq_mat([[int(k == p) for p in pivots] for k in range(self.dimension)])
        rows = flint.fmpq_mat(basis)
        products = [rows * self.times(flint.fmpq_mat([row])) * chosen for row in basis]
        return Ideal(products, self.coordinates * projection * chosen)


def idempotents(f: flint.fmpq_poly) -> list[flint.fmpq_poly]:
    """Return polynomials that are 1 modulo a power of an irreducible factor of f, and else 0.

    Examples
    --------
    >>> idempotents(flint.fmpq_poly([0, -1, 1]))
    [x, (-1)*x + 1]
    """
    found: list[flint.fmpq_poly] = []
    for p, e in irreducible_factors(f):
        others = f // p**e
        common, inverse, _ = others.xgcd(p**e)
        found.append(inverse * others // common % f)
    return found


def irreducible_factors(f: flint.fmpq_poly) -> list[tuple[flint.fmpq_poly, int]]:
    """Return the irreducible factors and their powers, in an order that doesn't depend on flint.

    Examples
    --------
    >>> irreducible_factors(flint.fmpq_poly([0, -1, 1]))
    [(x + (-1), 1), (x, 1)]
    """
    return sorted(f.factor()[1], key=lambda one: (one[0].degree(), one[0].coeffs()))


def identity(n: int) -> flint.fmpq_mat:
    """Return the identity matrix."""
    return flint.fmpq_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
