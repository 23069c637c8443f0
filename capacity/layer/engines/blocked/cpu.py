"""Sums over rows and softmax errors on a CPU, by compiled loops."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from capacity.layer.engines.blocked.backend import Backend, Ints
from capacity.layer.engines.blocked.softmax import errors_of, scatter_add


class _Rows:
    """Rows that are summed one after the other."""

    def __init__(self, numbers: Ints, _device: torch.device) -> None:
        self._numbers = np.ascontiguousarray(numbers)
        self.index = torch.from_numpy(self._numbers)

    def add(self, *parts: tuple[Tensor, Tensor]) -> None:
        for out, values in parts:
            scatter_add(out.numpy(), self._numbers, values.flatten(1).numpy())


class _Targets:
    """Targets whose losses are summed row by row."""

    def __init__(
        self, starts: Ints, tokens: Ints, weight: float, n_tokens: int, like: Tensor
    ) -> None:
        self._starts, self._tokens, self._weight = starts, tokens, weight
        n_rows = len(starts) - 1
        self.losses = torch.empty(n_rows, dtype=torch.float64)
        self._scales = like.new_empty(n_rows, 1)
        # 0 for tokens, and -inf for the padding of a block
        self._mask = like.new_zeros(-(-n_tokens // CPU.lanes) * CPU.lanes)
        self._mask[n_tokens:] = -torch.inf

    def errors(self, block: Tensor, first: int) -> Tensor:
        errors_of(
            block.view(-1).numpy(), first, first + len(block), self._starts, self._tokens,
            self._weight, self._scales.view(-1).numpy(), self.losses.numpy(), self._mask.numpy(),
        )  # fmt: skip
        return self._scales.narrow(0, first, len(block))


# a block has about the size of the L2 cache, and whole vectors of either type
CPU = Backend(_Rows, _Targets, block_bytes=1 << 20, lanes=16)
