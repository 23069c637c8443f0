"""Pretrained models without what some of their heads write, while a context lasts.

Heads are numbered as `capture` numbers them, and reached in the same way: through the function that
``transformers`` hands queries, keys and values to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.capturing import capture
from capacity.transformer.activations.following.attention_calls import edited_heads, is_edited
from capacity.transformer.activations.following.layer_count import (
    LayerCount,
    counted_layers,
    require_attending,
)
from capacity.transformer.activations.models.families import Part, body_of

# by layer and head, what it writes in place of its own; None for nothing
_Written = dict[int, dict[int, Tensor | None]]


@contextmanager
def ablated(
    model: nn.Module,
    heads: Iterable[tuple[int, int]],
    *,
    mean_over: Mapping[str, Any] | Tensor | None = None,
    part: Part | None = None,
) -> Iterator[nn.Module]:
    """Run a model without what some of its heads write, in a context.

    The model is changed nowhere; its calls in this context, of this thread, lack the heads, as do
    gradients and what it generates. `capacity.layer.ablate` copies an `AttentionLayer` without
    heads.

    Parameters
    ----------
    model : nn.Module
        A model of Hugging Face's ``transformers`` whose attention goes through its
        ``AttentionInterface``, with any head on top.
    heads : iterable of (int, int)
        Layer and head, counted from 0, of each head to ablate.
    mean_over : mapping, or integer tensor of shape (batch, n), optional
        Sentences, as `capture` has them. The heads then write the mean of what they write at all
        tokens of these, in place of nothing.
    part : {"encoder"}, optional
        Which attention of an encoder-decoder is meant; that of decoders isn't ablated.

    Yields
    ------
    nn.Module
        The model.

    Raises
    ------
    InvalidArgumentError
        If there is no such layer or head, which is known of layers once the model has run; if no
        attention of the model goes through the interface, or it is that of a decoder which reads an
        encoder.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> sizes = GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=50)
    >>> model, tokens = GPT2LMHeadModel(sizes).eval(), torch.tensor([[2, 7, 11, 3]])
    >>> before = model(tokens).logits
    >>> with ablated(model, [(0, 1), (1, 3)]):
    ...     bool((model(tokens).logits == before).all())
    False
    >>> bool((model(tokens).logits == before).all())
    True
    """
    written = _written(heads)
    if part not in (None, "encoder"):
        raise InvalidArgumentError(
            "The heads of an encoder, or of a model of one stack, are ablated; got `part` "
            f"{shown(part)}. Set rows of the decoder's output weights to 0 for its heads."
        )
    running: Any = getattr(model, "_orig_mod", model)
    _, stack = body_of(running, part)
    if mean_over is not None:
        _set_means(written, running, mean_over, part)
    inside, counts = set(stack.modules()), dict[int, LayerCount]()

    def begin(*_: Any) -> None:
        counts[get_ident()] = LayerCount()

    def edit(module: nn.Module, z: Tensor) -> Tensor:
        if module not in inside:
            return z
        layer = counts[get_ident()].attend()
        return _edited(z, layer, written.get(layer, {}))

    def end(*_: Any) -> None:
        if is_edited(edit):
            _require_seen(counts[get_ident()].attending, written, type(running).__name__)

    with ExitStack() as context:
        context.callback(stack.register_forward_pre_hook(begin).remove)
        context.enter_context(counted_layers(stack, lambda: counts.get(get_ident())))
        context.callback(stack.register_forward_hook(end).remove)
        # compiled code wouldn't ask
        context.enter_context(torch.compiler.set_stance("force_eager"))
        context.enter_context(edited_heads(running, edit))
        yield model


def _written(heads: Iterable[tuple[int, int]]) -> _Written:
    written: _Written = {}
    for pair in heads if isinstance(heads, Iterable) else [heads]:
        if not isinstance(pair, Iterable) or isinstance(pair, str) or len(both := [*pair]) != 2:
            raise InvalidArgumentError(
                "`heads` must be pairs of a layer and a head, such as [(0, 3)]; got "
                f"{shown(heads)}."
            )
        layer, head = (require_integer("heads", one, least=0) for one in both)
        written.setdefault(layer, {})[head] = None
    if not written:
        raise InvalidArgumentError("`heads` must have a pair of a layer and a head; got none.")
    return written


def _set_means(written: _Written, model: nn.Module, over: Any, part: Part | None) -> None:
    captured = capture(model, over, part=part, layers=sorted(written))
    n_tokens = captured.mask.sum()
    for number, layer in zip(sorted(written), captured.layers, strict=True):
        if layer.gate is not None:
            raise InvalidArgumentError(
                "Heads that write a mean must have no gate, as it differs from token to token; "
                f"those of layer {number} have one. Omit `mean_over`, so that they write nothing."
            )
        # z is 0 at padding
        means = layer.z.sum((0, 2)) / n_tokens
        for head in written[number]:
            _require_head(number, head, len(means))
            written[number][head] = means[head]


def _edited(z: Tensor, layer: int, heads: Mapping[int, Tensor | None]) -> Tensor:
    """Outputs of heads, shape (batch, n, n_heads, d_head), with others in place of some."""
    if heads:
        z = z.clone()
    for head, written in heads.items():
        _require_head(layer, head, z.shape[2])
        z[:, :, head] = 0 if written is None else written.to(z)
    return z


def _require_head(layer: int, head: int, n_heads: int) -> None:
    if head >= n_heads:
        raise InvalidArgumentError(
            f"Heads of layer {layer} must be from 0 to {n_heads - 1}; got {head}."
        )


def _require_seen(attending: list[int], written: _Written, name: str) -> None:
    """Refuse a run in which a layer wasn't met: it would be that of the whole model."""
    if not attending:
        raise InvalidArgumentError(
            "A model's attention must go through the AttentionInterface of transformers; none of "
            f"{name} does, so that its heads can't be ablated here."
        )
    require_attending(f"Layers of {name}", sorted(written), attending)
