"""Runs of a model in which some activations are replaced, while a context lasts.

What heads write is replaced in the function that ``transformers`` hands queries, keys and values
to, or, where a gate multiplies it, where W_O reads it; the residual stream, where it enters a
layer. Layers are numbered as `capture` numbers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.attention_calls import edited_heads, is_edited
from capacity.transformer.activations.following.head_outputs import GateFollower
from capacity.transformer.activations.following.modules import (
    LayerCount,
    counted_layers,
    given_tensor,
    is_linear,
    layers_of,
    require_attending,
)
from capacity.transformer.activations.models.families import Part, body_of

# what is written in place of something: nothing, the same by all tokens, or by each its own
Instead: TypeAlias = Tensor | None


@dataclass(frozen=True, eq=False)
class Edits:
    """Activations that are replaced.

    Attributes
    ----------
    heads : mapping of int to mapping of int to tensor or None
        By layer and head, the head's outputs: shape (d_head_vo,) or (batch, n, d_head_vo).
    streams : mapping of int to tensor
        By layer, the residual stream that enters it: (batch, n, d_model).
    positions : sequence of int or None
        Tokens of each sentence, with its padding, at which they are replaced; None: all.
    gated : mapping of int to mapping of int to tensor
        By layer and head, what W_O reads in place of the head's outputs times a gate, in the shapes
        of `heads`.
    """

    heads: Mapping[int, Mapping[int, Instead]]
    streams: Mapping[int, Tensor] = field(default_factory=dict)
    positions: Sequence[int] | None = None
    gated: Mapping[int, Mapping[int, Instead]] = field(default_factory=dict)

    @property
    def layers(self) -> list[int]:
        """Layers with heads that are replaced."""
        return sorted({*self.heads, *self.gated})

    def of_heads(self, z: Tensor, layer: int) -> Tensor:
        """Return outputs of heads, shape (batch, n, n_heads, d_head), with what replaces some."""
        return self._of_heads(z, layer, self.heads.get(layer, {}))

    def of_gated(self, read: Tensor, layer: int, z: Tensor) -> Tensor:
        """Return what W_O reads, outputs of heads `z` times a gate, with what replaces some."""
        by_heads = read.reshape(z.shape)
        return self._of_heads(by_heads, layer, self.gated.get(layer, {})).view(read.shape)

    def _of_heads(self, z: Tensor, layer: int, replaced: Mapping[int, Instead]) -> Tensor:
        if replaced:
            z = z.clone()
        for head, instead in replaced.items():
            require_head(layer, head, z.shape[2])
            z[:, :, head] = self._at_positions(z[:, :, head], instead)
        return z

    def of_stream(self, x: Tensor, layer: int) -> Tensor:
        """Return the residual stream that enters a layer, with what replaces it."""
        instead = self.streams.get(layer)
        return x if instead is None else self._at_positions(x, instead)

    def _at_positions(self, x: Tensor, instead: Instead) -> Tensor:
        if instead is None:
            instead = torch.zeros_like(x)
        elif instead.ndim == 1:
            instead = instead.expand_as(x)
        elif instead.shape != x.shape:
            raise InvalidArgumentError(
                "The model must read as many sentences and tokens as those whose activations it is "
                f"given, {tuple(instead.shape[:2])}; it reads {tuple(x.shape[:2])}. To generate, "
                "pass use_cache=False and tokens one by one, or ablate by a mean."
            )
        instead = instead.to(x)
        if self.positions is None:
            return instead
        at = torch.tensor(self.positions, device=x.device)
        return x.index_copy(1, at, instead.index_select(1, at))


@contextmanager
def edited(model: nn.Module, edits: Edits, part: Part | None) -> Iterator[nn.Module]:
    """Run a model with some activations replaced, in this context and this thread.

    Parameters
    ----------
    model : nn.Module
        A model of ``transformers``.
    edits : Edits
        What is replaced.
    part : {"encoder"}, optional
        Which stack of an encoder-decoder is meant.

    Yields
    ------
    nn.Module
        The model.

    Raises
    ------
    InvalidArgumentError
        If a run hasn't met a layer or a head, or has met no gate where there should be one.
    """
    running: Any = getattr(model, "_orig_mod", model)
    _, stack = body_of(running, part)
    inside, counts = set(stack.modules()), dict[int, LayerCount]()
    entered: list[int] = []
    gates = GateFollower(throughout=True)
    # layers whose outputs of heads haven't been read yet, with these
    unread: dict[int, Tensor] = {}

    def begin(*_: Any) -> None:
        counts[get_ident()] = LayerCount()
        if is_edited(edit):
            entered.clear()
            unread.clear()

    def edit(module: nn.Module, z: Tensor) -> Tensor:
        if module not in inside:
            return z
        number = counts[get_ident()].attend()
        z = edits.of_heads(z, number)
        if number in edits.gated:
            unread[number] = z
            gates.follow(z)
        return z

    def read(_: nn.Module, args: Any) -> Any:
        if not unread or not args or not is_edited(edit) or gates.gate_of(args[0]) is None:
            return None
        gates.leave()
        number, z = unread.popitem()
        # a recorder that follows z must not take the result for z times a gate
        with torch._C.DisableTorchFunction():
            return edits.of_gated(args[0], number, z), *args[1:]

    def enter(_: nn.Module, args: Any, *rest: Any) -> Any:
        if not is_edited(edit) or not rest:
            return None
        (kwargs,) = rest
        number, x = counts[get_ident()].number, given_tensor(args, kwargs)
        if x is None:
            return None
        entered.append(number)
        stream = edits.of_stream(x, number)
        if args:
            return (stream, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": stream}

    def end(*_: Any) -> None:
        if is_edited(edit):
            attending, name = counts[get_ident()].attending, type(running).__name__
            _require_seen(edits, attending, entered, name)
            if unread:
                raise InvalidArgumentError(
                    "Outputs of heads must be read by a linear module, W_O, times a gate; those of "
                    f"layer {min(unread)} of {name} aren't, unlike where they were captured."
                )

    with ExitStack() as context:
        context.callback(stack.register_forward_pre_hook(begin).remove)
        context.enter_context(counted_layers(stack, lambda: counts.get(get_ident())))
        for layer in layers_of(stack) if edits.streams else ():
            context.callback(layer.register_forward_pre_hook(enter, with_kwargs=True).remove)
        context.callback(stack.register_forward_hook(end).remove)
        for linear in filter(is_linear, inside) if edits.gated else ():
            context.callback(linear.register_forward_pre_hook(read).remove)
        if edits.gated:
            context.enter_context(gates.ready())
        # compiled code wouldn't ask
        context.enter_context(torch.compiler.set_stance("force_eager"))
        context.enter_context(edited_heads(running, edit))
        yield model


def require_head(layer: int, head: int, n_heads: int) -> None:
    """Refuse a head that a layer doesn't have.

    Raises
    ------
    InvalidArgumentError
        With the number of heads.
    """
    if head >= n_heads:
        raise InvalidArgumentError(
            f"Heads of layer {layer} must be from 0 to {n_heads - 1}; got {head}."
        )


def _require_seen(edits: Edits, attending: list[int], entered: list[int], name: str) -> None:
    """Refuse a run in which a layer wasn't met: it would be that of the whole model."""
    if edits.layers and not attending:
        raise InvalidArgumentError(
            "A model's attention must go through the AttentionInterface of transformers; none of "
            f"{name} does, so that its heads can't be reached here."
        )
    require_attending(f"Layers of {name}", edits.layers, attending)
    missed = sorted(set(edits.streams) - set(entered))
    if missed:
        raise InvalidArgumentError(
            f"Layers of {name} whose stream is replaced must be among those that are called with "
            f"it, {', '.join(map(str, entered)) or 'none'}; got {missed[0]}."
        )
