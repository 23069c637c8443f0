"""Runs of a model whose attention is given, while a context lasts, in place of what it computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.attention_calls import (
    AttentionCall,
    edited_heads,
    heard_attention,
    is_edited,
)
from capacity.transformer.activations.following.modules import (
    LayerCount,
    counted_layers,
    require_attending,
)
from capacity.transformer.activations.models.families import body_of


@contextmanager
def fixed_attention(
    model: nn.Module, patterns: Mapping[int, Float[Tensor, "batch heads n n"]]
) -> Iterator[nn.Module]:
    """Run a model with given attention in some layers, so that queries and keys carry nothing.

    Parameters
    ----------
    model : nn.Module
        A model of ``transformers`` of one stack, as for `capture`. It is changed nowhere; its calls
        in this context, of this thread, average values by the given attention.
    patterns : mapping of int to (batch, n_heads, n, n)
        By layer, counted from 0, the attention, of rows to columns.

    Yields
    ------
    nn.Module
        The model.

    Raises
    ------
    InvalidArgumentError
        If there is no such layer, or the model reads sentences of another shape.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> from capacity.transformer import capture
    >>> sizes = GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=50)
    >>> model, tokens = GPT2LMHeadModel(sizes).eval(), torch.tensor([[2, 7, 11, 3]])
    >>> own = {0: capture(model, tokens).layers[0].pattern}
    >>> with fixed_attention(model, own):
    ...     logits = model(tokens).logits
    >>> torch.allclose(logits, model(tokens).logits, atol=1e-6)
    True
    """
    body, stack = body_of(model, None)
    inside, counts = set(stack.modules()), dict[int, LayerCount]()
    heard: list[AttentionCall] = []

    def begin(*_: Any) -> None:
        counts[get_ident()] = LayerCount()

    def edit(module: nn.Module, z: Tensor) -> Tensor:
        if module not in inside:
            return z
        pattern = patterns.get(counts[get_ident()].attend())
        return z if pattern is None else _averaged(heard[-1], pattern)

    def hear(call: AttentionCall) -> None:
        heard[:] = [call]

    def end(*_: Any) -> None:
        if is_edited(edit):
            attending = counts[get_ident()].attending
            require_attending(f"Layers of {type(model).__name__}", sorted(patterns), attending)

    with ExitStack() as context:
        context.callback(stack.register_forward_pre_hook(begin).remove)
        context.enter_context(counted_layers(stack, lambda: counts.get(get_ident())))
        context.callback(stack.register_forward_hook(end).remove)
        context.enter_context(torch.compiler.set_stance("force_eager"))
        context.enter_context(heard_attention(body, hear))
        context.enter_context(edited_heads(body, edit))
        yield model


def _averaged(call: AttentionCall, pattern: Tensor) -> Tensor:
    """Values of an attention, averaged by a pattern: (batch, n, n_heads, d_head_vo)."""
    if pattern.shape != call.pattern.shape:
        raise InvalidArgumentError(
            f"Attention must have the shape of the model's own, {tuple(call.pattern.shape)}; got "
            f"{tuple(pattern.shape)}. Pass sentences of the same number of tokens, use_cache=False."
        )
    n_groups = call.v.shape[1]
    v = call.v.repeat_interleave(pattern.shape[1] // n_groups, dim=1)
    return (pattern.to(v) @ v).transpose(1, 2).contiguous()
