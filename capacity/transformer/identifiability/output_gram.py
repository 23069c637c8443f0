"""Gram matrices of the output weights of a layer's heads, kept from text to text.

With W the weights of all heads below one another, B W has the Gram matrix B (W W^T) B^T, where B
has what a text adds: a block of few numbers for each head. W W^T takes most of the operations, and
is that of all texts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.transformer.activations.following.by_tensor import ByTensor
from capacity.transformer.activations.following.modules import MOST_KEPT
from capacity.transformer.activations.records.products import random_vector
from capacity.transformer.effective.column_space import scale_of
from capacity.transformer.identifiability.singular_values import lower_gram


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
