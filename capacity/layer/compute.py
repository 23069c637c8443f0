"""`Compute`: the engine, precision and device of a training. No torch in here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from capacity.checks import require_choice, with_known_options
from capacity.display import briefly_shown
from capacity.layer.engines.registry import engine_names
from capacity.layer.model.devices import require_device

DType: TypeAlias = Literal["float32", "float64"]
Device: TypeAlias = Literal["auto", "cpu", "cuda"]


@briefly_shown
@with_known_options
@dataclass(frozen=True)
class Compute:
    """Engine, precision and device of a training.

    Engines and devices round differently, and float64 is more precise than float32. The
    computation itself is defined by the `Recipe`.

    Parameters
    ----------
    engine : str
        'reference', 'fused', 'blocked', 'triton', or an engine added by `register_engine`; 'auto'
        takes the fastest that can train the layer on a CPU. On GPUs 'reference', 'blocked' and,
        with the extra `gpu`, 'triton' can train; 'auto' takes 'triton' where it can, else
        'blocked', else 'reference'. Each trains 16 small runs first, and is refused if 'reference'
        on the CPU trains them to other weights.
    dtype : {'float32', 'float64'}
        Type of weights, gradients and moments.
    device : {'auto', 'cpu', 'cuda'}
        'auto' is the device of the layer if there is one already, and the CPU otherwise.

    Raises
    ------
    InvalidArgumentError
        For a value that isn't listed.
    InvalidTypeError
        For an unknown option.

    Examples
    --------
    >>> Compute("fused", dtype="float64").device
    'auto'
    """

    engine: str = "auto"
    dtype: DType = "float32"
    device: Device = "auto"

    def __post_init__(self) -> None:
        require_choice("`engine`", self.engine, ("auto", *engine_names()))
        require_choice("`dtype`", self.dtype, get_args(DType))
        require_choice("`device`", self.device, get_args(Device))


def resolve_device(device: Device) -> Literal["cpu", "cuda"]:
    """Resolve 'auto', which is the CPU, and check that a GPU asked for is available.

    Raises
    ------
    InvalidArgumentError
        For another name, or a GPU that isn't available.
    """
    require_choice("`device`", device, get_args(Device))
    if device != "cuda":
        return "cpu"
    require_device(device)
    return "cuda"
