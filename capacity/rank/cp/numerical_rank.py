"""The rank of a tensor of floating-point numbers, as far as a threshold tells it. Estimates.

What certified intervals are for the integers of a database, this is for the tensor of a trained
layer: both ends are counts of singular values above a threshold, so neither is a proof.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from capacity.errors import InvalidArgumentError

THRESHOLD = 1e-6


def numerical_rank_interval(tensor: ArrayLike, *, threshold: float = THRESHOLD) -> tuple[int, int]:
    """Estimate the rank of a real 3-tensor from below and from above.

    Parameters
    ----------
    tensor : array_like, shape (n_0, n_1, n_2)
    threshold : float
        Singular values of an unfolding or a slice count if they exceed this share of the largest
        of the unfoldings.

    Returns
    -------
    lower : int
        The largest numerical rank of the three unfoldings.
    upper : int
        The least of the three sums of the slices' numerical ranks and of the three products of two
        unfoldings' ranks.

    Raises
    ------
    ValueError
        Unless the tensor has three modes and finite entries, and the threshold lies in (0, 1).

    Examples
    --------
    >>> numerical_rank_interval(np.ones((2, 3, 4)))
    (1, 1)
    """
    T = np.asarray(tensor, dtype=np.float64)
    if T.ndim != 3 or not T.size or not np.isfinite(T).all():
        raise InvalidArgumentError(
            f"`tensor` must have three modes and finite entries; got shape {T.shape}."
        )
    if not 0 < threshold < 1:
        raise InvalidArgumentError(f"`threshold` must lie in (0, 1); got {threshold}.")
    modes = [np.moveaxis(T, mode, 0) for mode in range(3)]
    spectra = [np.linalg.svd(M.reshape(len(M), -1), compute_uv=False) for M in modes]
    least = threshold * max(s[0] for s in spectra)
    ranks = [int((s > least).sum()) for s in spectra]
    slices = [int((np.linalg.svd(M, compute_uv=False) > least).sum()) for M in modes]
    products = [a * b for a, b in combinations(ranks, 2)]
    # of entries about the threshold, slices may count less than unfoldings
    return max(ranks), max(*ranks, min(*slices, *products))
