"""Sums over rows and softmax errors by plain tensor operations, on any device.

No step on all facts waits for the device in here, and none adds in an order that isn't fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from capacity.layer.engines.blocked.backend import Backend, Ints, placed

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
