"""Sums over rows and softmax errors by plain tensor operations, on any device.

None of them waits for the device, or adds in an order that isn't fixed.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from capacity.layer.engines.blocked.backend import Backend, Ints, placed

# most rows that one thread sums
PIECE = 64


class _Rows:
    """Rows that are summed in pieces, then the sums of the pieces, and so on."""

    def __init__(self, numbers: Ints, n: int, device: torch.device) -> None:
        self.index = placed(numbers, device)
        self._levels: list[tuple[Tensor, Tensor]] = []
        order, counts = np.argsort(numbers, kind="stable"), np.bincount(numbers, minlength=n)
        while len(order):
            n_pieces = np.where(counts > PIECE, -(-counts // PIECE), 1)
            # pieces of a row of the table lie side by side
            within = np.arange(n_pieces.sum()) - np.repeat(_starts(n_pieces), n_pieces)
            offsets = np.repeat(_starts(counts), n_pieces) + PIECE * within
            self._levels.append((placed(order, device), placed(offsets, device)))
            if len(offsets) == n:
                break
            order, counts = np.arange(len(offsets)), n_pieces

    def add(self, out: Tensor, values: Tensor) -> None:
        if self._levels:
            sums = values.flatten(1)
            for order, offsets in self._levels:
                sums = embedding_bag(order, sums, offsets, mode="sum")
            out += sums


class _Targets:
    """Targets with a loss each."""

    def __init__(
        self, starts: Ints, tokens: Ints, weight: float, _n_tokens: int, like: Tensor
    ) -> None:
        device, counts = like.device, np.diff(starts)
        self._starts, self._weight = starts.tolist(), weight
        self._rows = placed(np.repeat(np.arange(len(counts)), counts), device)
        self._tokens = placed(tokens, device)
        self._counts = placed(counts, device).to(like.dtype)
        self.losses = like.new_empty(len(tokens), dtype=torch.float64)

    def errors(self, block: Tensor, first: int) -> Tensor:
        n_rows, width = block.shape
        start, stop = self._starts[first], self._starts[first + n_rows]
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
