"""Edits of a layer's activations as it runs.

An edit replaces an activation by what a function makes of it, and everything after it follows: to
patch a head from one sentence into another, to turn its attention away, to hold a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from torch import Tensor

from capacity.checks import require_choice, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError

# what a function makes of an activation, by the name of the activation
Edits: TypeAlias = Mapping[str, Callable[[Tensor], Tensor]]
# in the order of the forward pass
ACTIVATIONS = ("embedding", "q", "k", "v", "pattern", "z", "residual", "logits")


def edited(edits: Edits | None, name: str, activation: Tensor) -> Tensor:
    """Return an activation after its edit, if there is one.

    Raises
    ------
    InvalidTypeError
        If the function returns no tensor.
    InvalidArgumentError
        If it returns one of another shape, dtype or device.
    """
    if not edits or name not in edits:
        return activation
    # a function that changes it in place must not change what it was made of
    made = edits[name](activation.clone())
    if not isinstance(made, Tensor):
        raise InvalidTypeError(
            f"The edit of `{name}` must return a tensor; it returned {shown(made)}."
        )
    same = [(one.shape, one.dtype, one.device) for one in (activation, made)]
    if same[0] != same[1]:
        raise InvalidArgumentError(
            f"The edit of `{name}` must return a tensor of {activation.dtype} of the shape "
            f"{tuple(activation.shape)} on {activation.device}; it returned one of {made.dtype} of "
            f"the shape {tuple(made.shape)} on {made.device}."
        )
    return made


def require_edits(edits: object, names: tuple[str, ...] = ACTIVATIONS) -> None:
    """Refuse what is no mapping of names of activations to functions.

    Raises
    ------
    InvalidTypeError
        If it is none.
    InvalidArgumentError
        For a name that no activation has, with the nearest.
    """
    if not isinstance(edits, Mapping) or not all(map(callable, edits.values())):
        raise InvalidTypeError(
            "`edits` must be functions by the names of activations, such as "
            f'{{"z": lambda z: 0 * z}}; got {shown(edits)}.'
        )
    for name in edits:
        require_choice("An activation that is edited", name, names)
