"""Predictions from partial sums of the terms of e = i + h + f + c (Mickus et al. 2022, Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.residual.additive_decomposition import TERMS, AdditiveDecomposition

if TYPE_CHECKING:
    import pandas as pd


def subsets(n: int) -> Iterator[tuple[int, ...]]:
    """Non-empty subsets of 0 ... n - 1, smaller ones first."""
    for size in range(1, n + 1):
        yield from combinations(range(n), size)


@torch.no_grad()
def partial_sum_accuracy(
    head: Callable[[Tensor], Tensor],
    decompositions: Iterable[
        tuple[AdditiveDecomposition, Int[Tensor, "batch n"], Bool[Tensor, "batch n"]]
    ],
) -> pd.DataFrame:
    """Accuracy of predicting tokens from every partial sum of terms.

    Parameters
    ----------
    head : callable
        Map from embeddings (m, d_model) to logits (m, d_vocab), such as `output_head` returns.
    decompositions : iterable of (AdditiveDecomposition, targets, where)
        Batches, each with the tokens to predict and the positions to predict them at (bool), both
        (batch, n). For a causal model the target at a position is the next token.

    Returns
    -------
    pandas.DataFrame
        One row for each subset of terms: a boolean column for each of `TERMS`, ``accuracy`` by
        argmax, and ``n``, the number of predictions.

    Raises
    ------
    InvalidArgumentError
        If `where` marks no token.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> from capacity.transformer import decompose
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> tokens = torch.tensor([[3, 7]])
    >>> predicted = layer(tokens).argmax(-1)
    >>> where = torch.tensor([[False, True]])
    >>> batch = decompose(layer.capture(tokens)), predicted, where
    >>> table = partial_sum_accuracy(lambda e: e @ layer.W_U, [batch])
    >>> len(table), table.query("input and heads")["accuracy"].tolist()
    (15, [1.0, 1.0, 1.0, 1.0])
    """
    import pandas as pd

    rows = list(subsets(len(TERMS)))
    right, n = torch.zeros(len(rows), dtype=torch.int64), 0
    for split, targets, where in decompositions:
        places = where & split.mask
        terms, wanted = split.terms[-1][:, places], targets[places]
        n += len(wanted)
        for row, chosen in enumerate(rows):
            said = head(terms[list(chosen)].sum(0)).argmax(-1)
            right[row] += (said == wanted).sum().cpu()
    if not n:
        raise InvalidArgumentError(
            "There must be a token to predict; `where` marks none that isn't padding."
        )
    return pd.DataFrame(
        [
            {**{name: number in chosen for number, name in enumerate(TERMS)},
             "accuracy": int(hits) / n, "n": n}
            for chosen, hits in zip(rows, right, strict=True)
        ]
    )  # fmt: skip
