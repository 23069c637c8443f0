"""Answers of a model, as it is and with what heads write replaced by that of other prompts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from capacity.recall.components.judging import brought
from capacity.recall.components.logits import batched, runs_of
from capacity.recall.components.prompts import Place, Prompts, nearest_places, places_of
from capacity.transformer.activations.editing import Edits, edited

# what heads write instead: nothing, their mean at the place, or what they write of another subject
Mode: TypeAlias = Literal["mean", "zero", "resample"]
Heads: TypeAlias = Sequence[tuple[int, int]]
# the context in which a batch of prompts, of these indices and this length, is run
Context: TypeAlias = Callable[[list[int], int], AbstractContextManager[Any]]


def _as_it_is(_rows: list[int], _n: int) -> AbstractContextManager[Any]:
    return nullcontext()


@torch.no_grad()
def facts_right(
    model: Any, prompts: Prompts, batch_size: int, context: Context = _as_it_is
) -> NDArray[np.bool_]:
    """Run a model on prompts, and mark the facts for which it is right, shape (n_facts,).

    Parameters
    ----------
    model : PreTrainedModel
        Causal model.
    prompts : Prompts
        Prompts.
    batch_size : int
        Number of prompts that are run together.
    context : callable
        Returns the context of a batch, from the indices of its prompts and their padded length.
    """
    logits = np.zeros((len(prompts.ids), len(prompts.tokens)))
    for rows, inputs in batched(prompts, batch_size, next(model.parameters()).device):
        with context(rows, inputs["input_ids"].shape[1]):
            found = model(**inputs, use_cache=False).logits
        at = inputs["attention_mask"].sum(1) - 1
        last = found[torch.arange(len(rows), device=at.device), at]
        logits[rows] = last[:, list(prompts.tokens)].double().cpu().numpy()
    return brought(logits, prompts)


class Outputs:
    """Outputs of all heads in prompts of one template, by the place of the token.

    Parameters
    ----------
    model : PreTrainedModel
        Causal model.
    prompts : Prompts
        Prompts of the template.
    rows : iterable of int
        Prompts whose outputs are kept.
    batch_size : int
        Number of prompts that are run together.
    """

    def __init__(self, model: Any, prompts: Prompts, rows: Iterable[int], batch_size: int) -> None:
        self._prompts = prompts
        # of each prompt and place, outputs of the heads of each layer: (n_heads, d_head_vo)
        self._of: dict[int, dict[Place, list[Tensor]]] = {}
        chosen = set(rows)
        for run in runs_of(model, prompts, batch_size):
            self.layers = run.captured.layer_numbers
            for i, row in enumerate(run.rows):
                if row in chosen:
                    self._of[row] = {
                        place: [layer.z[i, :, at] for layer in run.captured.layers]
                        for at, place in enumerate(places_of(prompts.sources[row]))
                    }
        self._mean = {
            place: [torch.stack(every).mean(0) for every in zip(*outputs, strict=True)]
            for place, outputs in _by_place(self._of.values()).items()
        }

    @property
    def n_heads(self) -> dict[int, int]:
        """Number of heads of each layer."""
        some = next(iter(self._mean.values()))
        return {layer: len(z) for layer, z in zip(self.layers, some, strict=True)}

    def context(self, model: Any, heads: Heads, mode: Mode, rng: np.random.Generator) -> Context:
        """Return the contexts in which heads write something else.

        Parameters
        ----------
        model : PreTrainedModel
            The model.
        heads : sequence of (int, int)
            Layers and heads.
        mode : {"mean", "zero", "resample"}
            What they write.
        rng : numpy.random.Generator
            Draws the other subjects of ``resample``.
        """

        def of(rows: list[int], n: int) -> AbstractContextManager[Any]:
            outputs = [self._of_other(row, mode, rng) for row in rows]
            instead: dict[int, dict[int, Tensor | None]] = {}
            for layer, head in heads:
                at = self.layers.index(layer)
                one = None if mode == "zero" else self._tensor(rows, outputs, at, head, n)
                instead.setdefault(layer, {})[head] = one
            return edited(model, Edits(instead), None)

        return of

    def _of_other(
        self, row: int, mode: Mode, rng: np.random.Generator
    ) -> Mapping[Place, list[Tensor]]:
        if mode != "resample":
            return self._mean
        others = [other for other in self._of if other != row]
        return self._of[others[rng.integers(len(others))]] if others else self._mean

    def _tensor(
        self, rows: list[int], outputs: list[Mapping[Place, list[Tensor]]], at: int, head: int,
        n: int,
    ) -> Tensor:  # fmt: skip
        """Outputs of a head in place of its own, (batch, n, d_head_vo), with 0 at padding."""
        z = next(iter(self._mean.values()))[at][head]
        found = z.new_zeros(len(rows), n, len(z))
        for i, (row, of) in enumerate(zip(rows, outputs, strict=True)):
            places = nearest_places(places_of(self._prompts.sources[row]), of)
            for j, place in enumerate(places):
                found[i, j] = of[place][at][head]
        return found


def _by_place(
    outputs: Iterable[Mapping[Place, list[Tensor]]],
) -> dict[Place, list[list[Tensor]]]:
    found: dict[Place, list[list[Tensor]]] = {}
    for of in outputs:
        for place, every in of.items():
            found.setdefault(place, []).append(every)
    return found


def like_random(
    heads: Heads, n_heads: Mapping[int, int], rng: np.random.Generator
) -> Iterator[tuple[int, int]]:
    """Draw as many other heads, of the same layers, or of the next layers that have some left.

    Parameters
    ----------
    heads : sequence of (int, int)
        Heads that aren't drawn.
    n_heads : mapping of int to int
        Number of heads of each layer.
    rng : numpy.random.Generator
        Source of random numbers.
    """
    left = [(a, h) for a, n in n_heads.items() for h in range(n) if (a, h) not in set(heads)]
    for layer, _ in heads:
        if not left:
            return
        nearest = min(abs(a - layer) for a, _ in left)
        some = [one for one in left if abs(one[0] - layer) == nearest]
        one = some[int(rng.integers(len(some)))]
        left.remove(one)
        yield one
