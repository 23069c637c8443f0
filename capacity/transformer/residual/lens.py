"""The logit lens: which tokens a model would predict from the residual stream of each layer.

The stream after any layer is read as if it were the last (nostalgebraist 2020, "interpreting GPT:
the logit lens"): by the norm that follows the last layer, if there is one, with the scale of this
stream, and by the output head. Both are the model's own code, which runs with
layers that return what they are passed, and the last one the streams that are to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from capacity.checks import require_integer
from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.attention_calls import shared_change
from capacity.transformer.activations.following.modules import given_tensor, layers_of
from capacity.transformer.activations.models.families import body_of, unwrapped
from capacity.transformer.activations.records.cache import ActivationCache, Written
from capacity.transformer.activations.records.validation import SAME
from capacity.transformer.residual.choices import (
    one_for_each,
    positions_of,
)
from capacity.transformer.residual.partial_sums import output_head, replaced_forwards

if TYPE_CHECKING:
    import pandas as pd

# streams whose logits are in memory at a time, and those with which the reading is checked
_ROWS, _PROBES = 64, 4


@torch.no_grad()
def logit_lens(
    model: nn.Module,
    captured: ActivationCache,
    tokens: int | Sequence[int] | Int[Tensor, "batch"] | None = None,
    *,
    positions: int | Sequence[int] | Int[Tensor, "batch"] | None = None,
    top: int = 1,
) -> pd.DataFrame:
    """Compute what a model would predict from the residual stream of each stage.

    Parameters
    ----------
    model : nn.Module
        Model of ``transformers`` with a masked-LM or LM head.
    captured : ActivationCache
        Its activations on some sentences, by `capture`, with all layers and heads.
    tokens : int, or one for each sentence, optional
        Token whose logits are wanted; by default those with the largest ones.
    positions : int, or one for each sentence, optional
        Position whose prediction is wanted, counted with padding; by default all tokens.
    top : int
        Number of tokens for each stage and position, if none are named.

    Returns
    -------
    pandas.DataFrame
        One row for each sentence, stage, position and token, with columns ``sentence``, ``stage``,
        ``position``, ``token``, ``logit``, ``probability`` and ``rank`` (1 for the largest logit).
        Stage 0 is the stream before the first layer, stage l + 1 that after layer l.

    Raises
    ------
    InvalidArgumentError
        If the model has no output head; if the residual stream isn't known; if a token or a
        position doesn't exist; if the model's code after its last layer doesn't read streams alone.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> from capacity.transformer import capture
    >>> sizes = GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=50)
    >>> model, inputs = GPT2LMHeadModel(sizes).eval(), torch.tensor([[2, 7, 11, 3]])
    >>> lens = logit_lens(model, capture(model, inputs))
    >>> lens.groupby("stage").size().tolist()
    [4, 4, 4]
    >>> last = lens[lens["stage"] == 2]["token"].tolist()
    >>> last == model(inputs).logits[0].argmax(-1).tolist()
    True
    """
    model = unwrapped(model)
    captured.require_source(model)
    streams = torch.stack(list(captured.streams()))
    sentences, at = _places(captured, positions)
    head = output_head(model)
    read = _reading(model)
    _require_same_reading(read, head, captured)
    if tokens is not None:
        d_vocab = head(streams[-1][sentences[:1], at[:1]]).shape[-1]
        tokens = one_for_each("tokens", tokens, captured.mask, d_vocab)[sentences]
    top = require_integer("top", top)
    # the model runs once for each of these parts: stages are read together
    columns: list[tuple[Tensor, ...]] = []
    for of, stages in ((read, range(len(streams) - 1)), (head, [len(streams) - 1])):
        every = torch.tensor(stages, device=at.device)
        for stage, place in zip(*_pairs(every, len(at)), strict=True):
            sentence, position = sentences[place], at[place]
            logits = of(streams[stage, sentence, position])
            found = _found(logits, None if tokens is None else tokens[place], top)
            k = found[0].shape[1]
            wide = (x[:, None].expand(-1, k) for x in (stage, sentence, position))
            columns.append((*wide, *found))
    return _table(columns)


def _pairs(stages: Tensor, n: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """All pairs of a stage and one of n places, in parts whose logits fit into memory."""
    places = torch.arange(n, device=stages.device).repeat(len(stages))
    return stages.repeat_interleave(n).split(_ROWS), places.split(_ROWS)


def _places(captured: ActivationCache, given: Any) -> tuple[Tensor, Tensor]:
    """Sentences and positions of what is to be read."""
    if given is None:
        sentences, at = captured.mask.nonzero(as_tuple=True)
        return sentences, at
    at = positions_of(captured, given)
    return torch.arange(len(at), device=at.device), at


def _found(logits: Tensor, tokens: Tensor | None, top: int) -> tuple[Tensor, ...]:
    """Tokens, logits, probabilities and ranks, each of shape (rows, k)."""
    logits = logits.double()
    if tokens is None:
        values, chosen = logits.topk(min(top, logits.shape[-1]), dim=-1)
    else:
        chosen = tokens[:, None]
        values = logits.gather(1, chosen)
    rank = 1 + torch.stack([(logits > v[:, None]).sum(-1) for v in values.T], dim=1)
    return chosen, values, logits.softmax(-1).gather(1, chosen), rank


def _table(columns: list[tuple[Tensor, ...]]) -> pd.DataFrame:
    import pandas as pd

    names = ["stage", "sentence", "position", "token", "logit", "probability", "rank"]
    table = pd.DataFrame(
        {
            name: np.concatenate([x.cpu().numpy().reshape(-1) for x in parts])
            for name, parts in zip(names, zip(*columns, strict=True), strict=True)
        }
    )
    order = ["sentence", "stage", "position", *names[3:]]
    return table.sort_values(order[:3], kind="stable", ignore_index=True)[order]


def _reading(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Map from residual streams (m, d_model) to logits: the model's own code after its layers."""
    known: Any = model
    _, stack = body_of(model, None)
    layers = list(layers_of(stack))
    device = next(model.parameters()).device

    def run(n: int) -> Tensor:
        tokens = torch.zeros(n, 1, dtype=torch.int64, device=device)
        with shared_change(model.modules(), "training", value=False):
            return known(input_ids=tokens, return_dict=True, use_cache=False).logits

    outputs: list[Any] = []
    with ExitStack() as hooks:
        for layer in layers:
            hook = layer.register_forward_hook(lambda _, __, output: outputs.append(output))
            hooks.callback(hook.remove)
        run(1)

    def read(streams: Tensor) -> Tensor:
        forwards = dict.fromkeys(layers, _passing(outputs, streams[:, None]))
        with replaced_forwards(forwards):
            return run(len(streams)).reshape(len(streams), -1)

    return read


def _passing(outputs: Sequence[Any], last: Tensor) -> Callable[..., Any]:
    """Forward of layers that return what they get, and of the last one: other streams.

    Some models call a layer more than once, and some layers return more than the stream: `outputs`
    are those of all calls.
    """
    left = list(outputs)

    def forward(*args: Any, **kwargs: Any) -> Any:
        output = left.pop(0)
        stream = given_tensor(args, kwargs) if left else last
        return stream if isinstance(output, Tensor) else (stream, *output[1:])

    return forward


def _require_same_reading(
    read: Callable[[Tensor], Tensor], head: Callable[[Tensor], Tensor], captured: ActivationCache
) -> None:
    """Refuse a model whose last stream isn't read as the model itself reads it."""
    places = captured.mask.nonzero(as_tuple=True)
    some = tuple(x[:_PROBES] for x in places)
    *_, last = captured.streams()
    expected = head(last[some])
    size = float(expected.abs().max())
    wrote = [i for i, step in enumerate(captured.steps) if isinstance(step, Written)]
    # the last layer ends after its last sum, or after a norm or a factor that follow that
    for end in range(wrote[-1] + 1, len(captured.steps) + 1):
        cut = replace(captured, steps=captured.steps[:end], last=None)
        *_, stream = cut.streams()
        if float((read(stream[some]) - expected).abs().max()) <= SAME * size:
            return
    raise InvalidArgumentError(
        "A logit lens reads residual streams by the code after the last layer of a model; that of "
        f"{captured.source} reads something else as well. Use logit_attribution or decompose."
    )
