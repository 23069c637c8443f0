"""Linear modules: nn.Linear, and GPT-2's Conv1D, which holds its weights transposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.weak import TensorWeakRef


@dataclass(eq=False)
class _Copy:
    """A copy of a module's weights, as long as a cache holds it, and its product with a vector."""

    weights: TensorWeakRef
    vector: Tensor | None = None
    product: Tensor | None = None


# by linear module: the last copy of its weights
_copies: WeakKeyDictionary[Any, _Copy] = WeakKeyDictionary()


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
    copy = None if known is None else known.weights()
    if copy is None or not _same(copy, weight):
        copy = weight.clone()
        _copies[module] = _Copy(TensorWeakRef(copy))
    return copy.T if isinstance(module, nn.Linear) else copy


def product_of(module: Any, weights: Tensor, vector: Tensor) -> Tensor:
    """Product of what `weight_of` returned last for a module with a vector: shape (d_in,).

    It is known as long as the copy is shared, if the vector is the same tensor as before.
    """
    known = _copies[module]
    if known.product is None or known.vector is not vector:
        known.vector, known.product = vector, weights @ vector
    return known.product


def bias_of(module: Any) -> Tensor | None:
    """Copy of a linear module's bias, or None."""
    return None if module.bias is None else module.bias.detach().clone()


def _same(copy: Tensor, weight: Tensor) -> bool:
    alike = (copy.dtype, copy.device, copy.shape) == (weight.dtype, weight.device, weight.shape)
    if alike and _fills_words(copy) and _fills_words(weight):
        # fewer and longer numbers are compared in less time
        return torch.equal(copy.view(torch.int64), weight.view(torch.int64))
    return alike and torch.equal(copy, weight)


def _fills_words(x: Tensor) -> bool:
    """Return True if the rows of a matrix can be read as integers of 64 bits."""
    sizes = x.shape[-1], x.storage_offset()
    return x.is_contiguous() and all(n * x.element_size() % 8 == 0 for n in sizes)
