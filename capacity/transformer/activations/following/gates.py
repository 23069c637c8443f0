"""Follow the outputs of heads from an attention to W_O, to find what they are multiplied by.

Models of 2025 and later (Qwen3-Next, AFMoE, Laguna) multiply the outputs z of heads by a gate g,
which is computed from the token. So W_O reads g * z. A product counts as a gate only if its other
factor doesn't depend on z itself: any function of z, such as a norm, is some factor times z.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from capacity.transformer.activations.following.by_tensor import ByTensor

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


def _tensors(held: Any) -> Iterator[Tensor]:
    if isinstance(held, Tensor):
        yield held
    elif isinstance(held, dict):
        yield from _tensors([*held.values()])
    elif isinstance(held, list | tuple):
        for one in held:
            yield from _tensors(one)


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
