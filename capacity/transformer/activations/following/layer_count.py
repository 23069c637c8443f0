"""Index of the layer of a stack that runs, as the model numbers its layers.

Layers are the elements of a list of modules, and each call of one is a layer: ALBERT calls the same
module again, and hybrids have layers without attention, of Mamba or a convolution, which count.
Where a layer attends twice (LongCat-Flash), its second attention counts as a layer of its own, as
in the model's caches of keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from torch import nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.modules import layers_of


@dataclass(eq=False)
class LayerCount:
    """Number of the layer that runs.

    Attributes
    ----------
    number : int
        Index of the layer, counted from 0; -1 before the first.
    depth : int
        Number of layers that are being computed: 0 between two of them.
    attending : list of int
        Indices of the layers that have attended, in order.
    """

    number: int = -1
    depth: int = 0
    attending: list[int] = field(default_factory=list)
    _has_attended: bool = True

    def enter(self) -> None:
        """Note that a layer begins."""
        if not self.depth:
            self.number, self._has_attended = self.number + 1, False
        self.depth += 1

    def leave(self) -> None:
        """Note that a layer has ended."""
        self.depth -= 1

    def attend(self) -> int:
        """Note an attention, and return the index of its layer."""
        if self._has_attended:
            self.number += 1
        self._has_attended = True
        self.attending.append(self.number)
        return self.number


@contextmanager
def counted_layers(
    stack: nn.Module, count_of_run: Callable[[], LayerCount | None]
) -> Iterator[None]:
    """Count the layers of a stack in this context.

    Parameters
    ----------
    stack : nn.Module
        Module that holds the layers.
    count_of_run : callable
        Returns the count of the run that calls a layer, or None if it isn't to be counted.
    """

    # torch may call hooks without keywords, and with them
    def enter(*_: object) -> None:
        if (count := count_of_run()) is not None:
            count.enter()

    def leave(*_: object) -> None:
        if (count := count_of_run()) is not None:
            count.leave()

    with ExitStack() as hooks:
        for layer in layers_of(stack):
            hooks.callback(layer.register_forward_pre_hook(enter).remove)
            hooks.callback(layer.register_forward_hook(leave).remove)
        yield


def require_attending(what: str, asked: Sequence[int], attending: Sequence[int]) -> None:
    """Refuse layers that a model doesn't have, or that don't attend.

    Parameters
    ----------
    what : str
        What they are, for messages.
    asked, attending : sequences of int
        Indices of layers that are wanted, and of those that have attended.

    Raises
    ------
    InvalidArgumentError
        With the layers that there are.
    """
    odd = [number for number in asked if number not in attending]
    if not odd:
        return
    n = len(attending)
    if list(attending) == list(range(n)):
        raise InvalidArgumentError(f"{what} must be from 0 to {n - 1}; got {odd[0]}.")
    those = ", ".join(map(str, attending))
    raise InvalidArgumentError(f"{what} must be among those that attend, {those}; got {odd[0]}.")
