"""Effective attention: the part of attention that a head's output depends on.

A head puts out A V. Whatever of a row of A lies in the left null space of V, LN(V), is lost in the
product; the rest is *effective attention* A_perp = A P, with P the projection onto the column space
of V (Brunner et al. 2020; Sun and Marasovic 2021, section 2). Three modes:

* ``plain``: as above. Rows need not sum to 1, and entries may be negative.
* ``simplex``: P projects onto the column space of [V, 1]. Rows still sum to 1, and the value bias,
  which adds the same vector to every row of V, makes no difference. No paper has it. The space is
  that of 1, which gives every row its 1/n, and that of V less its mean, orthogonal to it.
* ``causal``: row i of a causal model can only be explained by tokens 0 ... i, but plain projection
  puts weight on later ones. Here row i is the shortest row with that support and the same output,
  a_i projected onto the column space of V[: i + 1] (`capacity.transformer.effective.causal`).

With U an orthonormal basis of the column space, A_perp = (A U) U^T; where V = U R is well
conditioned A U = O R^-1, with O = A V, which the model has computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.options import require_choice
from capacity.transformer.activations.cache import ActivationCache
from capacity.transformer.effective.causal import project_causally
from capacity.transformer.effective.column_space import (
    Span,
    column_span,
    rank_threshold,
    row_condition,
)

EffectiveMode: TypeAlias = Literal["plain", "simplex", "causal"]


@dataclass(frozen=True, eq=False)
class EffectiveLayer:
    """Effective attention of one layer's heads.

    Attributes
    ----------
    pattern : (batch, n_heads, n, n)
        A_perp; rows and columns of padding are 0.
    rank : int64, (batch, n_heads)
        Numerical rank of V, or of [V, 1] in simplex mode.
    relative : (batch,)
        Singular values up to this share of V's largest counted as 0: max(n, d_head_vo) times the
        precision, with n the sentence's own number of tokens.
    """

    pattern: Float[Tensor, "batch heads n n"]
    rank: Int[Tensor, "batch heads"]
    relative: Float[Tensor, "batch"]


@dataclass(frozen=True, eq=False)
class EffectiveAttention:
    """Effective attention of a model on some sentences.

    Attributes
    ----------
    layers : tuple of EffectiveLayer
    mode : {"plain", "simplex", "causal"}
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
    captured : Captured
    mode : {"plain", "simplex", "causal"}, optional
        By default causal for a causal model, and plain otherwise.

    Returns
    -------
    EffectiveAttention

    Raises
    ------
    InvalidArgumentError
        For another mode, or for ``causal`` with a model that isn't.

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
            f"Causal mode needs a causal model; {captured.source} attends to what comes later as "
            "well. Use mode='plain' or 'simplex'."
        )
    layers = tuple(
        effective_layer(layer.pattern, layer.v, captured.mask, chosen, z=layer.z)
        for layer in captured.layers
    )
    return EffectiveAttention(layers, chosen)


def effective_layer(
    pattern: Float[Tensor, "batch heads n n"],
    v: Float[Tensor, "batch heads n d"],
    mask: Bool[Tensor, "batch n"],
    mode: EffectiveMode,
    *,
    z: Float[Tensor, "batch heads n d"] | None = None,
) -> EffectiveLayer:
    """Effective attention of heads, given as tensors.

    Parameters
    ----------
    pattern, v : tensors
        Attention and values; in causal mode nothing above the diagonal.
    mask : (batch, n) bool
        Tokens. Padding is dropped before anything is projected: to zero its columns afterwards
        would change A V.
    mode : {"plain", "simplex", "causal"}
    z : tensor, optional
        ``pattern @ v``, if at hand.
    """
    real = mask[:, None, :, None]
    if not mask.all():
        # a row of zeros in V has no part in any Gram matrix or projection: it is left out
        pattern, v = pattern * (real & real.mT), v * real
        z = None if z is None else z * real
    z = pattern @ v if z is None else z
    n, d = v.shape[-2:]
    relative = rank_threshold(mask, d, v.dtype)
    if n <= d and mask.all() and (row_condition(v) * relative[:, None] < 1).all():
        # rows of V are independent: there is no other A with this output
        return EffectiveLayer(pattern, torch.full(v.shape[:2], n, device=v.device), relative)
    if mode == "causal":
        x = project_causally(pattern, v, mask)
        return EffectiveLayer(x, column_span(v, relative).rank, relative)
    if mode == "plain":
        span = column_span(v, relative)
        return EffectiveLayer(_projected(pattern, z, span), span.rank, relative)
    return _on_simplex(pattern, v, z, real, relative)


def _on_simplex(
    pattern: Tensor, v: Tensor, z: Tensor, real: Tensor, relative: Tensor
) -> EffectiveLayer:
    # A reflection takes 1 to a unit vector. What it makes of V, without that row, has its columns
    # in the complement exactly; a mean that is subtracted leaves a rest as large as its rounding.
    one = real.double() / real.double().sum(-2, keepdim=True).sqrt()
    unit = (real & (real.cumsum(-2) == 1)).double()
    span = column_span(_reflected(v.double(), one, unit) * (1 - unit), relative, of=v)
    span = replace(span, basis=_reflected(span.basis.double(), one, unit).to(v.dtype))
    # rows of attention sum to 1, so that they average V less its mean to z less that mean
    mean = v.double().sum(-2, keepdim=True) / real.sum(-2, keepdim=True)
    x = _projected(pattern, ((z - mean) * real).to(v.dtype), span)
    return EffectiveLayer(x + (one @ one.mT).to(v.dtype), span.rank + 1, relative)


def _projected(pattern: Tensor, z: Tensor, span: Span) -> Tensor:
    coordinates = pattern @ span.basis if span.inverse is None else z @ span.inverse
    return coordinates @ span.basis.mT


def _reflected(
    x: Float[Tensor, "batch heads n d"],
    first: Float[Tensor, "batch 1 n 1"],
    second: Float[Tensor, "batch 1 n 1"],
) -> Float[Tensor, "batch heads n d"]:
    """Columns x after the reflection (Householder's) that exchanges two unit vectors."""
    apart = first - second
    square = apart.square().sum(-2, keepdim=True)
    # of one token there is one unit vector
    return x - 2 / torch.where(square > 0, square, 1.0) * apart * (apart.mT @ x)


def effective_share(
    pattern: Float[Tensor, "batch heads n n"], effective: Float[Tensor, "batch heads n n"]
) -> Float[Tensor, "batch heads"]:
    """|A_perp|^2 / |A|^2 of each head, in Frobenius norms: 1 if all of attention has an effect.

    A projection takes |A - A_perp|^2 away: the two shares sum to 1.
    """
    return effective.square().sum((-2, -1)) / pattern.square().sum((-2, -1))
