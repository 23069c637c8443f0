"""Layers that are to be stored in a format: rounded, balanced, and the best of several."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch

from capacity import Database
from capacity.errors import InvalidArgumentError
from capacity.evaluator import pair_logits
from capacity.layer import AttentionLayer, NumberFormat, round_weights

FACTS_AT_ONCE = 512


def rounded(layer: AttentionLayer, format: NumberFormat) -> AttentionLayer | None:
    """The layer in a format; None if a weight is too large for it."""
    try:
        return round_weights(layer, format)
    except InvalidArgumentError:
        return None


def best(
    layers: Sequence[AttentionLayer], format: NumberFormat, db: Database
) -> AttentionLayer | None:
    """That of some layers with the largest least probability, in the format and in float64."""
    stored = [rounded(layer, format) for layer in layers]
    return max(
        (layer for layer in stored if layer is not None),
        key=lambda layer: _least_log_probability(layer, db),
        default=None,
    )


def _least_log_probability(layer: AttentionLayer, db: Database) -> float:
    least = math.inf
    for start in range(0, db.n_triples, FACTS_AT_ONCE):
        facts = db.token_triples[start : start + FACTS_AT_ONCE]
        log_p = torch.from_numpy(pair_logits(layer, facts[:, :2])).log_softmax(-1).numpy()
        least = min(least, float(log_p[np.arange(len(facts)), facts[:, 2]].min()))
    return least


def balanced(layer: AttentionLayer) -> AttentionLayer:
    """The same function of weights of like sizes.

    The residual stream in other units, and the inner dimensions of heads too: all factors are
    powers of two, so that no weight is rounded.
    """
    w = {name: p.detach().double().clone() for name, p in layer.named_parameters()}
    into = torch.maximum(w["W_E"].abs().amax(0), w["W_O"].abs().amax((0, 1)))
    by = _factor(into, w["W_U"].abs().amax(1))
    for name in ("W_E", "W_O"):
        w[name] *= by
    w["W_K"] /= by
    for name in ("W_U", "W_Q", "W_V"):
        w[name] /= by[:, None]
    for left, right in (("W_Q", "W_K"), ("W_V", "W_O")):
        by = _factor(w[left].abs().amax(1), w[right].abs().amax(2))
        w[left] *= by[:, None]
        w[right] /= by[:, :, None]
    return AttentionLayer.of_weights(layer.config, w)


def _factor(small: torch.Tensor, large: torch.Tensor) -> torch.Tensor:
    """The power of two nearest to what makes two sizes equal; 1 where one of them is zero."""
    used = (small > 0) & (large > 0)
    ratio = torch.where(used, large, 1.0) / torch.where(used, small, 1.0)
    return torch.exp2(torch.round(torch.log2(ratio) / 2))
