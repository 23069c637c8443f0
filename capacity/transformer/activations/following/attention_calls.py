"""Record every attention of a Hugging Face model, whatever its family.

Since version 5 ``transformers`` hands a layer's queries, keys, values, mask and scale to a
registered function. The one that is registered here calls the model's own eager code, so that soft
caps, sinks and biases of positions stay as they are, and reports what it saw. The choice of
function is in a configuration, which modules and models share; it is set while models run, and put
back.

What threads share is changed by the first who needs it, and put back by the last.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError

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
                change = _changes.setdefault((id(of), name), [of, getattr(of, name, None), 0])
                change[2] += 1
                mine.append(change)
                _set(of, name, value)
        yield
    finally:
        # an error in one doesn't keep the others from being undone, which ends before the lock does
        with _LOCK, ExitStack() as undone:
            for change in mine:
                change[2] -= 1
                of, before, needed = change
                if not needed:
                    del _changes[id(of), name]
                    undone.callback(_set, of, name, before)


def _set(of: Any, name: str, value: Any) -> None:
    # modules take long to set an attribute, and most have it
    if getattr(of, name, None) is not value:
        setattr(of, name, value)


_NAME = "capacity_recorded"
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
    """

    module: nn.Module
    q: Tensor
    k: Tensor
    v: Tensor
    pattern: Tensor
    z: Tensor
    scale: float
    mask: Tensor | None


_listener: ContextVar[Callable[[AttentionCall], None] | None] = ContextVar("listener", default=None)


# what a function makes of the outputs of a module's heads
Edit: TypeAlias = Callable[[nn.Module, Tensor], Tensor]
_edits: ContextVar[tuple[Edit, ...]] = ContextVar("edits", default=())


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


def is_edited(edit: Edit) -> bool:
    """Return whether this is in the context of an edit, and of its thread."""
    return edit in _edits.get()


@contextmanager
def _through_here(model: nn.Module) -> Iterator[None]:
    """Let the attention of a model call `_attend`."""
    _register()
    # the properties would change those of sub-configurations, too, which aren't all used
    choices = {"_attn_implementation_internal": _NAME}
    if any(p.dtype == torch.float64 for p in model.parameters()):
        # experts are multiplied together in lower precisions alone
        choices["_experts_implementation_internal"] = "eager"
    held = (getattr(module, "config", None) for module in model.modules())
    configs = {id(c): c for c in held if hasattr(c, "_attn_implementation_internal")}
    with ExitStack() as after:
        for name, choice in choices.items():
            after.enter_context(shared_change(configs.values(), name, choice))
        yield


def least_logit(mask: Tensor) -> float:
    """Largest number that a mask adds to logits of tokens that aren't to be attended to."""
    return _LEAST if mask.dtype == torch.float64 else float(torch.finfo(mask.dtype).min)


@cache
def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(_NAME, _attend)
    AttentionMaskInterface.register(_NAME, _mask)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **given: Any,
) -> tuple[Tensor, Tensor]:
    z, pattern = _eager(module)(module, query, key, value, attention_mask, **given)
    tell = _listener.get()
    if tell is not None:
        scale = given.get("scaling") or getattr(module, "scaling", None) or query.shape[-1] ** -0.5
        call = AttentionCall(module, query, key, value, pattern, z, float(scale), attention_mask)
        tell(call)
    for edit in _edits.get():
        z = edit(module, z)
    return z, pattern


def _mask(*args: Any, **kwargs: Any) -> Tensor | None:
    from transformers.masking_utils import eager_mask

    mask = eager_mask(*args, **kwargs)
    return mask if mask is None or mask.dtype != torch.float64 else mask.clamp_min(_LEAST)


def _eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    """The attention of the model's own code, in whose module its class or a base is defined."""
    for base in type(module).__mro__:
        own = getattr(sys.modules.get(base.__module__), "eager_attention_forward", None)
        if own is not None:
            return own
    raise InvalidArgumentError(
        f"A model's module must have an eager attention to call; that of {type(module).__name__} "
        "has none. Capture its patterns and values by hooks of your own, and give them to "
        "capacity.transformer.from_tensors."
    )
