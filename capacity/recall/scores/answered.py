"""Answers with their scores, and what all scorers compute them with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

_Row = TypeVar("_Row")


class Answered(NamedTuple):
    """Scores of a query, and what the model writes.

    Attributes
    ----------
    scores : tuple of float
        Log-likelihood of each candidate, NaN where it wasn't needed.
    greedy : tuple of tuple of int
        Tokens that the model ranks first in the place of each right answer, as many as that has.
    n_scored : int
        Number of candidates that were scored.
    """

    scores: tuple[float, ...]
    greedy: tuple[tuple[int, ...], ...]
    n_scored: int


def batches(rows: Sequence[_Row], size: int) -> Iterator[Sequence[_Row]]:
    """Divide rows into batches, of which the last may be smaller."""
    return (rows[at : at + size] for at in range(0, len(rows), size))


def log_p(logits: Tensor, tokens: Tensor) -> Tensor:
    """Log-probabilities of tokens (..., m) by logits (..., n_vocabulary), none above 0.

    Logits are exponentiated as they are, in float32 at least, and summed in float64.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    largest = logits.amax(-1, keepdim=True)
    total = (logits - largest).exp_().sum(-1, keepdim=True, dtype=torch.float64)
    return ((logits.gather(-1, tokens) - largest).double() - total.log()).clamp_max(0.0)
