"""Linear modules: nn.Linear, and GPT-2's Conv1D, which holds its weights transposed."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.weak import TensorWeakRef

# by linear module: the last copy of its weights, as long as a cache holds it
_copies: WeakKeyDictionary[Any, TensorWeakRef] = WeakKeyDictionary()


def is_linear(module: Any) -> bool:
    """Return True for a module that maps x to x W + b with W and b of its own."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def weight_of(module: Any) -> Tensor:
    """Copy of a linear module's weights, for ``x @ W``: shape (d_in, d_out).

    Copies are shared as long as the weights stay as they are, so that those of a model aren't held
    once for each text.
    """
    weight = module.weight.detach()
    known = _copies.get(module)
    copy = None if known is None else known()
    if copy is None or not _same(copy, weight):
        copy = weight.clone()
        _copies[module] = TensorWeakRef(copy)
    return copy.T if isinstance(module, nn.Linear) else copy


def bias_of(module: Any) -> Tensor | None:
    """Copy of a linear module's bias, or None."""
    return None if module.bias is None else module.bias.detach().clone()


def _same(copy: Tensor, weight: Tensor) -> bool:
    alike = (copy.dtype, copy.device, copy.shape) == (weight.dtype, weight.device, weight.shape)
    return alike and torch.equal(_bits(copy), _bits(weight))


def _bits(x: Tensor) -> Tensor:
    # fewer and longer numbers are compared in less time
    longer = x.is_contiguous() and x.shape[-1] * x.element_size() % 8 == 0
    return x.view(torch.int64) if longer else x
