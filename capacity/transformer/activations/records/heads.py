"""Activations and weights of the heads of one attention layer.

Tensors have TransformerLens's names: ``pattern`` for the attention A, ``q``, ``k``, ``v``, and
``z`` for A V. Rows act from the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.display import briefly_shown


class _OfHeads:
    """Attribute that may be set for groups of heads, and is repeated for each when it is read."""

    def __init__(self, name: Literal["k", "v"]) -> None:
        self.name: Literal["k", "v"] = name

    def __get__(self, layer: LayerActivations | None, owner: type | None = None) -> Tensor:
        if layer is None:
            raise AttributeError(self.name)
        x, heads = layer.held(self.name), layer.pattern.shape[1]
        if x.shape[1] != heads:
            x = x.repeat_interleave(heads // x.shape[1], dim=1)
            self.__set__(layer, x)
        return x

    def __set__(self, layer: LayerActivations, x: Tensor) -> None:
        vars(layer)[self.name] = x


@briefly_shown
@dataclass(frozen=True, eq=False)
class LayerActivations:
    """Activations and weights of the heads of one attention layer.

    Attributes
    ----------
    pattern : (batch, n_heads, n, n)
        Attention A: rows of tokens sum to 1, columns of padding are 0.
    q, k : (batch, n_heads, n, d_head_qk)
        Queries and keys, after any rotation of positions; the logits are ``scale * q @ k.mT``.
    v : (batch, n_heads, n, d_head_vo)
        Values with their bias, 0 at padding. Keys and values of groups may be passed as they are,
        (batch, n_groups, ...); they are repeated, one for each query head, when they are read.
    z : (batch, n_heads, n, d_head_vo)
        Outputs of the heads, ``pattern @ v``, before a gate; 0 at padding.
    W_O : (n_heads, d_head_vo, d_model)
        Output weights of each head.
    b_V : (n_heads, d_head_vo) or None
        Bias of the values.
    b_O : (d_model,) or None
        Bias of the layer's output.
    scale : float
        Factor of the logits; 1/sqrt(d_head_qk) in most models, 1 in `AttentionLayer`.
    seen : (batch, n, n) bool or None
        Tokens that each token may attend to, where these aren't all (in a causal model, itself and
        all earlier ones): a sliding window.
    sink : (batch, n_heads, n) or None
        Weight of each row on a sink, one more column with values of 0, as in GPT-OSS: rows of the
        pattern sum to 1 less this.
    gate : (batch, n_heads, n, d_head_vo) or None
        Factor of each number of z, computed from the token, as in Qwen3-Next: the heads write
        ``(gate * z) @ W_O + b_O``. A gate that is one number for each head is repeated.
    soft : bool
        Whether the pattern is the softmax of ``scale * q @ k.mT``; False where the model adds
        biases of positions, or caps logits.
    """

    pattern: Float[Tensor, "batch heads n n"]
    q: Float[Tensor, "batch heads n d_head_qk"]
    k: Float[Tensor, "batch heads n d_head_qk"]
    v: Float[Tensor, "batch heads n d_head_vo"]
    z: Float[Tensor, "batch heads n d_head_vo"]
    W_O: Float[Tensor, "heads d_head_vo d_model"]
    b_V: Float[Tensor, "heads d_head_vo"] | None
    b_O: Float[Tensor, "d_model"] | None
    scale: float
    seen: Bool[Tensor, "batch n n"] | None = None
    sink: Float[Tensor, "batch heads n"] | None = None
    soft: bool = True
    gate: Float[Tensor, "batch heads n d_head_vo"] | None = None

    def without_padding(
        self, mask: Bool[Tensor, "batch n"], keys: Bool[Tensor, "batch n"] | None = None
    ) -> LayerActivations:
        """Return the activations with 0 at padding in attention, values and outputs.

        Parameters
        ----------
        mask : (batch, n) bool
            True for tokens.
        keys : (batch, n_keys) bool, optional
            The same for what they attend to; by default themselves.
        """
        keys = mask if keys is None else keys
        if mask.all() and keys.all():
            return self
        pad, of_keys = ~mask[:, None, :, None], ~keys[:, None, :, None]
        return self.changed(
            pattern=self.pattern.masked_fill(pad | of_keys.mT, 0.0),
            v=self.held("v").masked_fill(of_keys, 0.0),
            z=self.z.masked_fill(pad, 0.0),
            sink=None if self.sink is None else self.sink.masked_fill(pad[..., 0], 0.0),
        )

    def held(self, name: Literal["k", "v"]) -> Float[Tensor, "batch groups n d"]:
        """Return keys or values for each head, or for each group if nobody has read them yet."""
        return vars(self)[name]

    def changed(self, **changes: Any) -> LayerActivations:
        """Return the activations with other attributes, and keys and values of groups as such."""
        return replace(self, **{"k": self.held("k"), "v": self.held("v"), **changes})

    def of_heads(self, heads: Sequence[int]) -> LayerActivations:
        """Return the activations of some heads, in this order."""
        at = torch.as_tensor(heads, device=self.v.device)
        tensors = {name: x[:, at] for name in ("pattern", "q", "k", "v", "z", "sink", "gate")
                   if (x := getattr(self, name)) is not None}  # fmt: skip
        b_V = None if self.b_V is None else self.b_V[at]
        return replace(self, W_O=self.W_O[at], b_V=b_V, **tensors)

    @property
    def v_unbiased(self) -> Float[Tensor, "batch heads n d_head_vo"]:
        """Values without their bias."""
        return self.v if self.b_V is None else self.v - self.b_V[:, None]

    @property
    def z_unbiased(self) -> Float[Tensor, "batch heads n d_head_vo"]:
        """Output of the heads from values without their bias."""
        return self.z if self.b_V is None else self.z - self.b_V[:, None]

    @property
    def gated(self) -> Float[Tensor, "batch heads n d_head_vo"]:
        """Outputs of the heads as W_O reads them: ``gate * z``, or z without a gate."""
        return self.z if self.gate is None else self.gate * self.z

    @property
    def T(self) -> Float[Tensor, "batch heads n d_model"]:
        """Vectors that heads average, but for gates: T = V W_O, Bhardwaj et al. (2021), (2)."""
        return self.v @ self.W_O


# a dataclass would take them for defaults
for _repeated in (_OfHeads("k"), _OfHeads("v")):
    setattr(LayerActivations, _repeated.name, _repeated)
