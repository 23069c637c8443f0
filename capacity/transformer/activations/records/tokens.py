"""Tokens of sentences, their masks, and tensors that must be dense: checked as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.transformer.activations.records.validation import ATTENTION_BUDGET


def require_dense(what: str, x: object, device: torch.device | None = None) -> None:
    """Refuse a tensor that arithmetic isn't defined for; what is no tensor is refused elsewhere.

    Parameters
    ----------
    what : str
        Its name, for messages.
    x : object
        The tensor.
    device : torch.device, optional
        Device of the pattern, which it must share.

    Raises
    ------
    InvalidArgumentError
        For a sparse, nested or quantised tensor, one on another device, or one of 8 bits.
    """
    if not isinstance(x, Tensor):
        return
    layout = "nested" if x.is_nested else "quantized" if x.is_quantized else str(x.layout)
    if layout != "torch.strided":
        raise InvalidArgumentError(
            f"{what} must be dense; got a tensor of the layout {layout.removeprefix('torch.')}. "
            "Make a dense one of it."
        )
    if x.is_meta or (device is not None and x.device != device):
        on = "" if device is None or device.type == "meta" else f", on the device {device}"
        raise InvalidArgumentError(
            f"{what} must have values{on}; got a tensor on {x.device}. Compute it there."
        )
    if x.is_floating_point() and x.dtype.itemsize == 1:
        raise InvalidArgumentError(
            f"{what} must be of 16, 32 or 64 bits; got {str(x.dtype).removeprefix('torch.')}. "
            "Convert it by float()."
        )


def checked_tokens(
    tokens: Any,
    mask: Any,
    *,
    d_vocab: int | None,
    n_positions: int | None,
    longest: str = "n_positions",
    padding_after: bool = False,
) -> Bool[Tensor, "batch n"]:
    """Check that a model can read sentences, and return the mask of their tokens.

    Parameters
    ----------
    tokens : integer tensor, shape (batch, n)
        Token ids.
    mask : tensor of 0 and 1, shape (batch, n), or None
        1 for tokens, 0 for padding; None: no padding.
    d_vocab : int or None
        Size of the model's vocabulary; None: no limit.
    n_positions : int or None
        Largest number of tokens in a sentence; None: no limit.
    longest : str
        Name of that limit, for the message.
    padding_after : bool
        Require that padding comes after the tokens of a sentence.

    Returns
    -------
    (batch, n) bool
        True for tokens, False for padding.

    Raises
    ------
    InvalidArgumentError
        If the model can't read the sentences.
    """
    require_dense("The tokens", tokens)
    if not isinstance(tokens, Tensor) or tokens.ndim != 2 or not tokens.numel():
        what = tuple(tokens.shape) if isinstance(tokens, Tensor) else type(tokens).__name__
        raise InvalidArgumentError(
            f"Tokens must be a tensor of shape (batch, n), not empty; got {what}. A tokenizer "
            "returns one with return_tensors='pt' (and padding=True for several sentences)."
        )
    if tokens.dtype not in (torch.int32, torch.int64):
        raise InvalidArgumentError(f"Tokens must be int32 or int64; got {tokens.dtype}.")
    least, most = int(tokens.min()), int(tokens.max())
    end = 2**62 if d_vocab is None else d_vocab
    if least < 0 or most >= end:
        raise InvalidArgumentError(
            f"Tokens must lie between 0 and d_vocab - 1 = {end - 1}; got "
            f"{least if least < 0 else most}. Use the model's own tokenizer."
        )
    if n_positions is not None and tokens.shape[1] > n_positions:
        raise InvalidArgumentError(
            f"A sentence must have at most {n_positions} tokens, {longest}; got {tokens.shape[1]}. "
            "Shorten it, or call the tokenizer with truncation=True."
        )
    real = sentence_mask(mask, tokens.shape).to(tokens.device)
    if padding_after and (real[:, 1:] & ~real[:, :-1]).any():
        raise InvalidArgumentError(
            "Padding must come after a sentence's tokens; got a mask with a token after padding. "
            "Pad on the right."
        )
    return real


def require_affordable_attention(tokens: Tensor, n_layers: int, n_heads: int) -> None:
    """Refuse sentences whose attention, in all layers and heads, exceeds `ATTENTION_BUDGET` bytes.

    Analyses need two to three times as much memory.

    Raises
    ------
    MemoryBudgetError
        If float32 attention of all sentences, layers and heads needs more.
    """
    batch, n = tokens.shape
    n_bytes = 4 * batch * n_layers * n_heads * n * n
    if n_bytes > ATTENTION_BUDGET:
        raise MemoryBudgetError(
            f"Attention must take at most {ATTENTION_BUDGET:,} bytes in float32; that of {batch} x "
            f"{n:,} tokens in {n_layers} layers of {n_heads} heads would take {n_bytes:,}. Shorten "
            "the sentences, or pass fewer at a time."
        )


def sentence_mask(mask: Any, shape: Sequence[int]) -> Bool[Tensor, "batch n"]:
    """Boolean mask of the tokens of sentences; without a mask, all are tokens.

    Raises
    ------
    InvalidArgumentError
        For a mask of another shape or with other values than 0 and 1, or a sentence of padding
        alone.
    """
    if mask is None:
        return torch.ones(*shape, dtype=torch.bool)
    require_dense("The attention mask", mask)
    if not isinstance(mask, Tensor) or tuple(mask.shape) != tuple(shape):
        got = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
        raise InvalidArgumentError(
            f"The attention mask must be a tensor of the tokens' shape, {tuple(shape)}; got {got}."
        )
    if not ((mask == 0) | (mask == 1)).all():
        raise InvalidArgumentError("The attention mask must hold 0 for padding and 1 for tokens.")
    real = mask.bool()
    empty = (~real.any(dim=1)).nonzero().flatten().tolist()
    if empty:
        raise InvalidArgumentError(
            f"Every sentence must have a token; number {empty[0]} (counted from 0) is padding "
            "alone. Omit it."
        )
    return real
