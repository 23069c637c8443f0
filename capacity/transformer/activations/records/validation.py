"""Checks of sentences and of recorded activations, for models of any family.

Products are compared by one random vector, without being computed. Sparse, nested and quantised
tensors, and those of the device ``meta``, which have no values, are tensors as well, and fail in
the middle of the arithmetic, with errors that name neither them nor what to do: they are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.checks import require_choice
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.products import (
    Products,
    Rows,
    attend_later,
    averages_of,
    differences,
    largest,
    random_vector,
    rows_of,
)

Check: TypeAlias = Literal["random", "full"]
# bytes for the attention of all sentences, layers and heads
ATTENTION_BUDGET = 2 * 2**30


@torch.no_grad()
def check(captured: ActivationCache, how: Check = "random") -> ActivationCache:
    """Check the heads of every layer (`check_heads`); return the cache.

    Raises
    ------
    InvalidArgumentError
        If heads do anything but average values.
    """
    named = [(layer, f"layer {i} of {captured.source}") for i, layer in enumerate(captured.layers)]
    for layer, of in named:
        heads = heads_of(layer, captured.mask, of, causal=captured.causal)
        check_heads([heads], captured.mask, how)
    return captured


@dataclass(frozen=True, eq=False)
class RecordedHeads:
    """A layer, and products of what was recorded, which are compared with others' (`check_heads`).

    Attributes
    ----------
    layer : LayerActivations
        What was recorded.
    of : str
        Name of the layer, for messages.
    causal : bool
        Whether tokens must not attend to later ones.
    averages, wrote : Products
        Of A V and z; of what the heads have written and (gate * z) W_O + b_O, if that is known.
    rows : Rows
        Some of its rows.
    size : float
        Largest number in z.
    hooked : bool
        Whether hooks may be the reason why an output is another one.
    """

    layer: LayerActivations
    of: str
    causal: bool
    averages: Products
    rows: Rows
    size: float
    wrote: Products | None = None
    hooked: bool = False

    def writing(self, wrote: Tensor, product: Tensor, *, hooked: bool = False) -> RecordedHeads:
        """Return them with the joint output of the heads, which must be (gate * z) W_O + b_O.

        Parameters
        ----------
        wrote : (batch, n, d_model)
            Joint output.
        product : (n_heads * d_head_vo,)
            Product of W_O with `random_vector`.
        hooked : bool
            Whether hooks may be the reason if it is something else.

        Raises
        ------
        InvalidArgumentError
            If a number isn't finite.
        """
        layer, size = self.layer, largest(wrote)
        if not math.isfinite(size):
            raise InvalidArgumentError(
                f"What heads write must be finite; {self.of} writes NaN or infinite numbers. Its "
                "weights are damaged, its precision can't hold its own numbers, or all of a row of "
                "padding is masked: pad on the other side, or capture the sentence alone."
            )
        r = random_vector(layer.W_O.shape[-1], layer.z)
        expected = layer.gated.transpose(1, 2).flatten(2) @ product
        if layer.b_O is not None:
            expected += layer.b_O @ r
        products = Products(wrote.view(*expected.shape, -1) @ r, expected, size)
        return replace(self, wrote=products, hooked=hooked)


def heads_of(
    layer: LayerActivations,
    mask: Bool[Tensor, "batch n"],
    of: str,
    *,
    causal: bool,
    rows: Rows | None = None,
) -> RecordedHeads:
    """Make the products of a layer; `rows` are those of `rows_of`, if they are known.

    Raises
    ------
    InvalidArgumentError
        If a number isn't finite.
    """
    sizes = largest(layer.z), largest(layer.held("v"))
    if not all(map(math.isfinite, sizes)):
        _refuse_empty_rows(layer, mask, of)
        of_tokens = (x.transpose(1, 2)[mask] for x in (layer.z, layer.v))
        raise InvalidArgumentError(
            f"Values and outputs of heads must be finite; {of} has NaN or infinite ones"
            + (
                " at positions of padding alone, as a model leaves them that masks all of a row. "
                "Set these to 0, as by torch.nan_to_num(x, nan=0.0)."
                if all(torch.isfinite(x).all() for x in of_tokens)
                else ". Its weights are damaged, or its precision can't hold its own numbers."
            )
        )
    rows = rows_of(layer) if rows is None else rows
    return RecordedHeads(layer, of, causal, averages_of(layer, *sizes), rows, sizes[0])


def check_heads(
    recorded: Sequence[RecordedHeads], mask: Bool[Tensor, "batch n"], how: Check
) -> None:
    """Check that recorded heads average values by their attention, and write what they must.

    Parameters
    ----------
    recorded : sequence of RecordedHeads
        Layers of a model.
    mask : (batch, n) bool
        True for tokens.
    how : {"random", "full"}
        ``random`` compares A (V r) with z r for a random vector r, and the sums of rows with it,
        which takes one pass over the attention, and misses an error with probability 0; ``full``
        compares A V with z, and sums with 1.

    Raises
    ------
    InvalidArgumentError
        If rows of attention don't sum to 1, a causal model attends to later tokens, heads output
        anything but ``pattern @ v``, or write anything but (gate * z) W_O + b_O.
    """
    require_choice("`check`", how, get_args(Check))
    off = differences([one.averages for one in recorded], mask[:, None])
    causal = [one for one in recorded if one.causal]
    later = dict(zip(map(id, causal), attend_later([x.rows for x in causal], mask), strict=True))
    written = [one for one in recorded if one.wrote is not None]
    products = [one.wrote for one in written if one.wrote is not None]
    wrote = dict(zip(map(id, written), differences(products, mask), strict=True))
    for one, by in zip(recorded, off, strict=True):
        layer, dtype = one.layer, one.layer.z.dtype
        relative = 1e3 * torch.finfo(dtype).eps
        if how == "full" or not by <= relative:
            _check_whole(one, mask, relative)
        above = one.causal and how == "full" and bool(layer.pattern.triu(1).any())
        if above or later.get(id(one)):
            raise InvalidArgumentError(
                f"Tokens of a causal model must not attend to later tokens; those of {one.of} do."
            )
        # gates may be applied in float32, whatever their model computes in
        dtype = dtype if layer.gate is None else torch.float32
        if not wrote.get(id(one), 0.0) <= 1e3 * torch.finfo(dtype).eps:
            raise InvalidArgumentError(
                f"Heads must add z W_O + b_O to the residual stream; in {one.of} what they added "
                f"differs by {wrote[id(one)]:.1g} of its size. "
                + ("Remove hooks that change it, or merge" if one.hooked else "Merge")
                + " adapters into its output weights first."
            )


def _check_whole(one: RecordedHeads, mask: Bool[Tensor, "batch n"], relative: float) -> None:
    off_rows, off_heads = _off(one.layer, mask, one.size)
    # some models take the softmax in float32 whatever they compute in
    if not (off_rows <= max(relative, 1e-4) and off_heads <= relative):
        _refuse_empty_rows(one.layer, mask, one.of)
        raise InvalidArgumentError(
            f"Attention must average values: rows that sum to 1, and z = pattern @ v. In {one.of} "
            f"rows are off by {off_rows:.1g} and heads by {off_heads:.1g} of their size: its "
            "heads do something else as well (a mask on heads, a factor of their outputs, "
            "another path), which these analyses don't cover."
        )


def _refuse_empty_rows(layer: LayerActivations, mask: Bool[Tensor, "batch n"], of: str) -> None:
    """Name what is amiss if whole rows of attention are NaN at positions that count as tokens."""
    empty = layer.pattern.isnan().all(-1).any(1) & mask
    if empty.any():
        raise InvalidArgumentError(
            f"Rows of attention must sum to 1; {int(empty.sum())} of {of} are NaN throughout, as a "
            "model leaves those of padding. Mark by `mask` which positions hold tokens, and set "
            "the others to 0, as by torch.nan_to_num(x, nan=0.0)."
        )


@torch.no_grad()
def check_written(captured: ActivationCache) -> ActivationCache:
    """Check heads, and that they write z W_O + b_O to the residual stream; return the cache.

    Raises
    ------
    InvalidArgumentError
        As `check_heads`.
    """
    check(captured)
    for index, written in enumerate(captured.outputs_of_heads):
        of = f"layer {index} of {captured.source}"
        layer, mask = captured.layers[index], captured.mask
        r = random_vector(layer.W_O.shape[-1], layer.z)
        heads = heads_of(layer, mask, of, causal=captured.causal)
        check_heads([heads.writing(written.whole, layer.W_O.flatten(0, 1) @ r)], mask, "random")
    return captured


def _off(layer: LayerActivations, mask: Tensor, size: float) -> tuple[float, float]:
    real = mask[:, None, :]
    total = layer.pattern.sum(-1)
    total = total if layer.sink is None else total + layer.sink
    apart = (layer.pattern @ layer.v - layer.z).abs().amax(-1)
    tiny = torch.finfo(layer.z.dtype).tiny
    return float(((total - 1) * real).abs().max()), float((apart * real).max() / (size + tiny))


# norms compute in float32, whatever their model does
SAME = 1e4 * torch.finfo(torch.float32).eps


def apart(
    found: Float[Tensor, "batch n d"], expected: Float[Tensor, "batch n d"], mask: Tensor
) -> float:
    """Largest difference between embeddings of tokens, as a share of the largest number in them."""
    real = mask[..., None]
    size = float((expected * real).abs().max()) + torch.finfo(expected.dtype).tiny
    return float(((found - expected) * real).abs().max()) / size


def require_within(name: str, numbers: tuple[int, ...] | None, n: int) -> None:
    """Refuse ascending indices of layers or heads beyond the last one.

    Raises
    ------
    InvalidArgumentError
        With the number of them.
    """
    if numbers is not None and numbers[-1] >= n:
        raise InvalidArgumentError(f"`{name}` must be from 0 to {n - 1}; got {numbers[-1]}.")
