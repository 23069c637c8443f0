"""Activations that other programs have recorded, in the form of `capture`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from capacity.checks import shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.activations.records.products import are_softmax, rows_of
from capacity.transformer.activations.records.tokens import require_dense, sentence_mask
from capacity.transformer.activations.records.validation import check

_PATTERN = re.compile(r"blocks\.(\d+)\.attn\.hook_pattern")


def from_tensors(
    patterns: Sequence[Float[Tensor, "batch heads n m"]],
    values: Sequence[Float[Tensor, "batch heads m d"]],
    *,
    W_O: Sequence[Float[Tensor, "heads d d_model"]] | None = None,
    z: Sequence[Float[Tensor, "batch heads n d"]] | None = None,
    q: Sequence[Float[Tensor, "batch heads n d_qk"]] | None = None,
    k: Sequence[Float[Tensor, "batch heads m d_qk"]] | None = None,
    scale: float | None = None,
    mask: Bool[Tensor, "batch n"] | None = None,
    keys: Bool[Tensor, "batch m"] | None = None,
    seen: Sequence[Bool[Tensor, "batch n m"] | None] | None = None,
    sink: Sequence[Float[Tensor, "batch heads n"] | None] | None = None,
    source: str = "tensors",
) -> ActivationCache:
    """Make a cache of tensors that another program has recorded, with the checks of `capture`.

    Parameters
    ----------
    patterns, values : sequences of tensors
        Attention (batch, n_heads, n, m) and values (batch, n_heads or n_groups, m, d_head_vo)
        of each layer.
    W_O : sequence of (n_heads, d_head_vo, d_model), optional
        Output weights; by default heads are side by side, so that ``joint_nullity`` of
        `identifiability_table` is the sum over heads.
    z : sequence of (batch, n_heads, n, d_head_vo), optional
        Outputs of the heads, which are compared with ``pattern @ v``; computed if omitted.
    q, k : sequences of (batch, n_heads or n_groups, n or m, d_head_qk), optional
        Queries and keys, so that ``scale * q @ k.mT`` are the logits. Without them
        `identifiability_table` has no ``p4_excess``.
    scale : float, optional
        That factor; 1/sqrt(d_head_qk) by default.
    mask, keys : (batch, n) and (batch, m) bool, optional
        True for tokens; `keys` for what they attend to, if that is another sequence.
    seen : sequence of (batch, n, m) bool or None, optional
        Tokens that each token may attend to, for layers with windows.
    sink : sequence of (batch, n_heads, n) or None, optional
        Weight of each row on a sink, for layers that have one.
    source : str
        Name for messages.

    Returns
    -------
    ActivationCache
        Without a residual stream, which decompositions need; causal if no token attends to a
        later one.

    Raises
    ------
    InvalidTypeError
        If what must be a sequence of tensors isn't one.
    InvalidArgumentError
        If a tensor isn't dense or has no values, shapes don't fit, rows of attention don't sum to
        1, or z isn't ``pattern @ v``.

    Examples
    --------
    >>> pattern, v = torch.full((1, 2, 4, 4), 0.25), torch.randn(1, 2, 4, 3)
    >>> from_tensors([pattern], [v]).n_layers
    1
    """
    given = {"values": values, "W_O": W_O, "z": z, "q": q, "k": k, "seen": seen, "sink": sink}
    for name, tensors in {"patterns": patterns, **given}.items():
        _require_sequence(name, tensors, optional=name not in ("patterns", "values"))
        if tensors is not None and len(tensors) != len(patterns):
            raise InvalidArgumentError(
                f"There must be one tensor for each layer; got {len(patterns)} patterns and "
                f"{len(tensors)} of `{name}`."
            )
    if not len(patterns):
        raise InvalidArgumentError("There must be the pattern of a layer; got none.")
    layers = []
    for index, pattern in enumerate(patterns):
        own: dict[str, Any] = {
            name: None if ts is None else ts[index] for name, ts in given.items()
        }
        layers.append(_layer(f"layer {index} of {source}", pattern, scale=scale, **own))
        if layers[-1].pattern.shape != layers[0].pattern.shape:
            raise InvalidArgumentError(
                "Patterns of all layers must have the same shape (batch, n_heads, n, m); got "
                f"{tuple(layers[0].pattern.shape)} and {tuple(pattern.shape)}. Make two caches."
            )
    batch, _, n, m = layers[0].pattern.shape
    real = sentence_mask(mask, (batch, n)).to(layers[0].v.device)
    of_keys = None if keys is None else sentence_mask(keys, (batch, m)).to(real.device)
    if of_keys is None and m != n:
        of_keys = torch.ones(batch, m, dtype=torch.bool, device=real.device)
    layers = [layer.without_padding(real, of_keys) for layer in layers]
    causal = of_keys is None and not any(layer.pattern.triu(1).any() for layer in layers)
    known = [
        replace(x, soft=x.q.shape[-1] > 0 and are_softmax([rows_of(x)], real)[0]) for x in layers
    ]
    none = layers[0].z.new_zeros(batch, n, 0)
    return check(ActivationCache(tuple(known), real, causal, none, (), source, of_keys))


def from_transformer_lens(
    cache: Mapping[str, Tensor],
    *,
    W_O: Float[Tensor, "layers heads d d_model"] | None = None,
    mask: Bool[Tensor, "batch n"] | None = None,
) -> ActivationCache:
    """Make a cache of the one that ``run_with_cache`` of TransformerLens returns.

    Parameters
    ----------
    cache : mapping
        Tensors by names: for each layer i ``blocks.{i}.attn.hook_pattern`` of shape (batch,
        n_heads, n, n) and ``hook_v`` (batch, n, n_heads, d_head); ``hook_z``, ``hook_q`` and
        ``hook_k`` are used if they are there.
    W_O : (layers, n_heads, d_head, d_model), optional
        Output weights, the model's ``W_O``.
    mask : (batch, n) bool, optional
        True for tokens.

    Returns
    -------
    ActivationCache
        As `from_tensors` makes it.

    Raises
    ------
    InvalidTypeError
        If it isn't such a cache.
    InvalidArgumentError
        If a name is missing, or as `from_tensors`.

    Examples
    --------
    >>> v = torch.randn(1, 4, 2, 3)
    >>> names = {"hook_pattern": torch.full((1, 2, 4, 4), 0.25), "hook_v": v}
    >>> cache = {f"blocks.0.attn.{name}": x for name, x in names.items()}
    >>> from_transformer_lens(cache).layers[0].v.shape
    torch.Size([1, 2, 4, 3])
    """
    # theirs isn't iterated by names, and is no mapping
    if not hasattr(cache, "keys"):
        raise InvalidTypeError(
            f"`cache` must be what run_with_cache returns, tensors by names; got {shown(cache)}."
        )
    _require_sequence("W_O", W_O, optional=True)
    names = [str(name) for name in cache.keys()]  # noqa: SIM118
    found = sorted(int(hit[1]) for name in names if (hit := _PATTERN.fullmatch(name)))
    if found != list(range(len(found))) or not found:
        raise InvalidArgumentError(
            "The cache must have blocks.{i}.attn.hook_pattern of every layer, from 0; got those of "
            f"{found or 'none'}. Let run_with_cache keep hook_pattern and hook_v."
        )

    def of(hook: str) -> list[Tensor] | None:
        keys = [f"blocks.{i}.attn.{hook}" for i in found]
        there = [key for key in keys if key in names]
        if hook == "hook_v" and len(there) < len(keys):
            missing = next(key for key in keys if key not in there)
            raise InvalidArgumentError(
                f"The cache must have hook_v of every layer; {missing} is missing. Let "
                "run_with_cache keep hook_pattern and hook_v."
            )
        if len(there) < len(keys):
            return None
        # (batch, n, heads, d_head) there; what is no such tensor is refused later
        tensors = [cache[key] for key in keys]
        four = [isinstance(x, Tensor) and not x.is_nested and x.ndim == 4 for x in tensors]
        return [x.transpose(1, 2) if ok else x for x, ok in zip(tensors, four, strict=True)]

    patterns = [cache[f"blocks.{i}.attn.hook_pattern"] for i in found]
    weights = None if W_O is None else list(W_O)
    queries = of("hook_rot_q") or of("hook_q"), of("hook_rot_k") or of("hook_k")
    q, k = queries
    return from_tensors(patterns, of("hook_v") or [], W_O=weights, z=of("hook_z"), q=q, k=k,
                        mask=mask, source="TransformerLens")  # fmt: skip


def _layer(
    of: str, pattern: Tensor, *, values: Tensor, W_O: Any, z: Any, q: Any, k: Any,
    seen: Any, sink: Any, scale: float | None,
) -> LayerActivations:  # fmt: skip
    known = isinstance(pattern, Tensor) and not pattern.is_nested
    if not known or pattern.ndim != 4 or not pattern.is_floating_point():
        got = tuple(pattern.shape) if known else type(pattern).__name__
        raise InvalidArgumentError(
            f"Patterns must be tensors of floats of shape (batch, n_heads, n, m); that of {of} is "
            f"{got}."
            + (
                " Add the dimension of the batch, x[None], or run the model without "
                "remove_batch_dim=True."
                if known and pattern.ndim == 3
                else ""
            )
        )
    for name, x in (("pattern", pattern), ("values", values), ("W_O", W_O), ("z", z), ("q", q),
                    ("k", k), ("seen", seen), ("sink", sink)):  # fmt: skip
        require_dense(f"The {name} of {of}", x, pattern.device)
    batch, heads, n, m = pattern.shape
    if not pattern.numel():
        raise InvalidArgumentError(f"Patterns must not be empty; that of {of} is.")
    if (q is None) != (k is None):
        raise InvalidArgumentError(f"Queries and keys must come together; {of} has one of them.")
    v = _of_heads(f"values of {of}", values, batch, heads, m).to(pattern.dtype)
    d = v.shape[-1]
    z = pattern @ v if z is None else _of_heads(f"z of {of}", z, batch, heads, n).to(v.dtype)
    empty = pattern.new_zeros(batch, heads, n, 0), pattern.new_zeros(batch, heads, m, 0)
    q = empty[0] if q is None else _of_heads(f"q of {of}", q, batch, heads, n).to(v.dtype)
    k = empty[1] if k is None else _of_heads(f"k of {of}", k, batch, heads, m).to(v.dtype)
    if W_O is None:
        W_O = torch.eye(heads * d, dtype=v.dtype, device=v.device).unflatten(0, (heads, d))
    try:
        W_O = torch.as_tensor(W_O)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidArgumentError(
            f"W_O of {of} must be a tensor, or an array of numbers; got {shown(W_O)}."
        ) from None
    if q.shape[-1] != k.shape[-1] or z.shape[-1] != d:
        raise InvalidArgumentError(
            f"q and k, and z and values, must have the same width; those of {of} are "
            f"{q.shape[-1]} and {k.shape[-1]}, and {z.shape[-1]} and {d}."
        )
    if W_O.ndim != 3 or tuple(W_O.shape[:2]) != (heads, d):
        raise InvalidArgumentError(
            f"W_O must have the shape (n_heads, d_head_vo, d_model) = ({heads}, {d}, ...); that of "
            f"{of} is {tuple(W_O.shape)}."
        )
    factor = max(q.shape[-1], 1) ** -0.5 if scale is None else scale
    if not isinstance(factor, Real):
        raise InvalidTypeError(f"`scale` must be a number; got {shown(scale)}.")
    if isinstance(sink, Tensor) and not sink.is_floating_point():
        raise InvalidArgumentError(f"`sink` of {of} must be of floats; got {sink.dtype}.")
    for name, x, shape in (("seen", seen, (batch, n, m)), ("sink", sink, (batch, heads, n))):
        if x is not None and (not isinstance(x, Tensor) or tuple(x.shape) != shape):
            got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            raise InvalidArgumentError(
                f"`{name}` of {of} must be a tensor of the shape {shape}; got {got}."
            )
    return LayerActivations(pattern, q, k, v, z, W_O.to(v), None, None, float(factor), seen, sink)


def _require_sequence(name: str, tensors: object, *, optional: bool) -> None:
    require_dense(f"`{name}`", tensors)
    # a tensor is one of its slices
    stacked = isinstance(tensors, Tensor) and tensors.ndim > 0
    plain = isinstance(tensors, Sequence) and not isinstance(tensors, str | bytes)
    if not (stacked or plain or (optional and tensors is None)):
        raise InvalidTypeError(
            f"`{name}` must be a sequence with a tensor for each layer; got {shown(tensors)}."
        )


def _of_heads(what: str, x: Tensor, batch: int, heads: int, n: int) -> Tensor:
    """A tensor of heads; that of groups is repeated for their heads."""
    fits = isinstance(x, Tensor) and x.ndim == 4 and (x.shape[0], x.shape[2]) == (batch, n)
    if not fits or not x.numel() or heads % x.shape[1] or not x.is_floating_point():
        got = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
        raise InvalidArgumentError(
            f"The {what} must have the shape (batch, n_heads or n_groups, n, d_head) = ({batch}, "
            f"{heads} or a divisor, {n}, ...), of floats; got {got}."
        )
    return x.repeat_interleave(heads // x.shape[1], dim=1)
