"""Embeddings of tokens and of positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capacity.errors import InvalidArgumentError
from capacity.layer.decoder.parts.part import Part, Shapes

if TYPE_CHECKING:
    from torch import Tensor

    from capacity.layer.decoder.config import DecoderConfig
    from capacity.layer.engines.tape.tape import Buffer, Tape


def _shapes(config: DecoderConfig, d_vocab: int) -> Shapes:
    shapes: Shapes = {"W_E": (d_vocab, config.d_model)}
    if config.positions == "learned":
        shapes["W_pos"] = (config.n_positions, config.d_model)
    return shapes


def _forward(config: DecoderConfig, weights: Mapping[str, Tensor], tokens: Tensor) -> Tensor:
    x, n = weights["W_E"][tokens], tokens.shape[-1]
    if config.positions != "learned":
        return x
    if n > config.n_positions:
        raise InvalidArgumentError(
            f"A sentence must have at most n_positions = {config.n_positions} tokens; got {n}."
        )
    return x + weights["W_pos"][:n]


def _record(config: DecoderConfig, tape: Tape, _tokens: None) -> Buffer:
    x = tape.embed(tape["W_E"], "token")
    if config.positions == "learned":
        x = tape.add(x, tape.embed(tape["W_pos"], "position"))
    return x


EMBEDDING = Part(
    "embedding",
    _shapes,
    _forward,
    _record,
    # positions begin as zeros
    lambda _config, name: 0 if name == "W_E" else None,
    "embeddings",
)
