"""Means over groups of texts, or over groups and layers, with intervals by resampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.evaluator import cluster_bootstrap, percentile_interval, simultaneous_intervals

Found = dict[str, Any]
RESAMPLES = 2000
Draws = NDArray[np.float64]


def together(wide: Any) -> Found:
    """Means of columns over rows, groups of texts, and intervals that hold all at once."""
    x = wide.to_numpy(np.float64)
    weights = np.stack(list(cluster_bootstrap(wide.index, RESAMPLES)))
    draws = weights @ x / weights.sum(1, keepdims=True)
    return nested(wide.columns, x.mean(0), simultaneous_intervals(x.mean(0), draws))


def nested(columns: pd.Index[Any], means: Draws, intervals: list[tuple[float, float]]) -> Found:
    """A dictionary for each level of the columns."""
    found: Found = {}
    for column, mean, interval in zip(columns, means, intervals, strict=True):
        *outer, last = map(str, column if isinstance(column, tuple) else (column,))
        place = found
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = {"mean": mean, "interval": interval}
    return found


def over_layers(wide: pd.DataFrame, of: Callable[[Draws, Draws], Draws], together: bool) -> Found:
    """Apply `of` to columns and weights; rows are drawn by groups and by layers."""
    keys, x = wide.index.to_frame(index=False), wide.to_numpy(np.float64)
    weights = np.stack(list(cluster_bootstrap(keys[["group", "layer"]], RESAMPLES)))
    draws = of(x, weights)
    # a draw may leave out all layers of a half
    draws = draws[np.isfinite(draws).all(1)]
    value = of(x, np.ones((1, len(x))))[0]
    intervals = (
        simultaneous_intervals(value, draws)
        if together
        else [percentile_interval(draw) for draw in draws.T]
    )
    return nested(wide.columns, value, intervals)


def weighted_mean(x: Draws, weights: Draws) -> Draws:
    """Means of the columns of x, by each row of weights."""
    return weights @ x / weights.sum(1, keepdims=True)
