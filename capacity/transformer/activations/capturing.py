"""`capture`: record the activations of a pretrained transformer on some sentences.

The activations are the model's own: they are recorded while it runs, and checked, not recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from queue import Queue
from threading import Semaphore, Thread
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from capacity.checks import require_integer
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.modules import walked_once
from capacity.transformer.activations.models.families import Part, unwrapped
from capacity.transformer.activations.models.inputs import named, require_only
from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.validation import Check, require_within
from capacity.transformer.activations.running import Plan, Run

T = TypeVar("T")


class _StoppedError(BaseException):
    """Raised in the function when nobody waits for more values."""


def handed_over(run: Callable[[Callable[[T], None]], None]) -> Iterator[T]:
    """Yield what a function hands over, one by one.

    Parameters
    ----------
    run : callable
        Called with a function ``hand``, in a thread of its own; ``hand(value)`` returns when the
        next value is asked for, and raises an exception when the iterator is closed.

    Examples
    --------
    >>> list(handed_over(lambda hand: [hand(i) for i in range(3)]))
    [0, 1, 2]
    """
    ready: Queue[tuple[bool, Any]] = Queue()
    wanted = Semaphore(0)
    closed: list[bool] = []

    def hand(value: T) -> None:
        ready.put((True, value))
        # this reference would keep it in memory
        del value
        wanted.acquire()
        if closed:
            raise _StoppedError

    def work() -> None:
        try:
            run(hand)
        except BaseException as error:
            ready.put((False, error))
        else:
            ready.put((False, None))

    thread = Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        while True:
            more, value = ready.get()
            if not more:
                if value is not None:
                    raise value
                return
            yield value
            del value
            wanted.release()
    finally:
        closed.append(True)
        wanted.release()
        thread.join()


@torch.no_grad()
def capture(
    model: nn.Module,
    inputs: Mapping[str, Any] | Tensor,
    *,
    part: Part | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    check: Check = "random",
) -> ActivationCache:
    """Run a model on sentences, and record its heads and the steps of its residual stream.

    Parameters
    ----------
    model : nn.Module
        A model of Hugging Face's ``transformers``, of any family whose attention goes through its
        ``AttentionInterface`` and with any head on top; or a module with a method ``capture`` of
        its own, such as `AttentionLayer` and `EncoderClassifier`. It is run in eval mode, and its
        own mode is restored.
    inputs : mapping, or integer tensor of shape (batch, n)
        Outputs of a tokenizer or a processor, as tensors (``return_tensors="pt"``), or token ids
        alone. Padding, on either side, is given by ``attention_mask``; positions are counted from a
        sentence's first token unless there are ``position_ids``.
    part : {"encoder", "decoder", "cross"}, optional
        Which attention of an encoder-decoder is meant: that of its encoder, that of its decoder to
        what it has read, or that of its decoder to the encoder's embeddings.
    layers, heads : sequences of int, optional
        Layers and heads to keep, counted from 0, which saves memory; by default all. The residual
        stream, which decompositions need, is recorded only with all of both.
    check : {"random", "full"}
        Whether heads are checked against random vectors, or entry by entry, which takes longer.
        Last embeddings are compared with those of a run that isn't recorded: with ``random`` once
        for a model, of the first sentence, and again for a longer one; with ``full`` each time, of
        all sentences.

    Returns
    -------
    ActivationCache
        Activations on the model's device, without gradients.

    Raises
    ------
    InvalidArgumentError
        If no attention of the model goes through the interface; if it is wrapped in adapters,
        quantized or offloaded; if a sentence has more tokens than the model has positions, padding
        alone, or tokens outside the vocabulary; if heads do anything but average values; if the
        model computes something else when it isn't recorded.
    MemoryBudgetError
        If the attention of the layers and heads that are kept would take more than 2 GiB.

    Warns
    -----
    PrecisionWarning
        If the model is in half precision: a copy of it in float32 is run instead.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel
    >>> sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, vocab_size=50,
    ...              intermediate_size=32)
    >>> captured = capture(BertModel(BertConfig(**sizes)), torch.tensor([[2, 7, 11, 3]]))
    >>> len(captured.layers), captured.layers[0].pattern.shape
    (2, torch.Size([1, 4, 4, 4]))
    """
    plan = Plan(part, _numbers("layers", layers), _numbers("heads", heads), check)
    kept: list[LayerActivations] = []
    with _ready(model, inputs) as (ready, given):
        own: Any = getattr(ready, "capture", None)
        if own is not None:
            require_only(given, ("input_ids", "attention_mask"), type(ready).__name__)
            found = own(given["input_ids"], mask=given.get("attention_mask"))
            return _chosen_of(found, plan)
        run = Run(ready, given, plan, lambda _, layer: kept.append(layer))
        run.run()
        return run.cache(kept)


def capture_layers(
    model: nn.Module,
    inputs: Mapping[str, Any] | Tensor,
    *,
    part: Part | None = None,
    heads: Sequence[int] | None = None,
    check: Check = "random",
) -> Iterator[ActivationCache]:
    """Run a model on sentences, and yield its layers one by one, for sentences that are long.

    The model continues when the next layer is asked for, so that one layer at a time is in memory.

    Parameters
    ----------
    model : nn.Module
        As for `capture`.
    inputs : mapping, or integer tensor of shape (batch, n)
        As for `capture`.
    part : {"encoder", "decoder", "cross"}, optional
        As for `capture`.
    heads : sequence of int, optional
        Heads to keep, counted from 0; by default all.
    check : {"random", "full"}
        As for `capture`.

    Yields
    ------
    ActivationCache
        One layer, without a residual stream; ``layer_numbers`` has its index.

    Raises
    ------
    InvalidArgumentError
        As `capture`.
    MemoryBudgetError
        If the attention of one layer would take more than 2 GiB.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel
    >>> sizes = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, vocab_size=50,
    ...              intermediate_size=32)
    >>> model, tokens = BertModel(BertConfig(**sizes)), torch.tensor([[2, 7, 11, 3]])
    >>> [one.layer_numbers for one in capture_layers(model, tokens)]
    [(0,), (1,)]
    """
    plan = Plan(part, None, _numbers("heads", heads), check, one_by_one=True)

    @torch.no_grad()
    def run_all(hand: Callable[[ActivationCache], None]) -> None:
        with _ready(model, inputs) as (ready, given):
            own: Any = getattr(ready, "capture", None)
            if own is not None:
                for index in range(capture(ready, given).n_layers):
                    hand(capture(ready, given, layers=[index], heads=heads))
                return

            def give(index: int, layer: LayerActivations) -> None:
                hand(replace(run.cache([layer]), chosen=((index,), plan.heads)))

            run = Run(ready, given, plan, give)
            run.run()

    yield from handed_over(run_all)


def _numbers(name: str, given: Sequence[int] | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    numbers = tuple(require_integer(name, one, least=0) for one in given)
    if not numbers or sorted(set(numbers)) != list(numbers):
        raise InvalidArgumentError(
            f"`{name}` must be indices from 0, ascending and without repetition; got "
            f"{list(given)!s:.60}."
        )
    return numbers


def _chosen_of(found: ActivationCache, plan: Plan) -> ActivationCache:
    """Cut a cache of a model's own down to what is asked for."""
    if plan.layers is None and plan.heads is None:
        return found
    require_within("layers", plan.layers, found.n_layers)
    layers = tuple(found.layers[i] for i in plan.layers or range(found.n_layers))
    if plan.heads is not None:
        require_within("heads", plan.heads, layers[0].v.shape[1])
        layers = tuple(layer.of_heads(plan.heads) for layer in layers)
    return replace(found, layers=layers, steps=(), chosen=(plan.layers, plan.heads))


@contextmanager
def _ready(
    model: nn.Module, inputs: Mapping[str, Any] | Tensor
) -> Iterator[tuple[nn.Module, dict[str, Any]]]:
    """The model itself, and its inputs on its device, in a context for recording."""
    given = named(inputs)
    model = unwrapped(model)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    # autocast would compute in another dtype than that of the weights, and compiled code hides
    # what it computes
    eager = torch.compiler.set_stance("force_eager")
    with torch.autocast(device.type, enabled=False), eager, walked_once():
        yield model, {k: x.to(device) if isinstance(x, Tensor) else x for k, x in given.items()}
