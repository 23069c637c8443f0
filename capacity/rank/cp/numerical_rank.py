"""Estimates of the rank of a tensor of floating-point numbers, such as that of a trained layer.

They count singular values above a threshold, so they are no bounds; certified intervals need the
integers of a database.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from capacity.errors import InvalidArgumentError
from capacity.rank.cp.fit.decompose import as_floats

THRESHOLD = 1e-6


class RankEstimates(NamedTuple):
    """Two estimates of the rank of a tensor of floating-point numbers; neither is a bound.

    Attributes
    ----------
    unfolding_rank : int
        Largest numerical rank of the three unfoldings.
    decomposition_size : int
        Smallest number of simple tensors in a decomposition by slices or by two unfoldings: the
        minimum of the three sums of slices' numerical ranks and the three products of two
        unfoldings' numerical ranks, and at least `unfolding_rank`.
    """

    unfolding_rank: int
    decomposition_size: int


def numerical_rank_estimates(tensor: ArrayLike, *, threshold: float = THRESHOLD) -> RankEstimates:
    """Estimate the rank of a real 3-tensor from below and from above.

    Parameters
    ----------
    tensor : array_like, shape (n_0, n_1, n_2)
        A real tensor.
    threshold : float
        Singular values of an unfolding or a slice count if they exceed this fraction of the largest
        singular value of the unfoldings.

    Returns
    -------
    RankEstimates
        Named tuple of `unfolding_rank` and `decomposition_size`.

    Raises
    ------
    InvalidArgumentError
        If the tensor hasn't three modes, has no entries or some that aren't finite, or the
        threshold doesn't lie strictly between 0 and 1.

    Examples
    --------
    >>> numerical_rank_estimates(np.ones((2, 3, 4)))
    RankEstimates(unfolding_rank=1, decomposition_size=1)
    """
    T = as_floats(tensor)
    if T.ndim != 3 or not T.size or not np.isfinite(T).all():
        raise InvalidArgumentError(
            f"`tensor` must have three modes and finite entries; got shape {T.shape}, with "
            f"{np.count_nonzero(~np.isfinite(T)):,} entries that aren't finite."
        )
    if not 0 < threshold < 1:
        raise InvalidArgumentError(
            f"`threshold` must lie strictly between 0 and 1; got {threshold}."
        )
    modes = [np.moveaxis(T, mode, 0) for mode in range(3)]
    spectra = [np.linalg.svd(M.reshape(len(M), -1), compute_uv=False) for M in modes]
    least = threshold * max(s[0] for s in spectra)
    ranks = [int((s > least).sum()) for s in spectra]
    slices = [int((np.linalg.svd(M, compute_uv=False) > least).sum()) for M in modes]
    products = [a * b for a, b in combinations(ranks, 2)]
    # near the threshold slices can count fewer singular values than unfoldings do
    return RankEstimates(max(ranks), max(*ranks, min(*slices, *products)))
