"""Choose what is needed to prove a fit: the unknowns that vary, and the box they vary in.

`capacity.rank.verifier.procedures.krawczyk` says what has to hold: with beta the step to the root
and kappa the inverse's growth over a box of radius 1, about beta + kappa rho^2 < rho. So rho = 2
beta does if 4 kappa beta < 1.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, inv, qr

from capacity.rank.cp.levenberg_marquardt import Array, Factors
from capacity.rank.types import Indices, Mask
from capacity.rank.verifier.procedures.krawczyk import MOST_EQUATIONS, contracts, jacobian

# of the Jacobian's diagonal after pivoting: below, its columns are nearly dependent
INDEPENDENT = 1e-7
# what is kept of a number, after the point
BITS = 60


def enclose(
    tensor: Indices, factors: Factors, known: Mask | None = None
) -> tuple[Factors, Indices, float] | None:
    """Find factors, the unknowns that vary, and a radius that prove a decomposition.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
    factors : tuple of three ndarrays of float64, shapes (n_m, rank)
        Of a fit.
    known : ndarray of bool, shape (n_0, n_1, n_2), optional
        Entries on which the sum matters; left out: all.

    Returns
    -------
    (factors, varying, radius) or None
        None if there are fewer unknowns than equations, or if these are nearly dependent, as for
        most sparse decompositions: their families meet others.
    """
    places = np.argwhere(np.ones(tensor.shape, bool) if known is None else known)
    starts = np.cumsum([0, *(f.size for f in factors)])
    n = len(places)
    if not 0 < n <= min(MOST_EQUATIONS, int(starts[3])):
        return None
    x = np.concatenate([f.ravel() for f in factors])
    _, R, order = qr(jacobian(factors, places, starts), mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    if diagonal[-1] < INDEPENDENT * diagonal[0]:
        return None
    varying = np.sort(order[:n]).astype(np.int64)
    for _ in range(3):
        x = np.rint(x * 2.0**BITS) / 2.0**BITS
        near = _unpacked(x, factors)
        try:
            inverse = inv(jacobian(near, places, starts)[:, varying])
        except LinAlgError:
            return None
        a, b, c = (f[places[:, m]] for m, f in enumerate(near))
        step = inverse @ ((a * b * c).sum(axis=1) - tensor[tuple(places.T)])
        beta = float(np.abs(step).max())
        sizes = [np.abs(f).max(axis=1)[places[:, m]] for m, f in enumerate(near)]
        kappa = float((np.abs(inverse) @ (2 * near[0].shape[1] * sum(sizes))).max())
        radius = max(2.5 * beta, 1e-14)
        if 4 * kappa * radius < 1 and contracts(tensor, near, varying, radius, known):
            return near, varying, radius
        x[varying] -= step
    return None


def _unpacked(x: Array, like: Factors) -> Factors:
    parts = np.split(x, np.cumsum([f.size for f in like])[:-1])
    a, b, c = (part.reshape(f.shape) for part, f in zip(parts, like, strict=True))
    return a, b, c
