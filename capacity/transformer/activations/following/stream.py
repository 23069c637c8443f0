"""Follow the residual stream of a model through its run, whatever its layout.

The stream of a transformer is a chain of sums and norms: each operation on it is affine, once the
scales of norms are known. They are seen while the model runs: sums and multiples as functions of
torch, norms and linear maps as modules. What is added to the stream is a *leaf*, the output of a
sublayer, whose computation isn't followed. So the layout (norms before or after sublayers, or on
their outputs, sublayers in parallel, scaled sums) needs no names: it is the expression that the
last embeddings are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from capacity.transformer.activations.following.by_tensor import ByTensor
from capacity.transformer.activations.following.mode_aside import ModeAside
from capacity.transformer.activations.following.modules import (
    LayerCount,
    attends,
    given_tensor,
    is_norm,
    layers_of,
    mixing_modules,
    modules_of,
    removed_hooks,
    unfollowed,
)
from capacity.transformer.activations.following.operations import (
    Leaf,
    MapOf,
    Multiple,
    Node,
    NormOf,
    Start,
    Sum,
)
from capacity.transformer.activations.following.overwriting import Probes, writes_over
from capacity.transformer.activations.records.norms import Moments, Norms, layer_norm


class StreamFollower(ModeAside):
    """Context in which the operations on a model's residual stream are followed.

    Parameters
    ----------
    stack : nn.Module
        Module that holds the layers, in a `torch.nn.ModuleList`.
    is_running : callable
        Returns whether it is this run, and not another thread's, that calls a module.
    count : LayerCount
        Number of the layer that runs, which counts in this run.

    Attributes
    ----------
    start : Start or None
        Input of the first layer, once it has been called.
    norms : Norms
        The norms that have been called.
    probes : Probes
        What was kept of the tensors of the stream and of heads, to see where one is written over.
    """

    def __init__(self, stack: nn.Module, is_running: Callable[[], bool], count: LayerCount) -> None:
        super().__init__(is_running)
        self.norms = Norms()
        self.start: Start | None = None
        self.probes = Probes(count)
        self._stack, self._count = stack, count
        self._mixing = mixing_modules(stack)
        self._nodes = ByTensor()
        # norms that are being computed
        self._paused = 0
        # input of the first linear module since the stream was added to
        self._first: Tensor | None = None
        # what is known of the LayerNorm that is being computed
        self._moments: Moments | None = None

    def node(self, x: Any) -> Node | None:
        """The operation that made a tensor, if it was followed."""
        found = self._nodes.get(x) if isinstance(x, Tensor) else None
        if isinstance(found, Leaf) and found.value is None:
            found.value = x
        return found

    def heads(self, call: int, module: nn.Module, output: Tensor) -> None:
        """Note that a tensor is the joint output of the heads of an attention."""
        self._nodes[output] = Leaf(False, output, call, module)
        self.probes.keep(output)
        self._first = None

    def linear(self, module: nn.Module, x: Tensor, output: Tensor) -> None:
        """Note a call of a linear module."""
        known = self.node(x)
        if not self._count.depth and (self.start is None or (known is not None and known.stream)):
            layer = None if self.start is None else self._count.number
            of = known or Leaf(False, x)
            self._nodes[output] = MapOf(of.stream, of, module, layer, x)
            return
        if self._first is None and self._is_full(x):
            self._first = x
        if self._is_full(output):
            mixes = module in self._mixing
            # the tensor goes, unless it is asked for
            self._nodes[output] = Leaf(False, None, None, module, self._first, mixes)

    def _made(self, x: Tensor, node: Node, probe: Tensor | None = None) -> None:
        self._nodes[x] = node
        if node.stream:
            self.probes.keep(x, probe)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow the stream in this context."""
        with removed_hooks() as hooks:
            for layer in layers_of(self._stack):
                hooks.append(layer.register_forward_pre_hook(self._enter, with_kwargs=True))
            for module in modules_of(self._stack):
                if is_norm(module) and next(module.children(), None) is None:
                    hooks.append(module.register_forward_pre_hook(self._pause))
                    hooks.append(module.register_forward_hook(self._norm, with_kwargs=True))
                elif attends(module):
                    hooks.append(module.register_forward_pre_hook(self._begin))
                    hooks.append(module.register_forward_hook(self.come_back))
            with self.entered():
                yield

    # torch calls hooks without keywords that another thread is about to remove: they aren't of this
    # run, and take any arguments
    @unfollowed
    def _enter(self, _: nn.Module, args: Any, *rest: Any) -> None:
        if not self.is_running() or self.start is not None:
            return
        value = given_tensor(args, *rest)
        if value is not None:
            self.start = Start(True, value, self.node(value))
            self._made(value, self.start)

    def _begin(self, module: nn.Module, *_: object) -> None:
        if self.start is not None:
            self.begin(module)

    def _pause(self, module: nn.Module, *_: object) -> None:
        if self.is_running():
            self._paused += 1
            # moments of LayerNorms are kept
            if self.start is not None and not isinstance(module, nn.LayerNorm):
                self.step_aside(module)

    @unfollowed
    def _norm(self, module: nn.Module, args: Any, *rest: Any) -> None:
        if not self.is_running():
            return
        self.come_back(module)
        kwargs, output = rest
        known, self._moments = self._moments, None
        self._paused -= 1
        x = given_tensor(args, kwargs)
        if self._paused or x is None or not isinstance(output, Tensor):
            return
        is_alike = (x.shape, x.dtype) == (output.shape, output.dtype)
        if not is_alike or (self.start is not None and not self._is_full(x)):
            return
        self.probes.check(x)
        vector = self.probes.vector(x)
        probe = output @ vector
        # some families flatten sentences
        shape = x.shape if self.start is None else self.start.value.shape
        call = self.norms.fitted(
            None if self.start is None else self._count.number,
            module, x.view(shape), probe.view(shape[:-1]), vector,
            known if known is not None and known.x is x else None,
        )  # fmt: skip
        if call is not None:
            of = self.node(x) or self._leaf(x)
            self._made(output, NormOf(of.stream, of, call, None if self.start else x), probe)

    def _is_full(self, x: Tensor) -> bool:
        """Return True for a tensor of the stream's size."""
        return (
            self.start is not None
            and x.numel() == self.start.value.numel()
            and x.shape[-1] == self.start.value.shape[-1]
        )

    def _leaf(self, x: Tensor) -> Leaf:
        return Leaf(False, x, input=self._first)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        follow, kwargs = _FOLLOWED.get(func), kwargs or {}
        if self._paused or self.start is None:
            follow = None
            if self._paused and func is torch.nn.functional.layer_norm:
                output, self._moments = layer_norm(*args, **kwargs)
                return output
            if self.start is None and writes_over(func):
                # what embeddings were before isn't what the first layer reads
                self._nodes.pop(args[0], None)
        # sums with a factor, and arguments by name, aren't followed
        plain = follow is StreamFollower.same or (len(args) == 2 and not kwargs)
        if follow is None or not plain or not isinstance(args[0], Tensor):
            return func(*args, **kwargs)
        if func in _IN_PLACE and self._is_full(args[0]):
            self.n_made += 1
            self._keep(args[0])
        before = [self.node(x) for x in (args[:1] if follow is StreamFollower.same else args[:2])]
        for node, x in zip(before, args, strict=False):
            if node is not None:
                self.probes.check(x)
        result = func(*args, **kwargs)
        is_new = isinstance(result, Tensor) and result is not args[0]
        if (is_new or func in _IN_PLACE) and self._is_full(result):
            made = follow(self, args, before)
            if not is_new:
                self._nodes.pop(result, None)
                self.probes.forget(result)
            if made is not None:
                self.n_made += 1
                self._made(result, made)
        return result

    def _keep(self, x: Tensor) -> None:
        """Copy what will be written over, where a node refers to it."""
        node = self.node(x)
        if node is None:
            self._nodes[x] = self._leaf(x.clone())
        elif isinstance(node, Leaf | Start) and node.value is x:
            node.value = x.clone()

    def sum(self, args: Any, before: list[Node | None]) -> Node | None:
        """A sum of two tensors, one of which may be a number."""
        parts = [node or self._leaf(x) for node, x in zip(before, args[:2], strict=True)]
        stream = any(part.stream for part in parts)
        if stream:
            self._first = None
        return Sum(stream, (parts[0], parts[1]), self._count.index)

    def multiple(self, args: Any, before: list[Node | None]) -> Node | None:
        """A product with a number, or with a vector, feature by feature."""
        full = [isinstance(x, Tensor) and self._is_full(x) for x in args[:2]]
        if sum(full) != 1:
            return None
        at = full.index(True)
        of, factor = before[at] or self._leaf(args[at]), args[1 - at]
        return Multiple(of.stream, of, factor, self._count.index)

    def quotient(self, args: Any, before: list[Node | None]) -> Node | None:
        """A quotient by a number or a vector."""
        if isinstance(args[1], Tensor) and self._is_full(args[1]):
            return None
        of = before[0] or self._leaf(args[0])
        return Multiple(of.stream, of, 1 / args[1], self._count.index)

    def same(self, _: Any, before: list[Node | None]) -> Node | None:
        """The same numbers in another tensor."""
        return before[0]


_IN_PLACE = {torch.Tensor.add_, torch.Tensor.mul_}
_FOLLOWED: dict[Any, Callable[..., Node | None]] = {
    **dict.fromkeys((torch.add, torch.Tensor.add, torch.Tensor.add_), StreamFollower.sum),
    **dict.fromkeys((torch.mul, torch.Tensor.mul, torch.Tensor.mul_), StreamFollower.multiple),
    **dict.fromkeys((torch.div, torch.Tensor.div), StreamFollower.quotient),
    **dict.fromkeys(
        (torch.reshape, torch.nn.functional.dropout, torch.Tensor.view, torch.Tensor.reshape,
         torch.Tensor.contiguous, torch.Tensor.clone, torch.Tensor.to, torch.Tensor.type_as,
         torch.Tensor.float, torch.Tensor.squeeze, torch.Tensor.unsqueeze),
        StreamFollower.same,
    ),
}  # fmt: skip
