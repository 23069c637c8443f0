"""Effective attention, of a layer and of a model: the part that a head's output depends on.

The output of a head is A V. The component of a row of A in the left null space of V, LN(V), is lost
in the product; the rest is *effective attention* A_perp = A P, with P the projection onto the
column space of V (Brunner et al. 2020; Sun and Marasovic 2021, section 2). Three modes:

* ``plain``: as above. Rows need not sum to 1, and entries may be negative.
* ``simplex``: P projects onto the column space of [V, 1]. Rows still sum to 1, and the value bias,
  which adds the same vector to every row of V, makes no difference. This mode is not in the papers.
* ``causal``: in a causal model the output of row i depends on tokens 0 ... i alone, but plain
  projection puts weight on later ones. Here row i is the shortest row with that support and the
  same output, a_i projected onto the column space of V[: i + 1]
  (`capacity.transformer.effective.causal`).

A projection is a product of two thin factors; the n x n pattern is computed where it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from capacity.checks import require_choice
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.effective.causal import project_causally, project_within
from capacity.transformer.effective.column_space import (
    ColumnSpace,
    column_span,
    row_condition,
    scale_of,
)
from capacity.transformer.effective.projection import (
    projected,
    projected_on_simplex,
    spanning,
    squared,
)


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of some sentences.

    Attributes
    ----------
    mask : (batch, n) bool
        True for tokens that attend, False for padding.
    keys : (batch, m) bool
        The same for those that are attended to.
    """

    mask: Bool[Tensor, "batch n"]
    keys: Bool[Tensor, "batch m"]

    @cached_property
    def padded(self) -> bool:
        """True if there is padding."""
        whole = all(n == self.keys.shape[1] for n in self._n_keys)
        return not (whole and (self.keys is self.mask or self.mask.all()))

    @cached_property
    def rows(self) -> Bool[Tensor, "batch 1 n 1"]:
        """`mask`, as rows of attention."""
        return self.mask[:, None, :, None]

    @cached_property
    def real(self) -> Bool[Tensor, "batch 1 m 1"]:
        """`keys`, as rows of V."""
        return self.keys[:, None, :, None]

    @cached_property
    def _n_keys(self) -> list[int]:
        return self.keys.sum(1).tolist()

    @cached_property
    def _thresholds(self) -> dict[tuple[int, torch.dtype], Tensor]:
        return {}

    def rank_threshold(self, columns: int, dtype: torch.dtype) -> Float[Tensor, "batch"]:
        """Relative rank threshold: max(m, columns) times the machine epsilon, without padding."""
        found = self._thresholds.get((columns, dtype))
        if found is None:
            sizes = torch.tensor([max(n, columns) for n in self._n_keys], device=self.keys.device)
            found = self._thresholds[columns, dtype] = sizes * torch.finfo(dtype).eps
        return found


EffectiveMode: TypeAlias = Literal["plain", "simplex", "causal"]


@briefly_shown
@dataclass(frozen=True, eq=False)
class EffectiveLayer:
    """Effective attention of one layer's heads.

    Attributes
    ----------
    left : (batch, n_heads, n, r)
        Factor of A_perp = left @ right.mT, or A_perp itself where `right` is None.
    spanned : (batch, n_heads, n, r), ColumnSpace or None
        What `right` is made of.
    square : (batch, n_heads)
        Squared Frobenius norms of A_perp.
    rank : int64, (batch, n_heads)
        Numerical rank of V, or of [V, 1] in simplex mode.
    relative : (batch,)
        Threshold of these ranks: singular values up to this share of V's largest count as 0. It is
        max(n, d_head_vo) times the machine epsilon, with n the number of tokens of the sentence.
    """

    left: Float[Tensor, "batch heads n r"]
    spanned: Float[Tensor, "batch heads n r"] | ColumnSpace | None
    square: Float[Tensor, "batch heads"]
    rank: Int[Tensor, "batch heads"]
    relative: Float[Tensor, "batch"]

    @cached_property
    def right(self) -> Float[Tensor, "batch heads n r"] | None:
        """Vectors that span the column space; None in causal mode, and where nothing is lost."""
        return None if self.spanned is None else spanning(self.spanned, self.left.dtype)

    @property
    def pattern(self) -> Float[Tensor, "batch heads n n"]:
        """A_perp, with 0 in rows and columns of padding; each use multiplies the factors."""
        return self.left if self.right is None else self.left @ self.right.mT


@torch.no_grad()
def effective_layer(
    pattern: Float[Tensor, "batch heads n m"],
    values: Float[Tensor, "batch heads m d"],
    mask: Bool[Tensor, "batch n"] | None = None,
    mode: EffectiveMode = "plain",
    *,
    z: Float[Tensor, "batch heads n d"] | None = None,
    keys: Bool[Tensor, "batch m"] | None = None,
    seen: Bool[Tensor, "batch n m"] | None = None,
    sink: Float[Tensor, "batch heads n"] | None = None,
) -> EffectiveLayer:
    """Compute the effective attention of one layer's heads, which are given as tensors.

    Parameters
    ----------
    pattern : (batch, n_heads, n, m)
        Attention; in causal mode it must be 0 above the diagonal.
    values : (batch, n_heads, m, d_head_vo)
        Values.
    mask : (batch, n) bool, optional
        True for tokens, by default everywhere. Padding is dropped before projecting: setting its
        columns to 0 afterwards would change A V.
    mode : {"plain", "simplex", "causal"}
        Mode, as for `effective_attention`.
    z : (batch, n_heads, n, d_head_vo), optional
        ``pattern @ values``; computed if omitted.
    keys : (batch, m) bool, optional
        The mask of what is attended to, if that is another sequence.
    seen : (batch, n, m) bool, optional
        In causal mode, what each token may attend to, if these aren't itself and all earlier ones.
    sink : (batch, n_heads, n), optional
        Weight of each row on a sink: one more column, with values of 0.

    Returns
    -------
    EffectiveLayer
        Projected patterns and ranks of values.

    Raises
    ------
    InvalidArgumentError
        If the shapes don't fit, or the numbers are in half precision, too coarse for ranks.

    Examples
    --------
    >>> pattern = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]])
    >>> effective_layer(pattern, torch.ones(1, 1, 2, 1)).pattern
    tensor([[[[0.5000, 0.5000],
              [0.5000, 0.5000]]]])
    """
    require_choice("`mode`", mode, get_args(EffectiveMode))
    if mask is None:
        mask = pattern.new_ones(*pattern.shape[:1], *pattern.shape[2:3], dtype=torch.bool)
    tokens = Tokens(mask, mask if keys is None else keys)
    _require_fitting(pattern, values, tokens)
    return projected_layer(pattern, values, z, tokens, mode, seen=seen, sink=sink)


def projected_layer(
    pattern: Float[Tensor, "batch heads n m"],
    values: Float[Tensor, "batch heads m d"],
    z: Float[Tensor, "batch heads n d"] | None,
    tokens: Tokens,
    mode: EffectiveMode,
    *,
    seen: Bool[Tensor, "batch n m"] | None,
    sink: Float[Tensor, "batch heads n"] | None,
) -> EffectiveLayer:
    """Return `effective_layer` of tensors whose shapes fit, for tokens that layers share."""
    rows, real = tokens.rows, tokens.real
    if tokens.padded:
        # a row of zeros in V contributes to no Gram matrix and no projection
        # (and may be NaN where it is padding)
        pattern = pattern.masked_fill(~(rows & real.mT), 0.0)
        values = values.masked_fill(~real, 0.0)
        z = None if z is None else z.masked_fill(~rows, 0.0)
    v, z = (values, z) if _any_scale(values, mode) else _scaled(values, z)
    z = pattern @ v if z is None else z
    n, d = v.shape[-2:]
    relative = tokens.rank_threshold(d, v.dtype)
    least = relative[:, None].expand(v.shape[:2])
    if n <= d and not tokens.padded and (row_condition(v) * least < 1).all():
        # the rows of V are independent, so that no other A has this output
        rank = torch.full(v.shape[:2], n, device=v.device)
        return _kept(pattern, rank, relative)
    if mode == "causal" and seen is not None:
        rank = column_span(v.double(), least).rank
        return _kept(project_within(pattern, v, seen, least), rank, relative)
    if mode == "causal":
        found = project_causally(pattern, v, z, tokens.mask, relative)
        return EffectiveLayer(found.whole, None, found.square, found.rank, relative)
    if mode == "plain":
        found = projected(pattern, v, z, least)
    elif sink is None:
        found = projected_on_simplex(pattern, v, z, rows, real, least)
    else:
        wider, longer = torch.cat([pattern, sink[..., None]], dim=-1), pad(v, (0, 0, 0, 1))
        all_real = torch.cat([real, torch.ones_like(real[:, :, :1])], dim=2)
        found = projected_on_simplex(wider, longer, z, rows, all_real, least).without_last()
    return EffectiveLayer(found.left, found.right, found.square, found.rank, relative)


def _kept(whole: Tensor, rank: Tensor, relative: Tensor) -> EffectiveLayer:
    return EffectiveLayer(whole, None, squared(whole), rank, relative)


def _require_fitting(pattern: Tensor, values: Tensor, tokens: Tokens) -> None:
    batch, heads, n, m = pattern.shape if pattern.ndim == 4 else (0, 0, 0, 0)
    mask, keys = tokens.mask, tokens.keys
    fits = values.shape[:3] == (batch, heads, m) and values.ndim == 4
    if not (fits and mask.shape == (batch, n) and keys.shape == (batch, m)):
        raise InvalidArgumentError(
            "`pattern` must have the shape (batch, n_heads, n, m), `values` (batch, n_heads, m, d) "
            "and `mask` (batch, n), with `keys` (batch, m) if m tokens of another sequence are "
            f"attended to; got {tuple(pattern.shape)}, {tuple(values.shape)}, {tuple(mask.shape)} "
            f"and {tuple(keys.shape)}."
        )
    if not {pattern.dtype, values.dtype} <= {torch.float32, torch.float64}:
        raise InvalidArgumentError(
            "`pattern` and `values` must be in float32 or float64, for ranks need their digits; "
            f"got {pattern.dtype} and {values.dtype}. Convert them: x.float()."
        )


def _any_scale(v: Tensor, mode: EffectiveMode) -> bool:
    """Return True if nothing is squared in the values' own type."""
    return v.dtype == torch.float32 and mode != "causal"


def _scaled(v: Tensor, z: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Divide values by powers of two where some are extreme."""
    largest = v.abs().amax((-2, -1))
    # squares of sizes within these bounds, and their inverses, are far from under- and overflow
    if ((largest > 2.0**-40) & (largest < 2.0**40)).all():
        return v, z
    # outputs of denormal values have lost their digits
    return v / scale_of(v, (-2, -1)), None


def effective_share(
    pattern: Float[Tensor, "batch heads n n"],
    effective: Float[Tensor, "batch heads n n"] | EffectiveLayer,
) -> Float[Tensor, "batch heads"]:
    """Compute the share of each head's squared attention that is effective: |A_perp|^2 / |A|^2.

    Norms are Frobenius's. As A_perp is a projection of A, |A|^2 = |A_perp|^2 + |A - A_perp|^2: the
    share that has no effect is 1 less this one.

    Parameters
    ----------
    pattern : (batch, n_heads, n, n)
        Attention A of one layer.
    effective : EffectiveLayer, or (batch, n_heads, n, n)
        Its effective attention A_perp; that of an `EffectiveLayer` needs no n x n product.

    Returns
    -------
    (batch, n_heads)
        Between 0 and 1; 1 if all of attention has an effect.

    Examples
    --------
    Two tokens with equal values: the output depends on the sum of their weights alone.

    >>> pattern, v = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]]), torch.ones(1, 1, 2, 1)
    >>> effective = effective_layer(pattern, v, torch.ones(1, 2, dtype=torch.bool), "plain")
    >>> effective.pattern
    tensor([[[[0.5000, 0.5000],
              [0.5000, 0.5000]]]])
    >>> effective_share(pattern, effective)
    tensor([[0.6667]])
    """
    whole = squared(pattern)
    square = effective.square if isinstance(effective, EffectiveLayer) else squared(effective)
    return square / whole


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
    """Compute the effective attention of every head of every layer.

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
    tokens = Tokens(captured.mask, captured.key_mask)
    layers = tuple(
        projected_layer(
            layer.pattern, layer.v, layer.z, tokens, chosen, seen=layer.seen, sink=layer.sink
        )
        for layer in captured.layers
    )
    return EffectiveAttention(layers, chosen)
