"""Registered families of models, each with an adapter to `Architecture`.

An adapter is a function from a model without its head to its `Architecture`. To add a family, write
an adapter and register it: at the end of this module, or from outside by `register_family`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.options import require_choice
from capacity.transformer.activations.architecture import (
    Architecture,
    Block,
    Calls,
    Read,
    bias_of,
    split_heads,
)


@briefly_shown
@dataclass(frozen=True)
class Family:
    """Family of models that `capture` can read.

    Attributes
    ----------
    body : str
        Class name of its models without a head, such as ``BertModel``. Subclasses belong to the
        family.
    architecture : callable
        Adapter: a function from such a model to its `Architecture`.
    heads : mapping of str to str
        Class names of models that predict tokens, each with the name of the attribute that maps
        last embeddings to logits.
    """

    body: str
    architecture: Callable[[Any], Architecture]
    heads: Mapping[str, str] = field(default_factory=dict)


# by `body`; messages list them in this order
FAMILIES: dict[str, Family] = {}


def register_family(family: Family) -> None:
    """Register a family of models with `capture` and `output_head`.

    Parameters
    ----------
    family : Family
        Its class name must not be registered yet.

    Raises
    ------
    InvalidArgumentError
        If a family with this class name is registered.

    Examples
    --------
    The modules of a RoBERTa have the names of BERT's, so that BERT's adapter reads it:

    >>> from transformers import RobertaConfig, RobertaModel
    >>> from capacity.transformer import capture
    >>> bert = FAMILIES["BertModel"].architecture
    >>> register_family(Family("RobertaModel", bert, {"RobertaForMaskedLM": "lm_head"}))
    >>> sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, vocab_size=20,
    ...              intermediate_size=8, attn_implementation="eager")
    >>> capture(RobertaModel(RobertaConfig(**sizes)), torch.tensor([[0, 7, 2]])).n_layers
    1
    >>> unregister_family("RobertaModel").heads
    {'RobertaForMaskedLM': 'lm_head'}
    """
    if family.body in FAMILIES:
        raise InvalidArgumentError(
            f"A family must have a class of models of its own; {family.body} is taken. Remove "
            "the other family with unregister_family."
        )
    FAMILIES[family.body] = family


def unregister_family(body: str) -> Family:
    """Remove a family from the registry, and return it.

    Parameters
    ----------
    body : str
        Class name of its models without a head.

    Returns
    -------
    Family
        The family that was removed.

    Raises
    ------
    InvalidArgumentError
        If no family with this class name is registered.

    Examples
    --------
    >>> register_family(Family("MyModel", FAMILIES["BertModel"].architecture))
    >>> unregister_family("MyModel").body
    'MyModel'
    >>> "MyModel" in FAMILIES
    False
    """
    return FAMILIES.pop(require_choice("A family", body, FAMILIES))


def prediction_heads() -> dict[str, str]:
    """Heads of all families: class names of models that predict tokens, and of their attributes."""
    return {model: head for family in FAMILIES.values() for model, head in family.heads.items()}


def architecture_of(body: nn.Module) -> Architecture:
    """Architecture of a model without its head, by the adapter of its family.

    Raises
    ------
    InvalidArgumentError
        If the family isn't registered, or the model attends across two sequences, doesn't return
        its patterns, or feeds sentences forward in chunks.
    """
    family = next(
        (FAMILIES[c.__name__] for c in type(body).__mro__ if c.__name__ in FAMILIES), None
    )
    if family is None:
        raise InvalidArgumentError(
            f"The model must be one of {', '.join(FAMILIES)}, with any head on top, or have a "
            "method capture(tokens, mask) that returns an ActivationCache; got "
            f"{type(body).__name__}. Add a family with `register_family` and a function that names "
            "its modules: those that attend, hold queries, keys and values, write to the residual "
            "stream and norm it; capacity/transformer/activations/families.py has examples."
        )
    config: Any = body.config
    kernels = getattr(config, "_attn_implementation", None)
    if kernels != "eager":
        raise InvalidArgumentError(
            f"The model must have attn_implementation='eager'; got {kernels!r}, which doesn't "
            "return the attention. Load it with this option, or call "
            "model.set_attn_implementation('eager')."
        )
    if getattr(config, "add_cross_attention", False):
        raise InvalidArgumentError(
            f"The model must have self-attention alone; got a {type(body).__name__} that attends "
            "across sequences as well. Load it with add_cross_attention=False."
        )
    if getattr(config, "chunk_size_feed_forward", 0) != 0:
        raise InvalidArgumentError(
            "The model must feed whole sentences forward, with config.chunk_size_feed_forward = 0; "
            f"got {config.chunk_size_feed_forward}. Set it to 0."
        )
    return family.architecture(body)


def _read_three(query: Any, key: Any, value: Any, d_head: int) -> Read:
    def read(calls: Calls, turn: int) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        q, k, v = (split_heads(calls[m][turn].output, d_head) for m in (query, key, value))
        b_V = bias_of(value)
        return q, k, v, None if b_V is None else b_V.unflatten(0, (-1, d_head))

    return read


def _bert(body: Any) -> Architecture:
    blocks = []
    for layer in body.encoder.layer:
        own = layer.attention.self
        three = (own.query, own.key, own.value)
        wrote = layer.attention.output
        blocks.append(
            Block(own, three, _read_three(*three, own.attention_head_size), wrote.dense,
                  layer.intermediate, layer.output.dense, wrote.LayerNorm, layer.output.LayerNorm,
                  own.scaling)
        )  # fmt: skip
    norm = body.embeddings.LayerNorm
    config = body.config
    return Architecture(tuple(blocks), norm, norm, None, None, config.is_decoder,
                        config.vocab_size, config.max_position_embeddings)  # fmt: skip


def _albert(body: Any) -> Architecture:
    config, encoder = body.config, body.encoder
    blocks = []
    for number in range(config.num_hidden_layers):
        group = number * config.num_hidden_groups // config.num_hidden_layers
        for layer in encoder.albert_layer_groups[group].albert_layers:
            own = layer.attention
            three = (own.query, own.key, own.value)
            blocks.append(
                Block(own, three, _read_three(*three, own.attention_head_size), own.dense,
                      layer.ffn, layer.ffn_output, own.LayerNorm, layer.full_layer_layer_norm,
                      own.scaling)
            )  # fmt: skip
    norm = body.embeddings.LayerNorm
    return Architecture(tuple(blocks), norm, norm, encoder.embedding_hidden_mapping_in, None, False,
                        config.vocab_size, config.max_position_embeddings)  # fmt: skip


def _gpt2(body: Any) -> Architecture:
    blocks = []
    for layer in body.h:
        own = layer.attn

        def read(
            calls: Calls, turn: int, own: Any = own
        ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
            parts = calls[own.c_attn][turn].output.chunk(3, dim=-1)
            q, k, v = (split_heads(part, own.head_dim) for part in parts)
            bias = bias_of(own.c_attn)
            if bias is not None:
                bias = bias.chunk(3)[2].unflatten(0, (-1, own.head_dim))
            return q, k, v, bias

        blocks.append(
            Block(own, (own.c_attn,), read, own.c_proj, layer.mlp, layer.mlp.c_proj, None, None,
                  own.scaling)
        )  # fmt: skip
    config = body.config
    return Architecture(tuple(blocks), body.h[0].ln_1, None, None, body.ln_f, _is_causal(config),
                        config.vocab_size, config.max_position_embeddings)  # fmt: skip


def _llama(body: Any) -> Architecture:
    config = body.config
    blocks = []
    for layer in body.layers:
        own = layer.self_attn
        blocks.append(
            Block(own, (own.q_proj, own.k_proj, own.v_proj), _read_rotated(own), own.o_proj,
                  layer.mlp, layer.mlp.down_proj, None, None, own.scaling)
        )  # fmt: skip
    n_positions, longest = config.max_position_embeddings, Architecture.longest
    window = getattr(config, "sliding_window", None)
    # in sentences longer than the window, tokens don't attend to all earlier ones
    if window is not None and window < n_positions:
        n_positions, longest = window, "the model's sliding_window"
    return Architecture(tuple(blocks), body.layers[0].input_layernorm, None, None, body.norm,
                        _is_causal(config), config.vocab_size, n_positions, longest)  # fmt: skip


def _read_rotated(own: Any) -> Read:
    plain = _read_three(own.q_proj, own.k_proj, own.v_proj, own.head_dim)

    def read(calls: Calls, turn: int) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        q, k, v, b_V = plain(calls, turn)
        cos, sin = (part.unsqueeze(1) for part in calls[own][turn].keywords["position_embeddings"])
        groups = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))
        q, k = (x * cos + _quarter_turn(x) * sin for x in (q, k))
        return q, k, v, None if b_V is None else b_V.repeat_interleave(groups, dim=0)

    return read


def _is_causal(config: Any) -> bool:
    # decoders that were made encoders have is_causal = False
    return getattr(config, "is_causal", True) is not False


def _quarter_turn(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


register_family(Family("BertModel", _bert, {"BertForMaskedLM": "cls", "BertLMHeadModel": "cls"}))
register_family(Family("AlbertModel", _albert, {"AlbertForMaskedLM": "predictions"}))
register_family(Family("GPT2Model", _gpt2, {"GPT2LMHeadModel": "lm_head"}))
register_family(Family("LlamaModel", _llama, {"LlamaForCausalLM": "lm_head"}))
register_family(Family("MistralModel", _llama, {"MistralForCausalLM": "lm_head"}))
register_family(Family("Qwen2Model", _llama, {"Qwen2ForCausalLM": "lm_head"}))
