"""Sums over rows and softmax errors: what kinds of devices compute in their own ways, and one way.

Those on a CPU are compiled loops (`capacity.layer.engines.blocked.cpu`). On any other device they
are plain tensor operations: no step on all facts waits for the device, and none adds in an order
that isn't fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

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


# most rows that one thread sums
PIECE = 64


class _Rows:
    """Rows that are summed in pieces, then the sums of the pieces, and so on."""

    def __init__(self, numbers: Ints, device: torch.device) -> None:
        self.index = placed(numbers, device)
        distinct, counts = np.unique(numbers, return_counts=True)
        self._distinct = placed(distinct, device)
        self._levels: list[tuple[Tensor, Tensor]] = []
        order = np.argsort(numbers, kind="stable")
        while len(order):
            n_pieces = -(-counts // PIECE)
            # the pieces of a row lie side by side
            within = np.arange(n_pieces.sum()) - np.repeat(_starts(n_pieces), n_pieces)
            offsets = np.repeat(_starts(counts), n_pieces) + PIECE * within
            self._levels.append((placed(order, device), placed(offsets, device)))
            if len(offsets) == len(distinct):
                break
            order, counts = np.arange(len(offsets)), n_pieces

    def add(self, *parts: tuple[Tensor, Tensor]) -> None:
        # numbers are distinct, or the order would be anybody's
        for out, sums in zip([out for out, _ in parts], self._sums(parts), strict=True):
            out.index_add_(0, self._distinct, sums)

    def _sums(self, parts: tuple[tuple[Tensor, Tensor], ...]) -> Sequence[Tensor]:
        """Sums of all values of each distinct row."""
        values = [values.flatten(1) for _, values in parts]
        sums = torch.cat(values, dim=1)
        for order, offsets in self._levels:
            sums = embedding_bag(order, sums, offsets, mode="sum")
        return sums.split([part.shape[1] for part in values], dim=1)


class _Targets:
    """Targets with a loss each."""

    def __init__(
        self, starts: Ints, tokens: Ints, weight: float, _n_tokens: int, like: Tensor
    ) -> None:
        device, counts = like.device, np.diff(starts)
        self._starts, self._weight = starts, weight
        self._rows = placed(np.repeat(np.arange(len(counts)), counts), device)
        self._tokens = placed(tokens, device)
        self._counts = placed(counts, device).to(like.dtype)
        self.losses = like.new_empty(len(tokens), dtype=torch.float64)

    def errors(self, block: Tensor, first: int) -> Tensor:
        n_rows, width = block.shape
        start, stop = map(int, self._starts[[first, first + n_rows]])
        rows = self._rows.narrow(0, start, stop - start) - first
        # a row's targets differ from one another
        at = rows * width + self._tokens.narrow(0, start, stop - start)
        flat = block.view(-1)
        right = flat.index_select(0, at).double()
        most = block.amax(1, keepdim=True)
        powers = block.sub_(most).exp2_().sum(1)
        log_powers = most.squeeze(1).double() + powers.double().log2()
        losses = self.losses.narrow(0, start, stop - start)
        torch.mul(log_powers.index_select(0, rows) - right, math.log(2), out=losses)
        counts = self._counts.narrow(0, first, n_rows)
        flat.index_add_(0, at, (powers / counts).index_select(0, rows), alpha=-1)
        return (self._weight * counts / powers).unsqueeze(1)


def _starts(counts: Ints) -> Ints:
    """Begin of each part."""
    return np.cumsum(counts) - counts


# large enough to fill a device, small enough for its L2 cache; not measured
GPU = Backend(_Rows, _Targets, block_bytes=1 << 25, lanes=1)
