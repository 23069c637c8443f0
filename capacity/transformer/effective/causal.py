"""Effective attention of causal models: the shortest row on its own support with the same output.

Row i of A has support 0 ... i. Its effective part is x_i = o_i V_i^+, with V_i the first i + 1 rows
of V, o_i = a_i V and V_i^+ the pseudo-inverse: the row of least norm on this support whose output
is o_i. While the rows of V_i are independent, x_i = a_i; the next few rows lose their parts in the
left null space of V_i (below). Beyond, with the Gram matrix G_i = V_i^T V_i,

    x_i = w_i V_i^T,   w_i = o_i G_i^-1,

and the w of a block of rows are computed together. With G = L L^T before the block (V_b, O_b), U =
V_b L^-T, Z = O_b L^-T, C C^T = I + U U^T and M = C^-1 U, row i of the block has G_i = L (I + U_i^T
U_i) L^T. By Woodbury's identity, and as the leading part of C is the factor of the leading part of
C C^T, the inverse of the bracket is I - M_i^T M_i, with the rows of M up to i: so W = (Z - tril(Z
M^T) M) L^-1, in O(n d^2 + n^2 d) operations a head, as for plain projection.

A block is computed in this way if every prefix of V that ends in it is well conditioned:
|V_i|_F |L^-1|_F, with the last of them, bounds the condition numbers of all. Otherwise its rows are
projected one by one, by the singular vectors of their own V_i. All computations are in float64; but
the last product, n^2 d operations, is in the type of the attention where W has digits to spare.

The first rows, where V_i has few more rows than columns. Let V_i^T = [B, C], with V_i the first i
rows of V (n x d) and B its first d columns. A basis of the left null space of V_i is N = [-B^-1 C;
I]: a column for each row beyond the d-th, whose last entry is at that row. So in N = Q R the
first columns of Q span the null spaces of shorter prefixes, and row a_i less its parts along the
columns of its own prefix is effective. Gram matrices of such prefixes have the square of B's
condition number; this has the number itself.

Row i is projected onto the column space of V_i, the rows of V that it sees: x_i = o_i G_i^-1 V_i^T
with o_i its output and G_i = V_i^T V_i, where V_i is well conditioned, otherwise by the singular
vectors of V_i. Neighbours see nearly the same, so that the Gram matrices of a few rows are that of
what all of them see, and a few products: O(d^3 + n d) operations a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from capacity.transformer.effective.column_space import (
    GRAM_CONDITION,
    WELL_CONDITIONED,
    gram_inverse,
    gram_rank,
)

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
        found = _projected_on_rows(
            rows, wide[sentence, head], seen[sentence], least[sentence, head], pattern.dtype
        )
        x[sentence, head] = found.to(x.dtype)
    return x


def _projected_on_rows(
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


# a block of d rows costs least; for small d, calls would cost more than products
_SMALLEST_BLOCK = 32


@dataclass(frozen=True, eq=False)
class Projected:
    """Causal attention, each row projected.

    Attributes
    ----------
    whole : (batch, heads, n, n)
        Projected attention, 0 above the diagonal.
    square : (batch, heads)
        Its squared Frobenius norms.
    rank : (batch, heads) int64
        Numerical ranks of V.
    """

    whole: Float[Tensor, "batch heads n n"]
    square: Float[Tensor, "batch heads"]
    rank: Int[Tensor, "batch heads"]


def project_causally(
    pattern: Float[Tensor, "batch heads n n"],
    v: Float[Tensor, "batch heads n d"],
    z: Float[Tensor, "batch heads n d"],
    mask: Bool[Tensor, "batch n"],
    relative: Float[Tensor, "batch"],
) -> Projected:
    """Project each row of attention onto the column space of the values up to its own token.

    Parameters
    ----------
    pattern : (batch, heads, n, n)
        Attention, 0 above the diagonal.
    v : (batch, heads, n, d)
        Values, 0 at padding.
    z : (batch, heads, n, d)
        ``pattern @ v``.
    mask : (batch, n) bool
        True for tokens; padding may be on either side.
    relative : (batch,)
        Singular values up to this share of the largest count as 0.

    Returns
    -------
    Projected
        Projected attention, and the ranks of V.
    """
    if mask.all():
        return _of_sentences(pattern, v, z, relative)
    # tokens first, so that rows before a token are those of its sentence wherever padding is
    order = (~mask).sort(dim=1, stable=True).indices[:, None, :, None]
    moved = pattern.take_along_dim(order, -2).take_along_dim(order.mT, -1)
    v, z = (x.take_along_dim(order, dim=-2) for x in (v, z))
    found = _of_sentences(moved, v, z, relative)
    back = order.argsort(dim=2)
    whole = found.whole.take_along_dim(back, -2).take_along_dim(back.mT, -1)
    return replace(found, whole=whole)


def _of_sentences(pattern: Tensor, v: Tensor, z: Tensor, relative: Tensor) -> Projected:
    heads = v.shape[:2]
    a, v, z = (x.flatten(0, 1) for x in (pattern, v, z))
    found = _projected(a, v, z, relative[:, None].expand(heads).flatten().double())
    return Projected(*(x.unflatten(0, heads) for x in found))


def _projected(a: Tensor, v: Tensor, z: Tensor, least: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Projected rows of heads, their squared norms, and ranks of V."""
    n, d = v.shape[-2:]
    wide = v.double()
    leading = project_leading(a, wide, least)
    start, known_anywhere = int(leading.n.min()), int(leading.n.max())
    x = torch.zeros_like(a)
    x[:, :known_anywhere, :known_anywhere] = leading.x[:, :known_anywhere, :known_anywhere]
    square = x[:, :start, :start].square().sum((-2, -1)).double()
    G = wide[:, :start].mT @ wide[:, :start]
    full = torch.zeros_like(least, dtype=torch.bool)
    while start < n:
        # the Gram matrix of fewer rows than columns has no inverse
        ends = (d, d + ROWS_BEYOND, start + max(d, _SMALLEST_BLOCK))
        end = min(n, next(end for end in ends if end > start))
        new = wide[:, start:end]
        inverse, size = gram_inverse(G)
        G = G + new.mT @ new
        # that of the last block bounds V's
        condition = size * G.diagonal(dim1=-2, dim2=-1).sum(-1).sqrt()
        full = condition * least < 1
        good = (condition <= GRAM_CONDITION[a.dtype]) & full
        if start >= known_anywhere and good.all():
            # z has been rounded, which ill conditioned V would magnify
            calm = bool((condition <= WELL_CONDITIONED[torch.float64]).all())
            o = z[:, start:end].double() if calm else a[:, start:end, :end].double() @ wide[:, :end]
            w = _block(inverse, new, o)
            values = v if calm else wide
            x[:, start:end, :end] = w.to(values.dtype) @ values[:, :end].mT
            x[:, start:end, start:end].tril_()
            # x_i = w_i V_i^T with the output o_i, so that |x_i|^2 = o_i w_i^T
            square += (o * w).sum((-2, -1))
        else:
            for head, rows in enumerate(a[:, start:end, :end]):
                known = min(max(int(leading.n[head]) - start, 0), end - start)
                out = x[head, start:end, :end]
                if known < end - start:
                    found = _rest(rows[known:].double(), wide[head, :end], inverse[head],
                                  bool(good[head]) and not known, float(least[head]))  # fmt: skip
                    out[known:] = found.to(a.dtype)
                square[head] += out.double().square().sum()
        start = end
    rank = torch.full_like(leading.n, d) if full.all() else gram_rank(G, v, least)
    return x, square.to(a.dtype), rank


def _rest(rows: Tensor, seen: Tensor, inverse: Tensor, good: bool, least: float) -> Tensor:
    """The last rows of a head, whose block is ill conditioned in some head."""
    if not good:
        n = len(seen)
        numbers = torch.arange(n - len(rows), n, device=seen.device)
        allowed = torch.arange(n, device=seen.device) <= numbers[:, None]
        return project_by_svd(rows, seen, allowed, least)
    w = _block(inverse, seen[-len(rows) :], rows @ seen)
    return (w @ seen.mT).tril(len(seen) - len(rows))


def _block(inverse: Tensor, v: Tensor, o: Tensor) -> Tensor:
    """W for rows v with outputs o, after rows with Gram matrix R^T R; ``inverse`` is R^-1."""
    U, Z = v @ inverse, o @ inverse
    C = torch.linalg.cholesky(torch.eye(v.shape[-2], dtype=v.dtype, device=v.device) + U @ U.mT)
    M = torch.linalg.solve_triangular(C, U, upper=False)
    return (Z - (Z @ M.mT).tril_() @ M) @ inverse.mT
