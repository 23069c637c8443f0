"""Models that `capture` can run, without what is wrapped around them."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import nn

from capacity.checks import require_choice
from capacity.errors import InvalidArgumentError, PrecisionWarning, warn_caller
from capacity.transformer.activations.following.modules import (
    is_linear,
    modules_of,
    weights_of,
)
from capacity.transformer.activations.models.inputs import FIRST

Part: TypeAlias = Literal["encoder", "decoder", "cross"]


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, in float32 or float64, where it can be analysed.

    Raises
    ------
    InvalidArgumentError
        If it holds adapters, has no weights in memory, or is quantized.

    Warns
    -----
    PrecisionWarning
        If it is in half precision: a copy in float32 is returned.
    """
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        model = model.module
    # what torch.compile returns
    model = getattr(model, "_orig_mod", model)
    modules, weights = modules_of(model), list(weights_of(model))
    adapted = next((m for m in modules if type(m).__module__.startswith("peft.")), None)
    if adapted is not None:
        raise InvalidArgumentError(
            f"The model must be without adapters; got one of PEFT's, {type(adapted).__name__}. "
            "Merge it into the weights: model.merge_and_unload(). Prompts that were tuned can't be "
            "merged: pass the model itself, model.get_base_model()."
        )
    if any(x.is_meta for x in weights):
        raise InvalidArgumentError(
            "The model's weights must be in memory; some are on the device 'meta', as those that "
            "accelerate offloads. Load it whole: from_pretrained(...) without device_map, then "
            "model.to(device)."
        )
    coarse = [m for m in modules if is_linear(m) or hasattr(m, "_packed_params")]
    quantized = next((m for m in coarse if not _has_floats(m)), None)
    if quantized is not None:
        raise InvalidArgumentError(
            "The model's linear modules must have weights of floats; got a "
            f"{type(quantized).__module__}.{type(quantized).__name__}. Load it without "
            "quantization, or call model.dequantize()."
        )
    half = {p.dtype for p in weights} & {torch.float16, torch.bfloat16}
    if half:
        warn_caller(
            PrecisionWarning(
                f"Weights are {', '.join(sorted(map(str, half)))}: a copy in float32 is analysed, "
                "for ranks and null spaces need its digits. Call model.float() first to save the "
                "copy."
            )
        )
        return copy.deepcopy(model).float()
    return model


def _has_floats(module: Any) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(weight, torch.Tensor) and weight.is_floating_point()


def body_of(model: nn.Module, part: Part | None) -> tuple[Any, Any]:
    """Find the module that must run, and the stack of layers in it that is recorded.

    Parameters
    ----------
    model : nn.Module
        A model of ``transformers``, with any head.
    part : {"encoder", "decoder", "cross"}, optional
        Which attention of an encoder-decoder is meant.

    Raises
    ------
    InvalidArgumentError
        If the model isn't one of ``transformers``, or `part` is missing or superfluous.
    """
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        raise InvalidArgumentError(
            "The model must be one of transformers (a PreTrainedModel), or have a method "
            f"capture(tokens, mask) that returns an ActivationCache; got {type(model).__name__}. "
            "Tensors of other programs are analysed by from_tensors."
        )
    body: Any = _named_body(model)
    towers = [name for name in ("text_model", "vision_model") if hasattr(body, name)]
    if len(towers) == 2:
        raise InvalidArgumentError(
            f"The model must have one stack of layers, or an encoder and a decoder; "
            f"{type(model).__name__} has towers. Pass one of them: model.{towers[0]} or "
            f"model.{towers[1]}."
        )
    encoder, decoder = body.get_encoder(), body.get_decoder()
    if not body.config.is_encoder_decoder or encoder is body or decoder is body:
        if part is not None:
            raise InvalidArgumentError(
                f"`part` must be omitted for a model of one stack; got {part!r} for "
                f"{type(model).__name__}."
            )
        return body, body
    if part is None:
        raise InvalidArgumentError(
            f"`part` must choose which attention of {type(model).__name__} is meant: "
            f"{', '.join(map(repr, get_args(Part)))}."
        )
    require_choice("`part`", part, get_args(Part))
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        if not hasattr(stack, "config"):
            raise InvalidArgumentError(
                f"The {name} of a model must be a model with a configuration of its own; that of "
                f"{type(model).__name__} is a plain {type(stack).__name__}. Capture its patterns "
                "and values by hooks, and pass them to capacity.transformer.from_tensors."
            )
    return (encoder, encoder) if part == "encoder" else (body, decoder)


def body_under_head(model: Any) -> Any:
    """The model without its head; itself if it has none."""
    body = model.base_model
    if body is model and model.get_output_embeddings() is not None:
        # that of Llama 4 for text alone bears another name than its family's
        inner = [child for child in model.children() if hasattr(child, "base_model")]
        return inner[0] if len(inner) == 1 and not model.config.is_encoder_decoder else body
    return body


def _named_body(model: Any) -> Any:
    """The model without its head, whose inputs have names and are what models are about.

    Decoders of BART's family without an encoder are wrapped once more, by a module that hands on
    whatever it gets.
    """
    body = body_under_head(model)
    known = inspect.signature(body.forward).parameters
    kinds = {one.kind for one in known.values()}
    hands_on = kinds <= {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    if hands_on:
        return getattr(body, "decoder", body)
    # DINOv3's is within the embeddings that it reads
    own = inspect.signature(model.forward).parameters
    return model if not set(FIRST) & set(known) and set(FIRST) & set(own) else body
