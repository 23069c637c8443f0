"""Orthonormal bases of the column spaces of many tall matrices at once.

In float32 the basis is V R^-1 with R^T R the Cholesky decomposition of V^T V in float64, which is
cheap beside a forward pass; in float64 it is the Q of V = Q R, as a Gram matrix would lose half of
the digits. Both are silently wrong where V lacks rank. The guard is |R|_F |R^-1|_F, an upper bound
of V's condition number: if it is below the reciprocal of the rank threshold, no singular value is
under the threshold. Heads for which it isn't, and heads whose Gram matrix is too ill conditioned
for orthonormal columns, take a singular value decomposition in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# largest condition number at which z R^-1 is about as exact as z
WELL_CONDITIONED = 300
# largest one at which columns of V R^-1 are orthonormal to 1e-8, with a Gram matrix in float64
GRAM_CONDITION = 1e4


@dataclass(frozen=True, eq=False)
class Span:
    """Column spaces of (..., n, d) matrices V.

    Attributes
    ----------
    basis : (..., n, d)
        Orthonormal columns, then columns of zeros where the rank is below d.
    inverse : (..., d, d) or None
        R^-1 with ``basis = V @ inverse``; None unless every V of the batch is well conditioned.
    rank : (...)
        Numerical ranks.
    """

    basis: Float[Tensor, "... n d"]
    inverse: Float[Tensor, "... d d"] | None
    rank: Int[Tensor, "..."]


def rank_threshold(mask: Bool[Tensor, "batch n"], columns: int, dtype: torch.dtype) -> Tensor:
    """Relative rank threshold: max(n, columns) times the machine epsilon, n tokens a sentence."""
    return mask.sum(1).clamp_min(columns) * torch.finfo(dtype).eps


def column_span(
    v: Float[Tensor, "batch heads n d"],
    relative: Float[Tensor, "batch"],
    *,
    of: Float[Tensor, "batch heads n d"] | None = None,
) -> Span:
    """Orthonormal bases of the column spaces of matrices.

    Parameters
    ----------
    v : (batch, heads, n, d)
        Matrices; rows to disregard are 0.
    relative : (batch,)
        Singular values up to this share of the largest count as 0.
    of : tensor like v, optional
        Matrices that `v` was computed from in float64, and whose precision it has: their dtype is
        that of the basis, and their largest singular value the one above. `v` itself by default.

    Returns
    -------
    Span
        Bases and numerical ranks.
    """
    n, d = v.shape[-2:]
    of = v if of is None else of
    least = relative[:, None].expand(v.shape[:2])
    if n < d:
        return _by_svd(v, least, of)
    exact = of.dtype == torch.float64
    Q, R = torch.linalg.qr(v) if exact else (v, _cholesky(v))
    R_inverse, size = inverted(R)
    condition = size * of.double().flatten(-2).norm(dim=-1)
    safe = condition * least < 1
    if exact:
        # rows of zeros are disregarded, and rounding must not give them weight
        basis = Q * (v != 0).any(-1, keepdim=True)
    else:
        basis = (v.double() @ R_inverse).to(of.dtype)
        safe &= condition <= GRAM_CONDITION
    rank = torch.full(v.shape[:2], d, device=v.device)
    if not safe.all():
        flagged = _by_svd(v[~safe], least[~safe], of[~safe])
        basis[~safe], rank[~safe] = flagged.basis, flagged.rank
    well = bool((condition <= WELL_CONDITIONED).all())
    return Span(basis, R_inverse.to(of.dtype) if well else None, rank)


def row_condition(v: Float[Tensor, "... n d"]) -> Float[Tensor, "..."]:
    """Upper bound of the condition number of V's rows; infinite if they are dependent."""
    vt = v.mT
    R = torch.linalg.qr(vt, mode="r").R if v.dtype == torch.float64 else _cholesky(vt)
    return inverted(R)[1] * v.double().flatten(-2).norm(dim=-1)


def _cholesky(v: Tensor) -> Tensor:
    x = v.double()
    return torch.linalg.cholesky_ex(x.mT @ x, upper=True).L


def inverted(R: Float[Tensor, "... d d"]) -> tuple[Float[Tensor, "... d d"], Tensor]:
    """Return R^-1 and |R^-1|_F, or the identity and infinity where R has no inverse."""
    eye = torch.eye(R.shape[-1], dtype=R.dtype, device=R.device)
    pivots = R.diagonal(dim1=-2, dim2=-1).abs()
    # a failed Cholesky decomposition leaves a pivot of 0 or NaN
    bad = ~(pivots > 0).all(-1) | ~R.isfinite().all(-1).all(-1)
    R = torch.where(bad[..., None, None], eye, R)
    inverse = torch.linalg.solve_triangular(R, eye.expand_as(R), upper=True)
    return inverse, inverse.flatten(-2).norm(dim=-1).masked_fill(bad, torch.inf)


def _by_svd(v: Float[Tensor, "... n d"], least: Tensor, of: Float[Tensor, "... n d"]) -> Span:
    n, d = v.shape[-2:]
    U, s, _ = torch.linalg.svd(v.double(), full_matrices=False)
    largest = s[..., :1] if of is v else torch.linalg.svdvals(of.double())[..., :1]
    counts = s > least[..., None] * largest
    # rows of zeros are disregarded, and rounding must not give them weight
    basis = (U * counts[..., None, :] * (v != 0).any(-1, keepdim=True)).to(of.dtype)
    return Span(torch.nn.functional.pad(basis, (0, d - min(n, d))), None, counts.sum(-1))
