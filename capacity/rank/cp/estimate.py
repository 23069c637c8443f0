"""Numerical estimates of the rank: by fitting CP decompositions, and by singular values.

A CP decomposition writes a tensor as a sum of R simple tensors a_r (x) b_r (x) ... A fit with
a small residual suggests that the rank is at most R but proves nothing: the result is an
*estimate*, never a bound. A tensor whose border rank is below its rank (such as W) is approached by
ever larger terms that cancel; such fits are recognised by the size of their terms and rejected.

Of a tensor of floating-point numbers, such as that of a trained layer, the singular values above a
threshold are counted. These are no bounds either; certified intervals need the integers of a
database.

References
----------
Kolda, Bader 2009, section 3; V. de Silva, L.-H. Lim, Tensor rank and the ill-posedness of the best
low-rank approximation problem, SIMAX 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capacity.checks import Seed, integer_seed
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.optional import needed_by
from capacity.rank.bounds import database_bounds
from capacity.rank.cp.decompose import as_dense, given_to_estimate, one_fit, require_starts
from capacity.rank.given import FactsOrTensor
from capacity.tensor.structure import slice_modes

if TYPE_CHECKING:
    from tensorly.cp_tensor import CPTensor


# multiplications; about an hour on one core
LARGEST_WORK = 3e12
# most unknowns for Levenberg-Marquardt; larger fits are by alternating least squares
MOST_UNKNOWNS = 1_500
LARGEST_TERM = 1e3


@briefly_shown
@dataclass(frozen=True)
class CPEstimate:
    """An estimate of a tensor's rank, with the decomposition that it rests on.

    Attributes
    ----------
    rank : int
        Smallest number of terms for which a fit was accepted.
    residual : float
        Norm of tensor minus decomposition, divided by the norm of the tensor.
    method : str
        Method of the fit: Levenberg-Marquardt, alternating least squares, or singular vectors of
        the slices if no smaller fit was found.
    cp : tensorly.cp_tensor.CPTensor
        The decomposition; all weights are 1.
    """

    rank: int
    residual: float
    method: str
    cp: CPTensor

    def to_dict(self) -> dict[str, Any]:
        """Return rank, residual and method, as ``capacity rank --json`` prints them."""
        return {"rank": self.rank, "residual": self.residual, "method": self.method}


def cp_estimate(
    tensor: FactsOrTensor,
    *,
    n_starts: int = 4,
    max_iterations: int = 1000,
    tolerance: float = 1e-6,
    seed: Seed = 0,
) -> CPEstimate:
    """Estimate the rank of a database or a tensor by numerical fits.

    The number of terms is searched by bisection between the largest unfolding rank and the smallest
    sum of slice ranks, for which a decomposition is known. Each number is tried from several random
    starts, by Levenberg-Marquardt, or by alternating least squares beyond 1,500 unknowns.

    Parameters
    ----------
    tensor : Database, SparseTensor, ndarray, AttentionLayer, or what `as_tensor` takes
        The tensor whose rank is estimated, of order 2 or more; facts are taken as their tensor D, a
        plain layer as its tensor over all tokens.
    n_starts : int
        Maximum number of random starts for each number of terms.
    max_iterations : int
        Maximum number of iterations per start.
    tolerance : float
        Largest relative residual of an accepted fit.
    seed : int or numpy.random.Generator
        Seed of the random starts.

    Returns
    -------
    CPEstimate
        The smallest decomposition found. Its number of terms is no bound of the rank.

    Raises
    ------
    InvalidArgumentError
        If the tensor isn't finite, nonzero and of order 2 or more, its largest entry isn't between
        1e-50 and 1e50, an option is out of its range, or the fits for a number of terms could take
        more than 3e12 multiplications. All this is checked before any fit.
    MemoryBudgetError
        If the dense tensor exceeds the budget of ``to_numpy``.
    MissingExtraError
        If tensorly isn't installed.

    Examples
    --------
    >>> cp_estimate(np.ones((4, 3, 2))).rank
    1
    """
    require_starts(n_starts, max_iterations, tolerance)
    seed = integer_seed(seed)
    sweeps = n_starts * max_iterations
    given = given_to_estimate(tensor, "cp_estimate(tensor)")
    if not isinstance(given, np.ndarray):
        _check_work(min(database_bounds(given).slices), given.shape, sweeps)
    dense = as_dense(given)
    best = _from_slices(dense)
    _check_work(best.rank, dense.shape, sweeps)
    lower, upper = max(_unfolding_rank(dense, m) for m in range(dense.ndim)), best.rank
    while lower < upper:
        middle = (lower + upper) // 2
        fit = _fit(dense, middle, n_starts, max_iterations, tolerance, seed)
        if fit is not None:
            best, upper = fit, middle
        else:
            lower = middle + 1
    return best


def _check_work(n_terms: int, shape: tuple[int, ...], sweeps: int) -> None:
    # a sweep of least squares multiplies the tensor with n_terms columns in each mode
    work = float(len(shape)) * sweeps * n_terms * math.prod(shape)
    if work > LARGEST_WORK:
        raise InvalidArgumentError(
            f"CP fits must take at most {LARGEST_WORK:.0e} multiplications; up to {n_terms} terms "
            f"of a tensor of shape {shape} could take {work:.0e} for each number of terms. "
            "Estimate the rank of a part, or lower `n_starts` or `max_iterations`."
        )


def _unfolding_rank(dense: NDArray[np.float64], mode: int) -> int:
    return int(np.linalg.matrix_rank(np.moveaxis(dense, mode, 0).reshape(dense.shape[mode], -1)))


def _from_slices(dense: NDArray[np.float64]) -> CPEstimate:
    """Decompose by singular vectors of the matrix slices, in the modes that need fewest terms."""
    with needed_by("cp_estimate"):
        from tensorly.cp_tensor import CPTensor, cp_to_tensor

    def stacked(fixed: tuple[int, ...]) -> NDArray[np.float64]:
        first = np.moveaxis(dense, fixed, range(len(fixed)))
        return first.reshape(-1, *first.shape[-2:])

    ranks = {fixed: np.linalg.matrix_rank(stacked(fixed)) for fixed in slice_modes(dense.ndim)}
    fixed = min(ranks, key=lambda modes: int(ranks[modes].sum()))
    places = np.ndindex(*(dense.shape[mode] for mode in fixed))
    parts = [
        (*(np.eye(dense.shape[mode])[:, [i] * int(r)] for mode, i in zip(fixed, at, strict=True)),
         u[:, :r] * s[:r], vt[:r].T)
        for at, r, matrix in zip(places, ranks[fixed], stacked(fixed), strict=True)
        for u, s, vt in [np.linalg.svd(matrix, full_matrices=False)]
    ]  # fmt: skip
    columns = [np.concatenate(some, axis=1) for some in zip(*parts, strict=True)]
    # the modes that are fixed come first in `parts`
    free = [mode for mode in range(dense.ndim) if mode not in fixed]
    factors = [columns[[*fixed, *free].index(mode)] for mode in range(dense.ndim)]
    rank = factors[0].shape[1]
    cp = CPTensor((np.ones(rank), factors))
    residual = float(np.linalg.norm(dense - np.asarray(cp_to_tensor(cp))) / np.linalg.norm(dense))
    return CPEstimate(rank, residual, "slices (SVD)", cp)


def _fit(
    dense: NDArray[np.float64],
    rank: int,
    n_starts: int,
    iterations: int,
    tolerance: float,
    seed: int,
) -> CPEstimate | None:
    """Return the first fit that is accepted, or None."""
    from tensorly.cp_tensor import CPTensor

    norm = float(np.linalg.norm(dense))
    small = rank * sum(dense.shape) <= MOST_UNKNOWNS
    for start in range(n_starts):
        fit = one_fit(dense, rank, "lm" if small else "als", iterations, [seed, rank, start])
        # a term this much larger than the tensor cancels against others: the fit is degenerate
        bounded = fit is not None and fit.largest**dense.ndim <= LARGEST_TERM * norm
        if fit is not None and bounded and fit.residual <= tolerance:
            cp = CPTensor((np.ones(rank), list(fit.factors)))
            method = "Levenberg-Marquardt" if small else "parafac (ALS)"
            return CPEstimate(rank, fit.residual, method, cp)
    return None


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


def numerical_rank_estimates(
    tensor: FactsOrTensor, *, threshold: float = THRESHOLD
) -> RankEstimates:
    """Estimate the rank of a real 3-tensor from below and from above.

    Parameters
    ----------
    tensor : array_like, shape (n_0, n_1, n_2), or what `cp_estimate` takes
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
    given = given_to_estimate(tensor, "numerical_rank_estimates(tensor)")
    T = given if isinstance(given, np.ndarray) else given.to_numpy(np.float64)
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
