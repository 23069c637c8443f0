"""Uniqueness of attention: ranks of T = V W_O, left null spaces, and P4, for each head, as a table.

Other attention A + A~ has the same output if A~ T = 0 (Bhardwaj et al. 2021, section 3). How far A
is from unique is the dimension of A~, for one row, which depends on what must be preserved:

* ``nullity``, dim LN(T) with LN(T) = {a : a T = 0}: the head's output (equation (4));
* ``nullity_simplex``, dim LN([T, 1]): the sums of rows as well (P1-P3);
* ``joint_nullity``: the sum of the outputs of all heads of a layer, on which later layers depend;
* ``p4_excess``: A must come from logits of rank d_head_qk (P1-P4,
  `capacity.transformer.identifiability.logit_rank`). The last two aren't in the paper.

Where a gate g multiplies the outputs of a head (Qwen3-Next), row i of A writes a_i V diag(g_i) W_O.
A change a~ with a~ V = 0 has no effect whatever the gates are; if none is 0, and W_O has full row
rank, no other change is without effect. So nullities are those of T = V W_O, without gates. The sum
over heads weighs directions by the gates of its row: ``joint_nullity`` is that of the last token.

A singular value of T counts as 0 up to max(n, d_model) eps ||T||_2, the paper's rule, with the eps
of the dtype that the model computed in; everything here is computed in float64. The rule is
relative: it doesn't depend on the scale of values. For the same reason rank[T, 1] is computed as
1 + rank(P T), where P = I - 1 1^T / n subtracts means, with the threshold of T: in [T, 1] itself
the scale of T would matter. (Column operations turn [T, 1] into [P T, 1], whose parts are
orthogonal.) By interlacing rank[T, 1] then is rank(T) or rank(T) + 1, as it must be.

One QR decomposition of each head is enough. With [1, V] = Q R, R[:, 1:] has the Gram matrix of V
and R[1:, 1:] that of P V; so the singular values of T are those of the small matrix
R[:, 1:] R_O^T, where W_O^T = Q_O R_O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.effective.column_space import scale_of

if TYPE_CHECKING:
    pass


@briefly_shown
@dataclass(frozen=True, eq=False)
class ValueRanks:
    """Numerical ranks of the heads of one layer.

    Attributes
    ----------
    values : (batch, n_heads) int64
        rank(T), T = V W_O.
    simplex : (batch, n_heads) int64
        rank[T, 1].
    joint : (batch,) int64
        Rank of the constraints on (a^1 ... a^H), one row of each head: sum_h a^h T^h = 0 and
        a^h 1 = 0 for each h. Its threshold is relative to the largest singular value of all T^h.
    threshold : (batch,) float64
        Relative threshold, max(n_tokens, d_model) eps.
    """

    values: Int[Tensor, "batch heads"]
    simplex: Int[Tensor, "batch heads"]
    joint: Int[Tensor, "batch"]
    threshold: Float[Tensor, "batch"]


@torch.no_grad()
def value_ranks(
    v: Float[Tensor, "batch heads n d_head_vo"],
    W_O: Float[Tensor, "heads d_head_vo d_model"],
    n_tokens: Int[Tensor, "batch"] | Sequence[int] | None = None,
) -> ValueRanks:
    """Compute numerical ranks of T = V W_O, of [T, 1] and of all heads together.

    Parameters
    ----------
    v : (batch, n_heads, n, d_head_vo)
        Values; the eps of their dtype sets the threshold.
    W_O : (n_heads, d_head_vo, d_model)
        Output weights.
    n_tokens : integers, (batch,), optional
        Number of tokens of each sentence, which come first; later rows are dropped.

    Returns
    -------
    ValueRanks
        Ranks and their threshold.

    Raises
    ------
    InvalidArgumentError
        If the shapes don't fit, or the dtype is too coarse.

    Examples
    --------
    >>> v = torch.randn(1, 2, 7, 3, generator=torch.Generator().manual_seed(0))
    >>> W_O = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1))
    >>> ranks = value_ranks(v, W_O)
    >>> ranks.values.tolist(), ranks.simplex.tolist(), ranks.joint.tolist()
    ([[3, 3]], [[4, 4]], [8])
    """
    v, W_O, n, threshold = checked_values(v, W_O, n_tokens)
    return ranks_of_checked(v, W_O, n, threshold)


def ranks_of_checked(v: Tensor, W_O: Tensor, n: Tensor, threshold: Tensor) -> ValueRanks:
    """Compute what `value_ranks` returns, of the tensors that `checked_values` returns."""
    triangles = _triangles(v, n[:, None])
    n_heads, m = triangles.shape[1:3]
    if _is_gram_enough(n_heads, m, W_O.shape[-1], float(threshold.min())):
        return _ranks_by_gram(triangles[..., 1:] @ W_O, threshold)
    heads = _Heads.of(triangles[..., 1:] @ _compact(W_O, v.dtype), threshold[:, None])
    stacked = (triangles[..., 1:, 1:] @ W_O).flatten(1, 2)
    tolerance = heads.tolerance.amax(dim=1).tolist()
    joint = [_rank(rows, t) for rows, t in zip(stacked, tolerance, strict=True)]
    # the H constraints a^h 1 = 0 are orthogonal to the stacked P T^h, and add H to the rank
    return ValueRanks(heads.values, heads.simplex, torch.tensor(joint) + len(W_O), threshold)


def _is_gram_enough(n_heads: int, m: int, d_model: int, least: float) -> bool:
    """Return whether rows are few, and rounding of their Gram matrix is below squared thresholds.

    The squared tolerance is least^2 times the largest eigenvalue of a block; the trace of all
    blocks is at most n_heads m times that.
    """
    rounding = 4 * d_model * m * torch.finfo(torch.float64).eps
    return n_heads * m <= d_model and least**2 > rounding * max(100, n_heads)


def _ranks_by_gram(rows: Float[Tensor, "batch heads m d_model"], threshold: Tensor) -> ValueRanks:
    """Ranks of few rows, by one Gram matrix, whose blocks on the diagonal are those of heads."""
    n_heads, m = rows.shape[1:3]
    values, simplex, joint = [], [], []
    for stacked, share in zip(rows.flatten(1, 2), threshold, strict=True):
        gram = _lower_gram(stacked)
        by_heads = gram.view(n_heads, m, n_heads, m)
        heads = _Heads.of_gram(by_heads.diagonal(dim1=0, dim2=2).permute(2, 0, 1), share)
        values.append(heads.values)
        simplex.append(heads.simplex)
        # the H constraints a^h 1 = 0 are orthogonal to the others
        rest = by_heads[:, 1:, :, 1:].reshape([n_heads * (m - 1)] * 2)
        joint.append(_rank_of_gram(rest, float(heads.tolerance.max())) + n_heads)
    return ValueRanks(torch.stack(values), torch.stack(simplex), torch.tensor(joint), threshold)


@torch.no_grad()
def unique_rows(
    v: Float[Tensor, "batch heads n d_head_vo"],
    W_O: Float[Tensor, "heads d_head_vo d_model"],
    n_tokens: Int[Tensor, "batch"] | Sequence[int] | None = None,
) -> Int[Tensor, "batch heads"]:
    """Count the rows of a causal A that are unique for known P2 and P3.

    The i-th row attends to the first i tokens, so it is unique exactly if those rows of [T, 1] are
    independent; then earlier rows are unique as well. As rows are added the smallest singular value
    only decreases and the threshold only increases: bisection finds the last i, at most rank[T, 1].

    Parameters
    ----------
    v, W_O, n_tokens : tensors
        Values, output weights and numbers of tokens, in the shapes of `value_ranks`.

    Returns
    -------
    (batch, n_heads) int64
        Number of unique rows, at least 1.

    Raises
    ------
    InvalidArgumentError
        If the shapes don't fit, or the dtype is too coarse.

    Examples
    --------
    Three dimensions of values, and a sum of 1: four rows are unique.

    >>> v = torch.randn(1, 1, 7, 3, generator=torch.Generator().manual_seed(0))
    >>> unique_rows(v, torch.eye(3)[None])
    tensor([[4]])
    """
    return unique_rows_of_checked(*checked_values(v, W_O, n_tokens)[:3])


def unique_rows_of_checked(v: Tensor, W_O: Tensor, n: Tensor) -> Tensor:
    """Count what `unique_rows` counts, of tensors that `checked_values` returns."""
    compact = _compact(W_O, v.dtype)
    first = v[..., : v.shape[-1] + 1, :]
    # the first row of [T, 1] alone is independent, as it isn't 0
    low = torch.ones(v.shape[:2], dtype=torch.int64)
    high = n.clamp(max=first.shape[2])[:, None].repeat(1, v.shape[1])
    # most often all rows that may be are independent, or all but a few
    middle, step = high.clone(), 1
    while (is_open := low < high).any():
        of_head, at = is_open.nonzero()[:, 1], middle[is_open]
        rows = _triangles(first[is_open], at)[..., 1:] @ compact[of_head]
        independent = _Heads.of(rows, _threshold(v, W_O, at)).simplex == at
        low[is_open] = torch.where(independent, at, low[is_open])
        high[is_open] = torch.where(independent, high[is_open], at - 1)
        step *= 2
        middle = torch.maximum((low + high + 1) // 2, high - step)
    return low


def checked_values(
    v: Tensor, W_O: Tensor, n_tokens: Tensor | Sequence[int] | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Check values and output matrices; return them in float64, numbers of tokens, thresholds."""
    if v.ndim != 4 or W_O.ndim != 3 or (v.shape[1], v.shape[3]) != tuple(W_O.shape[:2]):
        raise InvalidArgumentError(
            "`v` must have the shape (batch, n_heads, n, d_head_vo) and `W_O` the shape "
            f"(n_heads, d_head_vo, d_model); got {tuple(v.shape)} and {tuple(W_O.shape)}."
        )
    n = torch.as_tensor([v.shape[2]] * len(v) if n_tokens is None else n_tokens).cpu()
    if n.shape != v.shape[:1] or not ((n >= 1) & (n <= v.shape[2])).all():
        raise InvalidArgumentError(
            f"`n_tokens` must hold a number from 1 to {v.shape[2]} for each of {len(v)} sentences; "
            f"got {n.tolist()}."
        )
    threshold = _threshold(v, W_O, n)
    if not (threshold < 1).all():
        raise InvalidArgumentError(
            "The threshold for ranks, max(n, d_model) eps, must be below 1; in "
            f"{str(v.dtype).removeprefix('torch.')} it is {float(threshold.max()):.3g}. Load the "
            "model in float32."
        )
    v, W_O = v.cpu(), W_O.cpu()
    v = v.masked_fill((torch.arange(v.shape[2]) >= n[:, None])[:, None, :, None], 0.0)
    wide = W_O.to(torch.float64, copy=True).div_(scale_of(W_O, (0, 1, 2)))
    return v / scale_of(v, (1, 2, 3)), wide, n, threshold


def _threshold(v: Tensor, W_O: Tensor, n: Tensor) -> Tensor:
    return n.clamp(min=W_O.shape[-1]).double() * torch.finfo(v.dtype).eps


def _triangles(v: Tensor, n: Tensor) -> Tensor:
    real = torch.arange(v.shape[-2]) < n[..., None]
    ones = torch.ones(*v.shape[:-1], 1, dtype=torch.float64)
    rows = torch.cat([ones, v.double()], dim=-1)
    return torch.linalg.qr(torch.where(real[..., None], rows, 0.0), mode="r").R


def _compact(W_O: Tensor, dtype: torch.dtype) -> Tensor:
    """R_O^T, of which the Cholesky decomposition of a Gram matrix has enough digits in float32."""
    if dtype != torch.float64 and W_O.shape[-2] <= W_O.shape[-1]:
        R, info = torch.linalg.cholesky_ex(W_O @ W_O.mT)
        if not info.any():
            return R
    return torch.linalg.qr(W_O.mT, mode="r").R.mT


@dataclass(frozen=True, eq=False)
class _Heads:
    values: Tensor
    simplex: Tensor
    tolerance: Tensor

    @classmethod
    def of(cls, rows: Tensor, threshold: Tensor) -> _Heads:
        return cls._of(
            lambda first: _singular_values(rows[..., first:, :], threshold),
            rows.shape[-2],
            threshold,
        )

    @classmethod
    def of_gram(cls, gram: Tensor, threshold: Tensor) -> _Heads:
        return cls._of(lambda first: _roots(gram[..., first:, first:]), gram.shape[-1], threshold)

    @classmethod
    def _of(cls, values_from: Callable[[int], Tensor], m: int, threshold: Tensor) -> _Heads:
        """Ranks by a function that returns the singular values of the rows from one of them on."""
        s = values_from(0)
        tolerance = threshold * s[..., 0]
        values = (s > tolerance[..., None]).sum(dim=-1)
        if (values == m).all():
            # without the first row they are independent as well, as singular values interlace
            return cls(values, values.clone(), tolerance)
        centred = values_from(1)
        return cls(values, 1 + (centred > tolerance[..., None]).sum(dim=-1), tolerance)


def _singular_values(rows: Float[Tensor, "... m d"], least: Tensor) -> Tensor:
    """Singular values, in descending order; precise down to a share of the largest."""
    few = rows if rows.shape[-2] <= rows.shape[-1] else rows.mT
    rounding = 4 * few.shape[-1] * few.shape[-2] * torch.finfo(torch.float64).eps
    if not rows.numel() or float(least.min()) ** 2 <= 100 * rounding:
        return torch.linalg.svdvals(rows)
    # a Gram matrix takes a third of the time, and has half of the digits
    return _roots(few @ few.mT)


def _roots(gram: Float[Tensor, "... m m"]) -> Tensor:
    """Singular values, in descending order, from the lower half of a Gram matrix."""
    return torch.linalg.eigvalsh(gram).clamp_min(0.0).sqrt().flip(-1)


def _rank(rows: Float[Tensor, "m d"], tolerance: float) -> int:
    gram = _lower_gram(rows if rows.shape[0] < rows.shape[1] else rows.mT)
    rounding = 4 * max(rows.shape) * torch.finfo(torch.float64).eps * float(gram.trace())
    if tolerance**2 <= rounding:
        # rounding of the Gram matrix exceeds the squared threshold
        return int((torch.linalg.svdvals(rows) > tolerance).sum())
    return _rank_of_gram(gram, tolerance)


def _rank_of_gram(gram: Float[Tensor, "m m"], tolerance: float) -> int:
    """Number of singular values above a tolerance; writes over the Gram matrix."""
    # singular values above t are positive eigenvalues of G - t^2 I = L D L^T; D has as many
    # (Sylvester), at a tenth of the cost of computing them
    gram.diagonal().sub_(tolerance**2)
    LD, pivots = torch.linalg.ldl_factor(gram)
    alone = pivots > 0
    # a 2 x 2 block of D, marked in both of its rows, has one eigenvalue of each sign
    return int((LD.diagonal()[alone] > 0).sum() + (~alone).sum() // 2)


def _lower_gram(rows: Float[Tensor, "m d"]) -> Float[Tensor, "m m"]:
    """Gram matrix of rows, of which decompositions read what is below the diagonal; so is this."""
    m, step = len(rows), 144
    gram = rows.new_empty(m, m)
    for start in range(0, m, step):
        end = start + step
        torch.mm(rows[start:end], rows[:end].mT, out=gram[start:end, :end])
    return gram
