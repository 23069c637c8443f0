"""Checks of sentences and of recorded activations, for models of any family.

Products are compared by one random vector, without being computed. Sparse, nested and quantised
tensors, and those of the device ``meta``, which have no values, are tensors as well, and fail in
the middle of the arithmetic, with errors that name neither them nor what to do: they are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal, TypeAlias, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.checks import require_choice
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache, LayerActivations


def random_vector(d: int, like: Tensor) -> Tensor:
    """A random vector of length 1, always the same one, in the type of a tensor."""
    return _random_vector(d, like.dtype, like.device)


@cache
def _random_vector(d: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    r = torch.randn(d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (r / r.norm()).to(device=device, dtype=dtype)


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
    for index, layer in enumerate(captured.layers):
        of = f"layer {index} of {captured.source}"
        check_heads(layer, captured.mask, of, causal=captured.causal, how=how)
    return captured


def check_heads(
    layer: LayerActivations, mask: Bool[Tensor, "batch n"], of: str, *, causal: bool, how: Check
) -> None:
    """Check that recorded heads average values by their attention.

    Parameters
    ----------
    layer : LayerActivations
        What was recorded.
    mask : (batch, n) bool
        True for tokens.
    of : str
        Name of the layer, for messages.
    causal : bool
        Whether tokens must not attend to later ones.
    how : {"random", "full"}
        ``random`` compares A (V r) with z r for a random vector r, and the sums of rows with it,
        which takes one pass over the attention, and misses an error with probability 0; ``full``
        compares A V with z, and sums with 1.

    Raises
    ------
    InvalidArgumentError
        If a number isn't finite, rows of attention don't sum to 1, a causal model attends to later
        tokens, or heads output anything but ``pattern @ v``.
    """
    require_choice("`check`", how, get_args(Check))
    sizes = [largest(layer.z), largest(layer.v)]
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
    # some models take the softmax in float32 whatever they compute in
    relative = 1e3 * torch.finfo(layer.z.dtype).eps
    if how == "full" or not _averages(layer, mask, sizes, relative):
        off_rows, off_heads = _off(layer, mask, sizes[0])
        if not (off_rows <= max(relative, 1e-4) and off_heads <= relative):
            _refuse_empty_rows(layer, mask, of)
            raise InvalidArgumentError(
                f"Attention must average values: rows that sum to 1, and z = pattern @ v. In {of} "
                f"rows are off by {off_rows:.1g} and heads by {off_heads:.1g} of their size: its "
                "heads do something else as well (a mask on heads, a factor of their outputs, "
                "another path), which these analyses don't cover."
            )
    if causal and _is_above(layer.pattern, whole=how == "full"):
        raise InvalidArgumentError(
            f"Tokens of a causal model must not attend to later tokens; those of {of} do."
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
        As `check` and `check_output`.
    """
    check(captured)
    for index, written in enumerate(captured.outputs_of_heads):
        of = f"layer {index} of {captured.source}"
        layer = captured.layers[index]
        r = random_vector(layer.W_O.shape[-1], layer.z)
        check_output(layer, written.whole, captured.mask, of, layer.W_O.flatten(0, 1) @ r)
    return captured


def check_output(
    layer: LayerActivations,
    wrote: Tensor,
    mask: Bool[Tensor, "batch n"],
    of: str,
    product: Tensor,
    *,
    hooked: bool = False,
) -> None:
    """Check that the joint output of a layer's heads is (gate * z) W_O + b_O, by a random vector.

    `product` is that of W_O with `random_vector`; `hooked` is whether hooks may be the reason.

    Raises
    ------
    InvalidArgumentError
        If it is something else.
    """
    r = random_vector(layer.W_O.shape[-1], layer.z)
    flat = layer.gated.transpose(1, 2).flatten(2)
    expected = flat @ product
    expected = expected if layer.b_O is None else expected + layer.b_O @ r
    apart = (wrote.view(*mask.shape, -1) @ r - expected) * mask
    size = largest(wrote)
    if not math.isfinite(size):
        raise InvalidArgumentError(
            f"What heads write must be finite; {of} writes NaN or infinite numbers. Its weights "
            "are damaged, its precision can't hold its own numbers, or all of a row of padding is "
            "masked: pad on the other side, or capture the sentence alone."
        )
    off = float(apart.abs().max()) / (size + torch.finfo(wrote.dtype).tiny)
    # gates may be applied in float32, whatever their model computes in
    dtype = layer.z.dtype if layer.gate is None else torch.float32
    if not off <= 1e3 * torch.finfo(dtype).eps:
        raise InvalidArgumentError(
            f"Heads must add z W_O + b_O to the residual stream; in {of} what they added differs "
            f"by {off:.1g} of its size. "
            + ("Remove hooks that change it, or merge" if hooked else "Merge")
            + " adapters into its output weights first."
        )


def is_softmax(layer: LayerActivations, mask: Bool[Tensor, "batch n"]) -> bool:
    """Return True if the attention is the softmax of ``scale * q @ k.mT``, seen in some rows."""
    rows = _some(layer.pattern.shape[-2])
    found = layer.pattern[..., rows, :]
    logits = layer.scale * layer.q[..., rows, :] @ layer.k.mT
    # what a row may attend to has a weight above 0, but for underflow
    expected = logits.masked_fill(found == 0, -torch.inf).softmax(-1)
    total = found.sum(-1, keepdim=True)
    off = (expected * total - found).nan_to_num(0.0) * mask[:, None, rows, None]
    return bool(off.abs().max() <= 1e-4)


def _averages(
    layer: LayerActivations, mask: Tensor, sizes: Sequence[float], relative: float
) -> bool:
    """Return True if A (V r + t 1) is z r + t for a random vector r and a number t."""
    r = random_vector(layer.v.shape[-1], layer.v)
    t = max(sizes[1], torch.finfo(layer.v.dtype).tiny)
    weight = 1.0 if layer.sink is None else 1 - layer.sink
    found = (layer.pattern @ (layer.v @ r + t)[..., None])[..., 0]
    apart = (found - layer.z @ r - t * weight) * mask[:, None]
    return float(apart.abs().max()) <= relative * min(
        max(sizes[0], torch.finfo(layer.z.dtype).tiny), t
    )


def _off(layer: LayerActivations, mask: Tensor, size: float) -> tuple[float, float]:
    real = mask[:, None, :]
    total = layer.pattern.sum(-1)
    total = total if layer.sink is None else total + layer.sink
    apart = (layer.pattern @ layer.v - layer.z).abs().amax(-1)
    tiny = torch.finfo(layer.z.dtype).tiny
    return float(((total - 1) * real).abs().max()), float((apart * real).max() / (size + tiny))


def _is_above(pattern: Tensor, *, whole: bool) -> bool:
    """Return True if rows of attention, all or some of them, have weights above the diagonal."""
    if whole:
        return bool(pattern.triu(1).any())
    n = pattern.shape[-1]
    rows = _some(n)
    tokens = torch.arange(n, device=pattern.device)
    return bool((pattern[..., rows, :] * (tokens > tokens[rows, None])).any())


# norms compute in float32, whatever their model does
SAME = 1e4 * torch.finfo(torch.float32).eps


def apart(
    found: Float[Tensor, "batch n d"], expected: Float[Tensor, "batch n d"], mask: Tensor
) -> float:
    """Largest difference between embeddings of tokens, as a share of the largest number in them."""
    real = mask[..., None]
    size = float((expected * real).abs().max()) + torch.finfo(expected.dtype).tiny
    return float(((found - expected) * real).abs().max()) / size


def largest(x: Tensor) -> float:
    """Largest absolute value; NaN or infinite if some number is."""
    # heads stand side by side in memory, whose order takes half the time
    by_tokens = x.transpose(1, 2) if x.ndim == 4 else x
    low, high = torch.aminmax(by_tokens)
    return float(torch.maximum(-low, high))


def _some(n: int) -> slice:
    """A few rows, the last but one among them."""
    last = max(n - 2, 0)
    step = max(last // 2, 1)
    return slice(last % step, last + 1, step)


def require_within(name: str, numbers: tuple[int, ...] | None, n: int) -> None:
    """Refuse ascending indices of layers or heads beyond the last one.

    Raises
    ------
    InvalidArgumentError
        With the number of them.
    """
    if numbers is not None and numbers[-1] >= n:
        raise InvalidArgumentError(f"`{name}` must be from 0 to {n - 1}; got {numbers[-1]}.")
