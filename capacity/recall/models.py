"""Kinds of language models, by which side of an answer they read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.optional import needed_by

Kind: TypeAlias = Literal["causal", "masked", "encoder-decoder"]


def kind_of(model: Any) -> Kind:
    """Return the kind of a model that predicts tokens.

    Parameters
    ----------
    model : PreTrainedModel
        A model of ``transformers`` with its head.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed.
    InvalidTypeError
        If it is no model of ``transformers``.
    InvalidArgumentError
        If it has no head that predicts tokens.
    """
    with needed_by("recall"):
        from transformers import PreTrainedModel
        from transformers.models.auto import modeling_auto as known
    if not isinstance(model, PreTrainedModel):
        raise InvalidTypeError(
            "`model` must be a model of transformers with its head, as "
            f"load_pretrained(folder, head=True) returns; got {type(model).__name__}."
        )
    family = model.config.model_type
    names = {one.__name__ for one in type(model).__mro__}

    def is_in(mapping: Any) -> bool:
        said = mapping.get(family, ())
        return bool(names & set([said] if isinstance(said, str) else said))

    if getattr(model.config, "is_encoder_decoder", False):
        # BART's is among the masked models, too
        if model.get_output_embeddings() is not None and hasattr(model, "get_encoder"):
            return "encoder-decoder"
    elif is_in(known.MODEL_FOR_MASKED_LM_MAPPING_NAMES):
        return "masked"
    elif is_in(known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        # an encoder with the head of a decoder sees what follows
        if family not in known.MODEL_FOR_MASKED_LM_MAPPING_NAMES or model.config.is_decoder:
            return "causal"
        raise InvalidArgumentError(
            f"A {type(model).__name__} must be a decoder, whose tokens don't see later ones, or "
            "have a masked-LM head; its config has is_decoder=False. Load the class "
            "...ForMaskedLM of its family."
        )
    raise InvalidArgumentError(
        f"The model must have a head that predicts tokens; {type(model).__name__} has none, so "
        "that it can't be asked for a word. Load it with its head: load_pretrained(folder, "
        "head=True). A model that was saved without a head, such as an encoder of sentences, can't "
        "be asked."
    )


@contextmanager
def asked(model: Any) -> Iterator[None]:
    """Let a model be in eval mode and without gradients, and leave each module's mode as it was."""
    import torch

    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True
