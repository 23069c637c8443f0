"""Values that an attention layer computes if it reads the model's embeddings.

They are what a circuit "at embeddings" assumes: that a layer reads what tokens were at first. In
deep models earlier layers have written to the stream since, and the layer was trained to read that.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.attention_calls import (
    AttentionCall,
    heard_attention,
)
from capacity.transformer.activations.following.modules import (
    LayerCount,
    counted_layers,
    layers_of,
    require_attending,
)
from capacity.transformer.activations.models.families import body_of


@torch.no_grad()
def values_of_embeddings(
    model: nn.Module, inputs: Mapping[str, Any], layer: int
) -> Float[Tensor, "batch heads n d_head_vo"]:
    """Run a model with the input of its first layer as that of a later one, and return its values.

    Parameters
    ----------
    model : nn.Module
        A model of ``transformers`` of one stack, as for `capture`.
    inputs : mapping
        What the model is called with.
    layer : int
        Index of an attention layer, counted from 0.

    Returns
    -------
    (batch, n_heads, n, d_head_vo)
        Values with their bias; grouped ones are repeated.

    Raises
    ------
    InvalidArgumentError
        If there is no such layer, or layers don't read the stream as their first argument.
    """
    body, stack = body_of(model, None)
    count, found = LayerCount(), list[Tensor]()
    first: list[Tensor] = []

    def read(_: nn.Module, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        if count.depth != 1:
            return None
        stream = args[0] if args else given.get("hidden_states")
        if not isinstance(stream, Tensor):
            raise InvalidArgumentError(
                "Layers must read the residual stream as their first argument; those of "
                f"{type(model).__name__} don't. Use the values at the stream that the model had."
            )
        first.append(stream)
        if count.number != layer:
            return None
        return ((first[0], *args[1:]), given) if args else (args, given | {"hidden_states":
                                                                          first[0]})  # fmt: skip

    def hear(call: AttentionCall) -> None:
        if count.attend() == layer:
            n_heads = call.pattern.shape[1]
            found.append(call.v.repeat_interleave(n_heads // call.v.shape[1], dim=1))

    with ExitStack() as hooks:
        hooks.enter_context(counted_layers(stack, lambda: count))
        for one in dict.fromkeys(layers_of(stack)):
            hooks.callback(one.register_forward_pre_hook(read, with_kwargs=True).remove)
        hooks.enter_context(torch.compiler.set_stance("force_eager"))
        hooks.enter_context(heard_attention(body, hear))
        body(**inputs, use_cache=False)
    require_attending(f"Layers of {type(model).__name__}", [layer], count.attending)
    return found[0]
