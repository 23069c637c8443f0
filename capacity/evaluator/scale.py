"""Margins of a layer's logits, and the smallest scale of the logits at which it memorises.

A layer's tau-memorising depends on the scale of its logits: multiplying W_U by c > 1 changes no
rank and no argmax, and raises the probability of every object that is the strict maximum. Two
numbers separate the scale from the order of the logits:

* the *margin* of a fact, z_v less the largest other logit, is positive if and only if v is the
  unique argmax;
* the *smallest scale* of a layer at tau is the least c at which softmax(c z) has for every object a
  probability of at least tau. It is finite if and only if all margins are positive. If it is at
  most 1, the layer tau-memorises as it is; its logarithm measures how far the scale alone falls
  short, or exceeds. Logits k times as large have margins k times as large and a smallest scale k
  times smaller.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidArgumentError
from capacity.layer.recall import check_tau

# Newton's method takes about ten
MAX_STEPS = 200


def margins(logits: NDArray[np.floating], targets: NDArray[np.integer]) -> NDArray[np.float64]:
    """Subtract the largest other logit from that of the right candidate, for each fact.

    Parameters
    ----------
    logits : ndarray, shape (n_facts, n_candidates)
        Logits of the candidates for each fact.
    targets : integer ndarray, shape (n_facts,)
        Index of the right candidate.

    Returns
    -------
    ndarray, shape (n_facts,)
        Margins in nats; NaN where logits aren't finite, infinite if there is no other candidate.

    Examples
    --------
    >>> margins(np.array([[0.0, 5.0], [1.0, 1.0]]), np.array([1, 0]))
    array([5., 0.])
    """
    z, rows = np.asarray(logits, dtype=np.float64), np.arange(len(targets))
    others = z.copy()
    others[rows, targets] = -np.inf
    found: NDArray[np.float64] = z[rows, targets] - others.max(axis=1, initial=-np.inf)
    found[~np.isfinite(z).all(axis=1)] = np.nan
    return found


def smallest_scale(logits: NDArray[np.floating], targets: NDArray[np.integer], tau: float) -> float:
    """Find the least c at which all right candidates have probability >= tau in softmax(c z).

    Parameters
    ----------
    logits : ndarray, shape (n_facts, n_candidates)
        Logits z of the candidates for each fact.
    targets : integer ndarray, shape (n_facts,)
        Index of the right candidate.
    tau : float
        Threshold on the probability, strictly between 0.5 and 1.

    Returns
    -------
    float
        Infinite unless every right candidate is the strict maximum; NaN if logits aren't finite.

    Raises
    ------
    InvalidArgumentError
        If tau is out of range, or there is no fact.

    Notes
    -----
    For each fact the equation is f(c) = log sum_w exp(-c (z_v - z_w)) - log((1 - tau) / tau) = 0,
    with the sum over the other candidates. f is convex and decreasing. At the start the term of the
    best rival alone is (1 - tau) / tau, so f >= 0, and Newton's steps ascend to the root without
    passing it.

    Examples
    --------
    A single rival, ln 3 below, has a third of the probability at c = 1:

    >>> round(smallest_scale(np.array([[np.log(3), 0.0]]), np.array([0]), 0.75), 12)
    1.0
    """
    check_tau(tau)
    if not len(targets):
        raise InvalidArgumentError("There must be a fact to scale for; got none.")
    z = np.asarray(logits, dtype=np.float64)
    least = margins(z, targets)
    # min propagates NaN
    if not least.min() > 0:
        return math.nan if np.isnan(least).any() else math.inf
    n_rivals = z.shape[1] - 1
    if not n_rivals:
        return 0.0
    odds = math.log(tau / (1 - tau))
    scale = odds / least
    # a root is at most that with all rivals as near as the nearest: most can't be the largest
    may = (odds + math.log(n_rivals)) / least >= scale.max()
    gaps, scale = _gaps(z[may], targets[may]), scale[may]
    for _ in range(MAX_STEPS):
        weights = np.exp(-scale[:, None] * gaps)
        total = weights.sum(axis=1)
        step = (np.log(total) + odds) * total / (gaps * weights).sum(axis=1)
        scale += step
        if (step <= 1e-14 * scale).all():
            break
    return float(scale.max())


def _gaps(z: NDArray[np.float64], targets: NDArray[np.integer]) -> NDArray[np.float64]:
    """z_v - z_w for all other candidates w, shape (n_facts, n_candidates - 1)."""
    n, candidates = z.shape
    others = np.arange(candidates) != targets[:, None]
    return z[np.arange(n), targets][:, None] - z[others].reshape(n, candidates - 1)
