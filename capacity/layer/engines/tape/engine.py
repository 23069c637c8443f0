"""The tape engine: any decoder that a tape can record, on one thread of a CPU."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.layer.decoder.config import DecoderConfig
from capacity.layer.engines.tape import execute
from capacity.layer.engines.tape.recorded_run import RecordedRun
from capacity.layer.model.config import LayerConfig
from capacity.layer.model.forward import Weights
from capacity.layer.run.recipe import Recipe, Status, Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots

if TYPE_CHECKING:
    from capacity.layer.model.decoder import AnyLayer


def run(
    layer: AnyLayer,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    snapshots: Snapshots = NO_SNAPSHOTS,
    weights: NDArray[np.float64] | None = None,
) -> Training:
    """Train a layer or a decoder in place; `capacity.layer.train` checks the arguments."""
    from torch.autograd.graph import increment_version

    arrays = {name: p.detach().numpy() for name, p in layer.named_parameters()}
    frozen = {name for name, p in layer.named_parameters() if not p.requires_grad}
    training = run_weights(layer.config, arrays, db, recipe, rng, snapshots, frozen, weights)
    for name, p in layer.named_parameters():
        if name not in frozen:
            increment_version(p)
    return training


def run_weights(
    config: LayerConfig | DecoderConfig,
    weights: Weights,
    db: Database,
    recipe: Recipe,
    rng: np.random.Generator,
    snapshots: Snapshots = NO_SNAPSHOTS,
    frozen: Collection[str] = (),
    of_facts: NDArray[np.float64] | None = None,
) -> Training:
    """Train weights in place, without torch (`Engine.run_weights`)."""
    still = {*frozen, *filter(recipe.freezes, weights)}
    if isinstance(config, LayerConfig):
        names = config.names_in_decoder()
        still = {names[name] for name in still}
    config, weights = _as_decoder(config, weights)
    recorded = RecordedRun(config, weights, db, recipe, still, of_facts)
    end, epoch, loss, share = recorded.train(rng, snapshots)
    recorded.write_back(weights)
    status: Status = "completed"
    if end == execute.DIVERGED or not recorded.is_finite:
        status = "diverged"
        loss = math.nan if end == execute.DIVERGED else loss
    elif end == execute.MEMORISED:
        status = "memorised"
    return Training(status, epoch, loss, "tape", recorded.history(epoch, loss, share))


def logits_of_facts(
    config: LayerConfig | DecoderConfig, weights: Weights, db: Database
) -> NDArray[np.float64]:
    """Compute the logits after the pairs of facts, without torch (`Engine.logits_of_facts`)."""
    recorded = RecordedRun(*_as_decoder(config, weights), db, Recipe())
    return recorded.logits().astype(np.float64)


def _as_decoder(
    config: LayerConfig | DecoderConfig, weights: Weights
) -> tuple[DecoderConfig, Weights]:
    """A layer's configuration and weights, the same arrays, as a decoder has and names them."""
    if isinstance(config, DecoderConfig):
        return config, weights
    names = config.names_in_decoder()
    return config.as_decoder(), {names[name]: array for name, array in weights.items()}
