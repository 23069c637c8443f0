"""Effective attention of a causal model's first rows, where V_i has few more rows than columns.

Let V_i^T = [B, C], with V_i the first i rows of V (n x d) and B its first d columns. A basis of the
left null space of V_i is N = [-B^-1 C; I]: a column for each row beyond the d-th, whose last entry
stands at that row. So in N = Q R the first columns of Q span the null spaces of shorter prefixes,
and row a_i less its parts along the columns of its own prefix is effective. Gram matrices of such
prefixes have the square of B's condition number; this has the number itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

# rows beyond the d-th: with sixteen more, independent rows are well conditioned
ROWS_BEYOND = 16
# largest condition number: B^-1 C has ten digits left
_LARGEST = 1e6


@dataclass(frozen=True, eq=False)
class LeadingRows:
    """Leading rows of attention whose effective parts are known.

    Attributes
    ----------
    n : (heads,) int64
        Number of those rows.
    x : (heads, m, m)
        The effective parts of the first m rows, as far as `n`.
    """

    n: Int[Tensor, "heads"]
    x: Float[Tensor, "heads m m"]


def project_leading(
    a: Float[Tensor, "heads n n"],
    v: Float[Tensor, "heads n d"],
    least: Float[Tensor, "heads"],
) -> LeadingRows:
    """Project the first rows of attention, each onto the column space of V's rows up to its own.

    Parameters
    ----------
    a : (heads, n, n)
        Attention, 0 above the diagonal.
    v : (heads, n, d) float64
        Values.
    least : (heads,)
        Singular values up to this share of the largest count as 0.

    Returns
    -------
    LeadingRows
        For each head the rows that are independent, and the next sixteen if the first d are far
        from dependent.
    """
    n, d = v.shape[-2:]
    wide = min(n, d + ROWS_BEYOND)
    # rows of V are columns of V^T = Q R, and B^-1 C = R_B^-1 R_C
    R = torch.linalg.qr(v[:, :wide].mT, mode="r").R
    square = R[..., : min(n, d)]
    pivots = square.diagonal(dim1=-2, dim2=-1)
    # rows after a dependent one don't count
    alive = (pivots != 0).cumprod(-1).bool()
    eye = torch.eye(square.shape[-1], dtype=R.dtype, device=R.device)
    square = torch.where(alive[..., None, :], square, eye)
    inverse = torch.linalg.solve_triangular(square, eye.expand_as(square), upper=True)
    # The leading part of R^-1 is the inverse of R's. Squared Frobenius norms of leading parts are
    # cumulative sums over columns: one decomposition bounds every prefix's condition number.
    of_inverse = inverse.square().sum(-2).cumsum(-1)
    conditions = (square.square().sum(-2).cumsum(-1) * of_inverse).sqrt()
    count = (alive & (conditions * least[:, None] < 1)).cumprod(-1).sum(-1)
    if wide <= d:
        return LeadingRows(count, a[:, :wide, :wide])
    # no singular value of a longer prefix is below B's
    condition = of_inverse[:, -1].sqrt() * torch.linalg.matrix_norm(R)
    unsure = ~(alive[:, -1] & (condition * least < 1))
    if unsure.any():
        # the bound may be several times too large
        s, largest = (torch.linalg.svdvals(x[unsure]) for x in (R[..., :d], R))
        condition[unsure] = largest[:, 0] / s[:, -1]
    good = (condition * least < 1) & (condition < _LARGEST)
    x = a[:, :wide, :wide].clone()
    x[:, d:] = _less_null(a[:, d:wide, :wide], inverse @ R[..., d:])
    return LeadingRows(torch.where(good, wide, count), x)


def _less_null(
    a: Float[Tensor, "heads k m"], dependence: Float[Tensor, "heads d k"]
) -> Float[Tensor, "heads k m"]:
    """Rows d + 1 ... d + k without their parts in the left null spaces; `dependence` is B^-1 C."""
    d, k = dependence.shape[-2:]
    eye = torch.eye(k, dtype=dependence.dtype, device=dependence.device)
    Q = torch.linalg.qr(torch.cat([-dependence, eye.expand(len(a), k, k)], dim=-2)).Q
    a = a.to(Q.dtype)
    # Q is 0 above the diagonal of its last rows, and rounding must not give later tokens weight
    return (a - (a @ Q).tril() @ Q.mT).tril(d)
