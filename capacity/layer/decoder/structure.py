"""The parts of a decoder one after the other: its definition by torch, and its initial weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from capacity.layer.decoder.config import DecoderConfig, Place, places_of

if TYPE_CHECKING:
    from torch import Tensor

_Stream = TypeVar("_Stream")


def followed(
    config: DecoderConfig,
    start: Any,
    act: Callable[[Place, Any], _Stream],
    add: Callable[[_Stream, _Stream], _Stream],
) -> _Stream:
    """Apply the parts of a decoder one after the other, to tensors or to buffers of a tape."""
    stream, inner = start, None
    for place in places_of(config):
        if place.role == "begin":
            inner = act(place, stream)
        elif place.role == "add":
            stream = add(stream, act(place, stream if inner is None else inner))
            inner = None
        else:
            stream = act(place, stream)
    return stream


def logits_of(config: DecoderConfig, weights: Mapping[str, Tensor], tokens: Tensor) -> Tensor:
    """Compute the logits of the next token after each position, by torch: the definition.

    Parameters
    ----------
    config : DecoderConfig
        Sizes and options.
    weights : mapping of str to tensor
        Tensors with the names and shapes of ``config.shapes(d_vocab)``.
    tokens : int64 tensor, shape (batch, n)
        Sentences.

    Returns
    -------
    tensor, shape (batch, n, d_vocab)
    """

    def act(place: Place, x: Tensor) -> Tensor:
        return place.part.forward(config, weights_at(place, weights), x)

    return followed(config, tokens, act, lambda x, y: x + y)


def weights_at(place: Place, weights: Mapping[str, Any]) -> dict[str, Any]:
    """Weights of one part, by its own names; W_E too, for an unembedding that is tied."""
    n = len(place.prefix)
    return {name[n:]: w for name, w in weights.items() if name.startswith(place.prefix)}


def initial_weights_of_parts(
    config: DecoderConfig, d_vocab: int, rng: np.random.Generator
) -> dict[str, NDArray[np.float64]]:
    """Draw the initial weights of each part, in their order (`initial_weights`)."""
    weights: dict[str, NDArray[np.float64]] = {}
    for place in places_of(config):
        for name, shape in place.part.shapes(config, d_vocab).items():
            fan_in = place.part.fan_in(config, name)
            if fan_in is None:
                drawn = np.full(shape, float(name == "weight"))
            elif fan_in == 0:
                drawn = rng.standard_normal(shape)
            else:
                drawn = rng.uniform(-1, 1, shape) / np.sqrt(fan_in)
            weights[place.prefix + name] = drawn
    return weights
