"""The scores that a task asks for, and a loss for them, by torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from capacity.embedding.graphs.queries import QueryGraph
from capacity.embedding.tasks import Task
from capacity.exact.types import Indices
from capacity.tensor.coordinates import distinct


class Side(NamedTuple):
    """Queries of one direction.

    Attributes
    ----------
    true : Tensor of bool, shape (n_queries, n_answers)
        The facts.
    signs : Tensor, shape (n_queries, n_answers)
        1 at facts, and -1 elsewhere.
    of : callable
        The scores of these queries, from those of all pairs of a subject and a relation.
    """

    true: Tensor
    signs: Tensor
    of: Callable[[Tensor], Tensor]


class _Loss(torch.autograd.Function):
    """The sum of the squared hinges of scores about thresholds, without copies of the scores."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, threshold: Tensor, signs: Tensor) -> Tensor:
        """Return the sum, and keep what is missing from each margin."""
        above = scores - threshold
        missing = torch.addcmul(torch.ones_like(threshold), above, signs, value=-1).relu_()
        ctx.save_for_backward(missing, signs)
        return missing.flatten().dot(missing.flatten())

    @staticmethod
    def backward(ctx: Any, *grad: Any) -> Any:
        """Return the gradients by scores and thresholds."""
        missing, signs = ctx.saved_tensors
        up = missing.mul_(signs).mul_(-2 * grad[0])
        return up, -up.sum(1, keepdim=True) if ctx.needs_input_grad[1] else None, None


class Asked:
    """The scores that a task compares, of queries with all that may answer them.

    Parameters
    ----------
    graph : QueryGraph
        The facts.
    task : str
        The task, other than exact scores.

    Attributes
    ----------
    queries : ndarray of int64, shape (n_queries, 2)
        Subject and relation of each row of scores: those with a fact for rankings, else all pairs.
    true : Tensor of bool, shape (n_queries, n_objects)
        The facts.
    """

    def __init__(self, graph: QueryGraph, task: Task) -> None:
        self.task = task
        shape = graph.places
        n_subjects, n_relations, n_objects = shape
        s, q, o = graph.placed.T
        keys = s * n_relations + q
        asked = distinct(keys) if task == "ranking" else np.arange(n_subjects * n_relations)
        true = np.zeros((len(asked), n_objects), bool)
        true[np.searchsorted(asked, keys), o] = True
        self.queries: Indices = np.stack(np.divmod(asked, n_relations), axis=1)
        self.true = torch.from_numpy(true)
        self._sides = [_side(self.true, lambda scores: scores)]
        if task == "both-sides":
            tails = self.true.any(1)
            heads = _turned(self.true, shape).any(1)
            self._sides = [
                _side(self.true, lambda scores: scores[tails]),
                _side(self.true, lambda scores: _turned(scores, shape)[heads]),
            ]

    def thresholds(self) -> list[Tensor]:
        """Return a threshold for each query of a ranking, and 0 for signs, as leaves to train."""
        if self.task == "signs":
            return [torch.zeros(1, 1)]
        return [torch.zeros(len(side.true), 1, requires_grad=True) for side in self._sides]

    def loss(self, scores: Tensor, thresholds: list[Tensor]) -> Tensor:
        """Return the squared hinge loss of scores about their thresholds."""
        parts = [
            _Loss.apply(side.of(scores), threshold, side.signs)
            for side, threshold in zip(self._sides, thresholds, strict=True)
        ]
        return torch.stack(parts).sum()

    def met(self, scores: Tensor) -> bool:
        """Return True if scores do what the task asks."""
        if self.task == "signs":
            return bool((torch.where(self.true, scores, -scores) > 0).all())
        return all(_ranked(side.of(scores), side.true) for side in self._sides)


def _side(true: Tensor, of: Callable[[Tensor], Tensor]) -> Side:
    mine = of(true)
    return Side(mine, mine.float() * 2 - 1, of)


def _turned(scores: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Return scores of pairs of a relation and an object with all subjects."""
    n_subjects, n_relations, n_objects = shape
    turned = scores.view(n_subjects, n_relations, n_objects).permute(1, 2, 0)
    return turned.reshape(n_relations * n_objects, n_subjects)


def _ranked(scores: Tensor, true: Tensor) -> bool:
    lowest = torch.where(true, scores, torch.inf).amin(1)
    highest = torch.where(true, -torch.inf, scores).amax(1)
    return bool((lowest > highest).all())
