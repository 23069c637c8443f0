"""The unknowns that vary, and the radius of their box, for a proof by Krawczyk's theorem.

`capacity.rank.verifier.procedures.krawczyk` has the condition. It is about beta + kappa rho^2 <
rho, with beta the Newton step to the root, rho the radius, and kappa rho a bound of |I - C J|. So
rho = 2 beta suffices if 4 kappa beta < 1.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from capacity.exact.types import Indices, Mask
from capacity.rank.cp.fit.normal_equations import Array, Factors
from capacity.rank.verifier.procedures.krawczyk import MOST_EQUATIONS, contracts, jacobian

# three factors, as the proof takes them
Three: TypeAlias = tuple[Array, Array, Array]

# ratio of the pivoted Jacobian's last and first diagonal entry below which it is nearly singular
INDEPENDENT = 1e-7
# binary digits of a number that are kept after the point
BITS = 60


def enclose(
    tensor: Indices, factors: Factors, known: Mask | None = None
) -> tuple[Three, Indices, float] | None:
    """Find factors, varying unknowns and a radius that prove an exact decomposition.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
        The tensor to decompose.
    factors : tuple of three ndarrays of float64, shapes (n_m, rank)
        Factors of a fit, with a residual near zero.
    known : ndarray of bool, shape (n_0, n_1, n_2), optional
        Mask of the entries that the decomposition must reproduce; all if omitted.

    Returns
    -------
    (factors, varying, radius) or None
        None if there are fewer unknowns than equations or too many equations, or if the equations
        are nearly dependent, as for most sparse decompositions, where several families of
        decompositions meet.
    """
    from scipy.linalg import inv, qr

    places = np.argwhere(np.ones(tensor.shape, bool) if known is None else known)
    starts = np.cumsum([0, *(f.size for f in factors)])
    n = len(places)
    if not 0 < n <= min(MOST_EQUATIONS, int(starts[3])):
        return None
    x = np.concatenate([f.ravel() for f in factors])
    _, R, order = qr(
        jacobian(_unpacked(x, factors), places, starts), mode="economic", pivoting=True
    )
    diagonal = np.abs(np.diag(R))
    if diagonal[-1] < INDEPENDENT * diagonal[0]:
        return None
    varying = np.sort(order[:n]).astype(np.int64)
    for _ in range(3):
        x = np.rint(x * 2.0**BITS) / 2.0**BITS
        near = _unpacked(x, factors)
        try:
            inverse = inv(jacobian(near, places, starts)[:, varying])
        except np.linalg.LinAlgError:
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


def _unpacked(x: Array, like: Factors) -> Three:
    parts = np.split(x, np.cumsum([f.size for f in like])[:-1])
    a, b, c = (part.reshape(f.shape) for part, f in zip(parts, like, strict=True))
    return a, b, c
