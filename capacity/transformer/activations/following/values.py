"""The linear module that made the values of heads, and the bias that it added to them.

Which one it is shows in the memory that they share, or in the numbers: no names of modules are
needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(eq=False)
class LinearCall:
    """A linear module, its input and its output."""

    module: Any
    input: Tensor
    output: Tensor


@dataclass(eq=False)
class ValuesOf:
    """Values of heads as columns of a linear module's output.

    Attributes
    ----------
    call : LinearCall
        The module's call.
    columns : callable
        Returns the columns of its output that hold the values of each head, or group of heads:
        (n_groups, d_head_vo) int64.
    """

    call: LinearCall
    columns: Callable[[], Int[Tensor, "groups d_head_vo"]]

    @property
    def bias(self) -> Float[Tensor, "groups d_head_vo"] | None:
        """Bias of the values, if the module has one."""
        bias = self.call.module.bias
        return None if bias is None else bias.detach()[self.columns().to(device=bias.device)]


def maker_of(v: Float[Tensor, "batch groups n d_head_vo"], recent: Iterable[LinearCall]) -> Any:
    """Find the call of a linear module whose output, or columns of it, are the values.

    Parameters
    ----------
    v : (batch, n_groups, n, d_head_vo)
        Values.
    recent : iterable of LinearCall
        Calls before the attention, the last one first.

    Returns
    -------
    ValuesOf or None
        None if there is none.
    """
    calls = [call for call in recent if call.output.dtype == v.dtype]
    groups, d_head = v.shape[1], v.shape[3]
    for call in calls:
        if storage_of(call.output) == storage_of(v):
            return ValuesOf(call, partial(_columns_of_view, v, call.output))
    flat = v.transpose(1, 2).reshape(-1, groups * d_head)
    for call in calls:
        if call.output.numel() == flat.numel() and torch.equal(
            call.output.reshape(flat.shape), flat
        ):
            return ValuesOf(call, lambda: torch.arange(groups * d_head).view(groups, d_head))
    for call in calls:
        output = call.output.reshape(-1, call.output.shape[-1])
        if len(output) == len(flat) and output.shape[1] > flat.shape[1]:
            columns = _equal_columns(flat, output)
            if columns is not None:
                return ValuesOf(call, partial(columns.view, groups, d_head))
    return None


def storage_of(x: Tensor) -> int:
    """Address of a tensor's memory."""
    return x.untyped_storage().data_ptr()


def _columns_of_view(v: Tensor, output: Tensor) -> Tensor:
    """Columns of an output that a view of it shows; its strides show which."""
    groups, d_head, width = v.shape[1], v.shape[3], output.shape[-1]
    first = int(v.storage_offset() - output.storage_offset()) % width
    heads = torch.arange(groups)[:, None] * v.stride(1)
    return (first + heads + torch.arange(d_head) * v.stride(3)) % width


def _equal_columns(some: Tensor, among: Tensor) -> Tensor | None:
    """Index of a column of a matrix that equals each column of another one; None if one has none.

    Columns are sorted by their first row, which leaves few to compare.
    """
    order = among[0].argsort(stable=True)
    at = torch.searchsorted(among[0][order].contiguous(), some[0].contiguous())
    columns = order[at.clamp_max(len(order) - 1)]
    return columns if torch.equal(among[:, columns], some) else None
