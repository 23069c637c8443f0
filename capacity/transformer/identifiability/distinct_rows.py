"""Rows of attention that are unique: those up to which the rows of [T, 1] are independent.

T = V W_O and thresholds are those of `capacity.transformer.identifiability.nullity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from capacity.transformer.identifiability.gram_matrices import has_digits, singular_values
from capacity.transformer.identifiability.nullity import CheckedValues, checked_values


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
    return unique_rows_of_checked(checked_values(v, W_O, n_tokens))


def unique_rows_of_checked(checked: CheckedValues) -> Tensor:
    """Count what `unique_rows` counts.

    Differences of each row of T from the mean of those before it, in units of their size, are rows
    with the Gram matrix of P T of the first rows of T as its leading part, for each number of them.
    """
    v = checked.v
    T = v[..., : v.shape[-1] + 1, :].double() @ checked.compact
    differences = _differences(T.shape[-2]) @ T
    # the first row of [T, 1] alone is independent, as it isn't 0
    low = torch.ones(v.shape[:2], dtype=torch.int64)
    high = checked.n.clamp(max=T.shape[-2])[:, None].repeat(1, v.shape[1])
    if has_digits(T, checked.threshold):
        return _rows_by_gram(checked, T, differences @ differences.mT, low, high)
    # most often all rows that may be are independent, or all but a few
    middle, step = high.clone(), 1
    while (is_open := low < high).any():
        at = middle[is_open]
        tolerance = checked.threshold_of(at) * torch.linalg.svdvals(_first(T[is_open], at))[:, 0]
        s = torch.linalg.svdvals(_first(differences[is_open], at - 1))
        independent = (s > tolerance[:, None]).sum(dim=-1) == at - 1
        low[is_open] = torch.where(independent, at, low[is_open])
        high[is_open] = torch.where(independent, high[is_open], at - 1)
        step *= 2
        middle = torch.maximum((low + high + 1) // 2, high - step)
    return low


def _rows_by_gram(
    checked: CheckedValues, T: Tensor, gram: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    """Largest numbers of independent rows between two, by Gram matrices of their differences."""

    def independent(at: Tensor) -> Tensor:
        """First rows that are independent with the tolerance of `at` rows."""
        first = _first(T[is_open], at)
        s = singular_values(first.mT @ first)[:, 0]
        shifted = gram[is_open]
        shifted.diagonal(dim1=-2, dim2=-1).sub_((checked.threshold_of(at) * s)[:, None] ** 2)
        # the first leading part that isn't positive definite, and 0 if all are
        _, odd = torch.linalg.cholesky_ex(shifted)
        return torch.where(odd > 0, odd, T.shape[-2])

    while (is_open := low < high).any():
        # tolerances increase with the number of rows: fewer rows are independent as well
        most = high[is_open]
        found = torch.minimum(independent(most), most)
        low[is_open] = torch.maximum(low[is_open], found)
        high[is_open] = torch.where(found < most, most - 1, most)
        is_open = low < high
        if is_open.any():
            # and no more rows are than with the tolerance of fewer
            least = low[is_open]
            found = torch.maximum(independent(least + 1), least)
            low[is_open] = torch.where(found > least, least + 1, least)
            high[is_open] = torch.minimum(high[is_open], found)
    return low


@cache
def _differences(n: int) -> Float[Tensor, "n-1 n"]:
    """Helmert's matrix, whose rows are orthonormal and orthogonal to 1, the j-th 0 after j + 1."""
    j = torch.arange(1, n, dtype=torch.float64)
    sums = torch.ones(n - 1, n, dtype=torch.float64).tril()
    sums[:, 1:] -= torch.diag(j)
    return sums / (j * (j + 1)).sqrt()[:, None]


def _first(rows: Float[Tensor, "... m d"], n: Tensor) -> Tensor:
    """The first rows of each matrix; others are 0."""
    return rows * (torch.arange(rows.shape[-2]) < n[..., None])[..., None]
