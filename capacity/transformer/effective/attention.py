"""Effective attention of every layer of a model (`capacity.transformer.effective.layer`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import torch

from capacity.checks import require_choice
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.effective.layer import EffectiveLayer, EffectiveMode, projected_layer
from capacity.transformer.effective.tokens import Tokens


@briefly_shown
@dataclass(frozen=True, eq=False)
class EffectiveAttention:
    """Effective attention of a model on some sentences.

    Attributes
    ----------
    layers : tuple of EffectiveLayer
        One for each layer, in the order of `ActivationCache.layers`.
    mode : {"plain", "simplex", "causal"}
        Mode that was used.
    """

    layers: tuple[EffectiveLayer, ...]
    mode: EffectiveMode


@torch.no_grad()
def effective_attention(
    captured: ActivationCache, mode: EffectiveMode | None = None
) -> EffectiveAttention:
    """Effective attention of every head of every layer.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.
    mode : {"plain", "simplex", "causal"}, optional
        ``plain`` projects rows onto the column space of V, ``simplex`` onto that of [V, 1], which
        keeps their sums, and ``causal`` each onto that of the values up to its own token. By
        default ``causal`` for a causal model, ``plain`` otherwise.

    Returns
    -------
    EffectiveAttention
        Projected patterns and ranks of values, layer by layer.

    Raises
    ------
    InvalidArgumentError
        If the mode is unknown, or ``causal`` for a model that isn't causal.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 1, 2, 2), d_vocab=10, seed=0)
    >>> captured = layer.capture(torch.tensor([[3, 7, 1, 4]]))
    >>> effective = effective_attention(captured)
    >>> effective.mode, effective.layers[0].rank.tolist()
    ('causal', [[2]])
    >>> kept = effective.layers[0].pattern @ captured.layers[0].v
    >>> torch.allclose(kept, captured.layers[0].z, atol=1e-6)
    True
    """
    chosen: EffectiveMode = mode or ("causal" if captured.causal else "plain")
    require_choice("`mode`", chosen, get_args(EffectiveMode))
    if chosen == "causal" and not captured.causal:
        raise InvalidArgumentError(
            f"Causal mode needs a causal model; {captured.source} attends to later tokens as well. "
            "Use mode='plain' or 'simplex'."
        )
    tokens = Tokens(captured.mask, captured.key_mask)
    layers = tuple(
        projected_layer(
            layer.pattern, layer.v, layer.z, tokens, chosen, seen=layer.seen, sink=layer.sink
        )
        for layer in captured.layers
    )
    return EffectiveAttention(layers, chosen)
