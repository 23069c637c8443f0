"""Read a pretrained model and its tokenizer from a folder, without a network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from capacity.errors import CapacityError, InvalidArgumentError, MissingExtraError
from capacity.limits import in_a_line
from capacity.transformer.activations.folder import check_folder, check_size


def load_pretrained(folder: str | os.PathLike[str]) -> tuple[Any, Any]:
    """A model, ready for `capture`, and its tokenizer.

    Parameters
    ----------
    folder : path
        What Hugging Face's ``save_pretrained`` wrote: config.json, weights, the tokenizer's files.
        Nothing is fetched.

    Returns
    -------
    model, tokenizer
        The model without a head, with ``attn_implementation="eager"``, in eval mode.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed.
    StorageError
        If something in the folder is a pipe, a socket or a device.
    InvalidArgumentError
        If the folder doesn't hold a model that can read a token, all of its weights, and a
        tokenizer.
    """
    try:
        from transformers import AutoConfig, AutoModel, AutoTokenizer
    except ImportError:
        raise MissingExtraError(
            "Pretrained models need transformers; install the extra: "
            "pip install 'knowledge-capacity[transformers]'"
        ) from None
    path = Path(folder)
    check_folder(path)
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    eager = {"attn_implementation": "eager"}
    try:
        with quietly():
            tokenizer = AutoTokenizer.from_pretrained(path, **here)
            config = AutoConfig.from_pretrained(path, **here)
            with torch.device("meta"):
                check_size(path, AutoModel.from_config(config, **eager))
            model, told = AutoModel.from_pretrained(
                path,
                config=config,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **eager,
                **here,
            )
            # sizes that contradict each other stop the first sentence
            with torch.no_grad():
                model.eval()(torch.zeros(1, 1, dtype=torch.long))
    except CapacityError:
        raise
    # what the loaders raise for damaged files depends on the file
    except Exception as error:
        raise InvalidArgumentError(
            f"{path} must hold a model and its tokenizer that transformers can load; "
            f"{in_a_line(error)}"
        ) from None
    for name, held, asked in sorted(told["mismatched_keys"]):
        raise InvalidArgumentError(
            f"{path} must hold the weights of its config.json; {name} has the shape {tuple(held)}, "
            f"and {tuple(asked)} there."
        )
    # poolers stand behind the last embeddings, and aren't always trained
    missing = sorted(key for key in told["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise InvalidArgumentError(
            f"{path} must hold all weights of its config.json; {len(missing)} are missing, such as "
            f"{missing[0]}, and would be random."
        )
    return model, tokenizer


def tokens_of(tokenizer: Any, text: str) -> Any:
    """A text as a tokenizer gives it to its model, as tensors.

    Raises
    ------
    InvalidArgumentError
        If the text isn't Unicode, or the tokenizer is damaged.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"The text must be Unicode; it holds {text[error.start]!r}, which is no character."
        ) from None
    try:
        # a text that is too long is an error, which `capture` raises
        with quietly():
            return tokenizer(text, return_tensors="pt")
    except Exception as error:
        raise InvalidArgumentError(
            f"The tokenizer must be able to read the text; {in_a_line(error)}"
        ) from None


@contextmanager
def quietly() -> Iterator[None]:
    """Without transformers' progress bars and advice."""
    from transformers.utils import logging

    before, shown = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        if shown:
            logging.enable_progress_bar()
