"""How far a layer is from memorising, whatever the scale of its logits.

Whether a layer tau-memorises depends on the scale of its logits: multiplying W_U by c > 1 changes
no rank and no argmax, and raises the probability of every object that is the strict maximum. Two
numbers take the scale apart from the order of the logits:

* the *margin* of a fact, z_v less the largest other logit, is positive just where argmax is right;
* the *smallest scale* of a layer at tau is the least c at which softmax(c z) gives every object
  probability tau. It is finite just where argmax is right for all facts, whatever the scale. At 1
  or below, the layer tau-memorises as it is; its logarithm says by how much the scale alone falls
  short, or exceeds. Logits k times as large have k times the margins, and a k-th of the scale.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidArgumentError
from capacity.evaluator.accuracy import check_tau

# of Newton's method, which takes about ten
MAX_STEPS = 200


def margins(logits: NDArray[np.floating], targets: NDArray[np.integer]) -> NDArray[np.float64]:
    """How far the right candidate's logit is above the best other one.

    Parameters
    ----------
    logits : ndarray, shape (n_facts, n_candidates)
    targets : integer ndarray, shape (n_facts,)

    Returns
    -------
    ndarray, shape (n_facts,)
        In nats; NaN where logits aren't finite, infinite if there is no other candidate.

    Examples
    --------
    >>> margins(np.array([[0.0, 5.0], [1.0, 1.0]]), np.array([1, 0]))
    array([5., 0.])
    """
    return _gaps(logits, targets).min(axis=1, initial=np.inf)


def smallest_scale(logits: NDArray[np.floating], targets: NDArray[np.integer], tau: float) -> float:
    """The least c at which softmax(c z) gives every right candidate probability tau or more.

    Parameters
    ----------
    logits : ndarray, shape (n_facts, n_candidates)
    targets : integer ndarray, shape (n_facts,)
    tau : float
        Strictly between 0.5 and 1.

    Returns
    -------
    float
        Infinite unless every right candidate is the strict maximum; NaN if logits aren't finite.

    Raises
    ------
    ValueError
        If tau is out of range, or there is no fact.

    Notes
    -----
    For each fact the equation is f(c) = log sum_w exp(-c (z_v - z_w)) - log((1 - tau) / tau) = 0,
    the sum over the other candidates. f is convex and falls from a start at which the best rival
    alone is too much, so Newton's steps go up to the root and never past it.

    Examples
    --------
    One rival, ln 3 below, has a third of the probability at c = 1:

    >>> round(smallest_scale(np.array([[np.log(3), 0.0]]), np.array([0]), 0.75), 12)
    1.0
    """
    check_tau(tau)
    if not len(targets):
        raise InvalidArgumentError("There must be a fact to scale for; there is none.")
    gaps = _gaps(logits, targets)
    # min hands NaN on
    least = gaps.min(axis=1, initial=np.inf)
    if not least.min() > 0:
        return math.nan if np.isnan(least).any() else math.inf
    if not gaps.shape[1]:
        return 0.0
    odds = math.log(tau / (1 - tau))
    scale = odds / least
    for _ in range(MAX_STEPS):
        weights = np.exp(-scale[:, None] * gaps)
        total = weights.sum(axis=1)
        step = (np.log(total) + odds) * total / (gaps * weights).sum(axis=1)
        scale += step
        if (step <= 1e-14 * scale).all():
            break
    return float(scale.max())


def _gaps(logits: NDArray[np.floating], targets: NDArray[np.integer]) -> NDArray[np.float64]:
    """z_v - z_w for all other candidates w, shape (n_facts, n_candidates - 1)."""
    z = np.asarray(logits, dtype=np.float64)
    n, candidates = z.shape
    others = np.arange(candidates) != targets[:, None]
    gaps = z[np.arange(n), targets][:, None] - z[others].reshape(n, candidates - 1)
    gaps[~np.isfinite(z).all(axis=1)] = np.nan
    return gaps
