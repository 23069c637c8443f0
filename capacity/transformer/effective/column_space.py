"""Orthonormal bases of the column spaces of many tall matrices V at once.

Of values in float32 the basis is V R^-1 with R^T R the Cholesky decomposition of V^T V in float64,
which is cheap beside a forward pass, where V is well conditioned. Otherwise, and in float64, it is
the Q of V = Q R in float64, as long as V has full rank. Both are silently wrong where it doesn't.
The guard is |V|_F |R^-1|_F, an upper bound of V's condition number: if it is below the reciprocal
of the rank threshold, no singular value is under the threshold. Matrices for which it isn't take a
singular value decomposition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from capacity.display import briefly_shown

# largest condition number at which z R^-1 is about as exact as z
WELL_CONDITIONED = 300
# largest one at which V is replaced by G = V^T V in float64, whose condition number is its square,
# 1e8 and 1e6: eight and ten digits remain
GRAM_CONDITION = {torch.float32: 1e4, torch.float64: 1e3}


@briefly_shown
@dataclass(frozen=True, eq=False)
class ColumnSpace:
    """Column spaces of (..., n, d) matrices V.

    Attributes
    ----------
    v : (..., n, d)
        The matrices.
    inverse : (..., d, d)
        R^-1 with ``basis = V @ inverse``, of use where V is well conditioned.
    well : (...) bool
        Whether V is well conditioned.
    rank : (...)
        Numerical ranks.
    found : (..., n, d) or None
        The basis; None where it is ``V @ inverse`` throughout.
    """

    v: Float[Tensor, "... n d"]
    inverse: Float[Tensor, "... d d"]
    well: Bool[Tensor, "..."]
    rank: Int[Tensor, "..."]
    found: Float[Tensor, "... n d"] | None = None

    @property
    def basis(self) -> Float[Tensor, "... n d"]:
        """Orthonormal columns, then columns of zeros where the rank is below d; in float64."""
        return self.v.double() @ self.inverse if self.found is None else self.found


def rank_threshold(mask: Bool[Tensor, "batch n"], columns: int, dtype: torch.dtype) -> Tensor:
    """Relative rank threshold: max(n, columns) times the machine epsilon, n tokens a sentence."""
    return mask.sum(1).clamp_min(columns) * torch.finfo(dtype).eps


def gram_span(
    v: Float[Tensor, "batch heads n d"],
    least: Float[Tensor, "batch heads"],
    *,
    of: Float[Tensor, "batch heads n d"],
    otherwise: Callable[[Bool[Tensor, "batch heads"]], ColumnSpace],
) -> ColumnSpace:
    """Orthonormal bases of the column spaces of matrices in float64, to the digits of float32.

    Parameters
    ----------
    v : (batch, heads, n, d) float64
        Matrices; rows to disregard are 0.
    least : (batch, heads)
        Singular values up to this share of the largest count as 0.
    of : tensor like v
        Matrices that `v` was computed from, whose largest singular value is meant.
    otherwise : callable
        Given marks of ill-conditioned matrices, it returns their bases.

    Returns
    -------
    ColumnSpace
        Bases and numerical ranks.
    """
    gram = v.mT @ v
    inverse, size = inverted(torch.linalg.cholesky_ex(gram, upper=True).L)
    condition = size * (_trace(gram).sqrt() if of is v else of.flatten(-2).norm(dim=-1))
    well = (condition <= WELL_CONDITIONED) & (condition * least < 1)
    rank = torch.full(v.shape[:2], v.shape[-1], device=v.device)
    if well.all():
        return ColumnSpace(v, inverse, well, rank)
    basis, rest = v @ inverse, otherwise(~well)
    basis[~well], rank[~well] = rest.basis, rest.rank
    return ColumnSpace(v, inverse, well, rank, basis)


def column_span(
    v: Float[Tensor, "... n d"],
    least: Float[Tensor, "..."],
    *,
    of: Float[Tensor, "... n d"] | None = None,
) -> ColumnSpace:
    """Orthonormal bases of the column spaces of matrices in float64, to its digits.

    Parameters
    ----------
    v : (..., n, d) float64
        Matrices; rows to disregard are 0.
    least : (...)
        Singular values up to this share of the largest count as 0.
    of : tensor like v, optional
        Matrices that `v` was computed from, whose largest singular value is meant; `v` by default.

    Returns
    -------
    ColumnSpace
        Bases and numerical ranks.
    """
    n, d = v.shape[-2:]
    of = v if of is None else of
    if n < d:
        basis, rank = _by_svd(v, least, of)
        inverse = v.new_zeros(*v.shape[:-2], d, d)
        return ColumnSpace(v, inverse, torch.zeros_like(rank).bool(), rank, basis)
    Q, R = torch.linalg.qr(v)
    inverse, size = inverted(R)
    condition = size * of.flatten(-2).norm(dim=-1)
    # rows of zeros are disregarded, and rounding must not give them weight
    basis = Q * (v != 0).any(-1, keepdim=True)
    rank = torch.full(v.shape[:-2], d, device=v.device)
    lacking = ~(condition * least < 1)
    if lacking.any():
        basis[lacking], rank[lacking] = _by_svd(v[lacking], least[lacking], of[lacking])
    return ColumnSpace(v, inverse, (condition <= WELL_CONDITIONED) & ~lacking, rank, basis)


def gram_rank(
    gram: Float[Tensor, "... d d"], v: Float[Tensor, "... n d"], least: Float[Tensor, "..."]
) -> Int[Tensor, "..."]:
    """Numerical ranks of matrices, given their Gram matrices in float64."""
    size = inverted(torch.linalg.cholesky_ex(gram, upper=True).L)[1]
    rank = torch.full(v.shape[:-2], v.shape[-1], device=v.device)
    lacking = ~(size * _trace(gram).sqrt() * least < 1)
    if lacking.any():
        s = torch.linalg.svdvals(v[lacking].double())
        rank[lacking] = (s > least[lacking, None] * s[:, :1]).sum(-1)
    return rank


def row_condition(v: Float[Tensor, "... n d"]) -> Float[Tensor, "..."]:
    """Upper bound of the condition number of V's rows; infinite if they are dependent."""
    x = v.double()
    R = (
        torch.linalg.qr(x.mT, mode="r").R
        if v.dtype == torch.float64
        else torch.linalg.cholesky_ex(x @ x.mT, upper=True).L
    )
    return inverted(R)[1] * x.flatten(-2).norm(dim=-1)


def inverted(R: Float[Tensor, "... d d"]) -> tuple[Float[Tensor, "... d d"], Tensor]:
    """Return R^-1 and |R^-1|_F, or the identity and infinity where R has no inverse."""
    # by columns, as LAPACK has them
    eye = torch.eye(R.shape[-1], dtype=R.dtype, device=R.device).expand_as(R).contiguous()
    inverse = torch.linalg.solve_triangular(R, eye.mT, upper=True)
    size = torch.linalg.matrix_norm(inverse)
    # a failed Cholesky decomposition leaves a pivot of 0 or NaN
    bad = ~(size < torch.inf)
    if bad.any():
        inverse[bad], size[bad] = eye[bad], torch.inf
    return inverse, size


def _trace(x: Tensor) -> Tensor:
    return x.diagonal(dim1=-2, dim2=-1).sum(-1)


def _by_svd(
    v: Float[Tensor, "... n d"], least: Tensor, of: Float[Tensor, "... n d"]
) -> tuple[Tensor, Tensor]:
    n, d = v.shape[-2:]
    U, s, _ = torch.linalg.svd(v, full_matrices=False)
    largest = s[..., :1] if of is v else torch.linalg.svdvals(of)[..., :1]
    counts = s > least[..., None] * largest
    # rows of zeros are disregarded, and rounding must not give them weight
    basis = U * counts[..., None, :] * (v != 0).any(-1, keepdim=True)
    return torch.nn.functional.pad(basis, (0, d - min(n, d))), counts.sum(-1)
