"""Predictions from sums of some of the terms of e = i + h + f + c (Mickus et al. 2022, Table 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.families import prediction_heads
from capacity.transformer.residual.additive_decomposition import TERMS, AdditiveDecomposition

if TYPE_CHECKING:
    import pandas as pd


def output_head(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """The part of a model that turns its last embeddings into logits of tokens.

    Raises
    ------
    InvalidArgumentError
        For a model without such a head.
    """
    heads = prediction_heads()
    name = next((heads[c.__name__] for c in type(model).__mro__ if c.__name__ in heads), None)
    if name is None:
        raise InvalidArgumentError(
            f"The model must predict tokens: one of {', '.join(heads)}; got "
            f"{type(model).__name__}, which has no masked-LM or LM head."
        )
    return getattr(model, name)


def subsets(n: int) -> Iterator[tuple[int, ...]]:
    """All subsets of 0 ... n - 1 but the empty one, smaller ones first."""
    for size in range(1, n + 1):
        yield from combinations(range(n), size)


@torch.no_grad()
def partial_sum_accuracy(
    head: Callable[[Tensor], Tensor],
    decompositions: Iterable[
        tuple[AdditiveDecomposition, Int[Tensor, "batch n"], Bool[Tensor, "batch n"]]
    ],
) -> pd.DataFrame:
    """Accuracy of predicting tokens from every sum of terms.

    Parameters
    ----------
    head : callable
        From embeddings (m, d_model) to logits (m, d_vocab), such as `output_head` gives.
    decompositions : iterable of (AdditiveDecomposition, targets, where)
        Batches: the tokens to predict, and the places to predict them at, both (batch, n). For a
        causal model the target at a place is the token after it.

    Returns
    -------
    pandas.DataFrame
        One row a subset of terms: a boolean column for each of `TERMS`, ``accuracy`` by argmax,
        ``n``, the number of predictions.

    Raises
    ------
    InvalidArgumentError
        If there is nothing to predict.
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
        raise InvalidArgumentError("Accuracy is a share of predictions; `where` names no token.")
    return pd.DataFrame(
        [
            {**{name: number in chosen for number, name in enumerate(TERMS)},
             "accuracy": int(hits) / n, "n": n}
            for chosen, hits in zip(rows, right, strict=True)
        ]
    )  # fmt: skip


def masked(
    tokens: Int[Tensor, "batch n"],
    where: Bool[Tensor, "batch n"],
    *,
    mask_token: int,
    d_vocab: int,
    share: float = 0.15,
    generator: torch.Generator,
) -> tuple[Any, Any]:
    """BERT's corruption: a share of tokens is chosen; of these 80 % are masked, 10 % replaced.

    Parameters
    ----------
    tokens, where : (batch, n)
        Tokens, and those that may be chosen.
    mask_token, d_vocab : int
    share : float
    generator : torch.Generator

    Returns
    -------
    tokens, chosen : (batch, n)
        What the model reads, and where it is asked.
    """
    chosen = where & (torch.rand(tokens.shape, generator=generator) < share)
    fate = torch.rand(tokens.shape, generator=generator)
    random = torch.randint(d_vocab, tokens.shape, generator=generator)
    corrupt = torch.where(fate < 0.8, mask_token, torch.where(fate < 0.9, random, tokens))
    return torch.where(chosen, corrupt, tokens), chosen
