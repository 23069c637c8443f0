"""Sums over rows and softmax errors, which each kind of device computes in its own way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]


class Rows(Protocol):
    """Rows of a table, of which one may come several times.

    Attributes
    ----------
    index : (n,)
        Their numbers, on the device.
    """

    index: Tensor

    def add(self, *parts: tuple[Tensor, Tensor]) -> None:
        """Add ``values[i]`` to ``out[index[i]]`` for all i, for each part (out, values).

        The order of the sums is fixed.
        """
        ...


class Targets(Protocol):
    """Tokens that rows of logits must predict.

    Attributes
    ----------
    losses : (n_losses,), float64
        Cross entropies in nats of what the blocks had, which sum to the loss of all targets. The
        last are those of the facts' objects, one each.
    """

    losses: Tensor

    def errors(self, block: Tensor, first: int) -> Tensor:
        """Replace a block of logits by errors, in place.

        Parameters
        ----------
        block : (n_rows, width)
            In: logits to the base 2, of the rows from `first` on. Out: for each row the powers
            minus their sum, shared among the row's targets.
        first : int
            Number of the block's first row among all rows.

        Returns
        -------
        (n_rows, 1)
            Scale of each row: its errors times that are the gradient of the loss.
        """
        ...


@dataclass(frozen=True)
class Backend:
    """The way of a kind of device.

    Attributes
    ----------
    rows : callable
        ``rows(numbers, device)`` makes `Rows`.
    targets : callable
        ``targets(starts, tokens, weight, n_tokens, like)`` makes `Targets`: a row must predict the
        tokens from ``tokens[starts[row]]`` on, each of which has a weight in the loss. `like` is a
        tensor of the type of the logits, on their device.
    block_bytes : int
        Size of a block of logits.
    lanes : int
        The width of a block is a multiple of it; the columns beyond the tokens are padding.
    """

    rows: Callable[[Ints, torch.device], Rows]
    targets: Callable[[Ints, Ints, float, int, Tensor], Targets]
    block_bytes: int
    lanes: int


def placed(numbers: Ints, device: torch.device) -> Tensor:
    """Return numbers as a tensor on a device."""
    return torch.from_numpy(numbers).to(device)
