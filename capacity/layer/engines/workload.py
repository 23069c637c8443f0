"""`Workload`, the description of a training, and `StepCost`, its seconds. No torch in here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from capacity.display import briefly_shown
from capacity.layer.model.config import LayerConfig
from capacity.layer.run.recipe import Recipe


@briefly_shown
@dataclass(frozen=True)
class Workload:
    """Description of a training, by which engines tell if they can do it, and for how long.

    Attributes
    ----------
    layer : LayerConfig
        Sizes and options of the layer.
    recipe : Recipe
        Hyperparameters.
    n_triples, n_tokens : int
        Numbers of facts and of tokens in the database.
    dtype : {'float32', 'float64'}
        Type of the weights.
    device : str
        Type of the device, such as 'cpu'.
    has_frozen_weights : bool
        True if some of the layer's weights aren't to be trained, beside those that the recipe
        freezes.
    """

    layer: LayerConfig
    recipe: Recipe
    n_triples: int
    n_tokens: int
    dtype: str = "float32"
    device: str = "cpu"
    has_frozen_weights: bool = False

    @property
    def trains_all(self) -> bool:
        """True if all weights are trained: neither layer nor recipe freezes any."""
        return not (self.has_frozen_weights or self.recipe.frozen)

    @property
    def n_logits(self) -> int:
        """Number of logits at the facts: facts times tokens."""
        return self.n_triples * self.n_tokens

    @property
    def n_steps(self) -> int:
        """Number of optimizer steps in an epoch."""
        size = self.recipe.facts_a_step(self.n_triples)
        return math.ceil(self.n_triples / size) if size else 1


@briefly_shown
@dataclass(frozen=True)
class StepCost:
    """Linear model of the seconds that one run takes; an `Engine.cost`.

    Parameters
    ----------
    run, look : float
        Seconds for a run, and in a run for each logit of the final loss.
    step, token : float
        Seconds for an optimizer step, and in a step for each token, times n_heads + 1.
    head : float
        Seconds for each fact and head in an epoch.
    logit, product : float
        Seconds for each logit in an epoch, and for each logit and dimension of the model.
    weight, projection : float
        Seconds for each weight of the heads (`LayerConfig.n_parameters`), in an optimizer step, and
        in an epoch for each fact.
    double : float
        Factor on the time of an epoch in float64.

    Examples
    --------
    >>> work = Workload(LayerConfig(2, 1, 1, 1), Recipe(epochs=10), n_triples=5, n_tokens=8)
    >>> round(StepCost(run=1.0, step=0.1, logit=0.01, product=0.001)(work), 3)
    6.8
    """

    run: float
    step: float
    logit: float
    product: float
    token: float = 0.0
    head: float = 0.0
    look: float = 0.0
    weight: float = 0.0
    projection: float = 0.0
    double: float = 1.0

    def __call__(self, work: Workload) -> float:
        """Return the seconds of a run that goes through all its epochs."""
        layer, n_weights = work.layer, work.layer.n_parameters
        step = self.step + self.token * work.n_tokens * (layer.n_heads + 1)
        epoch = (
            work.n_steps * (step + self.weight * n_weights)
            + work.n_triples * (self.head * layer.n_heads + self.projection * n_weights)
            + work.n_logits * (self.logit + self.product * layer.d_model)
        )
        if work.dtype == "float64":
            epoch *= self.double
        return self.run + self.look * work.n_logits + work.recipe.epochs * epoch


def why_not_plain(work: Workload) -> str | None:
    """Reason why a workload isn't that of a plain layer, or None."""
    return None if work.layer.is_plain else "it supports no norm, biases or positions"


def why_not_whole(work: Workload) -> str | None:
    """Reason why a workload isn't that of a plain layer with all weights trained, or None."""
    if not work.trains_all:
        return "it trains all weights, and some are frozen"
    return why_not_plain(work)
