"""Integer tensors whose rank is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from capacity.display import briefly_shown


@briefly_shown
@dataclass(frozen=True)
class KnownRank:
    """An integer tensor whose rank is known.

    Attributes
    ----------
    tensor : ndarray of int64, shape (n0, n1, n2)
        The tensor.
    rank : int
        Rank over the rationals and over the reals.
    factors : tuple of three ndarrays, shapes (n0, rank), (n1, rank), (n2, rank)
        Factor matrices a, b, c with ``tensor[i, j, k] = sum_r a[i, r] b[j, r] c[k, r]``.
    """

    tensor: NDArray[np.int64]
    rank: int
    factors: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@st.composite
def tensors_of_known_rank(draw: st.DrawFn, *, max_dim: int = 5) -> KnownRank:
    """Integer 3-tensors of known rank over the rationals and over the reals.

    The rank is R since there is a decomposition in R terms, and an unfolding of rank R: a and b
    have independent columns (each holds a unit triangular block of R rows) and c no zero column,
    so the columns b_r (x) c_r are independent, and a times their transpose, an unfolding, has rank
    R. The modes come in any order.

    Parameters
    ----------
    max_dim : int
        Largest dimension of each mode.

    Returns
    -------
    SearchStrategy of KnownRank
        Tensors with their ranks and decompositions.

    Examples
    --------
    >>> from hypothesis import find
    >>> known = find(tensors_of_known_rank(), lambda known: known.rank == 2)
    >>> bool((np.einsum("ir,jr,kr->ijk", *known.factors) == known.tensor).all())
    True
    """
    dims: Any = [draw(st.integers(1, max_dim)) for _ in range(3)]
    order = draw(st.permutations(range(3)))
    rank = draw(st.integers(1, min(dims[order[0]], dims[order[1]])))
    entry = st.integers(-2, 2)

    def matrix(n: int) -> NDArray[np.int64]:
        values = draw(st.lists(entry, min_size=n * rank, max_size=n * rank))
        return np.array(values, dtype=np.int64).reshape(n, rank)

    factors = [matrix(n) for n in dims]
    for mode in order[:2]:
        block = factors[mode][:rank]
        factors[mode][:rank] = np.triu(block, 1) + np.eye(rank, dtype=np.int64)
    third = factors[order[2]]
    third[0, ~third.any(axis=0)] = 1
    a, b, c = factors
    return KnownRank(np.einsum("ir,jr,kr->ijk", a, b, c), rank, (a, b, c))
