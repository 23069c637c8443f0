"""A pretrained model's folder, looked at before transformers opens it.

transformers trusts what a folder says: it waits for pipes, follows an index out of the folder, and
builds as many layers and buffers as config.json asks for before it looks at the weights. Here
nothing but regular files is let through, and what config.json asks for is held against the bytes
that the weights' files have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capacity.errors import InvalidArgumentError
from capacity.limits import require_integer, shown
from capacity.safe_files import read_file, require_regular
from capacity.transformer.activations.families import FAMILIES

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json")
# a model's configuration has a few thousand bytes, a large tokenizer 35 million
MAX_CONFIG = 2**24
MAX_TEXT = 2**28
# each layer is a module that is built; the largest models of the day have 126
MAX_LAYERS = 512
MAX_LABELS = 2**16
MAX_BUFFERS = 2**30
_WEIGHTS = (".safetensors", ".bin")
# what families call their sizes, and what each may be at most
_LIMITS = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_hidden_groups", "inner_group_num"),
                    MAX_LAYERS),
    "num_labels": MAX_LABELS,
    **dict.fromkeys(
        ("vocab_size", "type_vocab_size", "hidden_size", "n_embd", "embedding_size",
         "num_attention_heads", "n_head", "num_key_value_heads", "head_dim", "intermediate_size",
         "n_inner", "max_position_embeddings", "n_positions"),
        2**31 - 1,
    ),
}  # fmt: skip


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds no model, or one that it isn't safe to open.

    Raises
    ------
    StorageError
        If something in it is a pipe, a socket or a device, or a text file is too large.
    InvalidArgumentError
        If it holds no config.json, one of a family that isn't known or with sizes out of their
        range, or no tokenizer; or if an index of its weights leads out of it.
    """
    if not (folder / "config.json").exists():
        raise InvalidArgumentError(
            f"{folder} must be a folder that save_pretrained of Hugging Face's transformers has "
            "written; it holds no config.json."
        )
    for path in _entries(folder):
        if path.exists() and not path.is_dir():
            require_regular(path)
            if path.suffix in (".json", ".txt", ".model") and path.stat().st_size > MAX_TEXT:
                raise InvalidArgumentError(
                    f"{path} must hold at most {MAX_TEXT:,} bytes; it holds "
                    f"{path.stat().st_size:,}."
                )
    if not any((folder / name).exists() for name in TOKENIZERS) and not any(folder.glob("*.model")):
        # transformers would make an empty one, to which all words are unknown
        raise InvalidArgumentError(
            f"{folder} must hold the model's tokenizer, one of {', '.join(TOKENIZERS)} or *.model; "
            "write it there with tokenizer.save_pretrained."
        )
    _check_sizes(folder / "config.json", _object(folder / "config.json", MAX_CONFIG))
    for index in folder.glob("*.index.json"):
        named = _object(index, MAX_TEXT).get("weight_map")
        for name in named.values() if isinstance(named, dict) else ():
            if not isinstance(name, str) or name != Path(name).name:
                raise InvalidArgumentError(
                    f"{index} must name files of its folder; it names {shown(name)}."
                )


def check_size(folder: Path, model: Any) -> None:
    """Refuse a model that has more weights than its folder can hold.

    Parameters
    ----------
    folder : Path
    model : nn.Module
        On the device ``meta``, where weights have shapes and nothing else.

    Raises
    ------
    InvalidArgumentError
    """
    asked = sum(parameter.numel() for parameter in model.parameters())
    held = sum(path.stat().st_size for path in folder.iterdir() if path.suffix in _WEIGHTS)
    # a weight takes a byte at least
    if asked > held:
        raise InvalidArgumentError(
            f"{folder} must hold a model and its tokenizer, with all weights of its config.json, "
            f"which asks for {asked:,} numbers; its weights' files have {held:,} bytes."
        )
    buffers = sum(buffer.numel() * buffer.itemsize for buffer in model.buffers())
    if buffers > MAX_BUFFERS:
        raise InvalidArgumentError(
            f"{folder / 'config.json'} must ask for at most {MAX_BUFFERS:,} bytes beside the "
            f"weights, for tables of positions and the like; it asks for {buffers:,}."
        )


def _entries(folder: Path) -> Iterator[Path]:
    yield from folder.iterdir()
    # the only folder below that transformers looks into
    templates = folder / "additional_chat_templates"
    if templates.is_dir():
        yield from templates.iterdir()


def _check_sizes(path: Path, config: dict[str, Any]) -> None:
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    family = config.get("model_type")
    known = {
        name for name, kind in MODEL_MAPPING_NAMES.items()
        if isinstance(kind, str) and kind in FAMILIES
    }  # fmt: skip
    if not isinstance(family, str) or family not in known:
        raise InvalidArgumentError(
            f"{path} must have the model_type of a family that is known, one of "
            f"{', '.join(sorted(known))}; got {shown(family)}. "
            "capacity/transformer/activations/families.py says how to register one."
        )
    for name, most in _LIMITS.items():
        # whatever isn't an integer, transformers refuses or has a default for
        if isinstance(config.get(name), int):
            least = 0 if name in ("num_labels", "type_vocab_size") else 1
            try:
                require_integer(name, config[name], least=least, most=most)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{path}: {error}") from None


def _object(path: Path, max_bytes: int) -> dict[str, Any]:
    data = read_file(path, max_bytes=max_bytes)
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{path} must hold JSON; {error!s:.60}.") from None
    if not isinstance(found, dict):
        raise InvalidArgumentError(f"{path} must hold a JSON object; got {shown(found)}.")
    return found
