"""Norms of any family, told by their numbers.

Families have norms of their own: means are subtracted or not, the gain is a weight or one more than
it. Which one it is shows in what the norm returns.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from capacity.transformer.activations.cache import Normed

# norms compute in float32, whatever their model does
_SLACK = 1e3 * torch.finfo(torch.float32).eps
# where a norm has no attribute for it
_EPS = (1e-5, 1e-6, 1e-12)


def fitted_norm(
    layer: int | None, module: nn.Module, x: Tensor, output: Tensor, vector: Tensor
) -> Normed | None:
    """Step of a norm that was called.

    Parameters
    ----------
    layer : int or None
        Index of the layer that it belongs to.
    module : nn.Module
        The norm, whose attributes ``weight`` and ``bias`` are vectors or missing.
    x, output : (batch, n, d)
        Its input and output.
    vector : (d,)
        Random vector: products with it tell which kind of norm it is.

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
    found = output @ vector
    slack = _SLACK * found.abs().max()
    gains = [torch.ones_like(vector)] if weight is None else [weight, 1 + weight]
    subtracts = isinstance(module, nn.LayerNorm) or bias is not None
    # some norms have theirs in their code
    for centred, eps in product((subtracts, not subtracts), told[:1] or _EPS):
        if centred:
            _, mean, inverse = torch.native_layer_norm(x, x.shape[-1:], None, None, eps)
            scale = inverse.reciprocal()
        else:
            mean = None
            size = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
            scale = (size.square() / x.shape[-1] + eps).sqrt()
        for gain in gains:
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
