"""Statistics of patterns: shares of kinds of tokens, shapes, similarity of two models.

All of them take standard and effective attention. Rows of effective attention aren't distributions,
so that shares are shares of a row's absolute weights; for standard attention these are the weights
themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache

if TYPE_CHECKING:
    import pandas as pd


def normalised(pattern: Float[Tensor, "... n n"]) -> Float[Tensor, "... n n"]:
    """Absolute weights divided by their row sums; rows of zeros stay zero."""
    weights = pattern.abs()
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)


def token_shares(
    pattern: Float[Tensor, "batch heads n n"],
    kinds: Mapping[str, Bool[Tensor, "batch n"]],
    rows: Bool[Tensor, "batch n"],
) -> pd.DataFrame:
    """Measure how much attention kinds of tokens get (Sun and Marasovic 2021, Figures 1, 5, 6).

    Parameters
    ----------
    pattern : (batch, heads, n, n)
        Attention of one layer, standard or effective.
    kinds : mapping of str to (batch, n) bool
        Name of each kind, and its tokens, such as ``{"[SEP]": tokens == sep, ...}``; a token may
        be of several kinds.
    rows : (batch, n) bool
        Attending tokens to average over: in Figure 1 those that are [CLS], in Figures 5 and 6 all
        others.

    Returns
    -------
    pandas.DataFrame
        One row for each head and kind, with means over the attending tokens: ``head``, ``kind``,
        ``share`` of absolute weights, ``weight`` (signed, not normalised) and ``largest``, the
        largest weight on one token of the kind, as in Figure 1; sentences without the kind don't
        count in ``largest``.

    Raises
    ------
    InvalidArgumentError
        If `rows` or `kinds` is empty, or a tensor of tokens has another shape or isn't bool.

    Examples
    --------
    >>> pattern = torch.tensor([[[[0.75, 0.25], [0.25, 0.75]]]])
    >>> first, both = torch.tensor([[True, False]]), torch.tensor([[True, True]])
    >>> table = token_shares(pattern, {"first": first, "any": both}, rows=first)
    >>> table[["kind", "share", "largest"]].to_numpy().tolist()
    [['first', 0.75, 0.75], ['any', 1.0, 0.75]]
    """
    import pandas as pd

    shape = (pattern.shape[0], pattern.shape[-1])
    for name, marks in {"rows": rows, **kinds}.items():
        if tuple(marks.shape) != shape or marks.dtype != torch.bool:
            raise InvalidArgumentError(
                f"Tokens must be marked by a bool tensor of shape {shape}; {name!r} is "
                f"{marks.dtype} of shape {tuple(marks.shape)}."
            )
    if not kinds:
        raise InvalidArgumentError("`kinds` must name at least one kind of tokens; got none.")
    if not rows.any():
        raise InvalidArgumentError("`rows` must mark at least one attending token; got none.")
    # (heads, rows that count, n)
    weights = pattern.transpose(0, 1)[:, rows]
    shares = normalised(pattern).transpose(0, 1)[:, rows]
    table = []
    for kind, columns in kinds.items():
        of_kind = columns[:, None].expand(*rows.shape, -1)[rows]
        there = of_kind.any(-1)
        # sentences without such a token have no largest weight
        largest = weights.masked_fill(~of_kind, -torch.inf).amax(-1)[:, there].mean(-1)
        share, weight = ((x * of_kind).sum(-1).mean(-1) for x in (shares, weights))
        table += [
            {"head": h, "kind": kind, "share": float(share[h]), "weight": float(weight[h]),
             "largest": float(largest[h])}
            for h in range(len(weights))
        ]  # fmt: skip
    return pd.DataFrame(table)


def pattern_statistics(
    pattern: Float[Tensor, "batch heads n n"], mask: Bool[Tensor, "batch n"]
) -> dict[str, Float[Tensor, "batch heads"]]:
    """Measure the shapes of patterns: vertical, diagonal, dispersed, signed.

    Kovaleva et al. (2019) classify patterns by hand, and by a network trained on these labels, as
    vertical, diagonal, block and heterogeneous. Shares of absolute weights need no labels.

    Parameters
    ----------
    pattern : (batch, heads, n, n)
        Attention of one layer, standard or effective, 0 at padding.
    mask : (batch, n) bool
        True for tokens, False for padding.

    Returns
    -------
    dict of str to (batch, heads) tensors
        ``vertical``: largest share of one token over all rows. ``diagonal``: share of a row's own
        token and its two neighbours. ``entropy``: mean entropy of rows, in nats. ``row_sum``: mean
        signed sum of rows. ``negative``: share of negative weights.

    Examples
    --------
    >>> pattern = torch.tensor([[[[0.5, 0.5, 0.0]] * 3]])
    >>> found = pattern_statistics(pattern, torch.ones(1, 3, dtype=torch.bool))
    >>> {name: round(float(value), 3) for name, value in found.items()}
    {'vertical': 0.5, 'diagonal': 0.833, 'entropy': 0.693, 'row_sum': 1.0, 'negative': 0.0}
    """
    real = mask[:, None, :, None]
    n = mask.sum(1)[:, None].to(pattern.dtype)
    shares = normalised(pattern) * real
    total = pattern.abs().sum((-2, -1))
    total = torch.where(total > 0, total, 1.0)
    size = pattern.shape[-1]
    near = torch.ones(size, size, device=pattern.device).triu(-1).tril(1)
    # x log x is 0 at 0
    entropy = -torch.special.xlogy(shares, shares).sum(-1)
    return {
        "vertical": shares.sum(-2).amax(-1) / n,
        "diagonal": (shares * near).sum((-2, -1)) / n,
        "entropy": entropy.sum(-1) / n,
        "row_sum": (pattern * real).sum((-2, -1)) / n,
        "negative": pattern.clamp_max(0).abs().sum((-2, -1)) / total,
    }


def attention_cosine(
    first: Sequence[Tensor], second: Sequence[Tensor]
) -> Float[Tensor, "layers heads"]:
    """Compute the cosine of the patterns of two models on the same sentences.

    Parameters
    ----------
    first, second : sequences of (batch, heads, n, n)
        Attention of the two models, one tensor for each layer; standard or effective.

    Returns
    -------
    (layers, heads)
        Mean over sentences of the cosine between the two patterns, flattened to vectors.

    Raises
    ------
    InvalidArgumentError
        If the models differ in their numbers of layers or heads, or in sentences.

    Examples
    --------
    >>> diagonal, uniform = torch.eye(4)[None, None], torch.full((1, 1, 4, 4), 0.25)
    >>> attention_cosine([diagonal, uniform], [diagonal, diagonal])
    tensor([[1.0000],
            [0.5000]])
    """
    shapes = [tuple(x.shape) for x in first], [tuple(x.shape) for x in second]
    if shapes[0] != shapes[1] or not shapes[0]:
        raise InvalidArgumentError(
            "Two models must have patterns of the same shapes, layer by layer, on the same "
            f"sentences; got {shapes[0]} and {shapes[1]}."
        )
    return torch.stack(
        [
            torch.cosine_similarity(a.flatten(2), b.flatten(2), dim=-1).mean(0)
            for a, b in zip(first, second, strict=True)
        ]
    )


def standard(captured: ActivationCache) -> list[Tensor]:
    """Standard attention of every layer."""
    return [layer.pattern for layer in captured.layers]
