"""Products of recorded heads with random vectors, in which errors show, and their comparison.

An operation on a few numbers takes as long as one on thousands. So products are made layer by
layer, and those of all layers are compared together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.transformer.activations.records.heads import LayerActivations


def random_vector(d: int, like: Tensor) -> Tensor:
    """A random vector of length 1, always the same one, in the type of a tensor."""
    return _random_vector(d, like.dtype, like.device)


@cache
def _random_vector(d: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    r = torch.randn(d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (r / r.norm()).to(device=device, dtype=dtype)


def largest(x: Tensor) -> float:
    """Largest absolute value; NaN or infinite if some number is."""
    # heads stand side by side in memory, whose order takes half the time
    by_tokens = x.transpose(1, 2) if x.ndim == 4 else x
    low, high = torch.aminmax(by_tokens)
    return max(-float(low), float(high))


@dataclass(frozen=True, eq=False)
class Products:
    """Products with a random vector that must be equal.

    Attributes
    ----------
    found, expected : tensors of one shape
        Products.
    size : float
        Size of what they are products of, to which rounding is relative.
    """

    found: Float[Tensor, "..."]
    expected: Float[Tensor, "..."]
    size: float


def averages_of(layer: LayerActivations, of_z: float, of_v: float) -> Products:
    """Products A (V r + t 1) and z r + t, less t for a sink, for a random vector r and a number t.

    Parameters
    ----------
    layer : LayerActivations
        What was recorded.
    of_z, of_v : float
        Largest numbers in z and v.
    """
    v, heads = layer.held("v"), layer.pattern.shape[1]
    r, tiny = random_vector(v.shape[-1], v), torch.finfo(v.dtype).tiny
    t = max(of_v, tiny)
    expected = _by_tokens(layer.z, r)
    expected += t if layer.sink is None else t * (1 - layer.sink)
    # a row times a matrix: a matrix times a column took twenty times as long
    averaged = _by_tokens(v, r).add_(t).repeat_interleave(heads // v.shape[1], dim=1)
    found = averaged[..., None, :] @ layer.pattern.mT
    return Products(found[..., 0, :], expected, min(max(of_z, tiny), t))


def _by_tokens(x: Tensor, r: Tensor) -> Tensor:
    """Products of each head's vectors with a vector, in the order that they have in memory."""
    by_tokens = x.transpose(1, 2)
    return (by_tokens @ r).transpose(1, 2) if by_tokens.is_contiguous() else x @ r


def sizes_of(tensors: Sequence[Tensor]) -> list[float]:
    """Largest absolute value of each tensor."""
    return _by_shape(tensors, lambda at: _stacked(tensors, at).flatten(1).abs().amax(1).tolist())


def differences(pairs: Sequence[Products], real: Bool[Tensor, "..."] | None = None) -> list[float]:
    """Largest difference of each pair in units of its size; NaN if a number is.

    Parameters
    ----------
    pairs : sequence of Products
        Those of several layers.
    real : bool, optional
        Which numbers count, in a shape that fits all pairs; by default all.
    """
    found, expected = [one.found for one in pairs], [one.expected for one in pairs]

    def compare(at: Sequence[int]) -> list[float]:
        apart = _stacked(found, at).sub_(_stacked(expected, at))
        apart = apart if real is None else apart.mul_(real)
        return apart.flatten(1).abs().amax(1).tolist()

    off = _by_shape(found, compare)
    tiny = [torch.finfo(x.dtype).tiny for x in found]
    return [by / (one.size + t) for by, one, t in zip(off, pairs, tiny, strict=True)]


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a layer's attention, the last but one among them, and their logits.

    Attributes
    ----------
    pattern : (batch, n_heads, rows, n)
        Rows of attention.
    logits : (batch, n_heads, rows, n)
        Rows of ``scale * q @ k.mT``.
    """

    pattern: Float[Tensor, "batch heads rows n"]
    logits: Float[Tensor, "batch heads rows n"]


def rows_of(layer: LayerActivations) -> Rows:
    """A few rows of a layer's attention."""
    rows, k = some_rows(layer.pattern.shape[-2]), layer.held("k")
    # a copy, so that no more of the attention is held
    pattern = layer.pattern[..., rows, :].clone()
    q = (layer.scale * layer.q[..., rows, :]).flatten(1, 2)
    # heads of a group below one another
    logits = q.unflatten(1, (k.shape[1], q.shape[1] // k.shape[1])) @ k.mT
    return Rows(pattern, logits.view(pattern.shape))


def some_rows(n: int) -> slice:
    """A few rows, the last but one among them."""
    last = max(n - 2, 0)
    step = max(last // 2, 1)
    return slice(last % step, last + 1, step)


def are_softmax(rows: Sequence[Rows], mask: Bool[Tensor, "batch n"]) -> list[bool]:
    """Return for each layer's rows whether they are the softmax of their logits."""
    real = mask[:, None, some_rows(mask.shape[1]), None]

    def compare(at: Sequence[int]) -> list[float]:
        found = _stacked([one.pattern for one in rows], at)
        # what a row may attend to has a weight above 0, but for underflow
        logits = _stacked([one.logits for one in rows], at).masked_fill_(found == 0, -torch.inf)
        expected = logits.softmax(-1).mul_(found.sum(-1, keepdim=True))
        return expected.sub_(found).nan_to_num_(0.0).mul_(real).flatten(1).abs().amax(1).tolist()

    return [off <= 1e-4 for off in _by_shape([one.pattern for one in rows], compare)]


def attend_later(rows: Sequence[Rows], mask: Bool[Tensor, "batch n"]) -> list[bool]:
    """Return for each layer's rows whether tokens attend to later ones."""
    at = some_rows(mask.shape[1])
    tokens = torch.arange(mask.shape[1], device=mask.device)
    later = (tokens > tokens[at, None]) & mask[:, None, at, None] & mask[:, None, None]

    def compare(some: Sequence[int]) -> list[float]:
        weights = _stacked([one.pattern for one in rows], some).masked_fill_(~later, 0.0)
        return weights.flatten(1).abs().amax(1).tolist()

    return [weight != 0 for weight in _by_shape([one.pattern for one in rows], compare)]


def _stacked(tensors: Sequence[Tensor], at: Sequence[int]) -> Tensor:
    return torch.stack([tensors[i] for i in at])


def _by_shape(tensors: Sequence[Tensor], of: Callable[[Sequence[int]], list[float]]) -> list[float]:
    """Numbers of tensors, computed for those of each shape together, in their order."""
    alike: dict[tuple[torch.Size, torch.dtype], list[int]] = {}
    for index, x in enumerate(tensors):
        alike.setdefault((x.shape, x.dtype), []).append(index)
    found = {i: number for at in alike.values() for i, number in zip(at, of(at), strict=True)}
    return [found[i] for i in range(len(tensors))]
