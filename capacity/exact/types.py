"""Types of arrays and of sparse vectors that the modules of `capacity.rank` share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# counts or indices
Indices: TypeAlias = NDArray[np.int64]
# entries that are known, or nonzero
Mask: TypeAlias = NDArray[np.bool_]
# the factors of a decomposition of order 3 with integer coefficients, shapes (rank, n_m)
IntegerFactors: TypeAlias = tuple[Indices, Indices, Indices]
# for each mode the indices that an argument is about
Touched: TypeAlias = tuple[Indices, ...]
# a sparse vector: indices of one mode, and a coefficient for each
Vector: TypeAlias = tuple[tuple[int, ...], tuple[Fraction, ...]]
# a simple tensor: one sparse vector per mode
Term: TypeAlias = tuple[Vector, ...]
# the same with coefficients in a number field: polynomials modulo f, by their coefficients
AlgebraicVector: TypeAlias = tuple[tuple[int, ...], tuple[tuple[Fraction, ...], ...]]
AlgebraicTerm: TypeAlias = tuple[AlgebraicVector, ...]
# charges the steps, of about a nanosecond, and the bytes of the work that follows, or refuses it
Spend: TypeAlias = Callable[[int, int], object]


def free(_steps: int, _memory: int) -> None:
    """Charge nothing: a search may take what it needs."""
