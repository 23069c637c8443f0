"""Which modules of a model do what: one small adapter a family.

An adapter takes a model without its head and returns an `Architecture`: for each layer the module
that attends, the one that writes heads to the residual stream, the feed-forward's ends, the norms
on the stream, and a function that reads queries, keys and values from recorded calls. To add a
family, write such a function and name its class in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError


@dataclass(frozen=True, eq=False)
class Call:
    """What a module was given, and what it gave."""

    input: Any
    output: Any
    keywords: dict[str, Any]


Calls = dict[nn.Module, list[Call]]
# of recorded calls and the turn of a shared module: q, k, v by heads, and the values' bias
Read = Callable[[Calls, int], tuple[Tensor, Tensor, Tensor, Tensor | None]]


@dataclass(frozen=True, eq=False)
class Block:
    """One layer: its modules, and how its heads are read.

    Attributes
    ----------
    attention : module
        Gives (output, pattern).
    reads : tuple of modules
        Whose calls ``read`` needs.
    read : callable
    output : module
        Takes z, heads side by side, and writes to the stream: W_O and b_O.
    feed_forward, feed_forward_output : module
        The one takes the feed-forward's input, the other gives its output.
    norm_after_heads, norm_after_feed_forward : module or None
        Norms on the stream itself; None where norms are on the sublayers' inputs (pre-LN).
    scale : float
        Of the logits.
    """

    attention: nn.Module
    reads: tuple[nn.Module, ...]
    read: Read
    output: Any
    feed_forward: nn.Module
    feed_forward_output: Any
    norm_after_heads: nn.Module | None
    norm_after_feed_forward: nn.Module | None
    scale: float


@dataclass(frozen=True, eq=False)
class Architecture:
    """A model's layers and what surrounds them.

    Attributes
    ----------
    blocks : tuple of Block
    starts_at : module
        Whose first input is the residual stream as it begins.
    embedding_norm, mapping, final_norm : module or None
    causal : bool
    d_vocab : int
    n_positions : int
    longest : str
        Where ``n_positions`` comes from, for messages.
    """

    blocks: tuple[Block, ...]
    starts_at: nn.Module
    embedding_norm: nn.Module | None
    mapping: Any
    final_norm: nn.Module | None
    causal: bool
    d_vocab: int
    n_positions: int
    longest: str = "the model's max_position_embeddings"

    def modules(self) -> list[nn.Module]:
        """Modules whose calls are needed, once each."""
        ends = (self.starts_at, self.embedding_norm, self.final_norm)
        inner = [
            module
            for b in self.blocks
            for module in (b.attention, *b.reads, b.output, b.feed_forward, b.feed_forward_output,
                           b.norm_after_heads, b.norm_after_feed_forward)
        ]  # fmt: skip
        return list(dict.fromkeys(m for m in (*ends, *inner) if m is not None))


def architecture(body: nn.Module) -> Architecture:
    """Find the adapter of a model without its head.

    Raises
    ------
    InvalidArgumentError
        If the family isn't known, attends across two sequences, or hides its patterns.
    """
    adapter = next(
        (FAMILIES[c.__name__] for c in type(body).__mro__ if c.__name__ in FAMILIES), None
    )
    if adapter is None:
        raise InvalidArgumentError(
            f"The model must be one of {', '.join(FAMILIES)}, with any head on top, or have a "
            f"method capture(tokens, mask) that returns a Captured; got {type(body).__name__}. A "
            "family is known once a function in capacity/transformer/activations/families.py says "
            "which of its modules attend, hold queries, keys and values, write to the residual "
            "stream and norm it."
        )
    config: Any = body.config
    kernels = getattr(config, "_attn_implementation", None)
    if kernels != "eager":
        raise InvalidArgumentError(
            f"The model must attend with attn_implementation='eager'; got {kernels!r}, which hides "
            "the attention. Load it so, or call model.set_attn_implementation('eager')."
        )
    if getattr(config, "add_cross_attention", False):
        raise InvalidArgumentError(
            f"Only self-attention is known; this {type(body).__name__} attends across sequences as "
            "well (add_cross_attention=True)."
        )
    if getattr(config, "chunk_size_feed_forward", 0) != 0:
        raise InvalidArgumentError(
            "The model must feed whole sentences forward: set config.chunk_size_feed_forward = 0; "
            f"got {config.chunk_size_feed_forward}."
        )
    return adapter(body)


def matrix(module: Any) -> Tensor:
    """A copy of a linear module's weights, as ``x @ W``, shape (d_in, d_out)."""
    _require_linear(module)
    weight = module.weight.detach().clone()
    return weight.T if isinstance(module, nn.Linear) else weight


def bias_of(module: Any) -> Tensor | None:
    """A copy of a linear module's bias, or None."""
    _require_linear(module)
    return None if module.bias is None else module.bias.detach().clone()


def _require_linear(module: Any) -> None:
    # GPT-2's Conv1D is linear too, and holds its weights transposed
    if not (isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"):
        raise InvalidArgumentError(
            f"Projections must be linear modules; got {type(module).__name__}. Merge adapters into "
            "the model, and analyse it without quantization."
        )


def split_heads(x: Tensor, d_head: int) -> Tensor:
    """(batch, n, n_heads * d_head) to (batch, n_heads, n, d_head)."""
    return x.unflatten(-1, (-1, d_head)).transpose(1, 2)


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
    # beyond its window a row no longer sees all that came before it
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
    # decoders turned into encoders say so
    return getattr(config, "is_causal", True) is not False


def _quarter_turn(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


FAMILIES: dict[str, Callable[[Any], Architecture]] = {
    "BertModel": _bert,
    "AlbertModel": _albert,
    "GPT2Model": _gpt2,
    "LlamaModel": _llama,
    "MistralModel": _llama,
    "Qwen2Model": _llama,
}
