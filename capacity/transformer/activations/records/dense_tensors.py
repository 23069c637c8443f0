"""Tensors that this library computes with: of numbers, in rows, in memory.

Sparse, nested and quantised tensors, and those of the device ``meta``, which have no values, are
tensors as well, and fail in the middle of the arithmetic, with errors that name neither them nor
what to do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError


def require_dense(what: str, x: object, device: torch.device | None = None) -> None:
    """Refuse a tensor that arithmetic isn't defined for; what is no tensor is refused elsewhere.

    Parameters
    ----------
    what : str
        Its name, for messages.
    x : object
        The tensor.
    device : torch.device, optional
        Device of the pattern, which it must share.

    Raises
    ------
    InvalidArgumentError
        For a sparse, nested or quantised tensor, one on another device, or one of 8 bits.
    """
    if not isinstance(x, Tensor):
        return
    layout = "nested" if x.is_nested else "quantized" if x.is_quantized else str(x.layout)
    if layout != "torch.strided":
        raise InvalidArgumentError(
            f"{what} must be dense; got a tensor of the layout {layout.removeprefix('torch.')}. "
            "Make a dense one of it."
        )
    if x.is_meta or (device is not None and x.device != device):
        on = "" if device is None or device.type == "meta" else f", on the device {device}"
        raise InvalidArgumentError(
            f"{what} must have values{on}; got a tensor on {x.device}. Compute it there."
        )
    if x.is_floating_point() and x.dtype.itemsize == 1:
        raise InvalidArgumentError(
            f"{what} must be of 16, 32 or 64 bits; got {str(x.dtype).removeprefix('torch.')}. "
            "Convert it by float()."
        )
