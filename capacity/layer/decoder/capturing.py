"""Activations of a decoder, in the records that `capacity.transformer` analyses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from capacity.layer.decoder.config import Place
from capacity.layer.decoder.parts.attention import heads_of
from capacity.layer.decoder.parts.norm import EPSILON
from capacity.layer.decoder.structure import followed, weights_at
from capacity.transformer.activations.records.cache import (
    ActivationCache,
    LayerActivations,
    Normed,
    Step,
    Written,
    written_by_heads,
)
from capacity.transformer.activations.records.validation import (
    check_written,
    checked_tokens,
    require_affordable_attention,
)

if TYPE_CHECKING:
    from capacity.layer.decoder.decoder import Decoder


@torch.no_grad()
def captured_decoder(decoder: Decoder, tokens: Tensor, mask: Tensor | None) -> ActivationCache:
    """Run sentences through a decoder and keep its activations; see `Decoder.capture`."""
    config = decoder.config
    real = checked_tokens(
        tokens,
        mask,
        d_vocab=decoder.d_vocab,
        n_positions=config.n_positions or None,
        padding_after=True,
    )
    require_affordable_attention(tokens, config.n_layers, config.n_heads)
    weights = {name: p.detach().clone() for name, p in decoder.named_parameters()}
    layers: list[LayerActivations] = []
    steps: list[Step] = []
    streams: list[Tensor] = []

    def act(place: Place, x: Any) -> Any:
        w, name = weights_at(place, weights), place.part.name
        if name == "unembedding":
            return x
        y = place.part.forward(config, w, x)
        if name == "embedding":
            streams.append(y)
        elif name == "norm":
            if place.role == "replace":
                steps.append(_normed(_layer_of(place, config.n_layers), w, x))
        elif name == "attention":
            q, k, v, pattern, z = heads_of(config, w, x)
            b_V, b_O = (w["b_V"][:, 0], w["b_O"]) if config.bias else (None, None)
            heads = LayerActivations(pattern, q, k, v, z, w["W_O"], b_V, b_O,
                                     config.attention_scale).without_padding(real)  # fmt: skip
            layers.append(heads)
            steps.append(written_by_heads(_layer_of(place, config.n_layers), heads))
        else:
            kind = "feed_forward" if name == "mlp" else "mixers"
            steps.append(Written(_layer_of(place, config.n_layers), kind, y, w.get("b_out"), x))
        return y

    followed(config, tokens, act, torch.add)
    cache = ActivationCache(tuple(layers), real, True, streams[0], tuple(steps), "Decoder")
    return check_written(cache)


def _layer_of(place: Place, n_layers: int) -> int:
    """Index of a part's layer; that of the last for what follows all of them."""
    steps = place.prefix.split(".")
    return int(steps[1]) if steps[0] == "layers" else n_layers - 1


def _normed(layer: int, weights: dict[str, Tensor], x: Tensor) -> Normed:
    """Step of a norm on the residual stream."""
    bias = weights.get("bias")
    mean = None if bias is None else x.mean(dim=-1, keepdim=True)
    centred = x if mean is None else x - mean
    scale = (centred.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt()
    return Normed(layer, mean, scale, weights["weight"], bias)
