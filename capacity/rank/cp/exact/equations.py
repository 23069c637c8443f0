"""The equations of a decomposition: one for each entry that it must reproduce.

The unknowns are the coefficients of all factors, numbered along the rows of one factor after the
other. `Equations` evaluates them, and their derivatives, in floating point and in fixed point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capacity.exact.types import Indices, Mask
from capacity.rank.cp.fit.normal_equations import Array, Factors


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
