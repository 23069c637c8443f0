"""Compare the run of a model that was recorded with a run of the model as it is.

While a model is recorded its attention goes by the name ``eager``. Some models compute something
else under another name (DeepSeek-V3.2 is sparse under two names, and dense under all others), and
heads that average values by their attention don't show it: only the model itself does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.attention_calls import (
    fitting_precision,
    implementations,
)
from capacity.transformer.activations.following.modules import has_hooks, last_of
from capacity.transformer.activations.records.validation import SAME, Check, apart

# implementations without kernels, which run wherever the eager one does
_PLAIN = {"eager", "sdpa", None}
# by stack of layers: the most tokens at which each kind of run has been compared
_compared: WeakKeyDictionary[nn.Module, dict[Any, int]] = WeakKeyDictionary()


@contextmanager
def same_random_numbers(device: torch.device, state: Tensor) -> Iterator[None]:
    """Draw from a state of a device's generator in this context, and from its own after it."""
    generator = generator_of(device)
    before = generator.get_state()
    generator.set_state(state)
    try:
        yield
    finally:
        generator.set_state(before)


def generator_of(device: torch.device) -> torch.Generator:
    """Generator from which modules on a device draw."""
    if device.type != "cuda":
        return torch.default_generator
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]


def require_same_model(
    body: nn.Module,
    stack: nn.Module,
    given: Mapping[str, Any],
    last: Tensor,
    mask: Bool[Tensor, "batch n"],
    state: Tensor,
    source: str,
    how: Check,
) -> None:
    """Run a model as it is, and compare its last embeddings with those of the recorded run.

    Parameters
    ----------
    body, stack : nn.Module
        The model, and its part whose layers were recorded.
    given : mapping
        Inputs of the model.
    last : Tensor
        Last embeddings of the stack in the recorded run.
    mask : (batch, n) bool
        True for tokens.
    state : Tensor
        State of the device's generator before that run, so that what is drawn is the same.
    source : str
        Name of the model, for messages.
    how : {"random", "full"}
        ``full`` runs all sentences; ``random`` the first one, and not again for a model that has
        been compared at this length or a larger one.

    Raises
    ------
    InvalidArgumentError
        If the embeddings differ by more than rounding.
    """
    names = implementations(body)
    kind = (tuple(sorted(given)), frozenset(names), last.dtype)
    before = _compared.setdefault(stack, {})
    n_tokens = last.numel() // last.shape[-1]
    if n_tokens != mask.numel():
        # a stack may put tokens together before its layers, and apart after them
        mask = torch.ones(len(mask), n_tokens // len(mask), dtype=torch.bool, device=last.device)
    last = last.reshape(*mask.shape, -1)
    if how == "random" and mask.shape[1] <= before.get(kind, 0):
        return
    # kernels have precisions and devices of their own
    under = None if names <= _PLAIN else "sdpa"

    def off(rows: slice) -> float:
        some = {k: x[rows] if isinstance(x, Tensor) else x for k, x in given.items()}
        with same_random_numbers(last.device, state), fitting_precision(body, under):
            own = _last_embeddings(body, stack, some)
        return apart(last[rows], own.reshape(*mask[rows].shape, -1), mask[rows])

    whole = slice(None)
    alone = all(len(x) == len(mask) for x in given.values() if isinstance(x, Tensor))
    # hooks may be made for the whole batch
    alone = alone and how == "random" and not has_hooks(body)
    rows = [slice(0, 1), whole] if alone and len(mask) > 1 else [whole]
    # what one sentence is may depend on the others: on places at experts, on numbers that are drawn
    if not any((found := off(some)) <= SAME for some in rows):
        used = ", ".join(repr(name) for name in sorted(map(str, names)))
        raise InvalidArgumentError(
            f"What is recorded must be the model as it is; last embeddings of {source} differ by "
            f"{found:.1g} of their size if its attention is recorded under the name 'eager' in "
            f"place of {used}. Its code computes something else under another name, or draws "
            "random numbers of its own. If the eager attention is the one that is meant, load the "
            "model with it: from_pretrained(..., attn_implementation='eager')."
        )
    before[kind] = mask.shape[1]


def _last_embeddings(body: nn.Module, stack: nn.Module, given: Mapping[str, Any]) -> Tensor:
    found: list[Tensor] = []
    thread = get_ident()

    def keep(_: nn.Module, __: Any, output: Any) -> None:
        if get_ident() == thread:
            found.append(last_of(output))

    hook = stack.register_forward_hook(keep)
    try:
        body(**given)
    finally:
        hook.remove()
    return found[-1]
