"""The section [layers]: every combination of its values that is a layer, or a decoder.

With a key that `LayerConfig` doesn't have, such as `mlp`, the section describes decoders.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from capacity.checks import MAX_SIZE, shown
from capacity.errors import InvalidArgumentError, SweepError
from capacity.layer.decoder.config import DecoderConfig
from capacity.layer.model.config import HEAD_SIZES, LayerConfig
from capacity.sweep.grammar.values import is_required, keys_of, require_at_most, require_known

# combinations of the values in [layers]
MOST_LAYERS = 1_000_000
# length of the query for a fact's object: subject and predicate
SENTENCE = 2
TOO_WIDE = "d_head_qk or d_head_vo exceeds d_model"
UNEVEN = "n_heads doesn't divide d_model, and a head's size is omitted"
OPPOSED = "options that exclude one another, such as `gated` and no `mlp`"


def kind_of_layers(options: Any) -> type[LayerConfig] | type[DecoderConfig]:
    """Return the class that the keys of [layers] are of."""
    of_decoders = {*keys_of(DecoderConfig)} - {*keys_of(LayerConfig)}
    is_table = isinstance(options, Mapping)
    return DecoderConfig if is_table and of_decoders & options.keys() else LayerConfig


def values_of_layers(options: Any) -> dict[str, list[Any]]:
    """Check the values of each key of [layers], and limit the number of their combinations."""
    kind = kind_of_layers(options)
    require_known(options, "[layers]", keys_of(kind))
    values: dict[str, list[Any]] = {}
    for each in fields(kind):
        if each.name not in options and is_required(each):
            raise SweepError(f"[layers] must have the key `{each.name}`.")
        listed = options.get(each.name, [each.default])
        if not isinstance(listed, list) or not listed:
            what = "values" if isinstance(each.default, bool) else "sizes"
            raise SweepError(
                f"`{each.name}` in [layers] must be a list of {what}; got {shown(listed)}."
            )
        values[each.name] = listed
    combinations = math.prod(map(len, values.values()))
    require_at_most(MOST_LAYERS, combinations, "[layers]", "combinations")
    _require_valid(kind, values)
    short = [n for n in values["n_positions"] if 0 < n < SENTENCE]
    if short:
        raise SweepError(
            f"`n_positions` in [layers] must be 0, for none, or at least {SENTENCE}, the length of "
            f"a query (subject, predicate); got {short[0]}."
        )
    return values


def _require_valid(
    kind: type[LayerConfig] | type[DecoderConfig], values: Mapping[str, list[Any]]
) -> None:
    """Refuse a value that no layer can have, whatever its other sizes and options are."""
    # so wide a layer that each value is held against its own limits alone
    if kind is LayerConfig:
        models = [LayerConfig(MAX_SIZE, 1, 1, 1)]
    else:
        # and with what some options need
        models = [
            DecoderConfig(MAX_SIZE, 1, 2, 1, mlp=1, norm="rms", positions=positions, n_layers=n)
            for positions in ("rotary", "learned", "none")
            for n in values["n_layers"]
            if isinstance(n, int) and n > 0
        ] or [DecoderConfig(MAX_SIZE, 1, 2, 1, mlp=1)]
    for name, listed in values.items():
        for value in listed:
            wrong: InvalidArgumentError | None = None
            for model in models:
                try:
                    replace(model, **{name: value})
                except InvalidArgumentError as error:
                    wrong = wrong or error
                else:
                    break
            else:
                raise SweepError(f"in [layers]: {wrong}") from None


def omitted_layers(config: Mapping[str, Any]) -> dict[str, int]:
    """Count the combinations of the values in [layers] that are no layers, by the reason.

    Parameters
    ----------
    config : mapping
        Content of a sweep's file that `make_plan` accepts; without ``layers``, none are counted.

    Examples
    --------
    >>> omitted_layers({"layers": {"d_model": [2, 3], "n_heads": [2], "d_head_vo": [1, 3]}})
    {'d_head_qk or d_head_vo exceeds d_model': 1, "n_heads doesn't divide d_model, ...": 2}
    """
    if "layers" not in config:
        return {}
    reasons = Counter(map(_no_layer, _combined(values_of_layers(config["layers"]))))
    return {reason: n for reason, n in sorted(reasons.items()) if reason}


def _combined(values: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every combination of the values of [layers]."""
    for chosen in itertools.product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _no_layer(sizes: Mapping[str, Any]) -> str:
    """Explain why a combination of sizes is no layer; nothing if it is one."""
    heads = [sizes[name] for name in HEAD_SIZES]
    if None in heads and sizes["d_model"] % sizes["n_heads"]:
        return UNEVEN
    if any(size and size > sizes["d_model"] for size in heads):
        return TOO_WIDE
    if kind_of_layers(sizes) is DecoderConfig:
        try:
            DecoderConfig(**sizes)
        except InvalidArgumentError:
            return OPPOSED
    return ""


def layers_of(values: Mapping[str, list[Any]]) -> list[LayerConfig] | list[DecoderConfig]:
    """Make every layer, or decoder, that the values of [layers] combine to."""
    kind = kind_of_layers(values)
    layers = [kind(**sizes) for sizes in _combined(values) if not _no_layer(sizes)]
    if not layers:
        raise SweepError(
            "[layers] must hold a layer with d_head_qk, d_head_vo <= d_model, or whose n_heads "
            "divides d_model where one of them is omitted; no combination of its values is one."
        )
    if len(set(layers)) < len(layers):
        raise SweepError(
            "[layers] must name each value once, or layers would be repeated. Remove the "
            "duplicates."
        )
    return layers  # pyright: ignore[reportReturnType]
