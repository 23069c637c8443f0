"""Corruption of tokens as in the pretraining of BERT (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def corrupted(
    tokens: Int[Tensor, "batch n"],
    where: Bool[Tensor, "batch n"],
    *,
    mask_token: int,
    d_vocab: int,
    share: float = 0.15,
    generator: torch.Generator,
) -> tuple[Any, Any]:
    """Corrupt tokens as BERT does: of those chosen 80 % are masked, 10 % replaced at random.

    Parameters
    ----------
    tokens : (batch, n) integers
        Original tokens.
    where : (batch, n) bool
        Tokens that may be chosen.
    mask_token : int
        Token that masks.
    d_vocab : int
        Size of the vocabulary from which replacements are drawn.
    share : float
        Share of the tokens to choose.
    generator : torch.Generator
        Source of all random numbers.

    Returns
    -------
    tokens : (batch, n) integers
        Corrupted tokens, which the model reads.
    chosen : (batch, n) bool
        Tokens that the model has to predict.
    """
    chosen = where & (torch.rand(tokens.shape, generator=generator) < share)
    fate = torch.rand(tokens.shape, generator=generator)
    random = torch.randint(d_vocab, tokens.shape, generator=generator)
    corrupt = torch.where(fate < 0.8, mask_token, torch.where(fate < 0.9, random, tokens))
    return torch.where(chosen, corrupt, tokens), chosen
