"""The parts of a decoder in their order: a list, which the definition and the tape both follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

import capacity.layer.decoder.parts  # noqa: F401  (registers them)
from capacity.layer.decoder.config import DecoderConfig
from capacity.layer.decoder.parts.part import Part, part_named

if TYPE_CHECKING:
    from torch import Tensor

# what becomes of a part's result: it replaces the stream, or is added to that of `begin`
Role: TypeAlias = Literal["replace", "begin", "add"]


class Place(NamedTuple):
    """A part in its place: the names of its weights begin with `prefix`."""

    prefix: str
    part: Part
    role: Role


@lru_cache(maxsize=1024)
def structure(config: DecoderConfig) -> tuple[Place, ...]:
    """List the parts of a decoder in the order in which they act.

    Examples
    --------
    >>> [place.prefix + place.part.name for place in structure(DecoderConfig(2, norm="rms"))]
    ['embedding', 'layers.0.attention.norm.norm', 'layers.0.attention.attention', 'norm.norm',
    'unembedding']
    """
    return tuple(_structure(config))


def _structure(config: DecoderConfig) -> Iterator[Place]:
    norm = part_named("norm")
    before = config.norm != "none" and config.norm_place == "before"
    after = config.norm != "none" and config.norm_place == "after"
    yield Place("", part_named("embedding"), "replace")
    for layer, has_attention in enumerate(config.attention_of_layers):
        names = ["attention"] * has_attention + ["mlp"] * bool(config.mlp) + [*config.extra]
        for name in names:
            prefix = f"layers.{layer}.{name}."
            if before:
                yield Place(f"{prefix}norm.", norm, "begin")
            yield Place(prefix, part_named(name), "add")
            if after:
                yield Place(f"{prefix}norm.", norm, "replace")
    if before:
        yield Place("norm.", norm, "replace")
    yield Place("", part_named("unembedding"), "replace")


_Stream = TypeVar("_Stream")


def followed(
    config: DecoderConfig,
    start: Any,
    act: Callable[[Place, Any], _Stream],
    add: Callable[[_Stream, _Stream], _Stream],
) -> _Stream:
    """Apply the parts of a decoder one after the other, to tensors or to buffers of a tape."""
    stream, inner = start, None
    for place in structure(config):
        if place.role == "begin":
            inner = act(place, stream)
        elif place.role == "add":
            stream = add(stream, act(place, stream if inner is None else inner))
            inner = None
        else:
            stream = act(place, stream)
    return stream


def logits_of(
    config: DecoderConfig, weights: Mapping[str, Tensor], tokens: Tensor
) -> Tensor:
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
    for place in structure(config):
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
