"""Ranks by Gram matrices, where these have enough digits, and those of output weights.

The number of singular values above t is that of positive eigenvalues of G - t^2 I, with G the Gram
matrix of the smaller side. Squares have half of the digits, which is enough for the tolerances of
models in float32, and not for those of models in float64.

With W the output weights of all heads of a layer below one another, B W has the Gram matrix
B (W W^T) B^T, where B has what a text adds: a block of few numbers for each head. W W^T takes most
of the operations, and is that of all texts: it is kept from text to text.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from capacity.transformer.activations.following.by_tensor import ByTensor
from capacity.transformer.activations.following.modules import MOST_KEPT
from capacity.transformer.activations.records.products import random_vector
from capacity.transformer.effective.column_space import scale_of


def has_digits(rows: Float[Tensor, "... m d"], threshold: Tensor) -> bool:
    """Return whether a Gram matrix of rows has enough digits for squared thresholds."""
    return float(threshold.min()) ** 2 > 100 * rounding_of(rows.shape[-2:].numel())


def rounding_of(n_products: int) -> float:
    """Bound of the relative rounding of a sum of products in float64, with a margin."""
    return 4 * n_products * torch.finfo(torch.float64).eps


def singular_values(gram: Float[Tensor, "... m m"]) -> Tensor:
    """Singular values, in descending order, from the lower half of a Gram matrix."""
    return torch.linalg.eigvalsh(gram).clamp_min(0.0).sqrt().flip(-1)


def n_above(rows: Float[Tensor, "m d"], tolerance: float) -> int:
    """Count singular values of rows above a tolerance."""
    gram = lower_gram(rows if rows.shape[0] < rows.shape[1] else rows.mT)
    if tolerance**2 <= rounding_of(max(rows.shape)) * float(gram.trace()):
        # rounding of the Gram matrix exceeds the squared threshold
        return int((torch.linalg.svdvals(rows) > tolerance).sum())
    return int(rows_above(gram, tolerance))


def rows_above(gram: Float[Tensor, "... m m"], tolerance: Tensor | float) -> Int[Tensor, "..."]:
    """Count singular values above a tolerance; write over the Gram matrix.

    Parameters
    ----------
    gram : (..., m, m) float64
        Gram matrices, of which the lower half is read.
    tolerance : (...) or number
        What counts as 0.

    Returns
    -------
    (...) int64
        Number of singular values above it.
    """
    # those are positive eigenvalues of G - t^2 I = L D L^T; D has as many (Sylvester), at a tenth
    # of the cost of computing them
    squared = torch.as_tensor(tolerance, dtype=torch.float64) ** 2
    gram.diagonal(dim1=-2, dim2=-1).sub_(squared[..., None])
    LD, pivots, _ = torch.linalg.ldl_factor_ex(gram)
    alone = pivots > 0
    # a 2 x 2 block of D, marked in both of its rows, has one eigenvalue of each sign
    positive = (LD.diagonal(dim1=-2, dim2=-1) > 0) & alone
    return positive.sum(dim=-1) + (~alone).sum(dim=-1) // 2


def lower_gram(rows: Float[Tensor, "m d"]) -> Float[Tensor, "m m"]:
    """Gram matrix of rows, of which decompositions read what is below the diagonal; so is this."""
    m, step = len(rows), 144
    gram = rows.new_empty(m, m)
    for start in range(0, m, step):
        end = start + step
        torch.mm(rows[start:end], rows[:end].mT, out=gram[start:end, :end])
    return gram


@dataclass(frozen=True, eq=False)
class _Kept:
    """A Gram matrix, and what shows whether it is that of some weights."""

    shape: torch.Size
    product: Tensor
    gram: Tensor


# by the tensor whose memory the weights are, as long as somebody holds it
_kept = ByTensor()


def output_gram(W_O: Float[Tensor, "heads d_head_vo d_model"]) -> Float[Tensor, "rows rows"]:
    """Compute W W^T in float64, with W the weights of all heads, divided by a power of two.

    Parameters
    ----------
    W_O : (n_heads, d_head_vo, d_model)
        Output weights, on the CPU.

    Returns
    -------
    (n_heads * d_head_vo, n_heads * d_head_vo) float64
        The Gram matrix, which isn't to be written to: small ones are returned again for the same
        weights. `scale_of` has the power of two.
    """
    W, held = W_O.flatten(0, 1), W_O if W_O._base is None else W_O._base
    # weights may be written over
    product = W @ random_vector(W.shape[1], W)
    known = _kept.get(held)
    if known is not None and known.shape == W_O.shape and torch.equal(known.product, product):
        return known.gram
    gram = lower_gram(scaled(W_O).flatten(0, 1))
    gram = gram.tril_().add_(gram.tril(-1).mT)
    if gram.numel() <= MOST_KEPT:
        _kept[held] = _Kept(W_O.shape, product, gram)
    return gram


def scaled(W_O: Tensor) -> Tensor:
    """Output weights in float64, divided by a power of two, so that squares of them are numbers."""
    return W_O.to(torch.float64, copy=True).div_(scale_of(W_O, (0, 1, 2)))
