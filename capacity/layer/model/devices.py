"""Devices: whether torch knows one and this machine has it, and what is raised when it is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from capacity.checks import in_a_line, shown
from capacity.errors import InvalidArgumentError, LostDeviceError

if TYPE_CHECKING:
    import torch
    from torch import Tensor


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
            "`device` is cuda, and this machine has no usable GPU. Choose cpu or auto."
        )


def moved_to(device: torch.device | str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copy tensors to a device.

    Raises
    ------
    InvalidArgumentError
        For a device that isn't available.
    """
    try:
        return {name: tensor.to(device) for name, tensor in tensors.items()}
    # torch raises one or the other
    except (RuntimeError, AssertionError) as error:
        raise InvalidArgumentError(
            f"`device` must be one that torch can use here; got {device!r:.60}. {in_a_line(error)}"
        ) from None


@contextmanager
def lost_device(device: torch.device | str) -> Iterator[None]:
    """Turn what torch and triton raise for a lost or full device into one error.

    A process can't use a device again after most of these errors; a new one can.

    Raises
    ------
    LostDeviceError
        In place of theirs. Errors on a CPU are raised as they are.
    """
    import torch

    try:
        yield
    except RuntimeError as error:
        out_of_memory = isinstance(error, torch.OutOfMemoryError)
        if torch.device(device).type == "cpu" or not (
            out_of_memory or any(mark in str(error) for mark in _MARKS)
        ):
            raise
        what = "has too little memory" if out_of_memory else "failed"
        raise LostDeviceError(
            f"`device` must stay usable; {device} {what}: {in_a_line(error)}. Runs that are done "
            "are kept: run the same command again, with fewer --workers if several share it."
        ) from error


# in the messages of torch's errors of devices, and of triton's
_MARKS = ("CUDA error", "Triton Error [CUDA]", "NVML", "CUBLAS", "cudaError")
