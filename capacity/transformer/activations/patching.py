"""Runs of a model with heads removed, or with activations of another run in their place.

A model reads one sentence, and what some heads write, or the residual stream at some tokens, is
what it was for another sentence. How far the prediction moves to that of the other sentence shows
what the activations decide (Vig et al. 2020; Meng et al. 2022, "Locating and Editing Factual
Associations in GPT", whose causal tracing it is, with the roles of the two sentences chosen).

Heads are numbered as `capture` numbers them, and reached in the same way: through the function that
``transformers`` hands queries, keys and values to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.transformer.activations.capturing import capture
from capacity.transformer.activations.editing import Edits, Instead, edited, require_head
from capacity.transformer.activations.models.families import Part, body_of
from capacity.transformer.activations.records.cache import ActivationCache

# by layer and head, what it writes in place of its own
_Written = dict[int, dict[int, Instead]]


@contextmanager
def ablated(
    model: nn.Module,
    heads: Iterable[tuple[int, int]],
    *,
    mean_over: Mapping[str, Any] | Tensor | None = None,
    resample_from: Mapping[str, Any] | Tensor | None = None,
    part: Part | None = None,
) -> Iterator[nn.Module]:
    """Run a model without what some of its heads write, in a context.

    The model is changed nowhere; its calls in this context, of this thread, lack the heads, as do
    gradients and what it generates. `capacity.layer.ablate` copies an `AttentionLayer` without
    heads.

    Parameters
    ----------
    model : nn.Module
        A model of Hugging Face's ``transformers`` whose attention goes through its
        ``AttentionInterface``, with any head on top.
    heads : iterable of (int, int)
        Layer and head, counted from 0, of each head to ablate.
    mean_over : mapping, or integer tensor of shape (batch, n), optional
        Sentences, as `capture` has them. The heads then write the mean of what they write at all
        tokens of these, in place of nothing. Of heads with a gate it is the mean of ``gate * z``,
        which W_O reads in place of that of the run.
    resample_from : mapping, or integer tensor of shape (batch, n), optional
        Other sentences, as many and as long as those that the model is to read. The heads then
        write at each token what they write at the same place of these, with the gate of these.
    part : {"encoder"}, optional
        Which attention of an encoder-decoder is meant; that of decoders isn't ablated.

    Yields
    ------
    nn.Module
        The model.

    Raises
    ------
    InvalidArgumentError
        If there is no such layer or head, which is known of layers once the model has run; if no
        attention of the model goes through the interface, or it is that of a decoder which reads an
        encoder.

    Examples
    --------
    >>> import torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> sizes = GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=50)
    >>> model, tokens = GPT2LMHeadModel(sizes).eval(), torch.tensor([[2, 7, 11, 3]])
    >>> before = model(tokens).logits
    >>> with ablated(model, [(0, 1), (1, 3)]):
    ...     bool((model(tokens).logits == before).all())
    False
    >>> bool((model(tokens).logits == before).all())
    True
    """
    written = chosen_heads(heads)
    if not written:
        raise InvalidArgumentError("`heads` must have a pair of a layer and a head; got none.")
    if part not in (None, "encoder"):
        raise InvalidArgumentError(
            "The heads of an encoder, or of a model of one stack, are ablated; got `part` "
            f"{shown(part)}. Set rows of the decoder's output weights to 0 for its heads."
        )
    running: Any = getattr(model, "_orig_mod", model)
    body_of(running, part)
    if mean_over is not None and resample_from is not None:
        raise InvalidArgumentError(
            "Heads must write either a mean or what they write elsewhere; got both `mean_over` and "
            "`resample_from`. Pass one of them."
        )
    over = resample_from if mean_over is None else mean_over
    edits = Edits(written)
    if over is not None:
        edits = _written_over(written, running, over, part, as_mean=mean_over is not None)
    with edited(model, edits, part):
        yield model


def chosen_heads(heads: Iterable[tuple[int, int]]) -> dict[int, dict[int, Instead]]:
    """Return pairs of a layer and a head by layer; what a head writes is None.

    Raises
    ------
    InvalidArgumentError
        For anything but such pairs.
    """
    written: _Written = {}
    for pair in heads if isinstance(heads, Iterable) else [heads]:
        if not isinstance(pair, Iterable) or isinstance(pair, str) or len(both := [*pair]) != 2:
            raise InvalidArgumentError(
                "`heads` must be pairs of a layer and a head, such as [(0, 3)]; got "
                f"{shown(heads)}."
            )
        layer, head = (require_integer("heads", one, least=0) for one in both)
        written.setdefault(layer, {})[head] = None
    return written


def _written_over(
    written: _Written, model: nn.Module, over: Any, part: Part | None, *, as_mean: bool
) -> Edits:
    """Compute what heads write over sentences, or its mean, in place of their own."""
    captured = capture(model, over, part=part, layers=sorted(written))
    padding, n_tokens = ~captured.mask[:, None, :, None], captured.mask.sum()
    gated: _Written = {}
    for number, layer in zip(sorted(written), captured.layers, strict=True):
        # a gate may be any number at padding
        wrote = layer.gated.masked_fill(padding, 0.0)
        for head in written[number]:
            require_head(number, head, wrote.shape[1])
            z = wrote[:, head]
            written[number][head] = z.sum((0, 1)) / n_tokens if as_mean else z
        if layer.gate is not None:
            gated[number] = written.pop(number)
    return Edits(written, gated=gated)


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
