"""Scales of values: powers of two, division by which changes no digit, no rank and no projection.

Squares of numbers beyond 1e154 in float64 (1e19 in float32) overflow, and those of numbers below
1e-154 (1e-19) vanish, though analyses of attention don't depend on the scale of values.
"""

from __future__ import annotations

import torch
from torch import Tensor


def scale_of(x: Tensor, dim: tuple[int, ...]) -> Tensor:
    """Power of two that brings the largest entry of x over some dimensions into [1/2, 1).

    Parameters
    ----------
    x : tensor of floats
        Finite numbers.
    dim : tuple of int
        Dimensions to take the largest entry over.

    Returns
    -------
    tensor like x, of size 1 in `dim`
        The power of two; 1 where all entries are 0.
    """
    largest = x.abs().amax(dim, keepdim=True)
    return torch.where(largest > 0, largest / torch.frexp(largest).mantissa, 1.0)
