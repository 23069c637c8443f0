"""Patterns of attention: kinds of heads by where they look, and attention rolled out over layers.

A token t_i attends, by the kind of the head,

* ``previous_token``: to the token before it, i - 1;
* ``duplicate_token``: to earlier tokens j < i that are the same, t_j = t_i;
* ``induction``: to tokens j <= i after earlier tokens that are the same, t_(j-1) = t_i, so that
  what came next can be predicted again. The score of these is the *prefix-matching score* of Olsson
  et al. (2022), "In-context Learning and Induction Heads"; they take sentences of random tokens
  that are repeated, in which no other pattern is of use.

Abnar and Zuidema (2020, "Quantifying Attention Flow in Transformers", section 3): a layer passes on
half of what a token holds, and half of what its heads take, averaged over heads. With A_l the mean
pattern of layer l the matrix of a layer is (A_l + I) / 2, and that of layers 0 to l their product,
the last one first. It is a picture of patterns alone: values, feed-forwards and norms, which decide
what is passed on, have no part in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from capacity.checks import require_choice
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache, Written

if TYPE_CHECKING:
    import pandas as pd


@torch.no_grad()
def attention_rollout(
    captured: ActivationCache, *, residual: float = 0.5
) -> Float[Tensor, "layers batch n n"]:
    """Compute the rollout of attention after each layer.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns, with all layers.
    residual : float
        Share of a token that a layer passes on as it is; 1/2 in the paper.

    Returns
    -------
    (n_layers, batch, n, n)
        Share of each token before the first layer (column) in each one after a layer (row). Rows of
        tokens sum to 1, also where a layer has a weight on a sink, which is distributed in
        proportion. Rows and columns of padding are 0.

    Raises
    ------
    InvalidArgumentError
        If some layers weren't captured, if others mix tokens without attention, if tokens attend to
        another sequence, or if `residual` isn't from 0 to 1.

    Examples
    --------
    One layer of two heads, whose patterns are averaged:

    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> captured = layer.capture(torch.tensor([[3, 7]]))
    >>> rollout = attention_rollout(captured)
    >>> rollout.shape, rollout[0].sum(-1).tolist()
    (torch.Size([1, 1, 2, 2]), [[1.0, 1.0]])
    """
    if not 0 <= residual <= 1:
        raise InvalidArgumentError(f"`residual` must be from 0 to 1; got {residual}.")
    _require_whole(captured)
    tokens = captured.mask.to(captured.layers[0].pattern.dtype)
    same = torch.diag_embed(tokens)
    found, product = [], same
    for layer in captured.layers:
        mean = layer.pattern.mean(1)
        total = mean.sum(-1, keepdim=True)
        # rows of padding are 0
        mean = mean / torch.where(total > 0, total, 1.0)
        product = (residual * same + (1 - residual) * mean) @ product
        found.append(product)
    return torch.stack(found)


def _require_whole(captured: ActivationCache) -> None:
    if captured.keys is not None:
        why = "those of an attention across two sequences attend to another one"
    elif captured.chosen[1] is not None:
        why = f"the cache has heads {list(captured.head_numbers)} of each layer alone"
    elif _has_mixers(captured) or captured.layer_numbers != tuple(range(captured.n_layers)):
        why = f"the cache has those of layers {list(captured.layer_numbers)}"
    else:
        return
    raise InvalidArgumentError(
        "A rollout needs all that moves tokens in a model: all heads of all layers, attending to "
        f"their own sentence; {why}. Capture without `layers` and `heads`; a hybrid, some of whose "
        "layers mix tokens without attention, has no rollout."
    )


def _has_mixers(captured: ActivationCache) -> bool:
    return any(isinstance(step, Written) and step.term == "mixers" for step in captured.steps)


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
