"""Norms of any family, told by their numbers.

Families have norms of their own: means are subtracted or not, the gain is a weight or one more than
it. Which one it is shows in what the norm returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from capacity.transformer.activations.records.cache import Normed

# norms compute in float32, whatever their model does
_SLACK = 1e3 * torch.finfo(torch.float32).eps
# where a norm has no attribute for it
_EPS = (1e-5, 1e-6, 1e-12)


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and scale that a LayerNorm takes from each token's features.

    Attributes
    ----------
    eps : float
        What it adds to the variance.
    mean, inverse : (..., 1)
        Mean, and reciprocal of the standard deviation, with `eps`.
    """

    eps: float
    mean: Tensor
    inverse: Tensor


def fitted_norm(
    layer: int | None,
    module: nn.Module,
    x: Tensor,
    found: Tensor,
    vector: Tensor,
    moments: Moments | None = None,
) -> Normed | None:
    """Step of a norm that was called.

    Parameters
    ----------
    layer : int or None
        Index of the layer that it belongs to.
    module : nn.Module
        The norm, whose attributes ``weight`` and ``bias`` are vectors or missing.
    x : (batch, n, d)
        Its input.
    found : (batch, n)
        Product of its output with `vector`, which tells which kind of norm it is.
    vector : (d,)
        Random vector.
    moments : Moments, optional
        What `torch.native_layer_norm` has computed of `x`, if it was called.

    Returns
    -------
    Normed or None
        The step that gives this output; None if neither a LayerNorm nor an RMSNorm does.
    """
    known: Any = module
    weight, bias = getattr(known, "weight", None), getattr(known, "bias", None)
    weight, bias = (None if w is None else w.detach() for w in (weight, bias))
    if any(w is not None and w.shape != x.shape[-1:] for w in (weight, bias)):
        return None
    names = ("eps", "variance_epsilon", "epsilon")
    told = [e for name in names if (e := getattr(known, name, None)) is not None]
    slack = _SLACK * found.abs().max()
    subtracts = isinstance(module, nn.LayerNorm) or bias is not None
    # some norms have theirs in their code
    for centred, eps in product((subtracts, not subtracts), told[:1] or _EPS):
        if centred:
            if moments is None or moments.eps != eps:
                _, mean, inverse = torch.native_layer_norm(x, x.shape[-1:], None, None, eps)
                moments = Moments(eps, mean, inverse)
            mean = moments.mean.view(*x.shape[:-1], 1)
            scale = moments.inverse.view(*x.shape[:-1], 1).reciprocal()
        else:
            mean = None
            size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
            scale = (size.square() / x.shape[-1] + eps).sqrt()
        for gain in _gains(weight, vector):
            # the product of the output with the vector, without the output
            expected = x @ (gain * vector)
            if mean is not None:
                expected = expected - mean[..., 0] * (gain @ vector)
            expected = expected / scale[..., 0]
            if bias is not None:
                expected = expected + bias @ vector
            if (expected - found).abs().max() <= slack:
                # copies: the model may be trained further
                copy = None if bias is None else bias.clone()
                return Normed(layer, mean, scale, gain.clone(), copy)
    return None


def _gains(weight: Tensor | None, like: Tensor) -> Iterator[Tensor]:
    if weight is None:
        yield torch.ones_like(like)
    else:
        yield weight
        yield 1 + weight
