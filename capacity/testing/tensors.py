"""Integer tensors of any order, and such whose rank is a theorem or known by construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from capacity.display import briefly_shown
from capacity.tensor import (
    KNOWN_RANKS,
    KnownTensor,
    SparseTensor,
    direct_sum,
    from_coo,
    from_dense,
    ghz_state,
    permuted,
)
from capacity.testing.choices import Choices


@st.composite
def integer_tensors(
    draw: st.DrawFn,
    *,
    min_order: int = 1,
    max_order: int = 5,
    max_side: int = 4,
    max_value: int = 9,
    max_entries: int = 12,
) -> SparseTensor:
    """Draw sparse tensors of small integers, the zero tensor among them.

    Parameters
    ----------
    min_order, max_order : int
        Limits of the number of modes.
    max_side : int
        Largest number of indices of a mode.
    max_value : int
        Largest absolute value of an entry.
    max_entries : int
        Largest number of nonzero entries.

    Returns
    -------
    SearchStrategy of SparseTensor
        Tensors, also with zero slices.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(integer_tensors(), lambda tensor: tensor.order == 4).n_entries
    0
    """
    order = draw(st.integers(min_order, max_order))
    shape = draw(st.tuples(*[st.integers(1, max_side)] * order))
    place = st.tuples(*(st.integers(0, side - 1) for side in shape))
    value = st.integers(1, max_value) | st.integers(-max_value, -1)
    entries = draw(st.dictionaries(place, value, max_size=max_entries))
    places = np.array(list(entries), np.int64).reshape(-1, order)
    return from_coo(places, list(entries.values()), shape)


@st.composite
def integer_tensors_of_known_rank(
    draw: st.DrawFn, *, max_order: int = 6, max_rank: int = 12
) -> KnownTensor:
    """Draw integer tensors whose rank over the reals is a theorem.

    They are made of a tensor of `KNOWN_RANKS` by what doesn't change the rank: permuting modes,
    unimodular changes of basis, factors, and more slices that are combinations of others; and by
    what changes it as a theorem states: direct sums with diagonal tensors, and for order three with
    tensors with a side of at most two (Jaja, Takche 1986).

    Parameters
    ----------
    max_order : int
        Largest number of modes.
    max_rank : int
        Largest rank.

    Returns
    -------
    SearchStrategy of KnownTensor
        Tensors with their ranks, `lower` equal to `upper`, and the theorems.

    Notes
    -----
    The rank of a direct sum with a simple tensor e (x) ... (x) e is one more, in any order. By the
    substitution method (Alder, Strassen 1981; Hopcroft, Kerr 1971) the slice of the new index of
    the first mode can be removed and 1 counted, if a multiple of it is added to each other slice;
    in what is left, the slices of the new index of the second mode contain all that was added, and
    without them the first summand is left, whose rank is no larger.

    Examples
    --------
    >>> from hypothesis import find
    >>> find(integer_tensors_of_known_rank(), lambda known: known.name == "quaternions").rank
    8
    """
    return tensor_of_known_rank(Choices.drawn(draw), max_order=max_order, max_rank=max_rank)


def tensor_of_known_rank(choose: Choices, *, max_order: int = 6, max_rank: int = 12) -> KnownTensor:
    """Draw from `integer_tensors_of_known_rank` by given choices."""
    known = choose.one(
        [
            one
            for one in KNOWN_RANKS
            if one.rank and one.rank <= max_rank and one.tensor.order <= max_order
        ]
    )
    tensor, name, rank, source = known.tensor, known.name, known.lower, known.source
    thin = [
        one
        for one in KNOWN_RANKS
        if one.rank and one.tensor.order == 3 == tensor.order and min(one.tensor.shape) <= 2
    ]
    if thin and choose.chance(1, 4):
        more = choose.one(thin)
        if rank + more.lower <= max_rank:
            part = permuted(more.tensor, choose.order(range(3)))
            tensor, rank = direct_sum(tensor, part), rank + more.lower
            name, source = f"{name} + {more.name}", f"{source}; {more.source}; Jaja, Takche 1986"
    if rank < max_rank and choose.chance(1, 4):
        levels = choose.integer(1, min(2, max_rank - rank))
        tensor, rank = direct_sum(tensor, ghz_state(tensor.order, levels)), rank + levels
        name, source = f"{name} + {levels} diagonal entries", f"{source}; substitution"
    tensor = permuted(tensor, choose.order(range(tensor.order)))
    if choose.chance(1, 2):
        tensor = _in_other_bases(choose, tensor)
    factor = choose.one([1, -1, 2, 3])
    return KnownTensor(name, factor * tensor, rank, rank, source)


def _in_other_bases(choose: Choices, tensor: SparseTensor) -> SparseTensor:
    """Multiply each mode by an integer matrix of full column rank."""
    dense = tensor.to_numpy()
    for n in tensor.shape:
        # the mode that is multiplied goes to the end, so after all of them they are in order
        dense = np.tensordot(dense, _injective(choose, n), axes=(0, 1))
    return from_dense(dense)


def _injective(choose: Choices, n: int) -> NDArray[np.int64]:
    """Draw a matrix with n columns: a unimodular one, its rows permuted, and at times one more."""
    M = np.eye(n, dtype=np.int64)
    for _ in range(choose.integer(0, 3)):
        i, j = choose.integer(0, n - 1), choose.integer(0, n - 1)
        if i != j:
            M[i] += choose.one([1, -1, 2]) * M[j]
    if choose.chance(1, 4):
        M = np.vstack([M, M[choose.integer(0, n - 1)] - M[choose.integer(0, n - 1)]])
    return M[choose.order(range(len(M)))]


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
    """Draw integer 3-tensors of known rank over the rationals and over the reals.

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
