"""`Compute`: how a result is computed, beside the `Recipe` of what is. No torch in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from capacity.errors import InvalidArgumentError
from capacity.layer.engines.registry import engine_names
from capacity.options import require_choice, with_known_options

DType: TypeAlias = Literal["float32", "float64"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]


@with_known_options
@dataclass(frozen=True)
class Compute:
    """The engine, the precision and the device of a training.

    Another engine rounds otherwise, and so does another device; another dtype is less or more
    precise. None of them changes what is asked, which is the `Recipe`.

    Parameters
    ----------
    engine : str
        'reference', 'fused', 'blocked', 'padded', or one that `register_engine` has made known;
        'auto' takes the fastest that can train the layer on its device. On GPUs, 'reference' and
        'padded' are plain tensor operations that haven't been run on one.
    dtype : {'float32', 'float64'}
    device : {'auto', 'cpu', 'cuda'}
        'auto' is the layer's own where there is a layer, and else the CPU, whose engines are fast.

    Raises
    ------
    InvalidArgumentError
        For another value.
    """

    engine: str = "auto"
    dtype: DType = "float32"
    device: Device = "auto"

    def __post_init__(self) -> None:
        require_choice("`engine`", self.engine, ("auto", *engine_names()))
        require_choice("`dtype`", self.dtype, get_args(DType))
        require_choice("`device`", self.device, get_args(Device))


def resolve_device(device: Device) -> Literal["cpu", "cuda"]:
    """Find the device that 'auto' stands for, the CPU, and check that a GPU is there.

    Raises
    ------
    InvalidArgumentError
        For another name, or a GPU that isn't there.
    """
    require_choice("`device`", device, get_args(Device))
    if device != "cuda":
        return "cpu"
    import torch

    if not torch.cuda.is_available():
        raise InvalidArgumentError(
            "`device` is cuda, and this machine has no usable GPU. Say cpu or auto."
        )
    return "cuda"
