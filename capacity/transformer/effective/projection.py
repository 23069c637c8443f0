"""Attention projected onto the column space of V, or of [V, 1], as a product of two factors.

With U = V R^-1 an orthonormal basis of the column space the projection is (A U) U^T; where V is
well conditioned A U = O R^-1, with O = A V, which the model has computed. The n x n product is left
to those who need it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from capacity.transformer.effective.column_space import ColumnSpace, column_span, gram_span


@dataclass(frozen=True, eq=False)
class Factors:
    """Projected attention ``left @ right.mT``.

    Attributes
    ----------
    left : (batch, heads, n, r)
        Coordinates of each row.
    right : (batch, heads, m, r), or ColumnSpace
        Vectors that span the column space, 0 at padding; or the space, from which they are had.
    square : (batch, heads)
        Squared Frobenius norm of the product.
    rank : (batch, heads)
        Dimension of the column space.
    """

    left: Float[Tensor, "batch heads n r"]
    right: Float[Tensor, "batch heads m r"] | ColumnSpace
    square: Float[Tensor, "batch heads"]
    rank: Int[Tensor, "batch heads"]

    def without_last(self) -> Factors:
        """The same without the last column of the product."""
        right = spanning(self.right, self.left.dtype)[..., :-1, :]
        square = ((self.left @ (right.mT @ right)) * self.left).sum((-2, -1))
        return replace(self, right=right, square=square)


def spanning(right: Tensor | ColumnSpace, dtype: torch.dtype) -> Tensor:
    """Return vectors that span a column space, in a type; a product of theirs waits until here."""
    return right.basis.to(dtype) if isinstance(right, ColumnSpace) else right


def projected(
    a: Float[Tensor, "batch heads n m"],
    v: Float[Tensor, "batch heads m d"],
    z: Float[Tensor, "batch heads n d"],
    least: Float[Tensor, "batch heads"],
) -> Factors:
    """Project rows of attention onto the column space of V.

    Parameters
    ----------
    a : (batch, heads, n, m)
        Attention; columns of padding are 0.
    v : (batch, heads, m, d)
        Values; rows of padding are 0.
    z : (batch, heads, n, d)
        ``a @ v``.
    least : (batch, heads)
        Singular values up to this share of V's largest count as 0.

    Returns
    -------
    Factors
        The projection, and the rank of V.
    """
    if v.dtype == torch.float64 or v.shape[-2] < v.shape[-1]:
        return _factors(a, z, column_span(v.double(), least))
    exact = lambda some: column_span(v[some].double(), least[some])  # noqa: E731
    return _factors(a, z, gram_span(v, least, of=v, otherwise=exact))


def projected_on_simplex(
    a: Float[Tensor, "batch heads n m"],
    v: Float[Tensor, "batch heads m d"],
    z: Float[Tensor, "batch heads n d"],
    rows: Bool[Tensor, "batch 1 n 1"],
    real: Bool[Tensor, "batch 1 m 1"],
    least: Float[Tensor, "batch heads"],
) -> Factors:
    """Project rows of attention that sum to 1 onto the column space of [V, 1].

    The space is the orthogonal sum of that of 1, by which every entry of a row is 1/m, and the
    column space of V less its mean.

    Parameters
    ----------
    a, v, z, least : tensors
        As for `projected`.
    rows, real : (batch, 1, n, 1) and (batch, 1, m, 1) bool
        True for tokens that attend, and for those that are attended to; False for padding.

    Returns
    -------
    Factors
        The projection, and the rank of [V, 1].
    """
    x = v.to(torch.float64, memory_format=torch.contiguous_format)
    count = real.double().sum(-2, keepdim=True)
    one = real / count.sqrt()
    mean = x.sum(-2, keepdim=True) / count
    # rows sum to 1, so that their averages of V less its mean are z less that mean
    centred = x - mean
    # in two parts, for z in float64 would take twice the time
    high = mean.to(z.dtype)
    o = (z - high).sub_((mean - high).to(z.dtype))
    if not (rows.all() and real.all()):
        centred, o = centred * real, o * rows

    def bases(some: Tensor) -> ColumnSpace:
        # A reflection maps 1 to a unit vector. The reflected V without that row has columns in the
        # complement exactly; subtracting the mean would leave a residue of its rounding.
        ones = one.expand(*some.shape, -1, -1)[some]
        unit = ((ones > 0) & (ones.cumsum(-2) == ones)).double()
        span = column_span(_reflected(x[some], ones, unit) * (1 - unit), least[some], of=x[some])
        return replace(span, found=_reflected(span.basis, ones, unit))

    if v.dtype == torch.float64 or v.shape[-2] <= v.shape[-1]:
        flat = bases(torch.ones_like(least, dtype=torch.bool))
        marked = torch.ones_like(flat.rank).bool() if flat.well is None else flat.well
        parts = (flat.inverse, flat.rank, flat.basis, marked)
        span = ColumnSpace(x, *(part.unflatten(0, least.shape) for part in parts))
    else:
        span = gram_span(centred, least, of=x, otherwise=bases)
    found, column = _factors(a, o.to(a.dtype), _widened(span)), v.shape[-1]
    left, right = found.left, spanning(found.right, a.dtype)
    left[..., column : column + 1], right[..., column : column + 1] = rows / count.sqrt(), one
    square = found.square + (rows.sum(-2, keepdim=True) / count)[..., 0, 0].to(a.dtype)
    return Factors(left, right, square, found.rank + 1)


def _factors(a: Tensor, o: Tensor, span: ColumnSpace) -> Factors:
    """Factors A U = o R^-1 and U, in the type of a."""
    left = o @ span.inverse.to(a.dtype)
    if span.well is not None:
        left[~span.well] = a[~span.well] @ span.basis[~span.well].to(a.dtype)
    return Factors(left, span, squared(left), span.rank)


def _widened(span: ColumnSpace) -> ColumnSpace:
    """Add a column of zeros and some more: products over a multiple of eight take a sixth less."""
    d = span.inverse.shape[-1]
    more = (0, 8 - d % 8)
    found = None if span.found is None else pad(span.found, more)
    return replace(span, inverse=pad(span.inverse, more), found=found)


def squared(x: Float[Tensor, "... n m"]) -> Float[Tensor, "..."]:
    """Squared Frobenius norms, without a second array of the size of x."""
    return torch.linalg.vector_norm(x, dim=(-2, -1)).square()


def _reflected(
    x: Float[Tensor, "... m d"], first: Float[Tensor, "... m 1"], second: Float[Tensor, "... m 1"]
) -> Float[Tensor, "... m d"]:
    """Apply the Householder reflection that exchanges two unit vectors to the columns of x."""
    apart = first - second
    square = apart.square().sum(-2, keepdim=True)
    # for one token the two vectors are equal
    return x - 2 / torch.where(square > 0, square, 1.0) * apart * (apart.mT @ x)
