"""Orthonormal bases of the column spaces of many tall matrices V at once.

Of values in float32 the basis is V R^-1 with R^T R the Cholesky decomposition of V^T V in float64,
which is cheap beside a forward pass, where V is well conditioned. Otherwise, and in float64, it is
the Q of V = Q R in float64, as long as V has full rank. Both are silently wrong where it doesn't.
The guard is |V|_F |R^-1|_F, which is at least d - 2 more than V's condition number, by Cauchy's
inequality on its singular values and their reciprocals, the first and the last of which exchanged:
if it is below the reciprocal of the rank threshold, no singular value is under the threshold.
Matrices for which it isn't take a singular value decomposition.

Values are first divided by powers of two, which changes no digit, no rank and no projection:
squares of numbers beyond 1e154 in float64 (1e19 in float32) overflow, and those of numbers below
1e-154 (1e-19) vanish, though analyses of attention don't depend on the scale of values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from capacity.display import briefly_shown

# largest condition number at which z R^-1 is about as exact as z, by the type of R^-1
WELL_CONDITIONED = {torch.float32: 120, torch.float64: 300}
# largest one at which V is replaced by G = V^T V in float64, whose condition number is its square,
# 1e8 and 1e6: eight and ten digits remain
GRAM_CONDITION = {torch.float32: 1e4, torch.float64: 1e3}
# sizes of V from here to the reciprocal, and those of R^-1, are far from under- and overflow
_SMALLEST = 2.0**-40
# numbers in float64 that are near the processor, in whatever order
_CACHED = 2**18


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
    rank : (...)
        Numerical ranks.
    found : (..., n, d) or None
        The basis; None where it is ``V @ inverse`` throughout.
    well : (...) bool or None
        Whether V is well conditioned; None where all are.
    """

    v: Float[Tensor, "... n d"]
    inverse: Float[Tensor, "... d d"]
    rank: Int[Tensor, "..."]
    found: Float[Tensor, "... n d"] | None = None
    well: Bool[Tensor, "..."] | None = None

    @property
    def basis(self) -> Float[Tensor, "... n d"]:
        """Orthonormal columns, then columns of zeros where the rank is below d."""
        return self.v @ self.inverse if self.found is None else self.found


def gram_span(
    v: Float[Tensor, "batch heads n d"],
    least: Float[Tensor, "batch heads"],
    *,
    of: Float[Tensor, "batch heads n d"],
    otherwise: Callable[[Bool[Tensor, "batch heads"]], ColumnSpace],
) -> ColumnSpace:
    """Orthonormal bases of the column spaces of matrices, in their type, to the digits of float32.

    Parameters
    ----------
    v : (batch, heads, n, d)
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
    # G, whose condition number is the square of V's, needs float64; R doesn't
    R, failed = torch.linalg.cholesky_ex(_gram(v), upper=True)
    R = R.to(v.dtype)
    inverse = _inverse(R)
    # |R|_F is |V|_F
    norm = torch.linalg.matrix_norm(R) if of is v else of.flatten(-2).norm(dim=-1)
    limit = WELL_CONDITIONED[v.dtype] + (v.shape[-1] - 2 if of is v else 0)
    well = _well(torch.linalg.matrix_norm(inverse), norm, least, limit, failed)
    rank = torch.full(v.shape[:2], v.shape[-1], device=v.device)
    if well is None:
        return ColumnSpace(v, inverse, rank)
    basis, rest = v.double() @ inverse.double(), otherwise(~well)
    basis[~well], rank[~well] = rest.basis, rest.rank
    return ColumnSpace(v, inverse, rank, basis, well)


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
        return ColumnSpace(v, inverse, rank, basis, torch.zeros_like(rank).bool())
    Q, R = torch.linalg.qr(v)
    inverse, size = _inverted(R)
    norm = of.flatten(-2).norm(dim=-1)
    condition = size * norm
    # rows of zeros are disregarded, and rounding must not give them weight
    basis = Q * (v != 0).any(-1, keepdim=True)
    rank = torch.full(v.shape[:-2], d, device=v.device)
    lacking = ~(condition * least < 1)
    if lacking.any():
        basis[lacking], rank[lacking] = _by_svd(v[lacking], least[lacking], of[lacking])
    well = _well(size, norm, least, WELL_CONDITIONED[v.dtype])
    return ColumnSpace(v, inverse, rank, basis, well)


def gram_rank(
    gram: Float[Tensor, "... d d"], v: Float[Tensor, "... n d"], least: Float[Tensor, "..."]
) -> Int[Tensor, "..."]:
    """Numerical ranks of matrices, given their Gram matrices in float64."""
    size = gram_inverse(gram)[1]
    rank = torch.full(v.shape[:-2], v.shape[-1], device=v.device)
    lacking = ~(size * _trace(gram).sqrt() * least < 1)
    if lacking.any():
        s = torch.linalg.svdvals(v[lacking].double())
        rank[lacking] = (s > least[lacking, None] * s[:, :1]).sum(-1)
    return rank


def row_condition(v: Float[Tensor, "... n d"]) -> Float[Tensor, "..."]:
    """Upper bound of the condition number of V's rows; infinite if they are dependent."""
    x = v.double()
    _, size = (
        _inverted(torch.linalg.qr(x.mT, mode="r").R)
        if v.dtype == torch.float64
        else gram_inverse(x @ x.mT)
    )
    return size * x.flatten(-2).norm(dim=-1)


def gram_inverse(gram: Float[Tensor, "... d d"]) -> tuple[Float[Tensor, "... d d"], Tensor]:
    """Return R^-1 and |R^-1|_F, G = R^T R; the identity and infinity where G isn't definite."""
    R, failed = torch.linalg.cholesky_ex(gram, upper=True)
    return _inverted(R, failed)


def _inverted(
    R: Float[Tensor, "... d d"], failed: Int[Tensor, "..."] | None = None
) -> tuple[Float[Tensor, "... d d"], Tensor]:
    inverse = _inverse(R)
    size = torch.linalg.matrix_norm(inverse)
    bad = ~(size < torch.inf)
    if failed is not None:
        # what is left of a decomposition that failed may have an inverse
        bad |= failed != 0
    if bad.any():
        inverse[bad], size[bad] = _identity(R.shape[-1], R.dtype, R.device), torch.inf
    return inverse, size


def _inverse(R: Float[Tensor, "... d d"]) -> Float[Tensor, "... d d"]:
    """Return R^-1, with infinities or NaN where there is none."""
    identity = _identity(R.shape[-1], R.dtype, R.device)
    # X R = I takes two thirds of what R X = I does
    return torch.linalg.solve_triangular(R, identity.expand_as(R), upper=True, left=False)


@cache
def _identity(d: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "d d"]:
    return torch.eye(d, dtype=dtype, device=device)


def _well(
    size: Tensor, norm: Tensor, least: Tensor, limit: float, failed: Tensor | None = None
) -> Bool[Tensor, "..."] | None:
    """Mark V of full rank for which O R^-1 is about as exact as O = A V; None where all are.

    `size` is |R^-1|_F, `norm` |V|_F, their product at most `limit`; `failed` isn't 0 where V^T V
    has no decomposition.
    """
    # comparing tensors of a few numbers would take a tenth of what the whole takes
    numbers = [x.reshape(-1).tolist() for x in (size, norm, least)]
    marks = [0] * size.numel() if failed is None else failed.reshape(-1).tolist()
    found = [
        # outputs of denormal values have lost their digits, and the type's range may end at others
        not mark
        and _SMALLEST < of_values < 1 / _SMALLEST
        and of_inverse * of_values * max(relative, 1 / limit) < 1
        for of_inverse, of_values, relative, mark in zip(*numbers, marks, strict=True)
    ]
    return None if all(found) else torch.tensor(found, device=size.device).view(size.shape)


def _gram(v: Float[Tensor, "... n d"]) -> Float[Tensor, "... d d"]:
    """Return V^T V in float64, in which V isn't held for longer."""
    # head by head where V is large: its product then takes a sixth less
    near = v.numel() <= _CACHED
    layout = torch.preserve_format if near else torch.contiguous_format
    x = v.to(torch.float64, memory_format=layout)
    return x.mT @ x


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


def scale_of(x: Tensor, dim: tuple[int, ...]) -> Tensor:
    """Power of two that brings the largest entry of x over some dimensions into [1/2, 1).

    Parameters
    ----------
    x : tensor of floats
        Finite numbers.
    dim : tuple of int
        Dimensions to take the largest entry over.

    Returns
    -------
    tensor like x, of size 1 in `dim`
        The power of two; 1 where all entries are 0.
    """
    largest = x.abs().amax(dim, keepdim=True)
    return torch.where(largest > 0, largest / torch.frexp(largest).mantissa, 1.0)
