"""Read a pretrained model and its tokenizer from a folder, without network access."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from capacity.checks import in_a_line
from capacity.errors import CapacityError, InvalidArgumentError
from capacity.optional import needed_by, require_packages
from capacity.transformer.activations.models.families import Part
from capacity.transformer.activations.models.folder import (
    check_folder,
    check_gguf,
    check_size,
    check_sizes,
)
from capacity.transformer.activations.models.inputs import vocabulary_size


def load_pretrained(
    folder: str | os.PathLike[str], *, head: bool = False, gguf_file: str | None = None
) -> tuple[Any, Any]:
    r"""Load a model, ready for `capture`, and its tokenizer.

    Parameters
    ----------
    folder : path
        Folder that Hugging Face's ``save_pretrained`` wrote: config.json, weights and the files of
        the tokenizer. Nothing is downloaded.
    head : bool
        Keep the head that predicts tokens, which `output_head` reads.
    gguf_file : str, optional
        Name of a file of llama.cpp in the folder, which holds the model and its tokenizer. Its
        weights are read into float32 (extra ``gguf``).

    Returns
    -------
    model : torch.nn.Module
        The model, without a head unless asked for, in eval mode.
    tokenizer : transformers tokenizer
        Called on a text, it returns the inputs of `capture`.

    Raises
    ------
    MissingExtraError
        If ``transformers`` isn't installed, or for a GGUF file ``gguf`` and ``accelerate``.
    StorageError
        If something in the folder is a pipe, a socket or a device, or a file is too large.
    InvalidArgumentError
        If the folder doesn't hold a model that can read a token, all of its weights and none of
        layers or biases that config.json lacks, and a tokenizer that fits it; or if a head is asked
        for that isn't there.

    Examples
    --------
    >>> import tempfile
    >>> from transformers import BertConfig, BertModel, BertTokenizer
    >>> config = BertConfig(vocab_size=5, hidden_size=4, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\ncourt")
    ...     _ = BertTokenizer(str(Path(folder, "vocab.txt"))).save_pretrained(folder)
    ...     BertModel(config).save_pretrained(folder)
    ...     model, tokenizer = load_pretrained(folder)
    >>> type(model).__name__, tokenizer("court")["input_ids"]
    ('BertModel', [2, 4, 3])
    """
    with needed_by("load_pretrained"):
        from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    path = Path(folder)
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    read: dict[str, Any] = {}
    if gguf_file is None:
        check_folder(path)
    else:
        require_packages("A GGUF file", ("gguf", "accelerate"), "gguf")
        check_gguf(path, gguf_file)
        here["gguf_file"], read["dtype"] = gguf_file, torch.float32
    try:
        with quietly():
            tokenizer = AutoTokenizer.from_pretrained(path, **here)
            config = AutoConfig.from_pretrained(path, **here)
            if gguf_file is not None:
                check_sizes(path / gguf_file, config.to_dict())
                known_heads: Any = AutoModelForCausalLM._model_mapping.get(type(config), None)
                # the file names no class, and those of llama.cpp predict the next token
                config.architectures = [getattr(known_heads, "__name__", "")]
            kind = _class_of(path, config, head)
            with torch.device("meta"):
                check_size(path, kind.from_config(config), gguf_file)
            model, told = kind.from_pretrained(
                path, config=config, output_loading_info=True, ignore_mismatched_sizes=True,
                **read, **here,
            )  # fmt: skip
            if gguf_file is not None:
                _forget_quantization(model)
            # sizes that contradict each other fail on the first sentence
            one = torch.zeros(1, 1, dtype=torch.long)
            both: dict[str, Any] = {"decoder_input_ids": one} if config.is_encoder_decoder else {}
            # of a decoder with more layers than the encoder has the cache would be too short
            if "use_cache" in inspect.signature(model.forward).parameters:
                both["use_cache"] = False
            with torch.no_grad():
                model.eval()(input_ids=one, **both)
            whole = model
            if not head and kind is AutoModelForCausalLM:
                model = model.base_model.get_decoder()
    except CapacityError:
        raise
    # the loaders raise errors of many kinds for damaged files
    except Exception as error:
        raise InvalidArgumentError(
            f"{path} must hold a model and its tokenizer that transformers can load; "
            f"{in_a_line(error)}"
        ) from None
    for name, held, asked in sorted(told["mismatched_keys"]):
        raise InvalidArgumentError(
            f"{path} must hold the weights of its config.json; {name} has the shape {tuple(held)}, "
            f"and {tuple(asked)} there. Save the model again with save_pretrained."
        )
    _require_used(path, whole, sorted(told["unexpected_keys"]))
    # poolers follow the last embeddings, which are analysed, and aren't always trained
    missing = sorted(key for key in told["missing_keys"] if not key.startswith("pooler."))
    if missing:
        raise InvalidArgumentError(
            f"{path} must hold all weights of its config.json; {len(missing)} are missing, such as "
            f"{missing[0]}, and would be random. Save the model again with save_pretrained."
        )
    known = vocabulary_size(model)
    # vocabularies are padded, but not to the double
    if known is not None and 2 * len(tokenizer) < known:
        raise InvalidArgumentError(
            f"{path} must hold the tokenizer of its model, whose vocabulary has {known:,} tokens; "
            f"{type(tokenizer).__name__} has {len(tokenizer):,}. Its files may be of another kind "
            "than config.json states: write the tokenizer there with tokenizer.save_pretrained."
        )
    return model, tokenizer


def _require_used(path: Path, model: Any, unused: Sequence[str]) -> None:
    """Refuse weights of the model's own layers that it has no place for, such as of a layer more.

    Those of heads, and of other models in the same file, are rightly unused.
    """
    lists = {name: len(of) for name, of in model.named_modules() if isinstance(of, nn.ModuleList)}
    # with weights of their own, so that another one belongs to what they compute
    computing = {
        name for name, of in model.named_modules() if any(True for _ in of.parameters(False))
    }
    prefix = f"{model.base_model_prefix}."
    # a file may name the parts of a model with its prefix or without, and so may the model
    for key, own in [(k, own) for k in unused for own in (k, k.removeprefix(prefix))]:
        for name, n in lists.items():
            number = own.removeprefix(f"{name}.").partition(".")[0]
            if own.startswith(f"{name}.") and number.isdecimal() and int(number) >= n:
                raise InvalidArgumentError(
                    f"{path} must hold the weights of its config.json, which asks for {n} of "
                    f"{name}; they have {name}.{number}, too. Write the number of the weights' "
                    "layers there, or save the model again with save_pretrained."
                )
        if own.rpartition(".")[0] in computing:
            raise InvalidArgumentError(
                f"{path} must hold the weights of its config.json, which has no place for {key}: "
                "the model would compute something else. Fix config.json, or save the model "
                "again with save_pretrained."
            )


def _forget_quantization(model: Any) -> None:
    """Make a model whose weights have been read into floats one that can be saved."""
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def _class_of(path: Path, config: Any, head: bool) -> Any:
    """Automatic class of a model, with the head of its config.json or without."""
    from transformers import (
        AutoModel,
        AutoModelForCausalLM,
        AutoModelForMaskedLM,
        AutoModelForSeq2SeqLM,
    )

    if not head:
        # a decoder that was saved alone, of a family whose models have an encoder, too
        alone = type(config).is_encoder_decoder and not config.is_encoder_decoder
        return AutoModelForCausalLM if alone else AutoModel
    wanted = (config.architectures or [""])[0]
    for kind in (AutoModelForMaskedLM, AutoModelForCausalLM, AutoModelForSeq2SeqLM):
        known: Any = kind._model_mapping.get(type(config), None)
        if known is not None and known.__name__ == wanted:
            return kind
    raise InvalidArgumentError(
        f"{path} must hold a model with a masked-LM or LM head; its config.json has {wanted!r}. "
        "Load it without head=True, or save it with its head."
    )


def tokens_of(tokenizer: Any, text: str) -> Any:
    """Tokenize a text into the tensors that the model reads.

    Raises
    ------
    InvalidArgumentError
        If the text isn't Unicode, if the tokenizer is damaged, or knows none of its words.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"The text must be Unicode; it holds {text[error.start]!r}, which is no character. "
            "Remove it."
        ) from None
    try:
        # transformers warns of a text that is too long, for which `capture` raises an error
        with quietly():
            inputs = tokenizer(text, return_tensors="pt")
    except Exception as error:
        raise InvalidArgumentError(
            f"The tokenizer must be able to read the text; {in_a_line(error)}"
        ) from None
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    words = [i for i in inputs["input_ids"].flatten().tolist() if i not in special]
    if not text.strip():
        raise InvalidArgumentError("The text must hold a word; it is empty. Pass one with --text.")
    if words and set(words) == {tokenizer.unk_token_id}:
        raise InvalidArgumentError(
            f"The tokenizer must know some of the text; all its {len(words)} words are "
            f"{tokenizer.unk_token}. Is it the tokenizer of this model, and the text in its "
            "language?"
        )
    return inputs


def inputs_of_text(
    model: Any, tokenizer: Any, text: str, part: Part | None, written: str | None = None
) -> dict[str, Any]:
    """Tokenize a text into the inputs of `capture` for a part of a model.

    Parameters
    ----------
    model : PreTrainedModel
        The model.
    tokenizer : transformers tokenizer
        Its tokenizer.
    text : str
        Text that the model reads; the encoder, if it has one.
    part : {"encoder", "decoder", "cross"}, optional
        Which attention of an encoder-decoder is meant.
    written : str, optional
        Text that the decoder reads behind the token at which it begins; by default `text`.

    Raises
    ------
    InvalidArgumentError
        As `tokens_of`, for a text of blanks alone, and if the model doesn't define at which token
        its decoder begins.
    """
    for name, one in (("text", text), ("decoder_text", written)):
        if one is not None and not one.strip():
            raise InvalidArgumentError(
                f"`{name}` must hold a word; got {one!r:.60}. Attention to the tokens that a "
                "tokenizer adds shows nothing about a text."
            )
    inputs = dict(tokens_of(tokenizer, text))
    if part not in ("decoder", "cross") or not model.config.is_encoder_decoder:
        return inputs
    ids = inputs["input_ids"] if written is None else tokens_of(tokenizer, written)["input_ids"]
    inputs["decoder_input_ids"] = nn.functional.pad(ids, (1, 0), value=decoder_start(model))
    return inputs


def decoder_start(model: Any) -> int:
    """Return the token at which the decoder of a model begins.

    Raises
    ------
    InvalidArgumentError
        If its config defines none.
    """
    names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    begins = next((at for n in names if (at := getattr(model.config, n, None)) is not None), None)
    if begins is None:
        raise InvalidArgumentError(
            "The model's config.json must state at which token its decoder begins; it has no "
            "decoder_start_token_id. Pass decoder_input_ids to capture."
        )
    return begins


@contextmanager
def quietly() -> Iterator[None]:
    """Silence transformers' progress bars and warnings."""
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
