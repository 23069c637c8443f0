"""Record every attention of a Hugging Face model, whatever its family.

Since version 5 ``transformers`` hands a layer's queries, keys, values, mask and scale to the
function that its ``AttentionInterface`` returns for a name. The choice of a name is in a
configuration, which modules and models share. While models run here, the name is ``eager``, as some
models compute another attention under names that they don't have; and what the interface returns
for it calls the model's own eager code, so that soft caps, sinks and biases of positions stay as
they are, and passes on what it saw.

What threads share is changed by the first who needs it, and put back by the last.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from threading import Lock
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.modules import modules_of, weights_of

_LOCK = Lock()
# by object and attribute: the object, what the attribute was, and how many need the change
_changes: dict[tuple[int, str], list[Any]] = {}


@contextmanager
def shared_change(objects: Iterable[Any], name: str, value: Any) -> Iterator[None]:
    """Set an attribute in this context, in which all that is set at a time must be the same.

    Parameters
    ----------
    objects : iterable
        Objects that other threads may use.
    name : str
        Attribute; where it is missing, it counts as None, and is None afterwards if it was set.
    value : object
        Its value in the context.

    Examples
    --------
    >>> class Config:
    ...     attention = "sdpa"
    >>> config = Config()
    >>> with shared_change([config], "attention", "eager"):
    ...     with shared_change([config], "attention", "eager"):
    ...         config.attention
    'eager'
    >>> config.attention
    'sdpa'
    """
    mine: list[list[Any]] = []
    try:
        with _LOCK:
            for of in objects:
                change, before = _changes.get((id(of), name)), getattr(of, name, None)
                if change is None:
                    # most modules of a model have the value, and nobody is to put another one back
                    if before is value:
                        continue
                    change = _changes[id(of), name] = [of, before, 0]
                change[2] += 1
                mine.append(change)
                # modules take long to set an attribute
                if before is not value:
                    setattr(of, name, value)
        yield
    finally:
        # an error in one doesn't keep the others from being undone, which ends before the lock does
        with _LOCK, ExitStack() as undone:
            for change in mine:
                change[2] -= 1
                of, before, needed = change
                if not needed:
                    del _changes[id(of), name]
                    undone.callback(setattr, of, name, before)


_NAME = "eager"
# what masks have been made of already, and what is about training or caches: other keywords, which
# the eager code doesn't name, may be for a kernel that computes another attention
_FOR_KERNELS = {
    "is_causal", "sliding_window", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k",
    "position_ids", "cache_position", "past_key_values", "use_cache", "seq_idx", "deterministic",
    "output_attentions", "output_hidden_states", "output_router_logits", "return_dict",
    "num_items_in_batch", "s_aux",
}  # fmt: skip
# some models take the softmax in float32, whatever they compute in: a mask of float64 must fit
_LEAST = torch.finfo(torch.float32).min / 2


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """Arguments and results of one call of a model's attention.

    Attributes
    ----------
    module : nn.Module
        The module that attends.
    q, k, v : (batch, n_heads or n_groups, n, d_head)
        Queries, keys and values as they were given.
    pattern : (batch, n_heads, n, n)
        Attention.
    z : (batch, n, n_heads, d_head_vo)
        Outputs of the heads.
    scale : float
        Factor of the logits.
    mask : Tensor or None
        What was added to the logits.
    has_sink : bool
        Whether rows may have a weight on a sink.
    made : Tensor or None
        The values before a bias was added to them that isn't their linear module's; None: as they
        are.
    shift : (n_groups, d_head_vo) or None
        That bias.
    """

    module: nn.Module
    q: Tensor
    k: Tensor
    v: Tensor
    pattern: Tensor
    z: Tensor
    scale: float
    mask: Tensor | None
    has_sink: bool
    made: Tensor | None = None
    shift: Tensor | None = None


_listener: ContextVar[Callable[[AttentionCall], None] | None] = ContextVar("listener", default=None)


# what a function makes of the outputs of a module's heads
Edit: TypeAlias = Callable[[nn.Module, Tensor], Tensor]
_edits: ContextVar[tuple[Edit, ...]] = ContextVar("edits", default=())
# whether masks are made to fit float32, and nothing else is done
_fits: ContextVar[bool] = ContextVar("fits", default=False)


@contextmanager
def heard_attention(model: nn.Module, tell: Callable[[AttentionCall], None]) -> Iterator[None]:
    """Call a function with each attention that the model computes in this context.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers``, with any implementation of attention.
    tell : callable
        Called after each attention; those of other threads aren't reported.
    """
    with _through_here(model), ExitStack() as after:
        after.callback(_listener.reset, _listener.set(tell))
        yield


@contextmanager
def edited_heads(model: nn.Module, edit: Edit) -> Iterator[None]:
    """Replace the outputs of the heads of each attention that the model computes in this context.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers``, with any implementation of attention.
    edit : callable
        Function of the module that attends and the outputs, shape (batch, n, n_heads, d_head_vo);
        those of other threads stay as they are.
    """
    with _through_here(model), ExitStack() as after:
        after.callback(_edits.reset, _edits.set((*_edits.get(), edit)))
        yield


def is_edited(edit: Edit | None = None) -> bool:
    """Return whether this is in the context of an edit, or of any, and of its thread."""
    return bool(_edits.get()) if edit is None else edit in _edits.get()


@contextmanager
def _through_here(model: nn.Module) -> Iterator[None]:
    """Let the attention of a model call `_attend`."""
    with _watched(), _choices(model, _attn_implementation_internal=_NAME):
        yield


@contextmanager
def fitting_precision(model: nn.Module, implementation: str | None) -> Iterator[None]:
    """Run a model under its own names, in float64 with what can't compute in it replaced.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers``.
    implementation : str or None
        Name of its attention in this context; None for its own.
    """
    choice = {} if implementation is None else {"_attn_implementation_internal": implementation}
    with _watched(), _choices(model, **choice), ExitStack() as after:
        after.callback(_fits.reset, _fits.set(True))
        yield


@contextmanager
def _choices(model: nn.Module, **choices: str) -> Iterator[None]:
    if any(p.dtype == torch.float64 for p in weights_of(model)):
        # experts are multiplied together in lower precisions alone
        choices["_experts_implementation_internal"] = "eager"
    # the properties would change those of sub-configurations, too, which aren't all used
    configs = _configs(model)
    with ExitStack() as after:
        for attribute, choice in choices.items():
            after.enter_context(shared_change(configs, attribute, choice))
        yield


def implementations(model: nn.Module) -> set[str | None]:
    """Names of the attention that a model and its modules have been loaded with."""
    return {config._attn_implementation_internal for config in _configs(model)}


def _configs(model: nn.Module) -> list[Any]:
    # modules take long to find that they lack an attribute
    having = (m for m in modules_of(model) if "config" in vars(m) or hasattr(type(m), "config"))
    held = (getattr(module, "config", None) for module in having)
    return [*{id(c): c for c in held if hasattr(c, "_attn_implementation_internal")}.values()]


def least_logit(mask: Tensor) -> float:
    """Largest number that a mask adds to logits of tokens that aren't to be attended to."""
    return _LEAST if mask.dtype == torch.float64 else float(torch.finfo(mask.dtype).min)


def _watched() -> AbstractContextManager[None]:
    """Let the interface return functions from here, in contexts that listen or edit."""
    from transformers import AttentionInterface

    return shared_change([AttentionInterface], "get_interface", _interface())


@cache
def _interface() -> Callable[..., Any]:
    from transformers import AttentionInterface

    own = AttentionInterface.get_interface

    def get_interface(self: Any, attn_implementation: str, default: Callable[..., Any]) -> Any:
        function = own(self, attn_implementation, default)
        if (_listener.get() is not None or _edits.get()) and attn_implementation == _NAME:
            return partial(_attend, function)
        return partial(_fitted, function) if _fits.get() else function

    return get_interface


def _fitted(
    function: Callable[..., Any],
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **given: Any,
) -> Any:
    """Call an attention with a mask whose numbers float32 has, too."""
    if attention_mask is not None and attention_mask.dtype == torch.float64:
        attention_mask = attention_mask.clamp_min(_LEAST)
    return function(module, query, key, value, attention_mask, **given)


def _attend(
    eager: Callable[..., tuple[Tensor, Tensor]],
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **given: Any,
) -> tuple[Tensor, Tensor]:
    _require_read(module, eager, given)
    z, pattern = _fitted(eager, module, query, key, value, attention_mask, **given)
    tell = _listener.get()
    if tell is not None:
        scale = given.get("scaling") or getattr(module, "scaling", None) or query.shape[-1] ** -0.5
        has_sink = hasattr(module, "sinks") or given.get("sinks") is not None
        tell(AttentionCall(module, query, key, value, pattern, z, float(scale), attention_mask,
                           has_sink))  # fmt: skip
    for edit in _edits.get():
        z = edit(module, z)
    return z, pattern


def _require_read(module: nn.Module, eager: Callable[..., Any], given: dict[str, Any]) -> None:
    known = _FOR_KERNELS | _named_by(eager)
    odd = [name for name, x in given.items() if x is not None and x is not False]
    odd = [name for name in odd if name not in known]
    if odd:
        names = ", ".join(f"`{name}`" for name in odd)
        raise InvalidArgumentError(
            "Arguments of an attention must be read by the model's eager code, which is recorded; "
            f"that of {type(module).__name__} doesn't read {names}, by which another "
            "implementation may compute something else. Capture patterns and values by hooks of "
            "your own, and pass them to capacity.transformer.from_tensors."
        )


@cache
def _named_by(eager: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(eager).parameters)
