"""Weights of facts in the loss: how often each occurs. No torch in here.

A language model meets some facts often and most of them rarely. With a weight for each fact the
loss is the weighted mean of the cross entropies of the sentences. If a pair (subject, predicate)
has several objects, whose weights are proportional to their probabilities p, the loss of the pair
is its weight times KL(p || q) plus a constant, for the predicted probabilities q: its minimum is
q = p.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError

MAX_ZIPF = 10


def zipf_weights(n_facts: int, exponent: float) -> NDArray[np.float64]:
    """Return weights of facts by Zipf's law: r^-exponent for the r-th most frequent of them.

    Parameters
    ----------
    n_facts : int
        Number of facts.
    exponent : float
        0: all weights are equal; 1: Zipf's law.

    Returns
    -------
    ndarray of float64, shape (n_facts,)
        Weights of mean 1, in the order of `Database.tuples`. Which fact is how frequent is drawn by
        seed 0, so that it is the same for every layer, start and exponent.

    Raises
    ------
    InvalidArgumentError
        If `n_facts` isn't a positive integer, or the exponent isn't from 0 to `MAX_ZIPF`.

    Examples
    --------
    >>> weights = zipf_weights(4, 1.0)
    >>> (np.sort(weights)[::-1] / weights.max()).round(2)
    array([1.  , 0.5 , 0.33, 0.25])
    """
    n_facts = require_integer("n_facts", n_facts)
    if not isinstance(exponent, int | float) or not 0 <= exponent <= MAX_ZIPF:
        raise InvalidArgumentError(
            f"`exponent` must be a number from 0 to {MAX_ZIPF}; got {shown(exponent)}."
        )
    ranks = np.random.default_rng(0).permutation(n_facts) + 1.0
    weights = ranks**-exponent
    return weights / weights.mean()


def require_fact_weights(weights: ArrayLike, n_facts: int) -> NDArray[np.float64]:
    """Return weights as an array of mean 1.

    Parameters
    ----------
    weights : array_like of float, shape (n_facts,)
        Positive weights.
    n_facts : int
        Number of facts.

    Raises
    ------
    InvalidArgumentError
        For another number of weights, or one that isn't a positive, finite number.
    """
    must = f"`weights` must be positive, finite numbers, one for each of the {n_facts} facts"
    try:
        given = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise InvalidArgumentError(f"{must}; got {shown(weights)}.") from None
    if given.shape != (n_facts,):
        raise InvalidArgumentError(
            f"{must}, in the order of db.tuples; got an array of the shape {given.shape}."
        )
    if not (np.isfinite(given) & (given > 0)).all():
        bad = given[~(np.isfinite(given) & (given > 0))][0]
        raise InvalidArgumentError(f"{must}; got {bad}. Omit facts without weight from `db`.")
    # the largest first, so that no sum overflows
    given = given / given.max()
    return given / given.mean()
