"""Activations of an `AttentionLayer`, in the form of `capacity.transformer.capture`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from capacity.transformer.activations.records.cache import (
    ActivationCache,
    Step,
    normed,
    written_by_heads,
)
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.validation import (
    check_written,
    checked_tokens,
    require_affordable_attention,
)

if TYPE_CHECKING:
    from capacity.layer.model.attention_layer import AttentionLayer


@torch.no_grad()
def captured_activations(
    layer: AttentionLayer, tokens: Tensor, mask: Tensor | None
) -> ActivationCache:
    """Run sentences through a layer and keep its activations; see `AttentionLayer.capture`."""
    config = layer.config
    real = checked_tokens(
        tokens,
        mask,
        d_vocab=layer.d_vocab,
        n_positions=config.n_positions or None,
        padding_after=True,
    )
    require_affordable_attention(tokens, 1, config.n_heads)
    start = layer.embed(tokens)
    x = layer.norm_in(start) if config.layer_norm else start
    q, k = layer.queries_and_keys(x)
    v = layer.values(x)
    pattern = layer.attention(x)
    b_V, b_O = (layer.b_V[:, 0].clone(), layer.b_O.clone()) if config.bias else (None, None)
    heads = LayerActivations(pattern, q, k, v, pattern @ v, layer.W_O.clone(), b_V, b_O,
                          config.attention_scale).without_padding(real)  # fmt: skip
    wrote = written_by_heads(0, heads)
    steps: list[Step] = [wrote]
    if config.layer_norm:
        steps.append(normed(0, layer.norm_out, wrote.applied_to(start)))
    return check_written(
        ActivationCache((heads,), real, True, start, tuple(steps), type(layer).__name__)
    )
