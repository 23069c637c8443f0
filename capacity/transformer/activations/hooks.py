"""`capture`: record the activations of a pretrained transformer on some sentences.

Forward hooks read inputs and outputs of the model's own modules; an adapter for each family of
models (`capacity.transformer.activations.families`) tells the roles of the modules. So the
activations are the model's own: they are checked, not recomputed.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError, PrecisionWarning
from capacity.transformer.activations.architecture import (
    Architecture,
    Block,
    Call,
    Calls,
    bias_of,
    matrix,
)
from capacity.transformer.activations.cache import (
    ActivationCache,
    LayerActivations,
    Mapped,
    Step,
    Written,
    normed,
    written_by_heads,
)
from capacity.transformer.activations.families import architecture_of
from capacity.transformer.activations.validation import (
    check,
    checked_tokens,
    require_affordable_attention,
)
from capacity.warned import warn_caller

# keys that tokenizers return and no model reads
TOLD_BY_TOKENIZERS = {"special_tokens_mask", "offset_mapping", "length", "num_truncated_tokens",
                      "overflowing_tokens", "overflow_to_sample_mapping"}  # fmt: skip


@torch.no_grad()
def capture(model: nn.Module, inputs: Mapping[str, Any] | Tensor) -> ActivationCache:
    """Run a model on sentences, and record its heads and the steps of its residual stream.

    Parameters
    ----------
    model : nn.Module
        A Hugging Face BERT, ALBERT, GPT-2, Llama, Mistral or Qwen2, with any head on top, loaded
        with ``attn_implementation="eager"``; or a module with a method ``capture`` of its own, such
        as `AttentionLayer` and `EncoderClassifier`. It is run in eval mode, and its own mode is
        restored.
    inputs : mapping, or integer tensor of shape (batch, n)
        Outputs of a tokenizer, as tensors (``return_tensors="pt"``), or token ids alone. Padding,
        on either side, is given by ``attention_mask``; positions are counted from a sentence's
        first token unless there are ``position_ids``.

    Returns
    -------
    ActivationCache
        Activations on the model's device, without gradients.

    Raises
    ------
    InvalidArgumentError
        If the model's family isn't registered, or its attention implementation doesn't return
        patterns; if a sentence has more tokens than the model has positions, padding alone, or
        tokens outside the vocabulary; if heads do anything but average values.
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
    ...              intermediate_size=32, attn_implementation="eager")
    >>> captured = capture(BertModel(BertConfig(**sizes)), torch.tensor([[2, 7, 11, 3]]))
    >>> len(captured.layers), captured.layers[0].pattern.shape
    (2, torch.Size([1, 4, 4, 4]))
    """
    given = _named(inputs)
    weights = [p for p in model.parameters() if p.is_floating_point()]
    coarse = {p.dtype for p in weights} & {torch.float16, torch.bfloat16}
    if coarse:
        warn_caller(
            PrecisionWarning(
                f"Weights are {', '.join(map(str, coarse))}: a copy in float32 is analysed, for "
                "ranks and null spaces need its digits. Call model.float() first to save the copy."
            )
        )
        model = copy.deepcopy(model).float()
    device = weights[0].device if weights else torch.device("cpu")
    given = {key: x.to(device) if isinstance(x, Tensor) else x for key, x in given.items()}
    # autocast would compute in another dtype than that of the weights
    with torch.autocast(device.type, enabled=False):
        own: Any = getattr(model, "capture", None)
        if own is not None:
            _require_only(given, ("input_ids", "attention_mask"), type(model).__name__)
            return own(given["input_ids"], mask=given.get("attention_mask"))
        body: Any = getattr(model, "base_model", model)
        known = architecture_of(body)
        mask = _require_inputs(given, known, body.config)
        if "position_ids" not in given and (mask[:, 1:] & ~mask[:, :-1]).any():
            # padding before a sentence doesn't shift the positions of its tokens
            given["position_ids"] = (mask.cumsum(1) - 1).clamp_min(0)
        if known.causal:
            # keys and values are cached for later tokens, and there are none
            given["use_cache"] = False
        n_heads = body.config.num_attention_heads
        require_affordable_attention(given["input_ids"], len(known.blocks), n_heads)
        with _evaluating(body), _recording(known.modules()) as calls:
            body(**given)
        return assemble(known, calls, mask, source=type(model).__name__)


def assemble(known: Architecture, calls: Calls, mask: Tensor, *, source: str) -> ActivationCache:
    """Make a cache of recorded calls; those of a shared module belong to its layers in turn."""
    first = calls[known.starts_at][0].input
    steps: list[Step] = []
    if known.embedding_norm is not None:
        steps.append(normed(None, known.embedding_norm, calls[known.embedding_norm][0].input))
    if known.mapping is not None:
        steps.append(Mapped(None, matrix(known.mapping), bias_of(known.mapping)))
    turns: dict[nn.Module, int] = defaultdict(int)
    layers = []
    for index, block in enumerate(known.blocks):
        turn = turns[block.attention]
        turns[block.attention] += 1
        layer = _layer(block, calls, turn, mask)
        layers.append(layer)
        steps += _sublayers(index, block, layer, calls, turn)
    if known.final_norm is not None:
        last = calls[known.final_norm][0].input
        steps.append(normed(len(layers) - 1, known.final_norm, last))
    whole = ActivationCache(tuple(layers), mask, known.causal, first, tuple(steps), source)
    return check(whole)


def _layer(block: Block, calls: Calls, turn: int, mask: Tensor) -> LayerActivations:
    q, k, v, b_V = block.read(calls, turn)
    W_O = matrix(block.output)
    heads, d_head_vo = v.shape[1], v.shape[-1]
    flat = calls[block.output][turn].input
    z = flat.unflatten(-1, (heads, d_head_vo)).transpose(1, 2)
    pattern = calls[block.attention][turn].output[1]
    layer = LayerActivations(pattern, q, k, v, z, W_O.unflatten(0, (heads, d_head_vo)), b_V,
                          bias_of(block.output), block.scale)  # fmt: skip
    # in rows of padding attention is arbitrary
    return layer.without_padding(mask)


def _sublayers(
    index: int, block: Block, layer: LayerActivations, calls: Calls, turn: int
) -> list[Step]:
    steps: list[Step] = [written_by_heads(index, layer, calls[block.output][turn].output)]
    if block.norm_after_heads is not None:
        norm = block.norm_after_heads
        steps.append(normed(index, norm, calls[norm][turn].input))
    wrote, bias = calls[block.feed_forward_output][turn].output, bias_of(block.feed_forward_output)
    wrote = wrote if bias is None else wrote - bias
    given = calls[block.feed_forward][turn].input
    steps.append(Written(index, "feed_forward", wrote, bias, given))
    if block.norm_after_feed_forward is not None:
        norm = block.norm_after_feed_forward
        steps.append(normed(index, norm, calls[norm][turn].input))
    return steps


def _named(inputs: Any) -> dict[str, Any]:
    if isinstance(inputs, Tensor):
        return {"input_ids": inputs}
    if not isinstance(inputs, Mapping) or "input_ids" not in inputs:
        raise InvalidArgumentError(
            "Inputs must be a tensor of token ids, or a mapping with the key input_ids, such as a "
            f"tokenizer returns; got {type(inputs).__name__}."
        )
    return {key: x for key, x in inputs.items() if key not in TOLD_BY_TOKENIZERS}


def _require_only(given: Mapping[str, Any], names: Sequence[str], model: str) -> None:
    others = sorted(set(given) - set(names))
    if others:
        raise InvalidArgumentError(
            f"Inputs of {model} must be among {', '.join(names)}; got {others} too. Omit these."
        )


def _require_inputs(given: Mapping[str, Any], known: Architecture, config: Any) -> Tensor:
    names = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    _require_only(given, names, "a pretrained model")
    tokens = given["input_ids"]
    real = checked_tokens(
        tokens,
        given.get("attention_mask"),
        d_vocab=known.d_vocab,
        n_positions=known.n_positions,
        longest=known.longest,
    )
    ends = {"token_type_ids": getattr(config, "type_vocab_size", None) or known.d_vocab,
            "position_ids": known.n_positions}  # fmt: skip
    for name, end in ends.items():
        ids = given.get(name)
        if ids is None:
            continue
        if not isinstance(ids, Tensor) or ids.shape != tokens.shape:
            got = tuple(ids.shape) if isinstance(ids, Tensor) else type(ids).__name__
            raise InvalidArgumentError(
                f"`{name}` must have the shape of the tokens, {tuple(tokens.shape)}; got {got}."
            )
        least, most = int(ids.min()), int(ids.max())
        if least < 0 or most >= end:
            raise InvalidArgumentError(
                f"`{name}` must lie between 0 and {end - 1}; got {least if least < 0 else most}."
            )
    positions = given.get("position_ids")
    if positions is not None and known.causal:
        both = real[:, 1:] & real[:, :-1]
        if ((positions.diff(dim=1) <= 0) & both).any():
            raise InvalidArgumentError(
                "`position_ids` must grow along a row; several sentences in one row don't attend "
                "to each other, and can't be analysed. Give each a row of its own."
            )
    return real


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
