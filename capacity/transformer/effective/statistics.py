"""Statistics of patterns: shares of kinds of tokens, shapes, and how far two models agree.

All of them take attention of any kind, standard or effective. Effective attention isn't a
distribution, so shares are shares of a row's absolute weights, which for standard attention is the
weight itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.cache import ActivationCache

if TYPE_CHECKING:
    import pandas as pd


def normalised(pattern: Float[Tensor, "... n n"]) -> Float[Tensor, "... n n"]:
    """Absolute weights, divided by their sum over each row; rows of zeros stay."""
    weights = pattern.abs()
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)


def token_shares(
    pattern: Float[Tensor, "batch heads n n"],
    kinds: Mapping[str, Bool[Tensor, "batch n"]],
    rows: Bool[Tensor, "batch n"],
) -> pd.DataFrame:
    """Shares of attention that go to kinds of tokens (Sun and Marasovic 2021, Figures 1, 5, 6).

    Parameters
    ----------
    pattern : (batch, heads, n, n)
    kinds : mapping of str to (batch, n) bool
        Such as ``{"[SEP]": tokens == sep, "punctuation": ...}``; a token may be of several kinds.
    rows : (batch, n) bool
        The tokens whose attention counts: for Figure 1 those that are [CLS], for Figures 5 and 6
        all others.

    Returns
    -------
    pandas.DataFrame
        One row a head and kind: ``head``, ``kind``, ``share`` of absolute weights, ``weight``
        (signed, not normalised) and ``largest`` (the largest weight on one token of the kind, which
        Figure 1 shows), all means over the rows.

    Raises
    ------
    InvalidArgumentError
        If no row counts, there is no kind, or marks have another shape or aren't bool.
    """
    import pandas as pd

    shape = (pattern.shape[0], pattern.shape[-1])
    for name, marks in {"rows": rows, **kinds}.items():
        if tuple(marks.shape) != shape or marks.dtype != torch.bool:
            raise InvalidArgumentError(
                f"Tokens are marked by a bool tensor of shape {shape}; {name!r} is "
                f"{marks.dtype} of shape {tuple(marks.shape)}."
            )
    if not kinds:
        raise InvalidArgumentError("Shares are of kinds of tokens; `kinds` names none.")
    if not rows.any():
        raise InvalidArgumentError("Shares are means over rows of attention; `rows` names none.")
    # (heads, rows that count, n)
    weights = pattern.transpose(0, 1)[:, rows]
    shares = normalised(pattern).transpose(0, 1)[:, rows]
    table = []
    for kind, columns in kinds.items():
        of_kind = columns[:, None].expand(*rows.shape, -1)[rows]
        there = of_kind.any(-1)
        # a sentence without such a token says nothing of the largest
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
    """Numbers that tell shapes of patterns apart.

    Kovaleva et al. (2019) sort patterns by eye, and by a network trained on that, into vertical,
    diagonal, block and heterogeneous ones; these are shares of absolute weights instead, which
    need no labels.

    Parameters
    ----------
    pattern : (batch, heads, n, n)
    mask : (batch, n) bool

    Returns
    -------
    dict of (batch, heads) tensors
        ``vertical``: the share of the token with most weight over all rows. ``diagonal``: the share
        of a row's own token and its two neighbours. ``entropy``: of rows, in nats, mean over rows.
        ``row_sum``: signed, mean over rows. ``negative``: the share of negative weights.
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
    """Cosine of the patterns of two models on the same sentences (Sun and Marasovic, Figure 3).

    Parameters
    ----------
    first, second : sequences of (batch, heads, n, n)
        One a layer: standard attention, or effective, of the two models.

    Returns
    -------
    tensor, shape (layers, heads)
        Of patterns as long vectors, mean over sentences.

    Raises
    ------
    InvalidArgumentError
        If the models differ in layers, heads, or sentences.
    """
    shapes = [tuple(x.shape) for x in first], [tuple(x.shape) for x in second]
    if shapes[0] != shapes[1] or not shapes[0]:
        raise InvalidArgumentError(
            "Two models are compared on the same sentences, layer by layer; got patterns of shapes "
            f"{shapes[0]} and {shapes[1]}."
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
