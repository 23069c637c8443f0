"""Effective attention: the part of attention that a head's output depends on.

The output of a head is A V. The component of a row of A in the left null space of V, LN(V), is lost
in the product; the rest is *effective attention* A_perp = A P, with P the projection onto the
column space of V (Brunner et al. 2020; Sun and Marasovic 2021, section 2). Three modes:

* ``plain``: as above. Rows need not sum to 1, and entries may be negative.
* ``simplex``: P projects onto the column space of [V, 1]. Rows still sum to 1, and the value bias,
  which adds the same vector to every row of V, makes no difference. This mode is not in the papers.
  The space is the orthogonal sum of that of 1, which gives every entry of a row 1/n, and the column
  space of V less its mean.
* ``causal``: in a causal model the output of row i depends on tokens 0 ... i alone, but plain
  projection puts weight on later ones. Here row i is the shortest row with that support and the
  same output, a_i projected onto the column space of V[: i + 1]
  (`capacity.transformer.effective.causal`).

With U an orthonormal basis of the column space, A_perp = (A U) U^T; where V = U R is well
conditioned A U = O R^-1, with O = A V, which the model has computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from capacity.display import briefly_shown
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


@briefly_shown
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
        Threshold of these ranks: singular values up to this share of V's largest count as 0. It is
        max(n, d_head_vo) times the machine epsilon, with n the number of tokens of the sentence.
    """

    pattern: Float[Tensor, "batch heads n n"]
    rank: Int[Tensor, "batch heads"]
    relative: Float[Tensor, "batch"]


@briefly_shown
@dataclass(frozen=True, eq=False)
class EffectiveAttention:
    """Effective attention of a model on some sentences.

    Attributes
    ----------
    layers : tuple of EffectiveLayer
        One for each layer, in the order of `ActivationCache.layers`.
    mode : {"plain", "simplex", "causal"}
        Mode that was used.
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
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.
    mode : {"plain", "simplex", "causal"}, optional
        ``plain`` projects rows onto the column space of V, ``simplex`` onto that of [V, 1], which
        keeps their sums, and ``causal`` each onto that of the values up to its own token. By
        default ``causal`` for a causal model, ``plain`` otherwise.

    Returns
    -------
    EffectiveAttention
        Projected patterns and ranks of values, layer by layer.

    Raises
    ------
    InvalidArgumentError
        If the mode is unknown, or ``causal`` for a model that isn't causal.

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
            f"Causal mode needs a causal model; {captured.source} attends to later tokens as well. "
            "Use mode='plain' or 'simplex'."
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
    """Effective attention of one layer's heads, given as tensors.

    Parameters
    ----------
    pattern : (batch, n_heads, n, n)
        Attention; in causal mode it must be 0 above the diagonal.
    v : (batch, n_heads, n, d_head_vo)
        Values.
    mask : (batch, n) bool
        True for tokens. Padding is dropped before projecting: setting its columns to 0 afterwards
        would change A V.
    mode : {"plain", "simplex", "causal"}
        Mode, as for `effective_attention`.
    z : (batch, n_heads, n, d_head_vo), optional
        ``pattern @ v``; computed if omitted.

    Returns
    -------
    EffectiveLayer
        Projected patterns and ranks of values.
    """
    real = mask[:, None, :, None]
    if not mask.all():
        # a row of zeros in V contributes to no Gram matrix and no projection
        pattern, v = pattern * (real & real.mT), v * real
        z = None if z is None else z * real
    z = pattern @ v if z is None else z
    n, d = v.shape[-2:]
    relative = rank_threshold(mask, d, v.dtype)
    if n <= d and mask.all() and (row_condition(v) * relative[:, None] < 1).all():
        # the rows of V are independent, so that no other A has this output
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
    # A reflection maps 1 to a unit vector. The reflected V without that row has columns in the
    # complement exactly; subtracting the mean would leave a residue of the size of its rounding.
    one = real.double() / real.double().sum(-2, keepdim=True).sqrt()
    unit = (real & (real.cumsum(-2) == 1)).double()
    span = column_span(_reflected(v.double(), one, unit) * (1 - unit), relative, of=v)
    span = replace(span, basis=_reflected(span.basis.double(), one, unit).to(v.dtype))
    # rows of attention sum to 1, so that their averages of V less its mean are z less that mean
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
    """Apply the Householder reflection that exchanges two unit vectors to the columns of x."""
    apart = first - second
    square = apart.square().sum(-2, keepdim=True)
    # for one token the two vectors are equal
    return x - 2 / torch.where(square > 0, square, 1.0) * apart * (apart.mT @ x)


def effective_share(
    pattern: Float[Tensor, "batch heads n n"], effective: Float[Tensor, "batch heads n n"]
) -> Float[Tensor, "batch heads"]:
    """Share of each head's squared attention that is effective: |A_perp|^2 / |A|^2.

    Norms are Frobenius's. As A_perp is a projection of A, |A|^2 = |A_perp|^2 + |A - A_perp|^2: the
    share that has no effect is 1 less this one.

    Parameters
    ----------
    pattern : (batch, n_heads, n, n)
        Attention A of one layer.
    effective : (batch, n_heads, n, n)
        Its effective attention A_perp.

    Returns
    -------
    (batch, n_heads)
        Between 0 and 1; 1 if all of attention has an effect.

    Examples
    --------
    Two tokens with equal values: the output depends on the sum of their weights alone.

    >>> pattern, v = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]]), torch.ones(1, 1, 2, 1)
    >>> effective = effective_layer(pattern, v, torch.ones(1, 2, dtype=torch.bool), "plain").pattern
    >>> effective
    tensor([[[[0.5000, 0.5000],
              [0.5000, 0.5000]]]])
    >>> effective_share(pattern, effective)
    tensor([[0.6667]])
    """
    return effective.square().sum((-2, -1)) / pattern.square().sum((-2, -1))
