"""The head of a model: its own code from the last embeddings to logits of tokens.

The code before the head is replaced while the model runs, so that the head is all that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError


def output_head(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Find what a model does with its last embeddings: the map from them to logits of tokens.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers`` with a masked-LM or LM head.

    Returns
    -------
    callable
        The head: from embeddings (..., d_model) to logits (..., d_vocab). It is the model's own
        code, without what precedes the head.

    Raises
    ------
    InvalidArgumentError
        If the model has no such head, or is an encoder-decoder.

    Examples
    --------
    >>> from transformers import BertConfig, BertForMaskedLM
    >>> config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    ...                     intermediate_size=8, vocab_size=20)
    >>> output_head(BertForMaskedLM(config))(torch.zeros(3, 8)).shape
    torch.Size([3, 20])
    """
    known: Any = model
    body: Any = getattr(model, "base_model", model)
    if body is model or known.get_output_embeddings() is None or body.config.is_encoder_decoder:
        raise _without_head(model)
    # some heads call the decoder in the model without its head
    bodies = list({id(part): part for part in (body, body.get_decoder())}.values())

    def head(embeddings: Tensor) -> Tensor:
        flat = embeddings.reshape(1, -1, embeddings.shape[-1])
        # the tokens aren't read
        tokens = torch.zeros(flat.shape[:2], dtype=torch.int64, device=flat.device)
        with _bodies_that_return(bodies, flat) as were_called:
            logits = getattr(known(input_ids=tokens, return_dict=True), "logits", None)
        if not were_called or logits is None:
            raise _without_head(model)
        return logits.reshape(*embeddings.shape[:-1], -1)

    return head


@contextmanager
def _bodies_that_return(bodies: Sequence[Any], embeddings: Tensor) -> Iterator[list[Any]]:
    """Replace `forward` of the parts before the head: each call returns the embeddings at once.

    It is an attribute of the instance meanwhile, and as it was afterwards. Yields the parts that
    have been called.
    """
    were_called: list[Any] = []
    forwards_before = [vars(body).get("forward") for body in bodies]

    def returning_embeddings(body: Any) -> Callable[..., _Last]:
        def forward(*_: Any, **__: Any) -> _Last:
            were_called.append(body)
            return _Last(embeddings)

        return forward

    for body in bodies:
        body.forward = returning_embeddings(body)
    try:
        yield were_called
    finally:
        for body, forward in zip(bodies, forwards_before, strict=True):
            if forward is None:
                vars(body).pop("forward", None)
            else:
                body.forward = forward


def _without_head(model: nn.Module) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The model must predict tokens; got {type(model).__name__}, which has no masked-LM or LM "
        "head alone after one stack of layers. Load it with its head: load_pretrained(folder, "
        "head=True), or the class ...ForMaskedLM or ...ForCausalLM of its family."
    )


class _Last:
    """Output of a model without its head, as far as heads need it: its last embeddings."""

    def __init__(self, embeddings: Tensor) -> None:
        self.last_hidden_state = embeddings

    def __getitem__(self, at: Any) -> Any:
        return (self.last_hidden_state,)[at]

    def __getattr__(self, name: str) -> None:
        return None
