"""`Part`, one kind of module of a decoder, and their registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor

    from capacity.layer.engines.tape.tape import Buffer, Tape

Shapes: TypeAlias = dict[str, tuple[int, ...]]


@briefly_shown
@dataclass(frozen=True)
class Part:
    """One kind of module of a decoder: a function of the residual stream, with weights.

    The first argument of its functions is the `DecoderConfig`.

    Attributes
    ----------
    name : str
        Name, which the names of its weights begin with.
    shapes : callable
        ``shapes(config, d_vocab)`` has the shapes of its weights, by name.
    forward : callable
        ``forward(config, weights, x)`` is its definition, by torch: `weights` maps the names to
        tensors, and `x` has the shape (batch, n, d_model), or (batch, n) if it holds tokens.
    record : callable
        ``record(config, tape, x)`` records the same for pairs on a `Tape`, whose operations have
        their gradients.
    fan_in : callable
        ``fan_in(config, name)`` is the number of inputs of a matrix, by which it is initialised
        as U(-1/sqrt(fan_in), 1/sqrt(fan_in)); 0 for N(0, 1), and None for zeros, or ones if the
        name ends with "weight".
    counted_as : str
        Kind under which its weights are counted: 'embeddings', 'heads', 'mlp' or 'norms', or
        another.
    """

    name: str
    shapes: Callable[[Any, int], dict[str, tuple[int, ...]]]
    forward: Callable[[Any, Mapping[str, Tensor], Tensor], Tensor]
    record: Callable[[Any, Tape, Any], Buffer]
    fan_in: Callable[[Any, str], int | None]
    counted_as: str


_PARTS: dict[str, Part] = {}


def register_part(part: Part) -> None:
    """Register a part, which ``DecoderConfig(extra=(name,))`` puts into each layer.

    Parameters
    ----------
    part : Part
        The part, under a new name.

    Raises
    ------
    InvalidArgumentError
        If the name is taken.

    Examples
    --------
    A part that adds its input once more:

    >>> twice = Part("twice", lambda c, n: {}, lambda c, w, x: x, lambda c, tape, x: x,
    ...              lambda c, name: None, "other")
    >>> register_part(twice)
    >>> from capacity.layer import DecoderConfig
    >>> DecoderConfig(2, extra=("twice",)).name
    'd2-h1-qk2-vo2-twice'
    >>> del _PARTS["twice"]
    """
    if part.name in _PARTS:
        raise InvalidArgumentError(
            f"`name` of a part must be new; {part.name} is taken. Choose another name."
        )
    _PARTS[part.name] = part


def part_named(name: str) -> Part:
    """Look up a part.

    Raises
    ------
    InvalidArgumentError
        If there is none of that name.
    """
    if name not in _PARTS:
        raise InvalidArgumentError(
            f"`extra` must have names of registered parts, {', '.join(_PARTS)}; got {name!r:.60}. "
            "Register the part with register_part."
        )
    return _PARTS[name]
