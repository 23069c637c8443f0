"""Prove, in interval arithmetic, that a decomposition over the real numbers exists near a fit.

Not every decomposition has rational factors. Let F(x) = sum_r a_r (x) b_r (x) c_r - T on the M
entries that matter, and let M of the unknowns x vary, y, while the others stay at the floating-
point numbers that they are. With y_0 the fit, any matrix C, and the box Y of radius rho around y_0,
Krawczyk's theorem says: if

    y_0 - C F(y_0) + (I - C J(Y)) (Y - y_0)  lies within the interior of Y,

then F has a zero in Y, for which all that is needed is |C F(y_0)| + |I - C J(Y)| rho < rho in the
maximum norm, with J(Y) an enclosure of the Jacobian over the box. All is computed in balls that
contain the exact numbers, so that rounding is accounted for. C is an approximate inverse of the
Jacobian; were it a bad one, the inequality would fail.

References
----------
R. Krawczyk, Newton-Algorithmen zur Bestimmung von Nullstellen mit Fehlerschranken, Computing 1969;
P. Breiding, K. Rose, S. Timme, Certifying zeros of polynomial systems using interval arithmetic,
ACM TOMS 2023, arXiv 2011.05000.
"""

from __future__ import annotations

import flint
import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Array = NDArray[np.float64]
# equations of the largest system that is looked at; 300 take some seconds
LARGEST = 400
PRECISION = 128


def contracts(
    tensor: Indices,
    factors: tuple[Array, Array, Array],
    varying: Indices,
    radius: float,
    observed: NDArray[np.bool_] | None = None,
) -> bool:
    """Whether a tensor, where it is observed, has an exact real decomposition near some factors.

    Parameters
    ----------
    tensor : ndarray of int64, shape (n_0, n_1, n_2)
    factors : tuple of three ndarrays of float64, shapes (n_m, rank)
        Read as the exact binary fractions that they are.
    varying : ndarray of int64, shape (M,)
        Which unknowns vary, numbered along the rows of the three factors; as many as entries of
        the tensor are observed.
    radius : float
        Of the box.
    observed : ndarray of bool, shape (n_0, n_1), optional
        Fibers of the last mode on which the sum matters; left out: all.

    Examples
    --------
    1 = sqrt(1/2) sqrt(1/2) 2, near floating-point roots:

    >>> root = np.array([[0.5**0.5]])
    >>> contracts(np.array([[[1]]]), (root, root, np.array([[2.0]])), np.array([0]), 1e-9)
    True
    """
    dims, rank = tensor.shape, factors[0].shape[1]
    seen = np.ones(dims[:2], bool) if observed is None else observed
    places = np.argwhere(np.broadcast_to(seen[:, :, None], dims))
    n = len(places)
    if not 0 < n <= LARGEST or len(varying) != n or not 0 < radius < 1:
        return False
    starts = np.cumsum([0, *(f.size for f in factors)])
    if len(np.unique(varying)) < n or varying.min() < 0 or varying.max() >= starts[3]:
        return False
    jacobian = _jacobian(factors, places, starts)[:, varying]
    if np.linalg.matrix_rank(jacobian) < n:
        return False
    previous = flint.ctx.prec
    flint.ctx.prec = PRECISION
    try:
        inverse = flint.arb_mat(n, n, np.linalg.inv(jacobian).ravel().tolist())
        exact = [[[flint.arb(x) for x in row] for row in f.tolist()] for f in factors]
        left: list[flint.arb] = []
        for i, j, k in places.tolist():
            total = flint.arb(-int(tensor[i, j, k]))
            for r in range(rank):
                total += exact[0][i][r] * exact[1][j][r] * exact[2][k][r]
            left.append(total)
        step = _largest_row(inverse * flint.arb_mat(n, 1, left), n, 1)
        # an unknown that varies is a ball, one that doesn't the number that it is
        box = [[list(row) for row in f] for f in exact]
        column = dict(zip(varying.tolist(), range(n), strict=True))
        for number in column:
            mode = int(np.searchsorted(starts, number, side="right")) - 1
            i, r = divmod(number - int(starts[mode]), rank)
            box[mode][i][r] = flint.arb(float(factors[mode][i, r]), radius)
        entries = [flint.arb(0)] * (n * n)
        for row, place in enumerate(places.tolist()):
            for mode in range(3):
                a, b = (m for m in range(3) if m != mode)
                for r in range(rank):
                    at = column.get(int(starts[mode]) + place[mode] * rank + r)
                    if at is not None:
                        entries[row * n + at] = box[a][place[a]][r] * box[b][place[b]][r]
        identity = flint.arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
        shrinks = _largest_row(identity - inverse * flint.arb_mat(n, n, entries), n, n)
        return bool(step + shrinks * flint.arb(radius) < flint.arb(radius))
    finally:
        flint.ctx.prec = previous


def _jacobian(factors: tuple[Array, Array, Array], places: Indices, starts: Indices) -> Array:
    """Derivatives of the entries at some places with respect to all unknowns."""
    rank = factors[0].shape[1]
    J = np.zeros((len(places), int(starts[3])))
    rows, columns = np.arange(len(places))[:, None], np.arange(rank)[None]
    for mode in range(3):
        a, b = (m for m in range(3) if m != mode)
        at = starts[mode] + places[:, mode, None] * rank + columns
        J[rows, at] = factors[a][places[:, a]] * factors[b][places[:, b]]
    return J


def _largest_row(M: flint.arb_mat, height: int, width: int) -> flint.arb:
    """An upper bound of the largest sum of absolute values of a row."""
    best = flint.arb(0)
    for i in range(height):
        total = flint.arb(0)
        for j in range(width):
            total += abs(M[i, j])
        best = best.max(total)
    return best


def varying_unknowns(
    tensor: Indices,
    factors: tuple[Array, Array, Array],
    observed: NDArray[np.bool_] | None = None,
) -> Indices | None:
    """Choose the unknowns that vary: columns of the Jacobian, by QR with pivoting.

    None if there are fewer than equations, or they are nearly dependent, as for most sparse
    decompositions: their families meet others.
    """
    from scipy.linalg import qr

    seen = np.ones(tensor.shape[:2], bool) if observed is None else observed
    places = np.argwhere(np.broadcast_to(seen[:, :, None], tensor.shape))
    starts = np.cumsum([0, *(f.size for f in factors)])
    if not 0 < len(places) <= min(LARGEST, int(starts[3])):
        return None
    _, R, order = qr(_jacobian(factors, places, starts), mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    if diagonal[-1] < 1e-7 * diagonal[0]:
        return None
    return np.sort(order[: len(places)]).astype(np.int64)
