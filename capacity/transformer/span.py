"""Orthonormal bases of the column spaces of many tall matrices at once.

In float32 a basis is V R^-1 with R R^T the Cholesky factors of V^T V in float64, which costs little
beside a forward pass; in float64 the QR decomposition, for a Gram matrix would lose half of the
digits. Both are silently wrong where V lacks rank. The guard is an upper bound of V's condition
number, |R|_F |R^-1|_F: below the reciprocal of the rank threshold no singular value can be under
it. Heads that fail go to a singular value decomposition in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# up to this condition number, products with R^-1 lose at most about three digits
WELL_CONDITIONED = 1e3


@dataclass(frozen=True, eq=False)
class Span:
    """Column spaces of (..., n, d) matrices V.

    Attributes
    ----------
    basis : (..., n, d)
        Orthonormal columns, then columns of zeros where the rank is below d.
    inverse : (..., d, d) or None
        R^-1 with ``basis = V @ inverse``; None unless every V is well conditioned.
    rank : (...)
        Numerical ranks.
    """

    basis: Float[Tensor, "... n d"]
    inverse: Float[Tensor, "... d d"] | None
    rank: Int[Tensor, "..."]


def rank_threshold(mask: Bool[Tensor, "batch n"], columns: int, dtype: torch.dtype) -> Tensor:
    """max(n, columns) times the precision, with n the number of tokens of each sentence."""
    return mask.sum(1).clamp_min(columns) * torch.finfo(dtype).eps


def column_span(v: Float[Tensor, "batch heads n d"], relative: Float[Tensor, "batch"]) -> Span:
    """Bases of column spaces.

    Parameters
    ----------
    v : (batch, heads, n, d)
        Rows that don't count are 0.
    relative : (batch,)
        Singular values up to this share of the largest count as 0.
    """
    n, d = v.shape[-2:]
    least = relative[:, None].expand(v.shape[:2])
    if n < d:
        return _by_svd(v, least)
    R_inverse, condition = triangular(v)
    safe = condition * least < 1
    basis = (v.double() @ R_inverse).to(v.dtype)
    rank = torch.full(v.shape[:2], d, device=v.device)
    if not safe.all():
        flagged = _by_svd(v[~safe], least[~safe])
        basis[~safe], rank[~safe] = flagged.basis, flagged.rank
    well = bool((condition <= WELL_CONDITIONED).all())
    return Span(basis, R_inverse.to(v.dtype) if well else None, rank)


def triangular(v: Float[Tensor, "... n d"]) -> tuple[Float[Tensor, "... d d"], Tensor]:
    """R^-1, upper triangular in float64, with V R^-1 orthonormal, and a bound of V's condition."""
    x = v.double()
    if v.dtype == torch.float64:
        return inverted(torch.linalg.qr(x, mode="r").R)
    return inverted(torch.linalg.cholesky_ex(x.mT @ x, upper=True).L)


def inverted(R: Float[Tensor, "... d d"]) -> tuple[Float[Tensor, "... d d"], Tensor]:
    """R^-1, and |R|_F |R^-1|_F; the identity, and infinity, where R has no inverse."""
    eye = torch.eye(R.shape[-1], dtype=R.dtype, device=R.device)
    pivots = R.diagonal(dim1=-2, dim2=-1).abs()
    # a Cholesky decomposition that failed leaves a pivot of 0, or no number
    bad = ~(pivots > 0).all(-1) | ~R.isfinite().all(-1).all(-1)
    R = torch.where(bad[..., None, None], eye, R)
    inverse = torch.linalg.solve_triangular(R, eye.expand_as(R), upper=True)
    condition = R.flatten(-2).norm(dim=-1) * inverse.flatten(-2).norm(dim=-1)
    return inverse, condition.masked_fill(bad, torch.inf)


def _by_svd(v: Float[Tensor, "... n d"], least: Float[Tensor, "..."]) -> Span:
    n, d = v.shape[-2:]
    U, s, _ = torch.linalg.svd(v.double(), full_matrices=False)
    counts = (s > least[..., None] * s[..., :1]) & (s > 0)
    # rounding must not lend weight to rows that were left out
    basis = (U * counts[..., None, :] * (v != 0).any(-1, keepdim=True)).to(v.dtype)
    return Span(torch.nn.functional.pad(basis, (0, d - min(n, d))), None, counts.sum(-1))
