"""Check that a device is known to torch and available on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.errors import InvalidArgumentError
from capacity.limits import shown

if TYPE_CHECKING:
    import torch


def require_device(device: torch.device | str) -> None:
    """Refuse a device that torch doesn't know, and a GPU that isn't available.

    Raises
    ------
    InvalidArgumentError
        For such a device.
    """
    import torch

    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError) as error:
        raise InvalidArgumentError(
            f"`device` must be one that torch knows, such as cpu or cuda; got {shown(device)}."
            f"{' A GPU is cuda.' * (device == 'gpu')}"
        ) from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise InvalidArgumentError(
            "`device` is cuda, and this machine has no usable GPU. Say cpu or auto."
        )
