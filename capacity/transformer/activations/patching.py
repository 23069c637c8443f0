"""Activation patching: a run of a model with activations of another run in place of its own.

A model reads one sentence, and what some heads write, or the residual stream at some tokens, is
what it was for another sentence. How far the prediction moves to that of the other sentence shows
what the activations decide (Vig et al. 2020; Meng et al. 2022, "Locating and Editing Factual
Associations in GPT", whose causal tracing it is, with the roles of the two sentences chosen).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.transformer.activations.ablation import chosen_heads
from capacity.transformer.activations.editing import Edits, Instead, edited
from capacity.transformer.activations.models.families import Part
from capacity.transformer.activations.records.cache import ActivationCache


@contextmanager
def patched(
    model: nn.Module,
    source: ActivationCache,
    *,
    heads: Iterable[tuple[int, int]] = (),
    layers: Iterable[int] = (),
    positions: int | Sequence[int] | None = None,
    part: Part | None = None,
) -> Iterator[nn.Module]:
    """Run a model with some activations of another run in place of its own, in a context.

    The model is changed nowhere; its calls in this context, of this thread, are patched. Contexts
    can be nested.

    Parameters
    ----------
    model : nn.Module
        A model of Hugging Face's ``transformers``, with any head on top.
    source : ActivationCache
        Activations of the same model, by `capture`, on as many sentences of as many tokens as the
        model is to read.
    heads : iterable of (int, int)
        Layer and head, counted from 0, of each head whose output z is replaced; a gate, which
        multiplies z, stays that of the run.
    layers : iterable of int
        Layers, counted from 0, that read the residual stream of the source. Without `positions`
        nothing of the sentence itself reaches the output by then.
    positions : int or sequence of int, optional
        Tokens at which this is done, the same in each sentence, counted with padding; by default
        all.
    part : {"encoder"}, optional
        Which stack of an encoder-decoder is meant; its decoder isn't patched.

    Yields
    ------
    nn.Module
        The model.

    Raises
    ------
    InvalidArgumentError
        If nothing is to be replaced; if the source is of another model, or has no such layer, head
        or token; if the model reads sentences of another shape.
    InvalidTypeError
        If the source isn't an `ActivationCache`.

    Examples
    --------
    >>> import torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> from capacity.transformer import capture
    >>> sizes = GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=50)
    >>> model, tokens = GPT2LMHeadModel(sizes).eval(), torch.tensor([[2, 7, 11, 3]])
    >>> other = torch.tensor([[2, 8, 11, 3]])
    >>> with patched(model, capture(model, other), layers=[1]):
    ...     logits = model(tokens).logits
    >>> torch.allclose(logits, model(other).logits, atol=1e-6)
    True
    """
    if part not in (None, "encoder"):
        raise InvalidArgumentError(
            f"`part` must be 'encoder', or omitted for a model of one stack; got {part!r}."
        )
    if not isinstance(source, ActivationCache):
        raise InvalidTypeError(
            "`source` of `patched` must be an ActivationCache, as `capture` returns; got "
            f"{shown(source)}."
        )
    source.require_source(model)
    n = source.mask.shape[1]
    at = None if positions is None else _positions(positions, n)
    edits = Edits(_of_heads(source, heads), _of_streams(source, layers), at)
    if not edits.heads and not edits.streams:
        raise InvalidArgumentError(
            "`heads` or `layers` must name what is replaced; got neither. Pass pairs of a layer "
            "and a head, such as heads=[(0, 3)], or layers=[5]."
        )
    with edited(model, edits, part):
        yield model


def _positions(given: int | Sequence[int], n: int) -> list[int]:
    several = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    found = [require_integer("positions", one, least=0, most=n - 1) for one in several]
    if not found:
        raise InvalidArgumentError("`positions` must name a token; got none. Omit it for all.")
    return sorted(set(found))


def _of_heads(
    source: ActivationCache, heads: Iterable[tuple[int, int]]
) -> dict[int, dict[int, Instead]]:
    """Outputs of heads at their numbers in the model."""
    chosen = chosen_heads(heads)
    for layer, replaced in chosen.items():
        _require_among("layers", layer, source.layer_numbers)
        z = source.layers[source.layer_numbers.index(layer)].z
        for head in replaced:
            _require_among(f"heads of layer {layer}", head, source.head_numbers)
            replaced[head] = z[:, source.head_numbers.index(head)]
    return chosen


def _of_streams(source: ActivationCache, layers: Iterable[int]) -> dict[int, Tensor]:
    wanted = {require_integer("layers", layer, least=0) for layer in layers}
    if not wanted:
        return {}
    *streams, _ = source.streams()
    for layer in wanted:
        _require_among("layers", layer, range(len(streams)))
    return {layer: streams[layer] for layer in wanted}


def _require_among(what: str, number: int, known: Sequence[int]) -> None:
    if number not in known:
        those = ", ".join(map(str, known))
        raise InvalidArgumentError(
            f"`source` must have the activations that are asked for; its {what} are {those}, and "
            f"{number} isn't among them. Capture with it."
        )
