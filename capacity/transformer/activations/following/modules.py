"""Modules of any family: linear ones, known by what they hold, and layers.

A linear module is nn.Linear, or GPT-2's Conv1D, which holds its weights transposed.

Layers are the elements of a list of modules, and each call of one is a layer: ALBERT calls the same
module again, and hybrids have layers without attention, of Mamba or a convolution, which count.
Where a layer attends twice (LongCat-Flash), its second attention counts as a layer of its own, as
in the model's caches of keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.utils.hooks import RemovableHandle
from torch.utils.weak import TensorWeakRef

from capacity.errors import InvalidArgumentError


def unfollowed(hook: Callable[..., None]) -> Callable[..., None]:
    """Let a hook run with functions of torch followed by no mode.

    Where functions are followed, even an attribute of a tensor is a call.
    """

    @wraps(hook)
    def quiet(*args: Any, **kwargs: Any) -> None:
        with torch._C.DisableTorchFunction():
            hook(*args, **kwargs)

    return quiet


# numbers in a copy of weights that is kept although no cache holds it: 4 MB in float32
MOST_KEPT = 2**20


@dataclass(eq=False)
class _Copy:
    """A copy of a module's weights, and its product with a vector.

    A large one is known as long as a cache holds it, a small one as long as the module is there.
    """

    weights: TensorWeakRef
    kept: Tensor | None
    vector: Tensor | None = None
    product: Tensor | None = None


# by module: the modules in it, where they are asked for again and again
_walks: ContextVar[dict[nn.Module, list[nn.Module]] | None] = ContextVar("walks", default=None)
# by linear module: the last copy of its weights
_copies: WeakKeyDictionary[Any, _Copy] = WeakKeyDictionary()


def modules_of(root: nn.Module) -> list[nn.Module]:
    """Modules in a module and itself, in the order of `nn.Module.modules`, in a tenth of its time.

    Examples
    --------
    >>> inner = nn.Linear(1, 1)
    >>> modules_of(nn.Sequential(inner, nn.ReLU(), inner))[1:]
    [Linear(in_features=1, out_features=1, bias=True), ReLU()]
    """
    walks = _walks.get()
    if walks is not None and root in walks:
        return walks[root]
    modules: dict[nn.Module, None] = {}
    waiting = [root]
    while waiting:
        module = waiting.pop()
        if module not in modules:
            modules[module] = None
            waiting += reversed(_parts(module))
    every = list(modules)
    if walks is not None:
        walks[root] = every
    return every


@contextmanager
def walked_once() -> Iterator[None]:
    """Let `modules_of` remember the modules of each module in this context and thread."""
    with ExitStack() as after:
        after.callback(_walks.reset, _walks.set({} if _walks.get() is None else _walks.get()))
        yield


@contextmanager
def removed_hooks() -> Iterator[list[RemovableHandle]]:
    """Yield a list, whose hooks are removed at the end of this context."""
    handles: list[RemovableHandle] = []
    try:
        yield handles
    finally:
        for handle in handles:
            handle.remove()


def weights_of(root: nn.Module) -> Iterator[nn.Parameter]:
    """Parameters of a module and of those in it; one that two modules share comes twice."""
    for module in modules_of(root):
        yield from (x for x in module._parameters.values() if x is not None)


def is_norm(module: nn.Module) -> bool:
    """Return True for a module that is a norm by its name."""
    return _is_named(type(module), "norm")


@cache
def _is_named(of: type[nn.Module], *parts: str) -> bool:
    """Return whether the name of a class has one of some parts."""
    name = of.__name__.lower()
    return any(part in name for part in parts)


def is_linear(module: Any) -> bool:
    """Return True for a module that maps x to x W + b with W and b of its own."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def weight_of(module: Any) -> Tensor:
    """Copy of a linear module's weights, for ``x @ W``: shape (d_in, d_out).

    Copies are shared as long as the weights stay as they are, so that those of a model aren't held
    once for each text, and small ones aren't made for each.
    """
    weight = module.weight.detach()
    known = _copies.get(module)
    copy = None if known is None else known.weights()
    if copy is None or not _same(copy, weight):
        copy = weight.clone()
        _copies[module] = _Copy(TensorWeakRef(copy), copy if copy.numel() <= MOST_KEPT else None)
    return copy.T if isinstance(module, nn.Linear) else copy


def product_of(module: Any, weights: Tensor, vector: Tensor) -> Tensor:
    """Product of what `weight_of` returned last for a module with a vector: shape (d_in,).

    It is known as long as the copy is shared, if the vector is the same tensor as before.
    """
    known = _copies[module]
    if known.product is None or known.vector is not vector:
        known.vector, known.product = vector, weights @ vector
    return known.product


def bias_of(module: Any) -> Tensor | None:
    """Copy of a linear module's bias, or None."""
    return None if module.bias is None else module.bias.detach().clone()


def _same(copy: Tensor, weight: Tensor) -> bool:
    alike = (copy.dtype, copy.device, copy.shape) == (weight.dtype, weight.device, weight.shape)
    if alike and _fills_words(copy) and _fills_words(weight):
        # fewer and longer numbers are compared in less time
        return torch.equal(copy.view(torch.int64), weight.view(torch.int64))
    return alike and torch.equal(copy, weight)


def _fills_words(x: Tensor) -> bool:
    """Return True if the rows of a matrix can be read as integers of 64 bits."""
    sizes = x.shape[-1], x.storage_offset()
    return x.is_contiguous() and all(n * x.element_size() % 8 == 0 for n in sizes)


def given_tensor(args: Any, kwargs: Any) -> Tensor | None:
    """The tensor that a module was called with: its first argument, or its hidden states."""
    given = args[0] if args else kwargs.get("hidden_states")
    return given if isinstance(given, Tensor) and given.is_floating_point() else None


def has_hooks(model: nn.Module) -> bool:
    """Return whether hooks that others have registered may change what a model computes."""
    hooks = (h for m in modules_of(model) if m._forward_hooks or m._forward_pre_hooks
             for h in (*m._forward_hooks.values(), *m._forward_pre_hooks.values()))  # fmt: skip
    # those of transformers keep hidden states, and change nothing
    return any(not str(getattr(h, "__module__", "")).startswith("transformers.") for h in hooks)


def last_of(output: Any) -> Tensor:
    """Last embeddings among what a stack of layers returns."""
    return output if isinstance(output, Tensor) else output[0]


def layers_of(stack: nn.Module) -> Iterator[nn.Module]:
    """Elements of the outermost lists of modules; of those that attend, if there are any."""
    lists = [*_lists_of(stack)]
    # others may convolve sounds before the layers, or project what is between them
    for one in [each for each in lists if any(map(attends, modules_of(each)))] or lists:
        yield from one


def _lists_of(stack: nn.Module) -> Iterator[nn.ModuleList]:
    for child in stack.children():
        if isinstance(child, nn.ModuleList):
            yield child
        else:
            yield from _lists_of(child)


def attends(module: nn.Module) -> bool:
    """Return whether a module calls itself attention."""
    return _is_named(type(module), "attention", "attn")


def mixing_modules(stack: nn.Module) -> set[nn.Module]:
    """Modules in the layers of a stack that are part of something that mixes tokens.

    That is a sublayer with a convolution over tokens, as Mamba, gated linear attention and short
    convolutions have one, or one that calls itself attention. Feed-forwards have neither.
    """
    inner = [part for layer in layers_of(stack) for part in _parts(layer)]
    return within(inner, lambda module: attends(module) or _convolves(module))


def within(roots: Iterable[nn.Module], is_one: Callable[[nn.Module], bool]) -> set[nn.Module]:
    """Modules that are of some kind, or within one that is.

    Parameters
    ----------
    roots : iterable of nn.Module
        Where they are looked for.
    is_one : callable
        Returns whether a module is of the kind.
    """
    found: set[nn.Module] = set()
    outside: set[nn.Module] = set()
    waiting = [(root, False) for root in roots]
    while waiting:
        module, inside = waiting.pop()
        if module in found or (not inside and module in outside):
            continue
        inside = inside or is_one(module)
        (found if inside else outside).add(module)
        waiting += [(part, inside) for part in _parts(module)]
    return found


def _parts(module: nn.Module) -> list[nn.Module]:
    return [part for part in module._modules.values() if part is not None]


def _convolves(module: nn.Module) -> bool:
    convolutions = (c for c in module._modules.values() if isinstance(c, _ConvNd))
    return any(max(c.kernel_size) > 1 for c in convolutions)


@dataclass(eq=False)
class LayerCount:
    """Number of the layer that runs.

    Attributes
    ----------
    number : int
        Index of the layer, counted from 0; -1 before the first.
    depth : int
        Number of layers that are being computed: 0 between two of them.
    attending : list of int
        Indices of the layers that have attended, in order.
    """

    number: int = -1
    depth: int = 0
    attending: list[int] = field(default_factory=list)
    _has_attended: bool = True

    @property
    def index(self) -> int:
        """Index of the layer that runs, or will be the first."""
        return max(self.number, 0)

    def enter(self) -> None:
        """Note that a layer begins."""
        if not self.depth:
            self.number, self._has_attended = self.number + 1, False
        self.depth += 1

    def leave(self) -> None:
        """Note that a layer has ended."""
        self.depth -= 1

    def attend(self) -> int:
        """Note an attention, and return the index of its layer."""
        if self._has_attended:
            self.number += 1
        self._has_attended = True
        self.attending.append(self.number)
        return self.number


@contextmanager
def counted_layers(
    stack: nn.Module, count_of_run: Callable[[], LayerCount | None]
) -> Iterator[None]:
    """Count the layers of a stack in this context.

    Parameters
    ----------
    stack : nn.Module
        Module that holds the layers.
    count_of_run : callable
        Returns the count of the run that calls a layer, or None if it isn't to be counted.
    """

    # torch may call hooks without keywords, and with them
    def enter(*_: object) -> None:
        if (count := count_of_run()) is not None:
            count.enter()

    def leave(*_: object) -> None:
        if (count := count_of_run()) is not None:
            count.leave()

    with removed_hooks() as hooks:
        for layer in layers_of(stack):
            hooks.append(layer.register_forward_pre_hook(enter))
            hooks.append(layer.register_forward_hook(leave))
        yield


def require_attending(what: str, asked: Sequence[int], attending: Sequence[int]) -> None:
    """Refuse layers that a model doesn't have, or that don't attend.

    Parameters
    ----------
    what : str
        What they are, for messages.
    asked, attending : sequences of int
        Indices of layers that are wanted, and of those that have attended.

    Raises
    ------
    InvalidArgumentError
        With the layers that there are.
    """
    odd = [number for number in asked if number not in attending]
    if not odd:
        return
    n = len(attending)
    if list(attending) == list(range(n)):
        raise InvalidArgumentError(f"{what} must be from 0 to {n - 1}; got {odd[0]}.")
    those = ", ".join(map(str, attending))
    raise InvalidArgumentError(f"{what} must be among those that attend, {those}; got {odd[0]}.")
