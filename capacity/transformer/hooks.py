"""`capture`: what the attention layers of a pretrained transformer compute on some sentences.

Forward hooks read what the model's own modules take and give; a family of models is known by one
adapter (`capacity.transformer.adapters`), which says which modules do what. Nothing is computed
twice, so that the numbers are the model's own.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError, PrecisionWarning
from capacity.transformer.adapters import (
    Architecture,
    Block,
    Call,
    Calls,
    architecture,
    bias_of,
    matrix,
)
from capacity.transformer.captured import (
    Captured,
    CapturedLayer,
    Mapped,
    Step,
    Written,
    check,
    normed,
    sentence_mask,
    written_by_heads,
)


@torch.no_grad()
def capture(model: nn.Module, inputs: Mapping[str, Any] | Tensor) -> Captured:
    """Run a model and keep what its heads computed, and what was done to its residual stream.

    Parameters
    ----------
    model : nn.Module
        A Hugging Face BERT, ALBERT, GPT-2, Llama, Mistral or Qwen2, with any head on top, loaded
        with ``attn_implementation="eager"``; or a module with a method ``capture`` of its own, such
        as `AttentionLayer` and `EncoderClassifier`. It is run in eval mode, and left as it was.
    inputs : mapping, or integer tensor of shape (batch, n)
        What a tokenizer returns, as tensors (``return_tensors="pt"``), or token ids alone.
        Padding, on either side, is what ``attention_mask`` says it is.

    Returns
    -------
    Captured
        Detached, on the model's device.

    Raises
    ------
    InvalidArgumentError
        For a model whose family isn't known, or whose kernels hide the attention; for a sentence
        that is longer than the model's positions, of padding alone, or has tokens that the model
        doesn't know.

    Warns
    -----
    PrecisionWarning
        For a model in half precision: a copy of it in float32 is run instead.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel
    >>> sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, vocab_size=50,
    ...              intermediate_size=32, attn_implementation="eager")
    >>> captured = capture(BertModel(BertConfig(**sizes)), torch.tensor([[2, 7, 11, 3]]))
    >>> len(captured.layers), captured.layers[0].pattern.shape
    (2, torch.Size([1, 4, 4, 4]))
    """
    if isinstance(inputs, Tensor):
        inputs = {"input_ids": inputs}
    own: Any = getattr(model, "capture", None)
    if own is not None:
        return own(inputs["input_ids"], mask=inputs.get("attention_mask"))
    body = getattr(model, "base_model", model)
    known = architecture(body)
    mask = _require_inputs(inputs, known, type(body).__name__)
    if next(body.parameters()).dtype in (torch.float16, torch.bfloat16):
        warnings.warn(
            f"The weights are {next(body.parameters()).dtype}: a copy in float32 is analysed, for "
            "ranks and null spaces need its digits. Call model.float() first to save the copy.",
            PrecisionWarning,
            stacklevel=2,
        )
        body = copy.deepcopy(body).float()
        known = architecture(body)
    device = next(body.parameters()).device
    passed = {key: value.to(device) if isinstance(value, Tensor) else value
              for key, value in inputs.items()}  # fmt: skip
    if known.causal:
        passed["use_cache"] = False
    with _evaluating(body), _recording(known.modules()) as calls:
        body(**passed)
    return assemble(known, calls, mask.to(device), source=type(model).__name__)


def assemble(known: Architecture, calls: Calls, mask: Tensor, *, source: str) -> Captured:
    """Put recorded calls in order; layers that share modules take turns."""
    first = calls[known.starts_at][0].input
    steps: list[Step] = []
    if known.embedding_norm is not None:
        steps.append(normed(0, known.embedding_norm, calls[known.embedding_norm][0].input))
    if known.mapping is not None:
        steps.append(Mapped(0, matrix(known.mapping), bias_of(known.mapping)))
    turns: dict[nn.Module, int] = defaultdict(int)
    layers = []
    for number, block in enumerate(known.blocks, start=1):
        turn = turns[block.attention]
        turns[block.attention] += 1
        layer = _layer(block, calls, turn, mask)
        layers.append(layer)
        steps += _sublayers(number, block, layer, calls, turn)
    if known.final_norm is not None:
        last = calls[known.final_norm][0].input
        steps.append(normed(len(layers), known.final_norm, last))
    whole = Captured(tuple(layers), mask, known.causal, first, tuple(steps), source)
    return check(whole, relative=1e3 * torch.finfo(first.dtype).eps)


def _layer(block: Block, calls: Calls, turn: int, mask: Tensor) -> CapturedLayer:
    pattern = calls[block.attention][turn].output[1]
    if pattern is None:
        raise InvalidArgumentError(
            "The model's attention must give its pattern, and this one's kernels keep it to "
            "themselves. Load the model with attn_implementation='eager'."
        )
    q, k, v, b_V = block.read(calls, turn)
    W_O = matrix(block.output)
    heads, d_head_vo = v.shape[1], v.shape[-1]
    flat = calls[block.output][turn].input
    z = flat.unflatten(-1, (heads, d_head_vo)).transpose(1, 2)
    if not mask.all():
        pad = ~mask[:, None, :, None]
        # a padded row attends to whatever the model leaves it, if to anything
        pattern = pattern.masked_fill(pad | pad.mT, 0.0)
        v, z = v.masked_fill(pad, 0.0), z.masked_fill(pad, 0.0)
    return CapturedLayer(
        pattern,
        q,
        k,
        v,
        z,
        W_O.unflatten(0, (heads, d_head_vo)),
        b_V,
        bias_of(block.output),
        block.scale,
    )


def _sublayers(
    number: int, block: Block, layer: CapturedLayer, calls: Calls, turn: int
) -> list[Step]:
    steps: list[Step] = [written_by_heads(number, layer, calls[block.output][turn].output)]
    if block.norm_after_heads is not None:
        norm = block.norm_after_heads
        steps.append(normed(number, norm, calls[norm][turn].input))
    wrote, bias = calls[block.feed_forward_output][turn].output, bias_of(block.feed_forward_output)
    wrote = wrote if bias is None else wrote - bias
    given = calls[block.feed_forward][turn].input
    steps.append(Written(number, "feed_forward", wrote, bias, given))
    if block.norm_after_feed_forward is not None:
        norm = block.norm_after_feed_forward
        steps.append(normed(number, norm, calls[norm][turn].input))
    return steps


def _require_inputs(inputs: Mapping[str, Any], known: Architecture, name: str) -> Tensor:
    tokens = inputs.get("input_ids")
    if not isinstance(tokens, Tensor) or tokens.dim() != 2 or not tokens.numel():
        what = tuple(tokens.shape) if isinstance(tokens, Tensor) else type(tokens).__name__
        raise InvalidArgumentError(
            f"`input_ids` must be a tensor of token ids, shape (batch, n); got {what}. Call the "
            "tokenizer with return_tensors='pt' (and padding=True for several sentences)."
        )
    if tokens.is_floating_point() or int(tokens.min()) < 0 or int(tokens.max()) >= known.d_vocab:
        raise InvalidArgumentError(
            f"Tokens must be integers from 0 to {known.d_vocab - 1}, the vocabulary of {name}; got "
            f"{tokens.dtype} from {tokens.min()} to {tokens.max()}. Use the model's own tokenizer."
        )
    if tokens.shape[1] > known.n_positions:
        raise InvalidArgumentError(
            f"A sentence must have at most {known.n_positions} tokens, {known.longest}; got "
            f"{tokens.shape[1]}. Shorten it, or call the tokenizer with truncation=True."
        )
    return sentence_mask(inputs.get("attention_mask"), tokens.shape)


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def _recording(modules: list[nn.Module]) -> Iterator[Calls]:
    calls: Calls = defaultdict(list)

    def record(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        given = args[0] if args else kwargs.get("hidden_states")
        calls[module].append(Call(given, output, kwargs))

    hooks = [module.register_forward_hook(record, with_kwargs=True) for module in modules]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
