"""Record the heads and the residual stream of one stack of layers while a model runs.

Which linear module has made the values, and which one reads the heads' outputs, is found by the
memory that they share: no names of modules are needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.attention_calls import (
    AttentionCall,
    heard_attention,
    is_edited,
)
from capacity.transformer.activations.following.head_outputs import (
    GateFollower,
    Heads,
    LinearCall,
    maker_of,
    storage_of,
)
from capacity.transformer.activations.following.modules import (
    LayerCount,
    attends,
    counted_layers,
    has_hooks,
    is_linear,
    is_norm,
    last_of,
    modules_of,
    removed_hooks,
    unfollowed,
    within,
)
from capacity.transformer.activations.following.own_attention import OwnAttention
from capacity.transformer.activations.following.stream import StreamFollower

# the recorder whose run it is, as hooks are called in other threads' runs of the model, too
_running: ContextVar[object] = ContextVar("running", default=None)
# calls of linear modules among which that of an attention's values is found
_RECENT = 8


class Recorder:
    """Record of a run of a model.

    Parameters
    ----------
    model : nn.Module
        The model that runs.
    stack : nn.Module
        Its part whose heads and stream are recorded.
    across : bool
        Record attention to an encoder's embeddings, and not that of the stack to itself.
    own : bool
        Record attention that the stack computes in code of its own, and not through the interface.

    Attributes
    ----------
    count : LayerCount
        Layers so far, and those that have attended.
    stream : StreamFollower
        Operations on the residual stream.
    last : Tensor
        Output of the stack, once it has run.
    has_heard : bool
        Whether some module of the stack has attended, be it across sequences or not.
    """

    def __init__(
        self, model: nn.Module, stack: nn.Module, *, across: bool, own: bool = False
    ) -> None:
        self.count = LayerCount()
        token = object()
        self.stream = StreamFollower(stack, lambda: _running.get() is token, self.count)
        self._token = token
        self.last, self.has_heard = torch.empty(0), False
        self._model, self._stack, self._across, self._own = model, stack, across, own
        self.hooked = has_hooks(model)
        self._gates = GateFollower(throughout=own)
        # the norm that an attention's outputs have gone through
        self._norm: str | None = None
        self._tell: Callable[[int, Heads], None] | None = None
        # an attention whose outputs haven't been read yet
        self._open: Heads | None = None
        # the encoder's embeddings, to which attention across sequences goes
        self._memory: Tensor | None = None
        self._inside = set(modules_of(stack))
        self._recent: deque[LinearCall] = deque(maxlen=_RECENT)

    @contextmanager
    def recording(self, tell: Callable[[int, Heads], None], *, follow: bool) -> Iterator[None]:
        """Record what the model computes in this context.

        Parameters
        ----------
        tell : callable
            Called with the index of a layer and the heads of its attention, once their joint output
            has been computed.
        follow : bool
            Follow the residual stream, too.
        """
        self._tell = tell
        with ExitStack() as context:
            # a reference to what holds this one
            context.callback(setattr, self, "_tell", None)
            context.callback(_running.reset, _running.set(self._token))
            hooks = context.enter_context(removed_hooks())
            for module in modules_of(self._stack):
                if is_linear(module):
                    hooks.append(module.register_forward_hook(self._linear))
            hooks.append(self._stack.register_forward_hook(self._end))
            hooks.append(self._stack.register_forward_pre_hook(self._remember, with_kwargs=True))
            context.enter_context(
                counted_layers(
                    self._stack, lambda: self.count if self.stream.is_running() else None
                )
            )
            for part in within([self._stack], attends):
                if is_norm(part):
                    hooks.append(part.register_forward_pre_hook(self._normed))
            hear = _ignored if self._own else self._attend
            context.enter_context(heard_attention(self._model, hear))
            # modes, which see what is done in them here, too
            if follow:
                context.enter_context(self.stream.following())
            context.enter_context(self._gates.ready())
            if self._own:
                own = OwnAttention(self._stack, self.stream.is_running, self._attend)
                context.enter_context(own.recording())
            yield
        self._recent.clear()
        self._require_output()

    @unfollowed
    def _attend(self, call: AttentionCall) -> None:
        if call.module not in self._inside:
            return
        self.has_heard = True
        self.stream.attended(call.module)
        self._require_output(call.module)
        values = maker_of(call.v if call.made is None else call.made, reversed(self._recent))
        if self._own and values is None:
            raise InvalidArgumentError(
                "Values of heads must be columns of a linear module's output, so that their bias "
                f"is known; those of {type(call.module).__name__} aren't. Capture patterns and "
                "values by hooks, and pass them to capacity.transformer.from_tensors."
            )
        memory = self._memory
        across = (
            values is not None
            and memory is not None
            and storage_of(values.call.input) == storage_of(memory)
        )
        if across == self._across:
            self.count.attend()
            self._open = Heads(call, values)
            self._gates.follow(call.z)

    def _require_output(self, again: nn.Module | None = None) -> None:
        """Refuse an attention whose outputs haven't been read; `again` is one that attends next."""
        if self._open is None:
            return
        if is_edited():
            why = "are changed by `ablated` or `patched`. Leave its context first"
        elif again is self._open.call.module:
            why = (
                "aren't read by one before the same module attends again, as in differential "
                "attention and in blocks, which have no pattern of their own"
            )
        elif self._norm is not None:
            why = f"go through a norm first ({self._norm}), which isn't linear in them"
        elif self.hooked:
            why = "don't, or are changed on the way to it. Remove hooks, and merge adapters"
        else:
            why = "don't: they are changed on the way, or W_O isn't one linear module"
        raise InvalidArgumentError(
            "Outputs of heads must go through a linear module, W_O, as they are or times a gate; "
            f"those of layer {self.count.attending[-1]} of {type(self._model).__name__} {why}. "
            "Patterns and values alone are analysed by capacity.transformer.from_tensors."
        )

    def _normed(self, module: nn.Module, args: Any) -> None:
        heads = self._open
        if heads is None or not args or not self.stream.is_running():
            return
        if self._gates.depends_on_heads(args[0]) and module in modules_of(heads.call.module):
            self._norm = type(module).__name__

    @unfollowed
    def _linear(self, module: nn.Module, args: Any, output: Any) -> None:
        x = args[0] if args else None
        if not isinstance(x, Tensor) or not isinstance(output, Tensor):
            return
        if not self.stream.is_running():
            return
        heads = self._open
        gate = None if heads is None else self._gates.gate_of(x)
        if (
            heads is not None
            and self._tell is not None
            and (gate is not None or _same(x, heads.call.z))
        ):
            heads.output, heads.gate, self._open = LinearCall(module, x, output), gate, None
            self._gates.leave()
            self.stream.heads(len(self.count.attending) - 1, module, output)
            self._tell(self.count.number, heads)
            return
        self._recent.append(LinearCall(module, x, output))
        self.stream.linear(module, x, output)

    def _end(self, _: nn.Module, __: Any, output: Any) -> None:
        if self.stream.is_running():
            self.last = last_of(output)

    def _remember(self, _: nn.Module, __: Any, *rest: Any) -> None:
        # hooks of other threads' runs may lack keywords
        if self.stream.is_running():
            self._memory = rest[0].get("encoder_hidden_states")


def _ignored(_: AttentionCall) -> None:
    """Heed no attention that goes through the interface."""


def _same(x: Tensor, z: Tensor) -> bool:
    """Return True if a module was given the heads' outputs, side by side."""
    if x.numel() != z.numel() or x.dtype != z.dtype:
        return False
    if storage_of(x) == storage_of(z) or torch.equal(x.reshape(-1), z.reshape(-1)):
        return True
    # rows of padding may be NaN, which isn't equal to itself
    return bool(z.isnan().any()) and torch.equal(*(y.nan_to_num().reshape(-1) for y in (x, z)))
