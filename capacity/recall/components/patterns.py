"""Mean attention of prompts of one template, by the places of the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.recall.components.logits import runs_of
from capacity.recall.components.prompts import Place, Prompts, nearest_places, places_of
from capacity.recall.components.replaced import Context
from capacity.transformer.activations.fixed_attention import fixed_attention


class Patterns:
    """Attention of two halves of the prompts, each to be used for the other one.

    Parameters
    ----------
    model : PreTrainedModel
        Causal model.
    prompts : Prompts
        Prompts of a template, two or more.
    halves : (n_prompts,) int
        Half of each prompt, 0 or 1.
    batch_size : int
        Number of prompts that are run together.

    Attributes
    ----------
    layers : tuple of int
        Indices of the layers that attend.
    """

    layers: tuple[int, ...] = ()

    def __init__(
        self, model: Any, prompts: Prompts, halves: NDArray[np.int64], batch_size: int
    ) -> None:
        self._prompts, self._halves = prompts, halves
        self._n_heads: list[int] = []
        # by half, and two places or one: a sum over prompts of weights of all heads of all layers
        self._weights: tuple[_Sums, _Sums] = (_Sums(), _Sums())
        for run in runs_of(model, prompts, batch_size):
            self.layers = run.captured.layer_numbers
            self._n_heads = [layer.pattern.shape[1] for layer in run.captured.layers]
            whole = torch.cat([layer.pattern for layer in run.captured.layers], dim=1)
            for pattern, row in zip(whole, run.rows, strict=True):
                places = places_of(prompts.sources[row])
                of = self._weights[halves[row]]
                for at, place in enumerate(places):
                    of.add((place, None), pattern[:, at].sum(-1))
                    for to, other in enumerate(places[: at + 1]):
                        of.add((place, other), pattern[:, at, to])

    def context(self, model: Any, layers: Sequence[int]) -> Context:
        """Return the contexts in which layers attend as the other half does on the mean."""
        begins = np.cumsum([0, *self._n_heads])

        def of(rows: list[int], n: int) -> AbstractContextManager[Any]:
            whole = torch.stack([self._mean(row, n) for row in rows])
            heads = {layer: slice(begins[i], begins[i + 1]) for i, layer in enumerate(self.layers)}
            return fixed_attention(model, {layer: whole[:, heads[layer]] for layer in layers})

        return of

    def _mean(self, row: int, n: int) -> Tensor:
        """Mean attention of the other half for a prompt, (all heads, n, n), with 0 at padding."""
        of = self._weights[1 - self._halves[row]]
        places = nearest_places(places_of(self._prompts.sources[row]), of.places)
        found = of.like.new_zeros(sum(self._n_heads), n, n)
        for at, place in enumerate(places):
            for to, other in enumerate(places[: at + 1]):
                found[:, at, to] = of.mean((place, other))
            # places that are taken several times, or not at all, would change the sum of a row
            total = found[:, at].sum(-1, keepdim=True)
            wanted = of.mean((place, None))[:, None]
            found[:, at] = torch.where(total > 0, found[:, at] * wanted / total, 0.0)
        return found


class _Sums:
    """Sums of weights of heads over prompts, by a pair of places; one place for a whole row."""

    def __init__(self) -> None:
        self._of: dict[tuple[Place, Place | None], tuple[Tensor, int]] = {}

    def add(self, key: tuple[Place, Place | None], weights: Tensor) -> None:
        before, n = self._of.get(key, (torch.zeros_like(weights), 0))
        self._of[key] = before + weights, n + 1

    def mean(self, key: tuple[Place, Place | None]) -> Tensor:
        weights, n = self._of[key]
        return weights / n

    @property
    def places(self) -> set[Place]:
        return {place for place, _ in self._of}

    @property
    def like(self) -> Tensor:
        return next(iter(self._of.values()))[0]
