"""Writes over tensors: functions of torch that do so, and products that show what changed since.

A tensor's version isn't enough, because it doesn't count writes through ``x.data``.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, equal

from capacity.transformer.activations.following.by_tensor import ByTensor
from capacity.transformer.activations.following.modules import LayerCount
from capacity.transformer.activations.records.products import random_vector

_ASSIGNING = {"__setitem__", *(f"__i{name}__" for name in ("add", "sub", "mul", "div", "truediv"))}


def writes_over(func: Any) -> bool:
    """Return whether a function of torch writes to its first argument, by its name."""
    name = getattr(func, "__name__", "")
    return (name.endswith("_") and not name.endswith("__")) or name in _ASSIGNING


class Probes:
    """Products of the tensors of a run with one vector, each as it was when it was made.

    Parameters
    ----------
    count : LayerCount
        Number of the layer that runs.

    Attributes
    ----------
    spoilt : str or None
        Where a tensor was first written over, without an operation that can be followed.
    """

    def __init__(self, count: LayerCount) -> None:
        self.spoilt: str | None = None
        self._count = count
        self._vector: Tensor | None = None
        # each product, and the layer where its tensor was last what it was
        self._products = ByTensor()

    def vector(self, like: Tensor) -> Tensor:
        """Return the vector in the type and width of a tensor."""
        vector = self._vector
        if vector is None or len(vector) != like.shape[-1] or vector.dtype != like.dtype:
            vector = self._vector = random_vector(like.shape[-1], like)
        return vector

    def keep(self, x: Tensor, product: Tensor | None = None) -> None:
        """Keep the product of a tensor as it is, which may be known already."""
        product = x @ self.vector(x) if product is None else product
        self._products[x] = product, self._count.index

    def forget(self, x: Tensor) -> None:
        """Keep nothing of a tensor."""
        self._products.pop(x, None)

    def check(self, x: Tensor) -> None:
        """Note if a tensor isn't what it was when its product was kept."""
        before, layer = self._products.get(x, (None, 0))
        if before is None or self.spoilt is not None:
            return
        if equal(x @ self.vector(x), before):
            self._products[x] = before, self._count.index
        else:
            self.spoilt = f"in layer {layer}"
