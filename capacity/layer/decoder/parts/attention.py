"""Attention heads, whose queries and keys rotary positions turn (Su et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capacity.layer.decoder.parts.part import Part, Shapes

if TYPE_CHECKING:
    from torch import Tensor

    from capacity.layer.decoder.config import DecoderConfig
    from capacity.layer.engines.tape.tape import Buffer, Tape

# of the frequencies of rotary positions
BASE = 10_000.0


def _shapes(config: DecoderConfig, _d_vocab: int) -> Shapes:
    d, heads, qk, vo = config.d_model, config.n_heads, config.d_head_qk, config.d_head_vo
    shapes: Shapes = {
        "W_Q": (heads, d, qk),
        "W_K": (heads, qk, d),
        "W_V": (heads, d, vo),
        "W_O": (heads, vo, d),
    }
    if config.bias:
        shapes |= {"b_Q": (heads, 1, qk), "b_K": (heads, 1, qk), "b_V": (heads, 1, vo)}
        shapes["b_O"] = (d,)
    return shapes


def frequencies(size: int) -> NDArray[np.float64]:
    """Angles by which one position turns each pair of dimensions (i, i + size / 2) of a head."""
    return BASE ** (-2 * np.arange(size // 2) / size)


class Heads(NamedTuple):
    """Queries, keys, values, attention and outputs of all heads, (batch, heads, n, ...) each."""

    q: Tensor
    k: Tensor
    v: Tensor
    pattern: Tensor
    z: Tensor


def heads_of(config: DecoderConfig, weights: Mapping[str, Tensor], x: Tensor) -> Heads:
    """Compute what the heads do at embeddings of the shape (batch, n, d_model)."""
    import torch

    x = x[:, None]
    q, k, v = x @ weights["W_Q"], x @ weights["W_K"].transpose(1, 2), x @ weights["W_V"]
    if config.bias:
        q, k, v = q + weights["b_Q"], k + weights["b_K"], v + weights["b_V"]
    if config.positions == "rotary":
        q, k = rotated(q), rotated(k)
    scores = q @ k.transpose(-1, -2) * config.attention_scale
    n = scores.shape[-1]
    later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
    pattern = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
    return Heads(q, k, v, pattern, pattern @ v)


def _forward(config: DecoderConfig, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    y = (heads_of(config, weights, x).z @ weights["W_O"]).sum(dim=1)
    return y + weights["b_O"] if config.bias else y


def rotated(x: Tensor) -> Tensor:
    """Queries or keys, shape (..., n, d_head_qk), turned by the angles of their positions."""
    import torch

    n, size = x.shape[-2:]
    angles = np.outer(np.arange(n), frequencies(size))
    options = {"dtype": x.dtype, "device": x.device}
    cos, sin = (torch.as_tensor(f(angles), **options) for f in (np.cos, np.sin))
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def _record(config: DecoderConfig, tape: Tape, x: Buffer) -> Buffer:
    heads, qk, vo, d = config.n_heads, config.d_head_qk, config.d_head_vo, config.d_model
    # the heads side by side: W_Q and W_V as (d_model, heads, ...) (`SIDE_BY_SIDE`)
    q = tape.linear(x, tape["W_Q"], heads * qk, (heads * qk, 1))
    k = tape.linear(x, tape["W_K"], heads * qk, (1, d))
    v = tape.linear(x, tape["W_V"], heads * vo, (heads * vo, 1))
    if config.bias:
        for buffer, name in ((q, "b_Q"), (k, "b_K"), (v, "b_V")):
            tape.add_bias(buffer, tape[name])
    if config.positions == "rotary":
        angles = frequencies(qk)[:, None] * tape.positions
        q, k = tape.rotate(q, heads, angles), tape.rotate(k, heads, angles)
    z = tape.attend(q, k, v, heads, config.attention_scale)
    y = tape.linear(z, tape["W_O"], d, (d, 1))
    if config.bias:
        tape.add_bias(y, tape["b_O"])
    return y


def _fan_in(config: DecoderConfig, name: str) -> int | None:
    if not name.startswith("W_"):
        return None
    # rows act from the left, so that the fan-in of W_K is d_model too
    return config.d_head_vo if name == "W_O" else config.d_model


ATTENTION = Part("attention", _shapes, _forward, _record, _fan_in, "heads")
