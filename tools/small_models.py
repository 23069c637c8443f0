"""Small models of the model types of transformers: configurations shrunk by the names of fields."""

from __future__ import annotations

import inspect
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from capacity.transformer.activations.models.inputs import FIRST

# more weights than this are too many for a small model
LARGEST = 60_000_000
N_TOKENS = 9
_RULES = Path(__file__).with_suffix(".toml")


class NotBuiltError(Exception):
    """A model type of which no small model could be built, with the reason."""


def model_types() -> list[str]:
    """Return the model types of which the installed transformers has a model without a head."""
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    return sorted(MODEL_MAPPING_NAMES)


def small_model(model_type: str) -> Any:
    """Build a small model of a type, in float32, with random weights everywhere.

    Raises
    ------
    NotBuiltError
        With what transformers answered.
    """
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    torch.manual_seed(0)
    try:
        config = _shrunk(CONFIG_MAPPING[model_type], _rules()["types"].get(model_type, {}))
        config._attn_implementation = "eager"
        config._experts_implementation = "eager"
        with torch.device("meta"):
            size = sum(p.numel() for p in AutoModel.from_config(config).parameters())
        if size > LARGEST:
            raise NotBuiltError(f"{size:,} weights after shrinking")
        model = AutoModel.from_config(config).float().eval()
    except NotBuiltError:
        raise
    except Exception as error:
        raise NotBuiltError(_first_line(error)) from error
    with torch.no_grad():
        for parameter in model.parameters():
            # biases and gains of a new model are 0 and 1
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def small_inputs(model: Any) -> dict[str, Tensor]:
    """Return two inputs for a small model, by the names that its forward has.

    Raises
    ------
    NotBuiltError
        If the model can't run on any.
    """
    g = torch.Generator().manual_seed(1)
    tokens = torch.stack([torch.randperm(54, generator=g)[:N_TOKENS] + 4 for _ in range(2)])
    side = getattr(model.config, "image_size", 16)
    side = side if isinstance(side, int) else 16
    channels = getattr(model.config, "num_channels", 3)
    bins = getattr(model.config, "num_mel_bins", 8)
    known = inspect.signature(model.forward).parameters
    several = {
        "input_ids": (tokens,),
        "pixel_values": (torch.randn(2, channels, side, side, generator=g),),
        "input_features": (torch.randn(2, bins, 2 * 64, generator=g),
                           torch.randn(2, 64, bins, generator=g)),
        "input_values": (torch.randn(2, 104, generator=g), torch.randn(2, 24, 8, generator=g)),
    }  # fmt: skip
    why = "its forward has none of the names " + ", ".join(FIRST)
    for name in FIRST:
        for given in several[name] if name in known else ():
            inputs = {name: given}
            if "decoder_input_ids" in known:
                inputs["decoder_input_ids"] = tokens[:, :7].flip(1)
            try:
                with torch.no_grad():
                    model(**inputs)
            except Exception as error:
                why = _first_line(error)
            else:
                return inputs
    raise NotBuiltError(f"its own forward: {why}")


@cache
def _rules() -> dict[str, Any]:
    with _RULES.open("rb") as file:
        return tomllib.load(file)


def _shrunk(kind: Any, others: dict[str, Any]) -> Any:
    """A configuration of a class, with small values in the fields that it and its parts have."""
    default = kind()
    found = _small_fields(kind, default)
    return kind(**{**found, **others})


def _small_fields(kind: Any, default: Any) -> dict[str, Any]:
    attributes, fields = getattr(kind, "attribute_map", {}), _rules()["fields"]
    parts = getattr(kind, "sub_configs", {})
    held = vars(default)
    found: dict[str, Any] = {}
    for name, value in held.items():
        if name in parts:
            part = getattr(default, name)
            if part is not None and not isinstance(part, dict):
                found[name] = _small_part(type(part), part)
        elif name in fields and name not in attributes and _fits(fields[name], value):
            found[name] = fields[name]
    return found


def _small_part(kind: Any, part: Any) -> dict[str, Any]:
    small = _small_fields(kind, part)
    others = _rules()["types"].get(part.model_type, {})
    return {**({"model_type": part.model_type} if part.model_type else {}), **small, **others}


def _fits(value: Any, default: Any) -> bool:
    """Return whether a value is of a field's kind: numbers aren't put in place of lists."""
    if default is None:
        return True
    if isinstance(value, list):
        return isinstance(default, list | tuple)
    return isinstance(default, int | float) and not isinstance(default, bool)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:110] if lines else ''}"
