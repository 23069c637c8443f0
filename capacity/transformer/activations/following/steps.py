"""Steps of the residual stream, from the operations that were followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.following.modules import bias_of, weight_of
from capacity.transformer.activations.following.operations import (
    Leaf,
    MapOf,
    Multiple,
    Node,
    NormOf,
    Start,
    Sum,
)
from capacity.transformer.activations.following.stream import StreamFollower
from capacity.transformer.activations.records.cache import (
    Mapped,
    Scaled,
    Step,
    Written,
    written_by_heads,
)
from capacity.transformer.activations.records.heads import LayerActivations

# attention layers with their indices
Numbered: TypeAlias = Sequence[tuple[int, LayerActivations]]


def steps_of(
    last: Tensor,
    follower: StreamFollower,
    layers: Sequence[LayerActivations],
    numbers: Sequence[int],
    source: str,
    *,
    hooked: bool,
) -> tuple[Tensor, tuple[Step, ...]]:
    """Initial stream of a model, and the steps from it to the last embeddings.

    Parameters
    ----------
    last : (batch, n, d_model)
        Last embeddings.
    follower : StreamFollower
        What was seen on the way.
    layers : sequence of LayerActivations
        Attention layers, in the order of their calls.
    numbers : sequence of int
        Their indices among all layers.
    source : str
        Name of the model, for messages.
    hooked : bool
        Whether others have registered hooks on the model, which may be the reason.

    Raises
    ------
    InvalidArgumentError
        If the stream can't be followed.
    """
    try:
        return _steps_of(last, follower, layers, numbers, source)
    except _NoSumError as why:
        way = "Remove hooks that change activations, or use" if hooked else "Use"
        raise InvalidArgumentError(
            f"The residual stream must be a sum of what sublayers write; {why}. {way} "
            "effective_attention and identifiability_table, which don't need it."
        ) from None


def _steps_of(
    last: Tensor,
    follower: StreamFollower,
    layers: Sequence[LayerActivations],
    numbers: Sequence[int],
    source: str,
) -> tuple[Tensor, tuple[Step, ...]]:
    spoilt = follower.probes.spoilt
    if spoilt is not None:
        _fail(f"{spoilt} of {source} it is written over in a way that isn't followed")
    if (odd := follower.norms.unfitting()) is not None:
        _fail(f"in layer {odd} of {source} a norm isn't the one that others of its class are")
    n_last = last.numel() // last.shape[-1]
    n_first = n_last if follower.start is None else follower.start.value.shape[:-1].numel()
    if n_last != n_first:
        raise InvalidArgumentError(
            f"The residual stream must be of the same tokens throughout; that of {source} has "
            f"{n_first} in its layers, and {n_last} last embeddings. Use effective_attention and "
            "identifiability_table, which don't need it."
        )
    numbered = list(zip(numbers, layers, strict=True))
    chain = list(_chain(follower.node(last), source))
    chain.reverse()
    first, steps = _embedding(chain.pop(0)[0])
    for node, main in chain:
        steps += _steps(node, main, first, numbered, source)
    widths = {s.weight.shape[-1] for s in steps if isinstance(s, Mapped) and s.layer is not None}
    if other := widths - {follower.start.value.shape[-1] if follower.start else 0}:
        raise InvalidArgumentError(
            f"The residual stream must have one width; that of {source} is projected to "
            f"{min(other)} features after a layer, to which its terms can't be compared. Use "
            "effective_attention and identifiability_table, which don't need it."
        )
    wrote = [s.layer for s in steps if isinstance(s, Written) and s.term == "heads"]
    if wrote != list(numbers):
        odd = next((i for i in numbers if wrote.count(i) != 1), numbers[0])
        _fail(f"in layer {odd} of {source} what heads write isn't added to it once")
    return first, tuple(steps)


def _chain(node: Node | None, source: str) -> Iterator[tuple[Any, Node | None]]:
    """Operations on the stream from its end to its start, each with the stream before it."""
    while not isinstance(node, Start):
        if isinstance(node, Sum):
            one, two = node.parts
            if one.stream == two.stream:
                _fail(f"in layer {node.layer} of {source} it is added to itself")
            main = one if one.stream else two
        elif isinstance(node, NormOf | MapOf | Multiple):
            main = node.of
        else:
            _fail(f"{source} ends with something else than a sum or a norm of it")
        yield node, main
        node = main
    yield node, None


def _embedding(start: Start) -> tuple[Tensor, list[Step]]:
    """Embeddings, and the norms and maps between them and the first layer."""
    steps: list[Step] = []
    value, node = start.value, start.of
    while isinstance(node, NormOf | MapOf):
        if isinstance(node, NormOf):
            steps.append(node.call.step)
        else:
            steps.append(Mapped(None, weight_of(node.module), bias_of(node.module)))
        value, node = node.value, node.of
    return value, steps[::-1]


def _steps(
    node: NormOf | MapOf | Multiple | Sum,
    main: Node | None,
    first: Tensor,
    layers: Numbered,
    source: str,
) -> list[Step]:
    if isinstance(node, NormOf):
        return [node.call.step]
    if isinstance(node, MapOf):
        return [Mapped(node.layer, weight_of(node.module), bias_of(node.module))]
    if isinstance(node, Multiple):
        factor = torch.as_tensor(node.factor, dtype=first.dtype, device=first.device)
        if (factor == 1).all():
            # a mask of tokens, where there is no padding
            return []
        if (
            factor.numel() not in (1, first.shape[-1])
            or factor.numel() != factor.shape[-1:].numel()
        ):
            _fail(
                f"in layer {node.layer} of {source} each token is multiplied by numbers of its own"
            )
        # a copy: the model may be trained further
        return [Scaled(node.layer, factor.detach().reshape(-1).clone())]
    side = node.parts[1] if node.parts[0] is main else node.parts[0]
    found = list(_written(side, node.layer, first, layers, source))
    # heads before the feed-forward that is parallel to them
    found.sort(key=lambda step: step.term != "heads")
    return [*found]


def _written(
    node: Node, layer: int, first: Tensor, layers: Numbered, source: str
) -> Iterator[Written]:
    """Terms that a node adds to the stream."""
    if isinstance(node, Sum) and not _is_plain(node):
        for part in node.parts:
            yield from _written(part, layer, first, layers, source)
    elif isinstance(node, Multiple):
        for step in _written(node.of, layer, first, layers, source):
            yield replace(step, factor=step.factor * _factor(node, first.shape[:2]))
    elif isinstance(node, NormOf):
        inner = list(_written(node.of, layer, first, layers, source))
        if len(inner) != 1 or inner[0].norm is not None or not _is_one(inner[0].factor):
            _fail(f"in layer {layer} of {source} a norm is applied to several terms")
        yield replace(inner[0], norm=replace(node.call.step, layer=layer))
    else:
        yield _one_written(node, layer, first, layers, source)


def _one_written(node: Node, layer: int, first: Tensor, layers: Numbered, source: str) -> Written:
    value = _value(node, first.shape[:2])
    if not isinstance(value, Tensor):
        _fail(
            f"in layer {layer} of {source} something is added to it that isn't an output of a "
            "sublayer"
        )
    leaf = node if isinstance(node, Leaf) else Leaf(False, value)
    if leaf.call is not None:
        return written_by_heads(*layers[leaf.call], value)
    bias = None if leaf.module is None else bias_of(leaf.module)
    given = None if leaf.input is None else leaf.input.reshape(*first.shape[:2], -1)
    if leaf.mixes:
        return Written(layer, "mixers", value, bias)
    return Written(layer, "feed_forward", value, bias, given)


def _is_plain(node: Node) -> bool:
    """Return True for what mixes no tokens and isn't normed: it can be added up to one term."""
    if isinstance(node, Sum):
        return all(map(_is_plain, node.parts))
    if isinstance(node, Multiple):
        return _is_plain(node.of)
    return isinstance(node, Leaf) and node.call is None and not node.mixes


def _value(node: Any, shape: torch.Size) -> Tensor | None:
    """Value of a node, with the dimensions of sentences and tokens; None if it has others."""
    if isinstance(node, Sum):
        one, two = (_value(part, shape) for part in node.parts)
        return None if one is None or two is None else one + two
    if isinstance(node, Multiple):
        value = _value(node.of, shape)
        return None if value is None else value * _factor(node, shape)
    value = node.value
    # some families flatten sentences
    fits = isinstance(value, Tensor) and value.numel() == shape.numel() * value.shape[-1]
    return value.reshape(*shape, -1) if fits else None


def _factor(node: Multiple, shape: torch.Size) -> Any:
    """Factor of a multiple, with the dimensions of sentences and tokens if each has its own."""
    factor = node.factor
    of_tokens = isinstance(factor, Tensor) and factor.ndim > 1 and factor.numel() == shape.numel()
    return factor.reshape(*shape, 1) if of_tokens else factor


def _is_one(factor: float | Tensor) -> bool:
    return isinstance(factor, float) and factor == 1


class _NoSumError(Exception):
    """Why the residual stream is no sum of what sublayers write."""


def _fail(why: str) -> NoReturn:
    raise _NoSumError(why)
