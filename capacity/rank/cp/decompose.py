"""CP decompositions with a given number of terms, by one of several methods.

Levenberg-Marquardt (`capacity.rank.cp.levenberg_marquardt`) finds exact decompositions far more
often than alternating least squares or gradient methods do (`benchmarks/results/cp_success.json`).
The other methods serve for comparison, and for tensors that are too large for it.

References
----------
T. G. Kolda, B. W. Bader, Tensor Decompositions and Applications, SIAM Review 51, 2009; D. Hong, T.
G. Kolda, J. A. Duersch, Generalized canonical polyadic tensor decomposition, SIAM Review 62, 2020.
"""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.checks import Seed, integer_seed, require_choice, shown
from capacity.database.facts import Database
from capacity.database.given_facts import require_database
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.optional import needed_by
from capacity.rank.cp.levenberg_marquardt import Factors, Fit, fit_cp, product, random_start
from capacity.rank.given import FactsOrTensor, is_tensor
from capacity.tensor.given_tensors import as_floats
from capacity.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    from tensorly.cp_tensor import CPTensor

CPMethod: TypeAlias = Literal["lm", "als", "lbfgs"]
# largest entry, and inverse of the smallest: beyond, squared residuals overflow or vanish
LARGEST_ENTRY = 1e50
METHODS: tuple[CPMethod, ...] = get_args(CPMethod)


def cp_decompose(
    tensor: FactsOrTensor,
    rank: int,
    *,
    method: CPMethod = "lm",
    n_starts: int = 8,
    max_iterations: int = 400,
    tolerance: float = 1e-9,
    seed: Seed = 0,
) -> CPTensor:
    """Fit a CP decomposition with a given number of terms, from several random starts.

    Parameters
    ----------
    tensor : Database, SparseTensor, ndarray, AttentionLayer, or what `as_tensor` takes
        The tensor to decompose, of order 2 or more; facts are taken as their tensor D, a plain
        layer as its tensor over all tokens.
    rank : int
        Number of terms.
    method : {'lm', 'als', 'lbfgs'}
        Levenberg-Marquardt, alternating least squares by tensorly, or L-BFGS-B by pyttb (extra
        ``pyttb``).
    n_starts : int
        Maximum number of random starts.
    max_iterations : int
        Maximum number of iterations per start.
    tolerance : float
        Relative residual at which no further start is tried.
    seed : int or numpy.random.Generator
        Seed of the random starts.

    Returns
    -------
    tensorly.cp_tensor.CPTensor
        The fit with the smallest residual, however large that is; all weights are 1. A small
        residual proves nothing about the rank.

    Raises
    ------
    InvalidArgumentError
        If the tensor isn't finite, nonzero and of order 2 or more, its largest entry isn't between
        1e-50 and 1e50, an option is out of its range, or all starts end in singular systems.
    MemoryBudgetError
        If the dense tensor exceeds the budget of ``to_numpy``.
    MissingExtraError
        If tensorly, or pyttb for 'lbfgs', isn't installed.

    Examples
    --------
    >>> from tensorly.cp_tensor import cp_to_tensor
    >>> cp = cp_decompose(np.ones((4, 3, 2)), 1)
    >>> bool(np.allclose(cp_to_tensor(cp), 1))
    True
    """
    with needed_by("cp_decompose"):
        from tensorly.cp_tensor import CPTensor

    dense = as_dense(given_to_estimate(tensor, "cp_decompose(tensor, rank)"))
    require_count("rank", rank)
    require_starts(n_starts, max_iterations, tolerance)
    seed = integer_seed(seed)
    require_choice("`method`", method, METHODS)
    best: Fit | None = None
    for start in range(n_starts):
        fit = one_fit(dense, rank, method, max_iterations, [seed, rank, start])
        if fit is not None and (best is None or fit.residual < best.residual):
            best = fit
        if best is not None and best.residual <= tolerance:
            break
    if best is None:
        raise InvalidArgumentError(
            f"All {n_starts} starts of {method!r} ended in a singular system; use more starts, "
            "another `seed`, or method='lm'."
        )
    return CPTensor((np.ones(rank), list(best.factors)))


def require_starts(n_starts: int, max_iterations: int, tolerance: float) -> None:
    """Refuse numbers of starts and iterations below 1, and negative tolerances.

    Raises
    ------
    InvalidArgumentError
    """
    require_count("n_starts", n_starts)
    require_count("max_iterations", max_iterations)
    if not tolerance >= 0:
        raise InvalidArgumentError(f"`tolerance` must be at least 0; got {tolerance}.")


def require_count(name: str, n: object) -> None:
    """Refuse anything but a positive integer.

    Raises
    ------
    InvalidArgumentError
    """
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise InvalidArgumentError(f"`{name}` must be an integer of at least 1; got {shown(n)}.")


Estimated: TypeAlias = Database | SparseTensor | NDArray[np.float64]


def given_to_estimate(tensor: FactsOrTensor, call: str) -> Estimated:
    """Return facts as a database, integers as a tensor, and other numbers as an array of floats.

    Raises
    ------
    InvalidTypeError
        For what is neither facts nor an array of numbers, or rows of three integers.
    """
    if isinstance(tensor, Database | SparseTensor):
        return tensor
    if not is_tensor(tensor, call):
        return require_database(tensor, call)
    try:
        return as_floats(tensor)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(
            f"`tensor` must be an array of numbers; got {shown(tensor)}. The array of a database "
            "is db.to_numpy()."
        ) from error


def as_dense(given: Estimated) -> NDArray[np.float64]:
    """Return a database, a sparse tensor or an array as a dense tensor of floats.

    Raises
    ------
    InvalidArgumentError
        If it isn't finite, nonzero and of order 2 or more, or its largest entry is out of scale.
    MemoryBudgetError
        If the dense tensor exceeds the budget of ``to_numpy``.
    """
    dense = given if isinstance(given, np.ndarray) else given.to_numpy(np.float64)
    if dense.ndim < 2 or not np.isfinite(dense).all() or not dense.any():
        raise InvalidArgumentError(
            f"`tensor` must be finite, nonzero, and of order 2 or more; got shape {dense.shape}, "
            f"with {np.count_nonzero(dense):,} entries that aren't zero, of which "
            f"{np.count_nonzero(~np.isfinite(dense)):,} aren't finite."
        )
    largest = float(np.abs(dense).max())
    if not 1 / LARGEST_ENTRY < largest < LARGEST_ENTRY:
        raise InvalidArgumentError(
            f"The largest entry of `tensor` must lie between {1 / LARGEST_ENTRY:.0e} and "
            f"{LARGEST_ENTRY:.0e}; got {largest:.0e}. Scale it: the rank stays the same."
        )
    return dense


def one_fit(
    dense: NDArray[np.float64], rank: int, method: CPMethod, iterations: int, seed: list[int]
) -> Fit | None:
    """Fit from one random start; None if that ends in a singular system."""
    if method == "lm":
        start = random_start(dense.shape, rank, np.random.default_rng(seed))
        return fit_cp(dense, start, iterations=iterations)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            factors = (_als if method == "als" else _lbfgs)(dense, rank, iterations, seed)
    except np.linalg.LinAlgError:
        return None
    residual = float(np.linalg.norm(dense - product(factors)) / np.linalg.norm(dense))
    return Fit(factors, residual, iterations)


def _als(dense: NDArray[np.float64], rank: int, iterations: int, seed: list[int]) -> Factors:
    from tensorly.decomposition import parafac

    random_state = np.random.RandomState(seed)
    cp = parafac(
        dense, rank, n_iter_max=iterations, init="random", tol=1e-14,
        random_state=random_state, linesearch=True,
    )  # fmt: skip
    first, *others = (np.asarray(f) for f in cp.factors)
    return first * np.asarray(cp.weights), *others


def _lbfgs(dense: NDArray[np.float64], rank: int, iterations: int, seed: list[int]) -> Factors:
    with needed_by("method='lbfgs'"):
        pyttb: Any = importlib.import_module("pyttb")
        optimizers: Any = importlib.import_module("pyttb.gcp.optimizers")
    lbfgs = optimizers.LBFGSB(
        maxiter=iterations, maxfun=50 * iterations, factr=0.0, pgtol=1e-12, m=20
    )
    start = random_start(dense.shape, rank, np.random.default_rng(seed))
    # pyttb warns of the memory order of its own factors at every step
    quiet = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        model, _, _ = pyttb.gcp_opt(
            pyttb.tensor(dense),
            rank,
            objective=pyttb.gcp.handles.Objectives.GAUSSIAN,
            optimizer=lbfgs,
            init=pyttb.ktensor([f.copy() for f in start], np.ones(rank)),
            printitn=0,
        )
    finally:
        logging.disable(quiet)
    first, *others = (np.array(f) for f in model.factor_matrices)
    return first * np.asarray(model.weights), *others
