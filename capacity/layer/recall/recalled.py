"""Facts that logits recall, one by one and by threshold (`capacity.evaluator.accuracy`)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from capacity.layer.recall.threshold import Threshold


def recalled(
    z: NDArray[np.float64], targets: NDArray[np.integer], taus: Iterable[float]
) -> dict[Threshold, NDArray[np.bool_]]:
    """Tell for each threshold which facts pass it: one definition for shares and for tables.

    Parameters
    ----------
    z : ndarray of float64, shape (n_facts, n_candidates)
        Finite logits of the candidates for each fact.
    targets : integer ndarray, shape (n_facts,)
        Index of the right candidate.
    taus : iterable of float
        Thresholds on the probability, strictly between 0.5 and 1.

    Returns
    -------
    dict of Threshold to boolean ndarray, shape (n_facts,)
        For 'argmax', 'argmax_paper', 0.5 (a probability above one half) and each tau.

    Examples
    --------
    >>> right = recalled(np.array([[0.0, 5.0], [1.0, 1.0]]), np.array([1, 0]), [0.95])
    >>> {tau: facts.tolist() for tau, facts in right.items()}
    {'argmax': [True, False], 'argmax_paper': [True, True], 0.5: [True, False], 0.95: [True, False]}
    """
    rows = np.arange(len(targets))
    mine, others = z[rows, targets], z.copy()
    others[rows, targets] = -np.inf
    rival = others.max(axis=1, initial=-np.inf)
    log_p = log_probabilities(z)[rows, targets]
    return {
        "argmax": mine > rival,
        "argmax_paper": mine >= rival,
        0.5: log_p > math.log(0.5),
        **{tau: log_p >= math.log(tau) for tau in taus},
    }


def log_probabilities(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Subtract the log-sum-exp of each row of finite logits.

    Examples
    --------
    >>> log_probabilities(np.zeros((1, 2))).round(3)
    array([[-0.693, -0.693]])
    """
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
