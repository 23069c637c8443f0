"""`capture`: record the activations of a pretrained transformer on some sentences.

The activations are the model's own: they are recorded while it runs, and checked, not recomputed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.attention_calls import least_logit
from capacity.transformer.activations.cache import ActivationCache, LayerActivations, Step
from capacity.transformer.activations.inputs import (
    checked_inputs,
    mask_of,
    named,
    require_only,
)
from capacity.transformer.activations.models import Part, body_of, unwrapped
from capacity.transformer.activations.recorder import Heads, Recorder
from capacity.transformer.activations.steps import steps_of
from capacity.transformer.activations.validation import (
    Check,
    check,
    check_output,
    is_softmax,
    require_affordable_attention,
)


@torch.no_grad()
def capture(
    model: nn.Module,
    inputs: Mapping[str, Any] | Tensor,
    *,
    part: Part | None = None,
    check: Check = "random",
) -> ActivationCache:
    """Run a model on sentences, and record its heads and the steps of its residual stream.

    Parameters
    ----------
    model : nn.Module
        A model of Hugging Face's ``transformers``, of any family whose attention goes through its
        ``AttentionInterface`` and with any head on top; or a module with a method ``capture`` of
        its own, such as `AttentionLayer` and `EncoderClassifier`. It is run in eval mode, and its
        own mode is restored.
    inputs : mapping, or integer tensor of shape (batch, n)
        Outputs of a tokenizer or a processor, as tensors (``return_tensors="pt"``), or token ids
        alone. Padding, on either side, is given by ``attention_mask``; positions are counted from a
        sentence's first token unless there are ``position_ids``.
    part : {"encoder", "decoder", "cross"}, optional
        Which attention of an encoder-decoder is meant: that of its encoder, that of its decoder to
        what it has read, or that of its decoder to the encoder's embeddings.
    check : {"random", "full"}
        Whether heads are checked against random vectors, or entry by entry, which takes longer.

    Returns
    -------
    ActivationCache
        Activations on the model's device, without gradients.

    Raises
    ------
    InvalidArgumentError
        If no attention of the model goes through the interface; if it is wrapped in adapters,
        quantized or offloaded; if a sentence has more tokens than the model has positions, padding
        alone, or tokens outside the vocabulary; if heads do anything but average values.
    MemoryBudgetError
        If the attention of all layers and heads would take more than 2 GiB.

    Warns
    -----
    PrecisionWarning
        If the model is in half precision: a copy of it in float32 is run instead.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel
    >>> sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, vocab_size=50,
    ...              intermediate_size=32)
    >>> captured = capture(BertModel(BertConfig(**sizes)), torch.tensor([[2, 7, 11, 3]]))
    >>> len(captured.layers), captured.layers[0].pattern.shape
    (2, torch.Size([1, 4, 4, 4]))
    """
    given = named(inputs)
    model = unwrapped(model)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    given = {key: x.to(device) if isinstance(x, Tensor) else x for key, x in given.items()}
    source = type(model).__name__
    # autocast would compute in another dtype than that of the weights, and compiled code hides
    # what it computes
    with torch.autocast(device.type, enabled=False), _uncompiled():
        own: Any = getattr(model, "capture", None)
        if own is not None:
            require_only(given, ("input_ids", "attention_mask"), source)
            return own(given["input_ids"], mask=given.get("attention_mask"))
        body, stack = body_of(model, part)
        given = checked_inputs(given, body, source)
        tokens = given.get("decoder_input_ids" if part == "decoder" else "input_ids")
        if tokens is not None:
            n_layers, n_heads = _sizes(stack.config)
            require_affordable_attention(tokens, n_layers, n_heads)
        recorder = Recorder(body, stack)
        with _evaluating(body), recorder.recording():
            body(**given)
        return _assembled(recorder, given, part, source, check)


def _assembled(
    recorder: Recorder, given: Mapping[str, Any], part: Part | None, source: str, how: Check
) -> ActivationCache:
    heads = [h for h in recorder.heads if h.across == (part == "cross")]
    if not heads:
        raise InvalidArgumentError(
            f"A model's attention must go through the AttentionInterface of transformers; none of "
            f"{source} does (GPT-Neo, GPT-J, BLOOM, Falcon and DeBERTa have code of their own). "
            "Capture its patterns and values by hooks, and give them to "
            "capacity.transformer.from_tensors."
        )
    batch, _, n, n_keys = heads[0].call.pattern.shape
    decoder = part in ("decoder", "cross")
    mask = mask_of(given, "decoder_attention_mask" if decoder else "attention_mask", (batch, n))
    mask = mask.to(heads[0].call.v.device)
    keys = None
    if part == "cross":
        keys = mask_of(given, "attention_mask", (batch, n_keys)).to(mask.device)
    # layers share their masks
    masks = {id(h.call.mask): h for h in heads}
    allowed = {at: _allowed(h, batch) for at, h in masks.items()}
    causal = part != "cross" and all(_is_causal(h, allowed[at], mask) for at, h in masks.items())
    own = mask if keys is None else keys
    seen = {at: _seen(one, mask, own, causal) for at, one in allowed.items()}
    layers = []
    for index, one in enumerate(heads):
        of = f"layer {index} of {source}"
        layer, wrote = one.layer(of)
        layer = replace(layer, seen=seen[id(one.call.mask)], soft=is_softmax(layer, mask))
        layer = layer.without_padding(mask, keys)
        check_output(layer, wrote, mask, of)
        layers.append(layer)
    first, steps, why = _steps(recorder, layers, part, source)
    last = recorder.last.view(*mask.shape, -1) if steps else None
    found = ActivationCache(tuple(layers), mask, causal, first, steps, source, keys, why, last)
    return check(found, how)


def _steps(
    recorder: Recorder, layers: list[LayerActivations], part: Part | None, source: str
) -> tuple[Tensor, tuple[Step, ...], str | None]:
    none = layers[0].z.new_zeros(len(layers[0].z), layers[0].z.shape[2], 0)
    if part in ("decoder", "cross"):
        return (
            none,
            (),
            (
                "A decoder adds what its attention across sequences reads from the encoder, a term "
                f"that e = i + h + f + c doesn't have; {source} has one. Decompose its encoder."
            ),
        )
    try:
        first, steps = steps_of(recorder.last, recorder.stream, layers, source)
    except InvalidArgumentError as error:
        # the other analyses don't need the stream
        return none, (), str(error)
    return first, steps, None


def _allowed(heads: Heads, batch: int) -> Tensor | None:
    """Tokens that each may attend to, (batch, n, n_keys), as the model's mask says; None: all."""
    mask = heads.call.mask
    if mask is None:
        return None
    return (mask > least_logit(mask))[:, 0].expand(batch, *heads.call.pattern.shape[-2:])


def _is_causal(heads: Heads, allowed: Tensor | None, mask: Tensor) -> bool:
    if mask.shape[1] == 1:
        # nothing shows in one token
        return bool(getattr(heads.call.module, "is_causal", False))
    return allowed is not None and not (allowed.triu(1) & mask[:, :, None]).any()


def _seen(allowed: Tensor | None, mask: Tensor, keys: Tensor, causal: bool) -> Tensor | None:
    """Tokens that each may attend to, unless these are all."""
    if allowed is None:
        return None
    every = mask[:, :, None] & keys[:, None]
    every = every.tril() if causal else every
    return None if (allowed | ~every).all() else allowed & every


def _sizes(config: Any) -> tuple[int, int]:
    """Numbers of layers and heads, which most configurations have by these names."""
    return getattr(config, "num_hidden_layers", 1), getattr(config, "num_attention_heads", 1)


@contextmanager
def _uncompiled() -> Iterator[None]:
    with torch.compiler.set_stance("force_eager"):
        yield


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
