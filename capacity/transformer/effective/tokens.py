"""Tokens that attend and that are attended to: the same in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of some sentences.

    Attributes
    ----------
    mask : (batch, n) bool
        True for tokens that attend, False for padding.
    keys : (batch, m) bool
        The same for those that are attended to.
    """

    mask: Bool[Tensor, "batch n"]
    keys: Bool[Tensor, "batch m"]

    @cached_property
    def padded(self) -> bool:
        """True if there is padding."""
        whole = all(n == self.keys.shape[1] for n in self._n_keys)
        return not (whole and (self.keys is self.mask or self.mask.all()))

    @cached_property
    def rows(self) -> Bool[Tensor, "batch 1 n 1"]:
        """`mask`, as rows of attention."""
        return self.mask[:, None, :, None]

    @cached_property
    def real(self) -> Bool[Tensor, "batch 1 m 1"]:
        """`keys`, as rows of V."""
        return self.keys[:, None, :, None]

    @cached_property
    def _n_keys(self) -> list[int]:
        return self.keys.sum(1).tolist()

    @cached_property
    def _thresholds(self) -> dict[tuple[int, torch.dtype], Tensor]:
        return {}

    def rank_threshold(self, columns: int, dtype: torch.dtype) -> Float[Tensor, "batch"]:
        """Relative rank threshold: max(m, columns) times the machine epsilon, without padding."""
        found = self._thresholds.get((columns, dtype))
        if found is None:
            sizes = torch.tensor([max(n, columns) for n in self._n_keys], device=self.keys.device)
            found = self._thresholds[columns, dtype] = sizes * torch.finfo(dtype).eps
        return found
