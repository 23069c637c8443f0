"""Laws of the size that layers hold, by each of their sizes: d_model, heads, and their dimensions.

A single number for a layer's capacity, as in `capacity.evaluator.laws.law`, fixes how its sizes
count against one another: in equation (9) of Wong 2025, heads count like dimensions of values. Here

    logit P(memorised) = intercept + sum_i weight_i log column_i - steepness log size,

so that half of the runs memorise where size = factor * prod_i column_i^exponent_i, with exponent_i
= weight_i / steepness. Intervals are over all that runs share
(`capacity.evaluator.laws.bootstrap`).

`held_size` predicts the size by such laws, of databases of one to four tables without further
structure. By reliability (``experiments/size/layers.py``): plain layers with d_model 2 to 8, 1 to
16 heads, and queries, keys and values of 1 to 4 dimensions, each trained once on each of 20
databases of a size. By reach (``experiments/starts/half_sizes.py``): d_model 3 to 8, queries and
keys of 2 dimensions, and up to eight starts on each of ten databases.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from capacity.checks import Seed, require_choice, shown
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.laws.bootstrap import (
    CLUSTERS,
    cluster_bootstrap,
    percentile_interval,
    simultaneous_intervals,
)
from capacity.evaluator.laws.law import (
    logs,
    maximum_likelihood,
    memorised_runs,
    require_both,
    require_columns,
)
from capacity.evaluator.laws.reach import By, ended_at_first, starts_of
from capacity.layer.model.config import LayerConfig
from capacity.layer.recall import Threshold

LAYER_SIZES = ("d_model", "n_heads", "d_head_vo", "d_head_qk")


@briefly_shown
@dataclass(frozen=True)
class SizeLaw:
    """Law of memorising with a weight for each of several columns.

    Attributes
    ----------
    size : str
        Column of the size of a database.
    columns : tuple of str
        Columns of the sizes of a layer.
    intercept, steepness : float
        Coefficients, for natural logarithms.
    weights : tuple of float
        Coefficient of each column's logarithm.
    """

    size: str
    columns: tuple[str, ...]
    intercept: float
    weights: tuple[float, ...]
    steepness: float

    @property
    def exponents(self) -> dict[str, float]:
        """Exponent of each column in the size at which half of the runs memorise."""
        return {
            column: weight / self.steepness
            for column, weight in zip(self.columns, self.weights, strict=True)
        }

    def size_at(self, values: Mapping[str, float], probability: float = 0.5) -> float:
        """Size at which runs of a layer, with a value for each column, memorise so often."""
        odds = math.log(probability / (1 - probability))
        score = self.intercept - odds
        for column, weight in zip(self.columns, self.weights, strict=True):
            if not (column in values and values[column] > 0):
                raise InvalidArgumentError(
                    f"`values` must have a positive number for {', '.join(self.columns)}; got "
                    f"{shown(dict(values))}."
                )
            score += weight * math.log(values[column])
        # an overflow to infinity means that every size is memorised
        with np.errstate(over="ignore"):
            return float(np.exp(score / self.steepness))

    def probability(self, table: pd.DataFrame) -> NDArray[np.float64]:
        """Probability that each run memorises, shape (n_runs,)."""
        score = self.intercept - self.steepness * logs(table, self.size)
        for column, weight in zip(self.columns, self.weights, strict=True):
            score = score + weight * logs(table, column)
        return 1 / (1 + np.exp(-np.clip(score, -700, 700)))

    def log_likelihood(
        self,
        table: pd.DataFrame,
        tau: Threshold = 0.95,
        *,
        share: float = 1.0,
        by: By = "reach",
    ) -> NDArray[np.float64]:
        """Log-likelihood of each run in nats, shape (n_runs,); of its starts for reliability."""
        p = np.clip(self.probability(table), 1e-12, 1 - 1e-12)
        tried, held = _counts(table, tau, share, by)
        return held * np.log(p) + (tried - held) * np.log(1 - p)


@briefly_shown
@dataclass(frozen=True)
class SizeLawEstimate:
    """A fitted law, and the laws of resamples.

    Attributes
    ----------
    law : SizeLaw
        Fitted to all runs.
    resampled : tuple of SizeLaw
        Fitted to resamples of what the runs share.
    """

    law: SizeLaw
    resampled: tuple[SizeLaw, ...]

    def exponent_intervals(self) -> dict[str, tuple[float, float]]:
        """Intervals of the exponents that contain all of them at once with 95 % confidence."""
        values = list(self.law.exponents.values())
        drawn = [list(law.exponents.values()) for law in self.resampled]
        ends = simultaneous_intervals(values, np.array(drawn).reshape(-1, len(values)))
        return dict(zip(self.law.columns, ends, strict=True))

    def size_interval(
        self, values: Mapping[str, float], probability: float = 0.5
    ) -> tuple[float, float]:
        """95 % interval of the law's size for a layer; its distance from the law isn't in it."""
        return percentile_interval([law.size_at(values, probability) for law in self.resampled])


def fit_size_law(
    table: pd.DataFrame,
    columns: Sequence[str] = LAYER_SIZES,
    tau: Threshold = 0.95,
    *,
    size: str = "n_triples",
    share: float = 1.0,
    by: By = "reach",
    clusters: Sequence[str] = CLUSTERS,
    n_resamples: int = 300,
    seed: Seed = 0,
) -> SizeLawEstimate:
    """Fit the law of several sizes by maximum likelihood, with resamples for intervals.

    Parameters
    ----------
    table : DataFrame
        Runs, with ``status``, the accuracy column of `tau`, the columns of sizes, and those of
        `clusters`.
    columns : sequence of str
        Columns of positive numbers, sizes of the layers.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold at which a fact counts as recalled.
    size : str
        Column of positive numbers, the size of the databases.
    share : float
        Share of the facts that a run must recall to memorise, above 0 and at most 1.
    by : {'reach', 'reliability'}
        What the law predicts: that some start of a run holds its database, or how many of its
        starts do. For runs of one start they are the same; pool seeds first (`pooled_starts`).
    clusters : sequence of str
        Columns whose values runs share; each is drawn independently.
    n_resamples : int
        Number of bootstrap resamples; 0 for none.
    seed : int or numpy.random.Generator
        Seed of the resamples.

    Returns
    -------
    SizeLawEstimate
        The law, and those of the resamples in which some runs memorise and some don't.

    Raises
    ------
    InvalidArgumentError
        If a column is missing or not positive, `tau`, `share` or `by` is out of range, all or none
        of the runs memorise, or `tau` isn't the threshold of runs with several starts; with
        'reliability' also if a share below 1 is asked for, or a run ended with the first start that
        holds, which biases its share of starts.

    Examples
    --------
    Layers that hold databases of fewer triples than the square of d_model, whatever their heads:

    >>> triples = np.tile(np.arange(1, 101), 20)
    >>> d_model = np.repeat(np.arange(1, 11), 200)
    >>> runs = pd.DataFrame({"n_triples": triples, "d_model": d_model, "status": "completed",
    ...     "n_heads": np.arange(2000) // 100 % 2 + 1, "database_id": triples,
    ...     "accuracy_p95": (triples < d_model**2).astype(float), "layer_id": d_model})
    >>> found = fit_size_law(runs, ["d_model", "n_heads"], n_resamples=20)
    >>> {name: round(abs(value), 1) for name, value in found.law.exponents.items()}
    {'d_model': 2.0, 'n_heads': 0.0}
    """
    require_columns(table, *clusters)
    tried, held = _counts(table, tau, share, by)
    require_both(held, tried, tau)
    y = held / tried
    design = np.stack(
        [np.ones(len(y)), -logs(table, size), *(logs(table, name) for name in columns)]
    )

    def fitted(start: Sequence[float], weights: NDArray[np.float64] | None) -> list[float]:
        return maximum_likelihood(design, y, start, tried if weights is None else tried * weights)

    def law(found: Sequence[float]) -> SizeLaw:
        return SizeLaw(size, tuple(columns), found[0], tuple(found[2:]), found[1])

    whole = fitted([0.0] * len(design), None)
    resampled = [
        law(fitted(whole, weights))
        for weights in (
            cluster_bootstrap(table[list(clusters)], n_resamples, seed) if n_resamples else ()
        )
        # a resample in which all or none memorise has no size at which half do
        if 0 < held @ weights < tried @ weights
    ]
    return SizeLawEstimate(law(whole), tuple(resampled))


def _counts(
    table: pd.DataFrame, tau: Threshold, share: float, by: By
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Trials and successes of each run: the run itself for its reach, or its starts."""
    require_choice("`by`", by, get_args(By))
    # refuses another threshold than that which the starts were chosen by
    tried, n_held = starts_of(table, tau)
    if by == "reach":
        held = memorised_runs(table, tau, share=share).astype(np.float64)
        return np.ones_like(held), held
    if share != 1:
        raise InvalidArgumentError(
            f"`share` must be 1 for the reliability, of starts that hold all facts; got {share}."
        )
    if ended_at_first(table).any():
        raise InvalidArgumentError(
            "Runs that ended with the first start that holds the database have no unbiased share "
            'of starts. Fit their reach, or train with until = "all".'
        )
    return tried.astype(np.float64), n_held.astype(np.float64)


RecipeName: TypeAlias = Literal["plain", "best"]


@briefly_shown
@dataclass(frozen=True)
class HeldSize:
    """The size of database that a layer is predicted to hold in half of the cases.

    Attributes
    ----------
    triples : float
        Predicted number of triples at which half of the databases are held at tau = 0.95, by one
        start or by at least one of eight.
    low, high : float
        Ends of an interval that had 95 % of the layers of the experiment, beside the law.
    outside : tuple of str
        Sizes of the layer, or ``triples``, that lie outside what the law was fitted to.
    """

    triples: float
    low: float
    high: float
    outside: tuple[str, ...]

    def __str__(self) -> str:
        """Return the number with its interval, and a warning if it is outside of the fit."""
        told = f"{self.triples:,.0f} triples [{self.low:,.0f}, {self.high:,.0f}]"
        return told + (f", beyond the fit in {', '.join(self.outside)}" if self.outside else "")


def held_size(
    layer: LayerConfig, recipe: RecipeName = "best", *, by: By = "reliability"
) -> HeldSize:
    """Predict how many triples a plain layer holds at tau = 0.95, for half of the databases.

    Parameters
    ----------
    layer : LayerConfig
        Sizes of a plain layer.
    recipe : {'best', 'plain'}
        ``best``: Adam with a learning rate of 0.03 that falls along half a cosine, and beta2 = 0.9;
        ``plain``: the defaults of `Recipe`. Both for 2,000 epochs.
    by : {'reliability', 'reach'}
        Held by one start, or by at least one of eight, which is known for the best recipe alone.

    Returns
    -------
    HeldSize
        The size with its interval, and in what the question is beyond the fit.

    Raises
    ------
    InvalidArgumentError
        For a layer that isn't plain, another recipe, or the reach of the plain one.

    Notes
    -----
    Databases with structure need less (`capacity.database.description_length`), so that a layer may
    hold more of their triples than this. The two laws are of different runs, and can't be compared
    layer by layer: where one start holds a database, at least one of eight does, too, but neither
    law was fitted with the other.

    Examples
    --------
    >>> found = held_size(LayerConfig(4, 4, 2, 2))
    >>> found.low < found.triples < found.high, found.outside
    (True, ())
    >>> held_size(LayerConfig(4, 4, 2, 2), by="reach").triples > found.triples
    True
    >>> held_size(LayerConfig(64, 4, 2, 2)).outside
    ('d_model', 'triples')
    """
    require_choice("`recipe`", recipe, get_args(RecipeName))
    if not layer.is_plain:
        raise InvalidArgumentError(
            "`layer` must be plain, without norm, bias and positions, as those that the law was "
            f"fitted to; got {layer.name}."
        )
    require_choice("`by`", by, get_args(By))
    if recipe not in _fitted()[by]:
        raise InvalidArgumentError(
            f"`recipe` must be {' or '.join(_fitted()[by])} by {by}, which was measured for no "
            f"other; got {recipe}. Take by='reliability'."
        )
    known = _fitted()[by][recipe]
    asked = {name: float(getattr(layer, name)) for name in known["ranges"] if name != "triples"}
    sizes = {name: asked[name] for name in known["columns"]}
    law = SizeLaw("n_triples", tuple(known["columns"]), known["intercept"],
                  tuple(known["weights"]), known["steepness"])  # fmt: skip
    triples = law.size_at(sizes)
    low, high = (triples * math.exp(error) for error in known["errors_in_nats"])
    asked["triples"] = triples
    outside = [
        name for name, (least, most) in known["ranges"].items() if not least <= asked[name] <= most
    ]
    return HeldSize(triples, low, high, tuple(outside))


@cache
def _fitted() -> dict[str, dict[str, dict[str, Any]]]:
    """Coefficients by prediction and recipe, which ``experiments.size.held_sizes`` writes."""
    return json.loads(files("capacity.evaluator.laws").joinpath("held_sizes.json").read_text())
