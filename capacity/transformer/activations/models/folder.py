"""Checks of a pretrained model's folder before transformers opens it.

transformers trusts a folder: it waits for pipes, follows an index out of the folder, and builds as
many layers and buffers as config.json asks for before it reads the weights. Here only regular files
pass, and the sizes in config.json are compared with the bytes of the weights' files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capacity.checks import require_integer, shown, written
from capacity.errors import InvalidArgumentError
from capacity.safe_files import read_file, require_regular

TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json")
# a model's configuration has a few thousand bytes, a large tokenizer 35 million
MAX_CONFIG = 2**24
MAX_TEXT = 2**28
# each layer is a module that is built; Llama 3.1 with 405 billion weights has 126
MAX_LAYERS = 512
MAX_EXPERTS = 2**10
MAX_LABELS = 2**16
MAX_BUFFERS = 2**30
_WEIGHTS = (".safetensors", ".bin")
# largest values of sizes in config.json, by how their names end; each family has its own names
_LIMITS = {
    ("layers", "layer", "groups", "group_num", "stages"): MAX_LAYERS,
    ("experts",): MAX_EXPERTS,
    ("num_labels",): MAX_LABELS,
    ("",): 2**31 - 1,
}
# what transformers has itself of each operation; any other name is one of a kernel on the hub,
# which the package `kernels` would fetch, also where nothing else is fetched
_IMPLEMENTATIONS = ("eager", "sdpa", "flex_attention", "batched_mm", "grouped_mm")
_CHOICES = ("_implementation", "_implementation_internal")
_KERNELS = ("kernel_config", "use_kernel", "use_kernels", "use_hub_kernels")
# methods of quantization whose weights are read by kernels of the hub
_QUANTIZED = ("eetq", "fbgemm_fp8", "fp8", "metal", "mxfp4", "nvfp4")
# sizes that may be 0
_MAY_BE_0 = ("num_labels", "type_vocab_size")


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds no model, or that isn't safe to open.

    Raises
    ------
    StorageError
        If something in it is a pipe, a socket or a device, or config.json or an index is too large.
    InvalidArgumentError
        If it holds no config.json, one of a model that transformers doesn't know, with sizes out
        of their range, or that would have code fetched; if it holds no tokenizer; if a text file is
        too large; or if an index of its weights names files outside the folder.
    """
    if not (folder / "config.json").exists():
        gguf = next(iter(sorted(one.name for one in folder.glob("*.gguf"))), None)
        todo = "Save the model and its tokenizer there."
        if gguf is not None:
            todo = (
                f"It holds {shown(gguf)}, which load_pretrained(folder, gguf_file=...) reads with "
                "the extra `gguf`."
            )
        raise InvalidArgumentError(
            f"{folder} must be a folder that save_pretrained of Hugging Face's transformers wrote; "
            f"it holds no config.json. {todo}"
        )
    for path in _entries(folder):
        if path.exists() and not path.is_dir():
            require_regular(path)
            if path.suffix in (".json", ".txt", ".model") and path.stat().st_size > MAX_TEXT:
                raise InvalidArgumentError(
                    f"{path} must hold at most {MAX_TEXT:,} bytes; it holds "
                    f"{path.stat().st_size:,}. No tokenizer is that large."
                )
    if not any((folder / name).exists() for name in TOKENIZERS) and not any(folder.glob("*.model")):
        # transformers would make an empty tokenizer, to which all words are unknown
        raise InvalidArgumentError(
            f"{folder} must hold the model's tokenizer, one of {', '.join(TOKENIZERS)} or *.model; "
            "write it there with tokenizer.save_pretrained."
        )
    config = _object(folder / "config.json", MAX_CONFIG)
    check_sizes(folder / "config.json", config)
    _refuse_code(folder / "config.json", config)
    for name in ("tokenizer_config.json", "generation_config.json"):
        if (folder / name).exists():
            _refuse_code(folder / name, _object(folder / name, MAX_TEXT))
    for index in folder.glob("*.index.json"):
        named = _object(index, MAX_TEXT).get("weight_map")
        for name in named.values() if isinstance(named, dict) else ():
            if not isinstance(name, str) or name != Path(name).name:
                raise InvalidArgumentError(
                    f"{index} must name files of its folder; it names {shown(name)}. Save the "
                    "model again with save_pretrained."
                )


def check_gguf(folder: Path, name: str) -> None:
    """Refuse a name that isn't that of a GGUF file in a folder.

    Raises
    ------
    StorageError
        If it is a pipe, a socket or a device.
    InvalidArgumentError
        If there is no such file, or it isn't in the folder itself, or doesn't begin as one.
    """
    if not isinstance(name, str) or name != Path(name).name:
        raise InvalidArgumentError(
            f"`gguf_file` must be the name of a file in the folder; got {shown(name)}."
        )
    path = folder / name
    if not path.is_file():
        there = ", ".join(sorted(one.name for one in folder.glob("*.gguf"))) or "none"
        raise InvalidArgumentError(
            f"`gguf_file` must be in {folder}; there is no {name}. Files that end in .gguf: "
            f"{there}."
        )
    require_regular(path)
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InvalidArgumentError(
                f"{path} must begin with GGUF, as files of llama.cpp do; it doesn't."
            )


def check_size(folder: Path, model: Any, gguf_file: str | None = None) -> None:
    """Refuse a model that has more weights than its folder can hold.

    Parameters
    ----------
    folder : Path
        Folder of the model, with its weights' files.
    model : nn.Module
        Model on the device ``meta``, where weights are shapes without numbers.
    gguf_file : str, optional
        Name of the file that holds the weights, in the place of those of save_pretrained.

    Raises
    ------
    InvalidArgumentError
        If config.json asks for more weights than the files have bytes, or for buffers of more than
        `MAX_BUFFERS` bytes.
    """
    asked = sum(parameter.numel() for parameter in model.parameters())
    held = sum(path.stat().st_size for path in folder.iterdir() if path.suffix in _WEIGHTS)
    if gguf_file is not None:
        # of the coarsest type a weight takes more than a bit
        held = 8 * (folder / gguf_file).stat().st_size
    # a weight takes at least one byte
    if asked > held:
        raise InvalidArgumentError(
            f"{folder} must hold a model and its tokenizer, with all weights of its config.json, "
            f"which asks for {asked:,} numbers; its weights' files have {held:,} bytes. Save the "
            "model again with save_pretrained."
        )
    buffers = sum(buffer.numel() * buffer.itemsize for buffer in model.buffers())
    if buffers > MAX_BUFFERS:
        raise InvalidArgumentError(
            f"{folder / 'config.json'} must ask for at most {MAX_BUFFERS:,} bytes beside the "
            f"weights, for tables of positions and the like; it asks for {buffers:,}. Reduce its "
            "max_position_embeddings."
        )


def _entries(folder: Path) -> Iterator[Path]:
    yield from folder.iterdir()
    # the only subfolder that transformers reads
    templates = folder / "additional_chat_templates"
    if templates.is_dir():
        yield from templates.iterdir()


def check_sizes(path: Path, config: dict[str, Any]) -> None:
    """Refuse a configuration of a family that isn't known, or with sizes out of their range.

    Raises
    ------
    InvalidArgumentError
        With the name of the size.
    """
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    family = config.get("model_type")
    if not isinstance(family, str) or family not in MODEL_MAPPING_NAMES:
        raise InvalidArgumentError(
            f"{path} must have a model_type that transformers knows, such as bert or llama; got "
            f"{shown(family)}. Save the model again with save_pretrained."
        )
    _check_limits(path, config)


def _refuse_code(path: Path, value: object) -> None:
    """Refuse a configuration that would have code or kernels fetched, at any depth."""
    if isinstance(value, list):
        for one in value:
            _refuse_code(path, one)
    if not isinstance(value, dict):
        return
    for name, one in value.items():
        if _names_code(name, one):
            raise InvalidArgumentError(
                f"{path} must need no code but that of transformers; {shown(name)} is "
                f"{shown(one)}, for which a program would be fetched. Nothing is fetched: remove "
                "it, or save the model again without it."
            )
        _refuse_code(path, one)


def _names_code(name: str, value: object) -> bool:
    """Return True for a part of a configuration that would have a program fetched."""
    if name.endswith(_CHOICES):
        chosen = value.values() if isinstance(value, dict) else (value,)
        return any(isinstance(one, str) and one not in _IMPLEMENTATIONS for one in chosen)
    if name == "quant_method":
        return value in _QUANTIZED
    # code of the folder itself isn't run, and needn't be, as transformers knows the model; two
    # dashes stand behind the name of another repository
    if name == "auto_map":
        return "--" in written(value)
    return name in _KERNELS and value not in (None, False)


def _check_limits(path: Path, config: dict[str, Any]) -> None:
    for name, value in config.items():
        if isinstance(value, dict):
            # configurations of an encoder and a decoder, of a text's model and an image's
            _check_limits(path, value)
        # transformers refuses, or replaces by a default, whatever isn't an integer
        if not isinstance(value, int) or isinstance(value, bool) or not _is_size(name):
            continue
        most = next(most for ends, most in _LIMITS.items() if name.endswith(ends))
        try:
            require_integer(name, value, least=0 if name in _MAY_BE_0 else 1, most=most)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{path}: {error}") from None


def _is_size(name: str) -> bool:
    """Return True for names of sizes, among those of ids of tokens and of choices."""
    return name.startswith(("num_", "n_", "d_", "max_position")) or name.endswith(
        ("_size", "_dim", "_layers", "_heads", "_groups", "_num", "dim")
    )


def _object(path: Path, max_bytes: int) -> dict[str, Any]:
    data = read_file(path, max_bytes=max_bytes)
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(
            f"{path} must hold JSON; {error!s:.60}. Save the model again with save_pretrained."
        ) from None
    if not isinstance(found, dict):
        raise InvalidArgumentError(
            f"{path} must hold a JSON object; got {shown(found)}. Save the model again with "
            "save_pretrained."
        )
    return found
