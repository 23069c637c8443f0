"""The scores that a task asks for, and a loss for them, by torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from capacity.embedding.graph import QueryGraph
from capacity.embedding.tasks import Task
from capacity.rank.types import Indices


class Ranking(NamedTuple):
    """Queries of one direction: of every row of a matrix of scores, the true ones come first."""

    scores: Tensor
    true: Tensor


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
        n_subjects, n_relations, n_objects = self._shape = graph.places
        s, q, o = graph.placed.T
        every = np.zeros((n_subjects * n_relations, n_objects), bool)
        every[s * n_relations + q, o] = True
        rows = np.arange(len(every)) if task != "ranking" else np.flatnonzero(every.any(axis=1))
        self.queries: Indices = np.stack(np.divmod(rows, n_relations), axis=1)
        self.true = torch.from_numpy(every[rows])
        self._tails, self._heads = self.true.any(1), self._turned(self.true).any(1)

    def thresholds(self) -> list[Tensor]:
        """Return a threshold for each query of a ranking, and 0 for signs, as leaves to train."""
        if self.task == "signs":
            return [torch.zeros(1, 1)]
        return [torch.zeros(len(r.true), 1, requires_grad=True) for r in self._of(self.true)]

    def loss(self, scores: Tensor, thresholds: list[Tensor]) -> Tensor:
        """Return the squared hinge loss of scores about their thresholds."""
        sides = [Ranking(scores, self.true)] if self.task == "signs" else self._of(scores)
        return torch.stack([
            torch.relu(1 - (one.scores - threshold) * (one.true.float() * 2 - 1)).square().sum()
            for one, threshold in zip(sides, thresholds, strict=True)
        ]).sum()  # fmt: skip

    def met(self, scores: Tensor) -> bool:
        """Return True if scores do what the task asks."""
        if self.task == "signs":
            return bool(((scores > 0) == self.true).all())
        return all(_ranked(one) for one in self._of(scores))

    def _of(self, scores: Tensor) -> Iterator[Ranking]:
        """Yield the scores of queries (s, q, ?), and of (?, q, o) if they are asked for."""
        yield Ranking(scores[self._tails], self.true[self._tails])
        if self.task == "both-sides":
            yield Ranking(self._turned(scores)[self._heads], self._turned(self.true)[self._heads])

    def _turned(self, scores: Tensor) -> Tensor:
        """Return scores of pairs of a relation and an object with all subjects."""
        if self.task != "both-sides":
            return scores
        n_subjects, n_relations, n_objects = self._shape
        turned = scores.view(n_subjects, n_relations, n_objects).permute(1, 2, 0)
        return turned.reshape(n_relations * n_objects, n_subjects)


def _ranked(one: Ranking) -> bool:
    lowest = torch.where(one.true, one.scores, torch.inf).amin(1)
    highest = torch.where(one.true, -torch.inf, one.scores).amax(1)
    return bool((lowest > highest).all())
