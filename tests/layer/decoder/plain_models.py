"""Decoders from torch's own modules, written from the definition and not from the library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from capacity.layer import DecoderConfig

ACTIVATIONS = {"relu": nn.ReLU(), "gelu": nn.GELU(approximate="tanh"), "silu": nn.SiLU()}


class Attention(nn.Module):
    """Heads one after the other, each position a sum over those before it."""

    def __init__(self, config: DecoderConfig, w: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config, self.w = config, w

    def forward(self, x: Tensor) -> Tensor:
        c, w, out = self.config, self.w, torch.zeros_like(x)
        for h in range(c.n_heads):
            q, k, v = x @ w["W_Q"][h], x @ w["W_K"][h].T, x @ w["W_V"][h]
            if c.bias:
                q, k, v = q + w["b_Q"][h], k + w["b_K"][h], v + w["b_V"][h]
            for i in range(x.shape[1]):
                scores = torch.stack(
                    [(self.turned(q, i) * self.turned(k, j)).sum(-1) for j in range(i + 1)], dim=-1
                )
                if c.scale:
                    scores = scores / math.sqrt(c.d_head_qk)
                a = scores.softmax(dim=-1)
                z = torch.stack([a[:, j, None] * v[:, j] for j in range(i + 1)]).sum(dim=0)
                out[:, i] = out[:, i] + z @ w["W_O"][h]
        return out + w["b_O"] if c.bias else out

    def turned(self, x: Tensor, position: int) -> Tensor:
        """The vector at a position as complex numbers, times e^(i angle)."""
        x = x[:, position]
        if self.config.positions != "rotary":
            return x
        half = x.shape[-1] // 2
        angles = position * 10_000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
        z = torch.complex(x[:, :half], x[:, half:]) * torch.polar(torch.ones_like(angles), angles)
        return torch.cat([z.real, z.imag], dim=-1)


class MLP(nn.Module):
    """Two linear layers, and a gate."""

    def __init__(self, config: DecoderConfig, w: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.config, self.w = config, w

    def forward(self, x: Tensor) -> Tensor:
        c, w = self.config, self.w
        hidden = ACTIVATIONS[c.activation](functional.linear(x, w["W_in"].T, w.get("b_in")))
        if c.gated:
            hidden = hidden * functional.linear(x, w["W_gate"].T)
        return functional.linear(hidden, w["W_out"].T, w.get("b_out"))


def normed(config: DecoderConfig, w: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Torch's own norm."""
    shape = (config.d_model,)
    if config.norm == "layer":
        return functional.layer_norm(x, shape, w["weight"], w["bias"], eps=1e-5)
    return functional.rms_norm(x, shape, w["weight"], eps=1e-5)


def logits(config: DecoderConfig, weights: Mapping[str, Tensor], tokens: Tensor) -> Tensor:
    """Logits after each token of some sentences."""

    def under(prefix: str) -> dict[str, Tensor]:
        n = len(prefix)
        return {name[n:]: w for name, w in weights.items() if name.startswith(prefix)}

    x = functional.embedding(tokens, weights["W_E"])
    if config.positions == "learned":
        x = x + weights["W_pos"][: tokens.shape[1]]
    kinds: list[tuple[str, Any]] = [("attention", Attention), ("mlp", MLP)]
    for layer in range(config.n_layers):
        for name, kind in kinds:
            prefix = f"layers.{layer}.{name}."
            if name == "mlp" and not config.mlp:
                continue
            if name == "attention" and not config.attention_of_layers[layer]:
                continue
            part, norm = kind(config, under(prefix)), under(f"{prefix}norm.")
            if config.norm == "none":
                x = x + part(x)
            elif config.norm_place == "before":
                x = x + part(normed(config, norm, x))
            else:
                x = normed(config, norm, x + part(x))
    if config.norm != "none" and config.norm_place == "before":
        x = normed(config, under("norm."), x)
    z = x @ (weights["W_E"].T if config.tie_embeddings else weights["W_U"])
    return z + weights["b_U"] if config.bias else z
