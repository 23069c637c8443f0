"""Outputs of heads: the module that made their values, and what multiplies the outputs.

Models of 2025 and later (Qwen3-Next, AFMoE, Laguna) multiply the outputs z of heads by a gate g,
which is computed from the token. So W_O reads g * z. A product counts as a gate only if its other
factor doesn't depend on z itself: any function of z, such as a norm, is some factor times z.

Which one it is shows in the memory that they share, or in the numbers: no names of modules are
needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.overrides import TorchFunctionMode

from capacity.transformer.activations.following.attention_calls import AttentionCall
from capacity.transformer.activations.following.by_tensor import ByTensor
from capacity.transformer.activations.following.modules import bias_of, weight_of
from capacity.transformer.activations.records.heads import LayerActivations


@dataclass(eq=False)
class LinearCall:
    """A linear module, its input and its output."""

    module: Any
    input: Tensor
    output: Tensor


@dataclass(eq=False)
class ValuesOf:
    """Values of heads as columns of a linear module's output.

    Attributes
    ----------
    call : LinearCall
        The module's call.
    columns : callable
        Returns the columns of its output that hold the values of each head, or group of heads:
        (n_groups, d_head_vo) int64.
    """

    call: LinearCall
    columns: Callable[[], Int[Tensor, "groups d_head_vo"]]

    @property
    def bias(self) -> Float[Tensor, "groups d_head_vo"] | None:
        """Bias of the values, if the module has one."""
        bias = self.call.module.bias
        return None if bias is None else bias.detach()[self.columns().to(device=bias.device)]


def maker_of(v: Float[Tensor, "batch groups n d_head_vo"], recent: Iterable[LinearCall]) -> Any:
    """Find the call of a linear module whose output, or columns of it, are the values.

    Parameters
    ----------
    v : (batch, n_groups, n, d_head_vo)
        Values.
    recent : iterable of LinearCall
        Calls before the attention, the last one first.

    Returns
    -------
    ValuesOf or None
        None if there is none.
    """
    calls = [call for call in recent if call.output.dtype == v.dtype]
    groups, d_head = v.shape[1], v.shape[3]
    for call in calls:
        if storage_of(call.output) == storage_of(v):
            return ValuesOf(call, partial(_columns_of_view, v, call.output))
    flat = v.transpose(1, 2).reshape(-1, groups * d_head)
    for call in calls:
        if call.output.numel() == flat.numel() and torch.equal(
            call.output.reshape(flat.shape), flat
        ):
            return ValuesOf(call, lambda: torch.arange(groups * d_head).view(groups, d_head))
    for call in calls:
        output = call.output.reshape(-1, call.output.shape[-1])
        if len(output) == len(flat) and output.shape[1] > flat.shape[1]:
            columns = _equal_columns(flat, output)
            if columns is not None:
                return ValuesOf(call, partial(columns.view, groups, d_head))
    return None


def storage_of(x: Tensor) -> int:
    """Address of a tensor's memory."""
    return x.untyped_storage().data_ptr()


def _columns_of_view(v: Tensor, output: Tensor) -> Tensor:
    """Columns of an output that a view of it shows; its strides show which."""
    groups, d_head, width = v.shape[1], v.shape[3], output.shape[-1]
    first = int(v.storage_offset() - output.storage_offset()) % width
    heads = torch.arange(groups)[:, None] * v.stride(1)
    return (first + heads + torch.arange(d_head) * v.stride(3)) % width


def _equal_columns(some: Tensor, among: Tensor) -> Tensor | None:
    """Index of a column of a matrix that equals each column of another one; None if one has none.

    Columns are sorted by their first row, which leaves few to compare.
    """
    order = among[0].argsort(stable=True)
    at = torch.searchsorted(among[0][order].contiguous(), some[0].contiguous())
    columns = order[at.clamp_max(len(order) - 1)]
    return columns if torch.equal(among[:, columns], some) else None


@dataclass(eq=False)
class Heads:
    """An attention, the linear module that made its values and the one that reads its outputs."""

    call: AttentionCall
    values: ValuesOf | None
    output: Any = None
    gate: Tensor | None = None

    def layer(self) -> LayerActivations:
        """Activations of the heads."""
        call, module = self.call, self.output.module
        heads = call.pattern.shape[1]
        W_O = weight_of(module).unflatten(0, (heads, -1))
        pattern, z = call.pattern, call.z.transpose(1, 2)
        if call.has_sink:
            pattern = _less_sink(pattern, call.v.repeat_interleave(heads // call.v.shape[1], 1), z)
        sink = 1 - pattern.sum(-1) if call.has_sink else None
        gate = None if self.gate is None else self.gate.transpose(1, 2)
        # of that bias a row gets what a sink leaves, or a gate, which is no constant
        b_V = self._bias_of_values(heads) if sink is None and gate is None else None
        return LayerActivations(pattern, call.q, call.k, call.v, z, W_O, b_V, bias_of(module),
                                call.scale, sink=sink, gate=gate)  # fmt: skip

    def _bias_of_values(self, heads: int) -> Tensor | None:
        """Bias of each head's values: that of their linear module, and what was added to them."""
        parts = (None if self.values is None else self.values.bias, self.call.shift)
        found = [part for part in parts if part is not None]
        bias = sum(found[1:], start=found[0]) if found else None
        return None if bias is None else bias.repeat_interleave(heads // len(bias), dim=0)


def _less_sink(pattern: Tensor, v: Tensor, z: Tensor) -> Tensor:
    """Pattern less the weight of a sink, where that was taken from z alone, as in Granite SWA."""
    total = pattern.sum(-1)
    if (total - 1).abs().max() > 1e-4:
        return pattern
    average = pattern @ v
    size = average.square().sum(-1)
    kept = torch.where(size > 0, (average * z).sum(-1) / size, 1.0)
    return kept[..., None] * pattern


# what a tensor is that depends on outputs of heads otherwise than by a gate
_ELSE = object()


class GateFollower(TorchFunctionMode):
    """Outputs of heads are followed from `follow` to `leave`, in the context `ready`.

    Parameters
    ----------
    throughout : bool
        Be a mode of torch's in all of the context, as `follow` is called from another mode. Else it
        is one only between `follow` and `leave`: each mode takes a part of every function's time.
    """

    def __init__(self, *, throughout: bool) -> None:
        super().__init__()
        self._throughout, self._entered = throughout, False
        self._z: Tensor | None = None
        # by tensors that hold z: the gate so far, or None; `_ELSE` for other functions of z
        self._gates = ByTensor()

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Let outputs be followed in this context."""
        if self._throughout:
            with self:
                yield
            return
        try:
            yield
        finally:
            self.leave()

    def follow(self, z: Tensor) -> None:
        """Follow outputs of heads, shape (batch, n, n_heads, d_head_vo)."""
        self._z = z
        self._gates[z] = None
        if not self._throughout and not self._entered:
            self._entered = True
            self.__enter__()

    def leave(self) -> None:
        """Follow no longer."""
        self._z = None
        self._gates.clear()
        if self._entered:
            self._entered = False
            self.__exit__(None, None, None)

    def depends_on_heads(self, x: Any) -> bool:
        """Return whether a tensor depends on the outputs that are followed."""
        return isinstance(x, Tensor) and x in self._gates

    def gate_of(self, x: Tensor) -> Tensor | None:
        """Gate of the heads in a tensor, in their shape; None if it isn't z times a gate."""
        gate = self._gates.get(x)
        return gate if isinstance(gate, Tensor) else None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._z is None:
            return func(*args, **kwargs)
        read = args[:1] if func in _SHAPED_AS else (args, kwargs)
        held = [x for x in _tensors(read) if x in self._gates]
        result = func(*args, **kwargs)
        if held:
            # for another mode these would be functions of the model
            with torch._C.DisableTorchFunction():
                made = self._made(func, args, kwargs, held, result)
            for x in _tensors(result):
                self._gates[x] = made
        return result

    def _made(self, func: Any, args: Any, kwargs: Any, held: list[Tensor], result: Any) -> Any:
        z, before = self._z, self._gates[held[0]]
        plain = isinstance(result, Tensor) and len(held) == 1 and before is not _ELSE
        if z is None or not plain or result.numel() != z.numel():
            return _ELSE
        if func in _SAME and args and args[0] is held[0]:
            return before
        # a product in place would change z
        if func not in _PRODUCTS or kwargs or len(args) != 2:
            return _ELSE
        factor = args[1] if args[0] is held[0] else args[0]
        # dimensions are split and joined on the way, and never exchanged
        gate = torch.as_tensor(factor, dtype=z.dtype, device=z.device).detach()
        gate = gate.expand(result.shape).reshape(z.shape)
        return gate if before is None else before * gate


def _tensors(held: Any) -> list[Tensor]:
    if isinstance(held, Tensor):
        return [held]
    several = held.values() if isinstance(held, dict) else held
    if not isinstance(held, dict | list | tuple):
        return []
    return [x for one in several for x in _tensors(one)]


# functions that read the shape or the type of their second argument alone
_SHAPED_AS = {torch.Tensor.view_as, torch.Tensor.expand_as, torch.Tensor.reshape_as,
              torch.Tensor.type_as}  # fmt: skip
_PRODUCTS = {torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__}
_SAME = {
    torch.reshape, torch.flatten, torch.unflatten, torch.squeeze, torch.unsqueeze,
    torch.nn.functional.dropout, torch.Tensor.view, torch.Tensor.reshape, torch.Tensor.flatten,
    torch.Tensor.unflatten, torch.Tensor.squeeze, torch.Tensor.unsqueeze, torch.Tensor.contiguous,
    torch.Tensor.clone, torch.Tensor.to, torch.Tensor.float, torch.Tensor.type_as,
}  # fmt: skip
