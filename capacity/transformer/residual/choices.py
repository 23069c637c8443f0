"""Tokens and positions that are asked about, one for each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from capacity.checks import require_integer
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache


def one_for_each(name: str, given: Any, like: Tensor, n: int) -> Tensor:
    """Return integers from 0 to n - 1, one for each sentence.

    Parameters
    ----------
    name : str
        What they are, for messages.
    given : int, or one for each sentence
        Integers in a sequence or a tensor.
    like : (batch, ...)
        Tensor with a row for each sentence, on the device that is wanted.
    n : int
        Number of choices.

    Raises
    ------
    InvalidArgumentError
        If it is anything else.
    """
    values = given.tolist() if isinstance(given, Tensor) else given
    batch = len(like)
    if not isinstance(values, Sequence) or isinstance(values, str):
        values = [values] * batch
    if len(values) != batch:
        raise InvalidArgumentError(
            f"`{name}` must be an integer, or one for each of {batch} sentences; got "
            f"{len(values)} of them."
        )
    found = [require_integer(name, one, least=0, most=n - 1) for one in values]
    return torch.tensor(found, device=like.device)


def positions_of(captured: ActivationCache, given: Any) -> Tensor:
    """Return a position in each sentence, by default that of its last token: (batch,).

    Raises
    ------
    InvalidArgumentError
        If there is no such position, or it is padding.
    """
    mask = captured.mask
    if given is None:
        # with padding on either side
        return mask.shape[1] - 1 - mask.flip(1).long().argmax(1)
    at = one_for_each("positions", given, mask, mask.shape[1])
    padding = (~mask[torch.arange(len(at), device=at.device), at]).nonzero().flatten().tolist()
    if padding:
        raise InvalidArgumentError(
            f"`positions` must be those of tokens; {int(at[padding[0]])} is padding in sentence "
            f"{padding[0]} (counted from 0)."
        )
    return at
