"""The equations of a decomposition: one for each entry that it must reproduce.

The unknowns are the coefficients of all factors, numbered along the rows of one factor after the
other. `Equations` evaluates them, and their derivatives, in floating point and in fixed point.

**The last factor, exactly, given all others.** For fixed other factors, the last one is the
solution of linear equations, with coefficients in Q[x]/(f). A polynomial y of degree less than d =
deg f has d rational coefficients, and those of p y are the matrix of p times these: columns p, x p,
..., x^(d - 1) p, modulo f. So the equations become linear equations over the rationals, d times as
many. Unknowns that they leave open are 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask
from capacity.rank.cp.levenberg_marquardt import Array, Factors
from capacity.rank.verifier.kinds.algebraic import polynomial


@dataclass
class Work:
    """Work that remains, in units of about a nanosecond."""

    left: int

    def spend(self, steps: int) -> bool:
        """Charge some work; return False if that was more than was left."""
        self.left -= steps
        return self.left >= 0

    def share(self, most: int) -> Work:
        """Set some work aside, at most what is left; `back` returns what remains of it."""
        part = Work(max(0, min(most, self.left)))
        self.left -= part.left
        return part

    def back(self, part: Work) -> None:
        """Take back what remains of a share; what it has overdrawn is charged."""
        self.left += part.left


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations sum_r prod_m x_m[i_m, r] = T[i] for the entries i of some fibers of a tensor.

    Attributes
    ----------
    places : ndarray of int64, shape (n_equations, order)
        The entries i.
    values : ndarray of int64, shape (n_equations,)
        The values T[i].
    shape : tuple of int
        Shape of the tensor.
    rank : int
        Number of terms.
    """

    places: Indices
    values: Indices
    shape: tuple[int, ...]
    rank: int

    @classmethod
    def of(cls, tensor: Indices, rank: int, observed: Mask | None = None) -> Equations:
        """Make the equations of a tensor, or of its observed fibers of the last mode."""
        known = np.ones(tensor.shape[:-1], bool) if observed is None else observed
        places = np.argwhere(np.broadcast_to(known[..., None], tensor.shape))
        return cls(places, tensor[tuple(places.T)].astype(np.int64), tensor.shape, rank)

    @property
    def starts(self) -> list[int]:
        """Number of the first unknown of each factor, and the number of unknowns."""
        return np.cumsum([0, *(n * self.rank for n in self.shape)]).tolist()

    @property
    def n_of_others(self) -> int:
        """Number of unknowns of all factors but the last."""
        return self.starts[-2]

    @property
    def work(self) -> int:
        """Nanoseconds, about, of evaluating all derivatives."""
        return len(self.places) * (15 * self.rank * len(self.shape) + 2 * self.starts[-1])

    def factors(self, x: Array) -> Factors:
        """Split unknowns into factors."""
        parts = np.split(x, self.starts[1:-1])
        return tuple(part.reshape(-1, self.rank) for part in parts)

    def residual(self, x: Array) -> Array:
        """Left sides minus right sides."""
        rows = (f[self.places[:, m]] for m, f in enumerate(self.factors(x)))
        return math.prod(rows, start=np.ones(1)).sum(axis=1) - self.values

    def relative_residual(self, x: Array) -> float:
        """Norm of the residual, divided by that of the right sides."""
        return float(np.linalg.norm(self.residual(x)) / max(1.0, np.linalg.norm(self.values)))

    def jacobian(self, x: Array) -> Array:
        """Derivatives of the left sides by all unknowns, shape (n_equations, n_unknowns)."""
        rows = [f[self.places[:, m]] for m, f in enumerate(self.factors(x))]
        J = np.zeros((len(self.places), self.starts[-1]))
        at, columns = np.arange(len(self.places))[:, None], np.arange(self.rank)
        for mode, start in enumerate(self.starts[:-1]):
            others = math.prod((f for m, f in enumerate(rows) if m != mode), start=np.ones(1))
            J[at, start + self.places[:, mode, None] * self.rank + columns] = others
        return J

    def fixed_point_residual(self, x: NDArray[np.object_], bits: int) -> NDArray[np.object_]:
        """Left sides minus right sides, exactly, for unknowns that are integers over 2^bits.

        Its numbers are integers over 2^(order bits).
        """
        parts = np.split(x, self.starts[1:-1])
        rows = (f.reshape(-1, self.rank)[self.places[:, m]] for m, f in enumerate(parts))
        left = math.prod(rows, start=np.array([1], object)).sum(axis=1)
        return left - (self.values.astype(object) << (bits * len(self.shape)))


# an element of Q[x]/(f): the coefficients of a polynomial, of x^0 first
Element = Sequence[Fraction]


def last_factor(
    tensor: Indices,
    others: Sequence[Sequence[Sequence[Element]]],
    f: Sequence[int] = (0, 1),
    observed: Mask | None = None,
) -> list[list[tuple[Fraction, ...]]] | None:
    """Solve for the last factor of a decomposition.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, ..., n_d)
        The tensor.
    others : sequence of matrices of elements, shapes (n_m, rank)
        The other factors.
    f : sequence of int
        Coefficients of the polynomial, of x^0 first; the rationals if omitted.
    observed : ndarray of bool, shape (n_0, ..., n_d-1), optional
        Fibers of the last mode that the decomposition must reproduce; all if omitted.

    Returns
    -------
    list of rows of elements, shape (n_d, rank), or None
        The last factor; None if there is none.

    Examples
    --------
    >>> one = [[[Fraction(1)]]]
    >>> last_factor(np.array([[[3, 5]]]), [one, one])
    [[(Fraction(3, 1),)], [(Fraction(5, 1),)]]
    """
    degree, rank, width = len(f) - 1, len(others[0][0]), tensor.shape[-1]
    modulus = flint.fmpq_poly(list(f))
    factors = [[[polynomial(x) for x in row] for row in factor] for factor in others]
    shift = flint.fmpq_poly([0, 1])
    rows: list[list[flint.fmpq]] = []
    for place in product(*map(range, tensor.shape[:-1])):
        if observed is not None and not observed[place]:
            continue
        here = [flint.fmpq()] * (degree * rank)
        block = [here[:] for _ in range(degree)]
        for r in range(rank):
            p = math.prod((factors[m][i][r] for m, i in enumerate(place)), start=_ONE) % modulus
            for power in range(degree):
                for row, c in enumerate(p.coeffs()):
                    block[row][degree * r + power] = c
                p = p * shift % modulus
        right = [flint.fmpq(int(t)) for t in tensor[place]]
        zero = [flint.fmpq()] * width
        rows += [row + (right if i == 0 else zero) for i, row in enumerate(block)]
    if not rows:
        return [[()] * rank for _ in range(width)]
    reduced, n = flint.fmpq_mat(rows).rref()
    table = reduced.tolist()
    solution = np.zeros((degree * rank, width), object)
    for row in table[:n]:
        pivot = next(j for j, x in enumerate(row) if x)
        if pivot >= degree * rank:
            return None
        solution[pivot] = [Fraction(int(x.p), int(x.q)) for x in row[degree * rank :]]
    return [
        [_element(solution[degree * r : degree * (r + 1), v].tolist()) for r in range(rank)]
        for v in range(width)
    ]


_ONE = flint.fmpq_poly([1])


def _element(coefficients: list[Fraction | int]) -> tuple[Fraction, ...]:
    n = max((i + 1 for i, c in enumerate(coefficients) if c), default=0)
    return tuple(map(Fraction, coefficients[:n]))
