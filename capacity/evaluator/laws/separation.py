"""The area under the ROC curve: how well a score tells two groups apart, at all thresholds at once.

A share of hits at one threshold says nothing without the share of false alarms: a layer that always
says "unknown" finds every unknown pair. The area counts both, and is 1/2 for any constant.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from capacity.errors import InvalidArgumentError


def auroc(positive: ArrayLike, negative: ArrayLike) -> float:
    """Compute the area under the ROC curve of a score.

    It is the probability that the score of a positive drawn at random exceeds that of a negative,
    ties counted half: the statistic U of Mann and Whitney over the number of pairs.

    Parameters
    ----------
    positive, negative : array_like, shapes (n,) and (m,)
        Scores of both groups.

    Returns
    -------
    float
        From 0 to 1, and 1/2 for a constant score; NaN if a group is empty or a score is NaN.

    Raises
    ------
    InvalidArgumentError
        For scores of another shape.

    Examples
    --------
    >>> auroc([0.9, 0.8], [0.1, 0.8]), auroc([1, 1], [1, 1, 1])
    (0.875, 0.5)
    """
    from scipy.stats import mannwhitneyu

    scores = [np.asarray(group, dtype=np.float64) for group in (positive, negative)]
    for name, group in zip(("positive", "negative"), scores, strict=True):
        if group.ndim != 1:
            raise InvalidArgumentError(
                f"`{name}` must be scores in a row, shape (n,); got the shape {group.shape}. "
                "Flatten it with .ravel()."
            )
    if not all(len(group) for group in scores) or any(np.isnan(group).any() for group in scores):
        return math.nan
    above, below = scores
    found = mannwhitneyu(above, below, method="asymptotic")
    return float(found.statistic) / (len(above) * len(below))
