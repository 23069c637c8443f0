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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.effective.column_space import scale_of
from capacity.transformer.identifiability.gram_matrices import (
    has_digits,
    lower_gram,
    n_above,
    output_gram,
    rounding_of,
    rows_above,
    scaled,
    singular_values,
)


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
    return ranks_of_checked(checked_values(v, W_O, n_tokens))


def ranks_of_checked(checked: CheckedValues) -> ValueRanks:
    """Compute what `value_ranks` returns."""
    triangles = _triangles(checked.v, checked.n[:, None])
    n_heads, m = triangles.shape[1:3]
    threshold = checked.threshold
    if checked.gram is None and _is_gram_enough(checked, m):
        return _ranks_by_gram(triangles[..., 1:] @ checked.wide, threshold)
    heads = _Heads.of(triangles[..., 1:] @ checked.compact, threshold[:, None])
    tolerance = heads.tolerance.amax(dim=1).tolist()
    below = triangles[..., 1:, 1:]
    joint = [_joint_rank(rows, checked, t) for rows, t in zip(below, tolerance, strict=True)]
    # the H constraints a^h 1 = 0 are orthogonal to the stacked P T^h, and add H to the rank
    return ValueRanks(heads.values, heads.simplex, torch.tensor(joint) + n_heads, threshold)


def _is_gram_enough(checked: CheckedValues, m: int) -> bool:
    """Return whether rows are few, and rounding of their Gram matrix is below squared thresholds.

    The squared tolerance is least^2 times the largest eigenvalue of a block; the trace of all
    blocks is at most n_heads m times that.
    """
    n_heads, _, d_model = checked.W_O.shape
    rounding = rounding_of(d_model * m) * max(100, n_heads)
    return n_heads * m <= d_model and float(checked.threshold.min()) ** 2 > rounding


def _joint_rank(
    below: Float[Tensor, "heads rows d_head_vo"], checked: CheckedValues, tolerance: float
) -> int:
    """Rank of all P T^h below one another."""
    gram = checked.gram
    if gram is not None:
        size = float(below.square().sum((-2, -1)).max()) * float(gram.trace())
        if tolerance**2 > rounding_of(checked.W_O.shape[-1]) * size:
            return int(rows_above(_congruent(below, gram), tolerance))
    return n_above((below @ checked.wide).flatten(0, 1), tolerance)


def _congruent(blocks: Float[Tensor, "heads rows d_head_vo"], gram: Tensor) -> Float[Tensor, "m m"]:
    """B G B^T for a matrix B with blocks on its diagonal; what is below the diagonal is this."""
    n_heads, n_rows, d = blocks.shape
    half = (blocks @ gram.view(n_heads, d, -1)).flatten(0, 1)
    product = half.new_empty(len(half), len(half))
    for head, block in enumerate(blocks):
        at = head * n_rows
        torch.mm(half[at:, head * d : (head + 1) * d], block.mT,
                 out=product[at:, at : at + n_rows])  # fmt: skip
    return product


def _ranks_by_gram(rows: Float[Tensor, "batch heads m d_model"], threshold: Tensor) -> ValueRanks:
    """Ranks of few rows, by one Gram matrix, whose blocks on the diagonal are those of heads."""
    n_heads, m = rows.shape[1:3]
    values, simplex, joint = [], [], []
    for stacked, share in zip(rows.flatten(1, 2), threshold, strict=True):
        gram = lower_gram(stacked)
        by_heads = gram.view(n_heads, m, n_heads, m)
        heads = _Heads.of_gram(by_heads.diagonal(dim1=0, dim2=2).permute(2, 0, 1), share)
        values.append(heads.values)
        simplex.append(heads.simplex)
        # the H constraints a^h 1 = 0 are orthogonal to the others
        rest = by_heads[:, 1:, :, 1:].reshape([n_heads * (m - 1)] * 2)
        joint.append(int(rows_above(rest, float(heads.tolerance.max()))) + n_heads)
    return ValueRanks(torch.stack(values), torch.stack(simplex), torch.tensor(joint), threshold)


@dataclass(frozen=True, eq=False)
class CheckedValues:
    """Values that output weights fit.

    Attributes
    ----------
    v : (batch, n_heads, n, d_head_vo)
        Values, divided by powers of two; 0 at padding.
    W_O : (n_heads, d_head_vo, d_model)
        Output weights.
    n : (batch,) int64
        Numbers of tokens.
    threshold : (batch,) float64
        Singular values up to this share of the largest count as 0.
    """

    v: Tensor
    W_O: Tensor
    n: Tensor
    threshold: Tensor

    def threshold_of(self, n: Tensor) -> Tensor:
        """Threshold for numbers of tokens."""
        return n.clamp(min=self.W_O.shape[-1]).double() * torch.finfo(self.v.dtype).eps

    @cached_property
    def wide(self) -> Tensor:
        """Output weights in float64, divided by a power of two."""
        return scaled(self.W_O)

    @cached_property
    def gram(self) -> Tensor | None:
        """Gram matrix of all output weights, where those of many rows come from it; or None.

        Of few rows their own takes fewer operations.
        """
        d, d_model = self.W_O.shape[1:]
        is_wide = self.W_O.shape[:2].numel() <= d_model and self.v.dtype != torch.float64
        return output_gram(self.W_O) if is_wide and 4 * self.v.shape[2] >= 3 * d else None

    @cached_property
    def compact(self) -> Float[Tensor, "heads d_head_vo rank"]:
        """R_O^T, of which the Cholesky decomposition of a Gram matrix has enough digits."""
        n_heads, d, d_model = self.W_O.shape
        if self.v.dtype != torch.float64 and d <= d_model:
            if self.gram is None:
                gram = self.wide @ self.wide.mT
            else:
                by_heads = self.gram.view(n_heads, d, n_heads, d)
                gram = by_heads.diagonal(dim1=0, dim2=2).permute(2, 0, 1)
            R, info = torch.linalg.cholesky_ex(gram)
            if not info.any():
                return R
        return torch.linalg.qr(self.wide.mT, mode="r").R.mT


def checked_values(
    v: Tensor, W_O: Tensor, n_tokens: Tensor | Sequence[int] | None
) -> CheckedValues:
    """Check values and output matrices.

    Raises
    ------
    InvalidArgumentError
        If the shapes don't fit, or the dtype is too coarse.
    """
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
    threshold = n.clamp(min=W_O.shape[-1]).double() * torch.finfo(v.dtype).eps
    if not (threshold < 1).all():
        raise InvalidArgumentError(
            "The threshold for ranks, max(n, d_model) eps, must be below 1; in "
            f"{str(v.dtype).removeprefix('torch.')} it is {float(threshold.max()):.3g}. Load the "
            "model in float32."
        )
    v, W_O = v.cpu(), W_O.cpu()
    if (n < v.shape[2]).any():
        v = v.masked_fill((torch.arange(v.shape[2]) >= n[:, None])[:, None, :, None], 0.0)
    return CheckedValues(v / scale_of(v, (1, 2, 3)), W_O, n, threshold)


def _triangles(v: Tensor, n: Tensor) -> Tensor:
    real = torch.arange(v.shape[-2]) < n[..., None]
    ones = torch.ones(*v.shape[:-1], 1, dtype=torch.float64)
    rows = torch.cat([ones, v.double()], dim=-1)
    return torch.linalg.qr(torch.where(real[..., None], rows, 0.0), mode="r").R


@dataclass(frozen=True, eq=False)
class _Heads:
    values: Tensor
    simplex: Tensor
    tolerance: Tensor

    @classmethod
    def of(cls, rows: Float[Tensor, "... m d"], threshold: Tensor) -> _Heads:
        """Ranks of rows, and of those after the first: one more, if it is the mean."""
        m, d = rows.shape[-2:]
        if not has_digits(rows, threshold):
            s = torch.linalg.svdvals(rows)
            tolerance = threshold * s[..., 0]
            centred = torch.linalg.svdvals(rows[..., 1:, :]) > tolerance[..., None]
            values = (s > tolerance[..., None]).sum(dim=-1)
            return cls(values, 1 + centred.sum(dim=-1), tolerance)
        if m <= d:
            return cls.of_gram(rows @ rows.mT, threshold)
        s = singular_values(rows.mT @ rows)
        tolerance, below = threshold * s[..., 0], rows[..., 1:, :]
        centred = rows_above(below.mT @ below, tolerance)
        return cls((s > tolerance[..., None]).sum(dim=-1), 1 + centred, tolerance)

    @classmethod
    def of_gram(cls, gram: Float[Tensor, "... m m"], threshold: Tensor) -> _Heads:
        """The same from the Gram matrix of few rows."""
        s = singular_values(gram)
        tolerance = threshold * s[..., 0]
        values = (s > tolerance[..., None]).sum(dim=-1)
        if (values == gram.shape[-1]).all():
            # without the first row they are independent as well, as singular values interlace
            return cls(values, values.clone(), tolerance)
        centred = rows_above(gram[..., 1:, 1:].contiguous(), tolerance)
        return cls(values, 1 + centred, tolerance)
