"""Linear modules: nn.Linear, and GPT-2's Conv1D, which holds its weights transposed."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


def is_linear(module: Any) -> bool:
    """Return True for a module that maps x to x W + b with W and b of its own."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def weight_of(module: Any) -> Tensor:
    """Copy of a linear module's weights, for ``x @ W``: shape (d_in, d_out)."""
    weight = module.weight.detach().clone()
    return weight.T if isinstance(module, nn.Linear) else weight


def bias_of(module: Any) -> Tensor | None:
    """Copy of a linear module's bias, or None."""
    return None if module.bias is None else module.bias.detach().clone()
