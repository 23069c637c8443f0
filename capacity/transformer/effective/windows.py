"""Effective attention where each row sees tokens of its own, such as those in a sliding window.

Row i is projected onto the column space of V_i, the rows of V that it sees: x_i = o_i G_i^-1 V_i^T
with o_i its output and G_i = V_i^T V_i, where V_i is well conditioned, otherwise by the singular
vectors of V_i. Neighbours see nearly the same, so that the Gram matrices of a few rows are that of
what all of them see, and a few products: O(d^3 + n d) operations a row.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.transformer.effective.column_space import GRAM_CONDITION, gram_inverse

# rows whose Gram matrices, or values, are in memory at once
_ROWS = 32


def project_within(
    pattern: Float[Tensor, "batch heads n n"],
    v: Float[Tensor, "batch heads n d"],
    seen: Bool[Tensor, "batch n n"],
    least: Float[Tensor, "batch heads"],
) -> Float[Tensor, "batch heads n n"]:
    """Project each row of attention onto the column space of the values that it may attend to.

    Parameters
    ----------
    pattern : (batch, heads, n, n)
        Attention, 0 where `seen` is False.
    v : (batch, heads, n, d)
        Values.
    seen : (batch, n, n) bool
        Tokens that each token may attend to, such as those in a sliding window.
    least : (batch, heads)
        Singular values up to this share of the largest count as 0.

    Returns
    -------
    (batch, heads, n, n)
        Projected attention, 0 where `seen` is False.
    """
    x = torch.zeros_like(pattern)
    wide = v.double()
    for sentence, head in torch.cartesian_prod(*map(torch.arange, pattern.shape[:2])).tolist():
        rows = pattern[sentence, head].double()
        found = _projected(
            rows, wide[sentence, head], seen[sentence], least[sentence, head], pattern.dtype
        )
        x[sentence, head] = found.to(x.dtype)
    return x


def _projected(
    a: Float[Tensor, "n m"],
    v: Float[Tensor, "m d"],
    seen: Bool[Tensor, "n m"],
    least: Float[Tensor, ""],
    dtype: torch.dtype,
) -> Float[Tensor, "n m"]:
    found = torch.zeros_like(a)
    for start in range(0, len(a), _ROWS):
        rows = slice(start, start + _ROWS)
        # rows of a window are near each other
        at = seen[rows].any(0).nonzero().flatten()
        part, values, attention = seen[rows][:, at], v[at], a[rows][:, at]
        common = part.all(0)
        other = part[:, ~common, None] * values[~common]
        G = values[common].mT @ values[common] + other.mT @ other
        inverse, size = gram_inverse(G)
        condition = size * G.diagonal(dim1=-2, dim2=-1).sum(-1).sqrt()
        good = (condition <= GRAM_CONDITION[dtype]) & (condition * least < 1)
        w = ((attention @ values)[:, None] @ inverse @ inverse.mT).squeeze(1)
        projected = (w @ values.mT) * part
        if not good.all():
            projected[~good] = project_by_svd(attention[~good], values, part[~good], float(least))
        found[start : start + _ROWS, at] = projected
    return found


def project_by_svd(
    a: Float[Tensor, "n m"], v: Float[Tensor, "m d"], seen: Bool[Tensor, "n m"], least: float
) -> Float[Tensor, "n m"]:
    """Project rows of one head, each by the singular vectors of the rows of v that it sees."""
    found = torch.zeros_like(a)
    for start in range(0, len(a), _ROWS):
        part = seen[start : start + _ROWS]
        at = part.any(0).nonzero().flatten()
        part = part[:, at]
        U, s, _ = torch.linalg.svd(v[at] * part[..., None], full_matrices=False)
        U = U * (s > least * s[:, :1])[:, None]
        rows = ((a[start : start + _ROWS, None, at] @ U) @ U.mT).squeeze(1)
        found[start : start + _ROWS, at] = rows * part
    return found
