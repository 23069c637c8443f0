"""Shares of attention that go where induction, previous-token and duplicate heads look.

A token t_i attends, by the kind of the head,

* ``previous_token``: to the token before it, i - 1;
* ``duplicate_token``: to earlier tokens j < i that are the same, t_j = t_i;
* ``induction``: to tokens j <= i after earlier tokens that are the same, t_(j-1) = t_i, so that
  what came next can be predicted again. The score of these is the *prefix-matching score* of Olsson
  et al. (2022), "In-context Learning and Induction Heads"; they take sentences of random tokens
  that are repeated, in which no other pattern is of use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from capacity.checks import require_choice
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache

if TYPE_CHECKING:
    import pandas as pd

ScoredRows: TypeAlias = Literal["targets", "all"]
SCORES = ("previous_token", "duplicate_token", "induction")


@torch.no_grad()
def head_scores(
    captured: ActivationCache,
    tokens: Int[Tensor, "batch n"],
    *,
    rows: ScoredRows = "targets",
) -> pd.DataFrame:
    """Score every head as a previous-token, a duplicate-token and an induction head.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.
    tokens : (batch, n) integers
        The sentences, as token ids with their padding.
    rows : {"targets", "all"}
        Tokens over which attention is averaged: those that have somewhere to look, or all, which
        is the measure ``mul`` of TransformerLens's ``detect_head``.

    Returns
    -------
    pandas.DataFrame
        One row for each sentence, layer and head, with columns ``sentence``, ``layer``, ``head``,
        and ``previous_token``, ``duplicate_token`` and ``induction``: weights from 0 to 1, averaged
        over tokens. NaN where no token of a sentence has somewhere to look.

    Raises
    ------
    InvalidArgumentError
        If `tokens` haven't the shape of the sentences that were captured, or if these attend to
        other sequences.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 1, 2, 2), d_vocab=10, seed=0)
    >>> tokens = torch.tensor([[3, 7, 3]])
    >>> captured = layer.capture(tokens)
    >>> scores = head_scores(captured, tokens)
    >>> bool(abs(scores["induction"][0] - captured.layers[0].pattern[0, 0, 2, 1]) < 1e-6)
    True
    """
    import pandas as pd

    require_choice("`rows`", rows, get_args(ScoredRows))
    _require_fitting(captured, tokens)
    tokens = tokens.to(captured.mask.device)
    where = targets(tokens, captured.mask)
    counted = {
        name: places.any(-1) if rows == "targets" else captured.mask
        for name, places in where.items()
    }
    tables: list[pd.DataFrame] = []
    for number, layer in zip(captured.layer_numbers, captured.layers, strict=True):
        found = {
            name: _average(layer.pattern, where[name], counted[name]).cpu().numpy()
            for name in SCORES
        }
        batch, heads = found[SCORES[0]].shape
        tables.append(
            pd.DataFrame(
                {
                    "sentence": np.repeat(range(batch), heads),
                    "layer": number,
                    "head": np.tile(captured.head_numbers[:heads], batch),
                    **{name: scores.reshape(-1) for name, scores in found.items()},
                }
            )
        )
    table = pd.concat(tables, ignore_index=True)
    return table.sort_values("sentence", kind="stable", ignore_index=True)


def targets(
    tokens: Int[Tensor, "batch n"], mask: Bool[Tensor, "batch n"]
) -> dict[str, Bool[Tensor, "batch n n"]]:
    """Find where each token would attend to in a head of each kind.

    Parameters
    ----------
    tokens : (batch, n) integers
        Token ids.
    mask : (batch, n) bool
        True for tokens, False for padding, which is between no two tokens of a sentence.

    Returns
    -------
    dict of str to (batch, n, n) bool
        By the names of `SCORES`: True at the places in a row that a token looks at.
    """
    every = mask[:, :, None] & mask[:, None]
    same = (tokens[:, :, None] == tokens[:, None]) & every
    duplicate = same.tril(-1)
    after = torch.zeros_like(duplicate)
    after[..., 1:] = duplicate[..., :-1]
    previous = torch.ones_like(same).tril(-1).triu(-1)
    return dict(zip(SCORES, (previous & every, duplicate, after & every), strict=True))


def _average(
    pattern: Float[Tensor, "batch heads n n"], where: Tensor, counted: Tensor
) -> Float[Tensor, "batch heads"]:
    """Weight at some places, averaged over the rows that count."""
    weight = (pattern.double() * where[:, None]).sum((-2, -1))
    return weight / counted.sum(-1)[:, None]


def _require_fitting(captured: ActivationCache, tokens: object) -> None:
    shape = tuple(tokens.shape) if isinstance(tokens, Tensor) else type(tokens).__name__
    if shape != tuple(captured.mask.shape):
        raise InvalidArgumentError(
            f"`tokens` must be the token ids that were captured, a tensor of shape "
            f"{tuple(captured.mask.shape)}; got {shape}."
        )
    if isinstance(tokens, Tensor) and tokens.is_floating_point():
        raise InvalidArgumentError(f"`tokens` must be integers; got {tokens.dtype}.")
    if captured.keys is not None:
        raise InvalidArgumentError(
            "Heads must attend to tokens of their own sentence; those of an attention across two "
            "sequences have no previous token. Capture part='encoder' or part='decoder'."
        )
