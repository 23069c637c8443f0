"""The random vector by which products are compared without being computed."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def random_vector(d: int, like: Tensor) -> Tensor:
    """A random vector of length 1, always the same one, in the type of a tensor."""
    return _random_vector(d, like.dtype, like.device)


@cache
def _random_vector(d: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    r = torch.randn(d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (r / r.norm()).to(device=device, dtype=dtype)
