"""Read a pretrained model and its tokenizer from a folder, without a network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capacity.errors import InvalidArgumentError, MissingExtraError

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json")


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
    InvalidArgumentError
        If the folder doesn't hold a model, all of its weights, and a tokenizer.
    """
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        raise MissingExtraError(
            "Pretrained models need transformers; install the extra: "
            "pip install 'knowledge-capacity[transformers]'"
        ) from None
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise InvalidArgumentError(
            f"{path} must be a folder that save_pretrained of Hugging Face's transformers has "
            "written; it holds no config.json."
        )
    if not any((path / name).is_file() for name in TOKENIZERS) and not any(path.glob("*.model")):
        # transformers would make an empty one, to which all words are unknown
        raise InvalidArgumentError(
            f"{path} must hold the model's tokenizer, one of {', '.join(TOKENIZERS)} or *.model; "
            "write it there with tokenizer.save_pretrained."
        )
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        with quietly():
            tokenizer = AutoTokenizer.from_pretrained(path, **here)
            model, told = AutoModel.from_pretrained(
                path, attn_implementation="eager", output_loading_info=True, **here
            )
    # what the loaders raise for damaged files depends on the file
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        raise InvalidArgumentError(
            f"{path} must hold a model and its tokenizer that transformers can load; "
            f"{type(error).__name__}: {first}"
        ) from None
    # poolers stand behind the last embeddings, and aren't always trained
    missing = sorted(key for key in told["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise InvalidArgumentError(
            f"{path} must hold all weights of its config.json; {len(missing)} are missing, such as "
            f"{missing[0]}, and would be random."
        )
    return model.eval(), tokenizer


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
