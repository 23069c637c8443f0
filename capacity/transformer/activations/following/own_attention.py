"""Record attention that a family computes in code of its own, and not through the interface.

Its products are seen as functions of torch while a module that calls itself attention runs: a
product of queries and keys, a softmax of what becomes of it, and a product of that softmax with the
values. Nothing is computed again, so the pattern, the values and the outputs are the model's own.
What follows is checked as for all families: rows sum to 1, A V is the heads' output, and W_O reads
that output as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.attention_calls import AttentionCall
from capacity.transformer.activations.following.by_tensor import ByTensor
from capacity.transformer.activations.following.modules import attends, given_tensor

# a logit this far below the largest of its row belongs to a mask: real ones are never so far apart
_MASKED = 5e3
_PRODUCTS = {"matmul", "bmm", "__matmul__", "baddbmm"}
_SUMS = {"add", "add_", "__add__", "__iadd__", "__radd__"}
_TIMES = {"mul", "mul_", "__mul__", "__rmul__", "__imul__", "multiply"}
_OVER = {"div", "div_", "__truediv__", "__itruediv__", "__div__", "__idiv__", "true_divide"}


@dataclass(eq=False)
class _Logits:
    """Logits that are ``factor * q @ k.mT``, and whatever has been added to it."""

    q: Tensor
    k: Tensor
    factor: float = 1.0


@dataclass(eq=False)
class _Softmax:
    """A softmax of logits, and its input."""

    logits: _Logits | None
    input: Tensor


@dataclass(eq=False)
class _Shifted:
    """A sum of a tensor with a smaller one."""

    of: Tensor
    by: Tensor


class OwnAttention(TorchFunctionMode):
    """Context in which attention is recorded that a stack of layers computes by itself.

    Parameters
    ----------
    stack : nn.Module
        Module that holds the layers.
    is_running : callable
        Returns whether it is this run, and not another thread's, that calls a module.
    tell : callable
        Called with each attention.
    """

    def __init__(
        self,
        stack: nn.Module,
        is_running: Callable[[], bool],
        tell: Callable[[AttentionCall], None],
    ) -> None:
        super().__init__()
        self._stack, self._is_running, self._tell = stack, is_running, tell
        # modules that attend and are being computed, each with the number of its sentences
        self._modules: list[tuple[nn.Module, int | None]] = []
        self._known = ByTensor()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record attention in this context."""

        # torch may call hooks without keywords, and with them
        def enter(module: nn.Module, args: Any, kwargs: Any = None) -> None:
            if self._is_running():
                x = given_tensor(args, kwargs or {})
                self._modules.append((module, None if x is None else len(x)))

        def leave(*_: object) -> None:
            if self._is_running():
                self._modules.pop()
                self._known.clear()

        with ExitStack() as hooks:
            for module in self._stack.modules():
                if attends(module):
                    before = module.register_forward_pre_hook(enter, with_kwargs=True)
                    hooks.callback(before.remove)
                    hooks.callback(module.register_forward_hook(leave).remove)
            with self:
                yield

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self._modules and isinstance(result, Tensor):
            name = getattr(func, "__name__", "")
            with torch._C.DisableTorchFunction():
                self._note(name, args, kwargs, result)
        return result

    def _note(self, name: str, args: Any, kwargs: Any, result: Tensor) -> None:
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        if name in _PRODUCTS:
            one, two = given[-2:]
            weights = self._known.get(one)
            if isinstance(weights, _Softmax):
                self._attended(weights, one, two, result)
            else:
                self._known[result] = _Logits(one, two.mT, float(kwargs.get("alpha", 1.0)))
        elif name == "softmax":
            logits = self._known.get(given[0])
            logits = logits if isinstance(logits, _Logits) else None
            self._known[result] = _Softmax(logits, given[0])
        else:
            before = next((self._known[x] for x in given if x in self._known), None)
            after = self._after(name, args, given, result, before)
            if after is not None:
                self._known[result] = after

    def _after(self, name: str, args: Any, given: list[Tensor], result: Tensor, before: Any) -> Any:
        """Return what is known of a result, from the first argument of which something is."""
        if before is None or isinstance(before, _Shifted):
            shifts = name in _SUMS and len(given) == 2 and given[0].shape == result.shape
            if shifts and given[1].numel() < result.numel():
                return _Shifted(*given)
            return None
        # where a mask is chosen by its condition, that comes first
        sized = given[0].numel() == result.numel() or name == "where"
        if not sized or not result.is_floating_point() or name.endswith("_like"):
            return None
        if isinstance(before, _Logits) and len(args) == 2 and name in _TIMES | _OVER:
            number = _number(args[1]) if args[0] is given[0] else _number(args[0])
            if number is not None:
                factor = number if name in _TIMES else 1 / number
                return _Logits(before.q, before.k, before.factor * factor)
        return before

    def _attended(self, weights: _Softmax, pattern: Tensor, v: Tensor, z: Tensor) -> None:
        module, batch = self._modules[-1]
        if weights.logits is None or batch is None:
            raise InvalidArgumentError(
                "Attention must be the softmax of products of queries and keys, with whatever is "
                f"added to them; {type(module).__name__} computes something else. Capture patterns "
                "and values by hooks, and pass them to capacity.transformer.from_tensors."
            )
        logits = weights.logits
        shift = self._known.get(v)
        shift = shift if isinstance(shift, _Shifted) else None
        q, k, pattern, values, z, before = (
            _of_sentences(x, batch) for x in (logits.q, logits.k, pattern, v, z, weights.input)
        )
        made, b = values, None
        if shift is not None:
            made = _of_sentences(shift.of, batch)
            # the same for all tokens, or it is no bias
            wide = _of_sentences(shift.by.expand(v.shape), batch)
            b = wide[0, :, 0] if bool((wide == wide[:1, :, :1]).all()) else None
        # some compute logits in float32, whatever their model does
        q, k = q.to(pattern.dtype), k.to(pattern.dtype)
        self._tell(AttentionCall(module, q, k, values, pattern, z.transpose(1, 2), logits.factor,
                                 _mask(before, pattern), False, made, b))  # fmt: skip


def _number(x: Any) -> float | None:
    """A factor that is one number."""
    if isinstance(x, Tensor):
        return float(x) if x.numel() == 1 else None
    return float(x)


def _of_sentences(x: Tensor, batch: int) -> Tensor:
    """Tensor of heads with dimensions of their own for sentences and heads."""
    return x if x.ndim == 4 else x.unflatten(0, (batch, -1))


def _mask(logits: Tensor, pattern: Tensor) -> Tensor | None:
    """Mask of a softmax, as the interface has it; None if there is none: shape (batch, 1, n, n)."""
    logits = logits.reshape(pattern.shape)
    far = logits < logits.amax(-1, keepdim=True) - _MASKED
    hidden = (far & (pattern == 0)).all(1, keepdim=True)
    if not hidden.any():
        return None
    least = torch.finfo(pattern.dtype).min
    return torch.zeros_like(pattern[:, :1]).masked_fill(hidden, least)
