"""Inputs of a pretrained model: what a tokenizer or a processor returns, checked before the run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.tokens import (
    checked_tokens,
    require_dense,
    sentence_mask,
)

# keys that tokenizers return and no model reads
_TOLD_BY_TOKENIZERS = {"special_tokens_mask", "offset_mapping", "length", "num_truncated_tokens",
                       "overflowing_tokens", "overflow_to_sample_mapping"}  # fmt: skip
# the other inputs that models take would change what is recorded, or what it is recorded for
_READ = {"input_ids", "attention_mask", "token_type_ids", "position_ids", "decoder_input_ids",
         "decoder_attention_mask", "decoder_position_ids", "pixel_values",
         "interpolate_pos_encoding", "bool_masked_pos", "input_features",
         "input_values"}  # fmt: skip
# one of them is what a model is about
FIRST = ("input_ids", "pixel_values", "input_features", "input_values")


def named(inputs: Any) -> dict[str, Any]:
    """Inputs by their names, without what no model reads.

    Raises
    ------
    InvalidArgumentError
        If there is nothing that a model reads, or a tensor that isn't dense or has no values.
    """
    if isinstance(inputs, Tensor):
        inputs = {"input_ids": inputs}
    if not isinstance(inputs, Mapping):
        raise InvalidArgumentError(
            "Inputs must be a tensor of token ids, or a mapping such as a tokenizer or a processor "
            f"returns; got {type(inputs).__name__}."
        )
    given = {
        key: x
        for key, x in inputs.items()
        if key not in _TOLD_BY_TOKENIZERS and not (key in FIRST and x is None)
    }
    for key, x in given.items():
        require_dense(f"The input {key!s:.60}", x)
    if not any(name in given for name in FIRST):
        raise InvalidArgumentError(
            f"Inputs must hold {', '.join(FIRST[:-1])} or {FIRST[-1]}; got the keys "
            f"{sorted(map(str, given))}. Ask the tokenizer or processor for return_tensors='pt'."
        )
    return given


def require_only(given: Mapping[str, Any], names: Sequence[str], model: str) -> None:
    """Refuse inputs that a model doesn't read.

    Raises
    ------
    InvalidArgumentError
        With their names; or if it names none.
    """
    if not names:
        raise InvalidArgumentError(
            f"The module that {model} runs must name its inputs, such as input_ids; none of its "
            "is one. Pass the module within it that has the layers."
        )
    others = sorted(set(given) - set(names))
    if others:
        raise InvalidArgumentError(
            f"Inputs of {model} must be among {', '.join(names)}; got {others} too. Omit these."
        )


def checked_inputs(given: dict[str, Any], body: Any, source: str) -> dict[str, Any]:
    """Check inputs of a model, and add what it needs beside them.

    Positions are counted from a sentence's first token, on whichever side its padding is.

    Parameters
    ----------
    given : dict
        Inputs by their names.
    body : PreTrainedModel
        The model without its head.
    source : str
        Name of the model, for messages.

    Raises
    ------
    InvalidArgumentError
        If the model can't read them.
    """
    known = inspect.signature(body.forward).parameters
    segments = given.get("token_type_ids")
    if "token_type_ids" not in known and isinstance(segments, Tensor) and not segments.any():
        # tokenizers number the segments of texts that have one, for models without segments, too
        given = {name: x for name, x in given.items() if name != "token_type_ids"}
    require_only(given, [name for name in known if name in _READ], source)
    if not any(name in given for name in FIRST if name in known):
        names = " or ".join(name for name in FIRST if name in known)
        raise InvalidArgumentError(f"Inputs of {source} must hold {names}; got {sorted(given)}.")
    config = body.config
    given = dict(given)
    for prefix in ("", "decoder_"):
        tokens = given.get(f"{prefix}input_ids")
        if tokens is None:
            continue
        real = checked_tokens(
            tokens,
            given.get(f"{prefix}attention_mask"),
            d_vocab=vocabulary_size(body),
            n_positions=longest(body),
            longest="the model's max_position_embeddings",
        )
        _check_ids(given, prefix, tokens, real, config)
        name = f"{prefix}position_ids"
        if name in known and name not in given and _counts_padding(body, real):
            given[name] = (real.cumsum(1) - 1).clamp_min(0)
    if "decoder_input_ids" in known and "decoder_input_ids" not in given:
        raise InvalidArgumentError(
            f"Inputs of {source} must hold decoder_input_ids, what its decoder reads; got "
            f"{sorted(given)}."
        )
    # processors return float32, whatever the model is in
    dtype = next((p.dtype for p in body.parameters() if p.is_floating_point()), None)
    for name in FIRST[1:]:
        if dtype is not None and isinstance(given.get(name), Tensor):
            given[name] = given[name].to(dtype)
    # keys and values would be cached for later tokens, and there are none
    return {**given, "use_cache": False} if "use_cache" in known else given


def vocabulary_size(model: Any) -> int | None:
    """Return the number of tokens that a model has embeddings of; None if it hashes characters."""
    try:
        embeddings = model.get_input_embeddings()
    except NotImplementedError:
        return None
    # quantized ones lack the number
    size = getattr(embeddings, "num_embeddings", None)
    return embeddings.weight.shape[0] if size is None else size


def mask_of(given: Mapping[str, Any], name: str, shape: tuple[int, int], model: Any) -> Tensor:
    """Mask of the tokens of a stack; without one all are tokens, as are parts of images and sounds.

    Parameters
    ----------
    given : mapping
        Inputs of the model.
    name : str
        Key of the mask in these.
    shape : (batch, n)
        Number of sentences, and of tokens in each.
    model : PreTrainedModel
        The model, which knows what its convolutions leave of a padded sound.

    Raises
    ------
    InvalidArgumentError
        If sounds are padded, and the model doesn't know which tokens that leaves.
    """
    mask = given.get(name)
    fits = isinstance(mask, Tensor) and tuple(mask.shape) == shape
    if fits or not isinstance(mask, Tensor) or "input_values" not in given or mask.all():
        # a mask of spectrograms isn't read
        return sentence_mask(mask if fits else None, shape)
    shortened = getattr(model, "_get_feature_vector_attention_mask", None)
    left = None if shortened is None else shortened(shape[1], mask)
    if left is None or tuple(left.shape) != shape:
        raise InvalidArgumentError(
            f"{type(model).__name__} must be able to compute which of its {shape[1]} tokens are of "
            "a sound's padding; it has no mask of them. Capture each sound alone, without padding."
        )
    return sentence_mask(left.long(), shape)


def longest(body: Any) -> int | None:
    """Return the largest number of tokens that a model reads; None if its config names none.

    Parameters
    ----------
    body : PreTrainedModel
        The model without its head.
    """
    names = ("max_position_embeddings", "max_target_positions")
    most = next((x for name in names if (x := getattr(body.config, name, None))), None)
    if most is None or most < 1:
        return None
    # RoBERTa counts positions from behind that of padding
    return most - body.config.pad_token_id - 1 if most and _skips_padding(body) else most


def _skips_padding(body: Any) -> bool:
    """Return True for models that count positions by what isn't the padding token."""
    own = "create_position_ids_from_input_ids"
    return hasattr(sys.modules[type(body).__module__], own) or hasattr(
        getattr(body, "embeddings", None), own
    )


def _counts_padding(body: Any, real: Tensor) -> bool:
    """Return True if positions that aren't given would count padding before a sentence."""
    return bool((real[:, 1:] & ~real[:, :-1]).any()) and not _skips_padding(body)


def _check_ids(
    given: Mapping[str, Any], prefix: str, tokens: Tensor, real: Tensor, config: Any
) -> None:
    ends = {
        f"{prefix}token_type_ids": getattr(config, "type_vocab_size", None) or 2**62,
        f"{prefix}position_ids": getattr(config, "max_position_embeddings", None) or 2**62,
    }
    for name, end in ends.items():
        ids = given.get(name)
        if ids is None:
            continue
        if not isinstance(ids, Tensor) or ids.shape != tokens.shape:
            got = tuple(ids.shape) if isinstance(ids, Tensor) else type(ids).__name__
            raise InvalidArgumentError(
                f"`{name}` must have the shape of the tokens, {tuple(tokens.shape)}; got {got}."
            )
        least, most = int(ids.min()), int(ids.max())
        if least < 0 or most >= end:
            raise InvalidArgumentError(
                f"`{name}` must lie between 0 and {end - 1}; got {least if least < 0 else most}."
            )
    positions = given.get(f"{prefix}position_ids")
    if positions is not None:
        both = real[:, 1:] & real[:, :-1]
        if ((positions.diff(dim=1) <= 0) & both).any():
            raise InvalidArgumentError(
                "`position_ids` must grow along a row; several sentences in one row don't attend "
                "to each other, and can't be analysed. Put each in a row of its own."
            )
