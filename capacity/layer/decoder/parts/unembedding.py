"""Logits of the next token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capacity.layer.decoder.parts.part import Part, Shapes

if TYPE_CHECKING:
    from torch import Tensor

    from capacity.layer.decoder.config import DecoderConfig
    from capacity.layer.engines.tape.tape import Buffer, Tape


def _shapes(config: DecoderConfig, d_vocab: int) -> Shapes:
    shapes: Shapes = {} if config.tie_embeddings else {"W_U": (config.d_model, d_vocab)}
    return shapes | ({"b_U": (d_vocab,)} if config.bias else {})


def _forward(config: DecoderConfig, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    logits = x @ (weights["W_E"].T if config.tie_embeddings else weights["W_U"])
    return logits + weights["b_U"] if config.bias else logits


def _record(config: DecoderConfig, tape: Tape, x: Buffer) -> Buffer:
    weight = tape["W_E"] if config.tie_embeddings else tape["W_U"]
    n_tokens, d = weight.shape if config.tie_embeddings else weight.shape[::-1]
    logits = tape.logits(x, weight, n_tokens, (1, d) if config.tie_embeddings else (n_tokens, 1))
    if config.bias:
        tape.add_bias(logits, tape["b_U"])
    return logits


UNEMBEDDING = Part(
    "unembedding",
    _shapes,
    _forward,
    _record,
    lambda config, name: config.d_model if name == "W_U" else None,
    "embeddings",
)
