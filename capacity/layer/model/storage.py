"""Storage of a layer in a folder: weights and configuration in one file, replaced in one step.

``weights.safetensors`` holds the weights and, in the metadata of that format, the configuration.
Since this file alone is read, a reader sees one complete save, even if writers are interrupted or
several write at once. ``config.json`` is a copy of the configuration for people; it is never read.
`WeightedModule` is what layers and decoders share: weights by name, and how they are saved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from capacity.checks import (
    MAX_TOKENS,
    WEIGHTS_BUDGET,
    require_affordable,
    require_integer,
    shown,
)
from capacity.errors import CapacityError, InvalidArgumentError, StorageError
from capacity.layer.decoder.config import DecoderConfig
from capacity.layer.model.config import AnyConfig, LayerConfig
from capacity.safe_files import read_file, require_replaceable, write_whole

WEIGHTS, COPY = "weights.safetensors", "config.json"
# the key of the configuration; one key alone, since the format doesn't keep the order of several
_KEY = "config"
_DTYPES = {"F32": torch.float32, "F64": torch.float64}
# a layer has 15 tensors at most, and a decoder as many in each of some dozens of layers
_MAX_HEADER = 2**16


def require_place(folder: str | os.PathLike[str], *others: str) -> None:
    """Create a folder, and check that a layer and other files can be written there.

    Parameters
    ----------
    folder : path
        Folder for the layer; made if it doesn't exist.
    *others : str
        Names of the other files.

    Raises
    ------
    StorageError
        If the folder can't be made, or a folder, a pipe or a device has the name of a file.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in (WEIGHTS, COPY, *others):
            require_replaceable(path / name)
    except StorageError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(
            os.fspath(path), f"can't be a folder ({reason})", "Choose another place."
        ) from None


def require_weights(config: AnyConfig, weights: Mapping[str, Tensor]) -> None:
    """Refuse weights that don't fit a configuration.

    Raises
    ------
    InvalidArgumentError
        For other names or shapes, or dtypes that aren't all float32 or all float64.
    """
    names = {dtype: name for name, dtype in _DTYPES.items()}
    found = {
        name: (names.get(tensor.dtype, str(tensor.dtype)), list(tensor.shape))
        for name, tensor in weights.items()
    }
    embedded = found.get("W_E", (None, []))[1]
    reason = _misfit(config.shapes(embedded[0] if embedded else 0), found)
    if reason is not None:
        raise InvalidArgumentError(f"The weights must be those of {config.name}: {reason}.")


def write_layer(
    folder: str | os.PathLike[str],
    config: AnyConfig,
    weights: Mapping[str, Tensor],
) -> None:
    """Write a layer's configuration and weights; `read_layer` sees all of them or none.

    Raises
    ------
    InvalidArgumentError
        If the weights don't fit the configuration, or are neither all float32 nor all float64.
    StorageError
        If a file can't be written.
    """
    from safetensors.torch import save

    require_weights(config, weights)
    sizes = {"d_vocab": len(weights["W_E"]), **config.to_dict()}
    contiguous = {name: tensor.contiguous() for name, tensor in weights.items()}
    path = Path(folder)
    write_whole(path / WEIGHTS, save(contiguous, metadata={_KEY: json.dumps(sizes)}))
    # after the weights: if they can't be written, the copy still describes the old layer
    write_whole(path / COPY, (json.dumps(sizes, indent=2) + "\n").encode())


def read_layer(
    folder: str | os.PathLike[str],
) -> tuple[AnyConfig, dict[str, Tensor]]:
    """Read what `write_layer` wrote, onto the CPU.

    The shapes stated in the file are compared with its configuration before any tensor is made.

    Returns
    -------
    config : LayerConfig or DecoderConfig
        Sizes and options.
    weights : dict of str to tensor
        Weights by name.

    Raises
    ------
    StorageError
        If there is no such file, or it isn't a regular one.
    InvalidArgumentError
        If it isn't complete, its weights don't fit its configuration, are neither all float32 nor
        all float64, or hold NaN or infinities.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = Path(folder) / WEIGHTS
    data = read_file(path, max_bytes=WEIGHTS_BUDGET + _MAX_HEADER)
    try:
        header = _header(data)
        config, d_vocab = _configuration(header.pop("__metadata__", None))
        shapes = config.shapes(d_vocab)
        reason = _misfit(shapes, {name: _stated(entry) for name, entry in header.items()})
        if reason is not None:
            raise InvalidArgumentError(reason)
        require_affordable(shapes.values())
        weights = load(data)
    except (CapacityError, SafetensorError) as error:
        raise _not_a_layer(path, str(error)) from None
    infinite = [name for name in shapes if not weights[name].isfinite().all()]
    if infinite:
        raise _not_a_layer(
            path, f"{infinite[0]} holds NaN or infinities, as after a training that diverged"
        )
    return config, {name: weights[name] for name in shapes}


Config = TypeVar("Config", LayerConfig, DecoderConfig)


class WeightedModule(nn.Module, Generic[Config]):
    """A module that is its configuration and the weights of it, and is saved as such.

    Attributes
    ----------
    config : LayerConfig or DecoderConfig
        Sizes and options.
    d_vocab : int
        Number of tokens, |T|.
    """

    config: Config
    d_vocab: int
    W_E: Float[Tensor, "d_vocab d_model"]

    @classmethod
    def of_weights(cls, config: Config, weights: Mapping[str, Tensor]) -> Self:
        """Build a module of given weights, without drawing any.

        Parameters
        ----------
        config : LayerConfig or DecoderConfig
            Sizes and options, of the class that this module takes.
        weights : mapping of str to tensor
            Tensors with the names and shapes of ``config.shapes(d_vocab)``, on one device; used
            without a copy.

        Raises
        ------
        InvalidTypeError
            For a configuration of another class.
        InvalidArgumentError
            For other names or shapes, or dtypes that aren't all float32 or all float64.
        """
        cls._require_config(config)
        require_weights(config, weights)
        module = cls.__new__(cls)
        nn.Module.__init__(module)
        module._hold(config, weights)
        return module

    @classmethod
    def _require_config(cls, config: object) -> None:
        """Refuse a configuration of another class; a subclass whose users confuse two has one."""

    def _hold(self, config: Config, weights: Mapping[str, Tensor]) -> None:
        self.config = config
        self.d_vocab = len(weights["W_E"])
        for name, tensor in weights.items():
            *path, last = name.split(".")
            module: nn.Module = self
            for step in path:
                if step not in module._modules:
                    module.add_module(step, nn.Module())
                module = module.get_submodule(step)
            module.register_parameter(last, nn.Parameter(tensor))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the weights and the configuration into a folder, in place of those there.

        ``weights.safetensors`` holds both, and is replaced in one step: `load` sees what was there
        or this module, even if the save is interrupted. The file ``config.json`` is a copy of the
        configuration for people, written last and never read.

        Parameters
        ----------
        folder : path
            The folder; made if it doesn't exist.

        Raises
        ------
        StorageError
            If a file can't be written, such as on a full disk; no part of it is left.
        InvalidArgumentError
            If the module was changed so that its weights no longer fit its configuration, or are
            neither all float32 nor all float64.
        """
        write_layer(folder, self.config, self.state_dict())


def _header(data: bytes) -> dict[str, Any]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 0 < length <= min(_MAX_HEADER, len(data) - 8):
        raise InvalidArgumentError("it doesn't begin with the header of a safetensors file")
    return _parsed(data[8 : 8 + length], "its header")


def _configuration(metadata: object) -> tuple[AnyConfig, int]:
    """Configuration and d_vocab that the metadata holds."""
    text = metadata.get(_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise InvalidArgumentError("its metadata holds no configuration")
    sizes = _parsed(text.encode("utf-8", "surrogatepass"), "its configuration")
    kind = DecoderConfig if "n_layers" in sizes else LayerConfig
    known = {"d_vocab", *(field.name for field in fields(kind))}
    if sizes.keys() != known:
        raise InvalidArgumentError(
            f"its configuration must have the keys {', '.join(sorted(known))}; it has "
            f"{shown(', '.join(sorted(sizes)))}"
        )
    d_vocab = sizes.pop("d_vocab")
    require_integer("d_vocab", d_vocab, most=MAX_TOKENS)
    return kind(**sizes), d_vocab


def _parsed(text: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object, and refuse duplicate keys, of which parsers keep different ones."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise InvalidArgumentError(f"{what} has a key twice")
        return dict(pairs)

    try:
        data = json.loads(text.decode("utf-8"), object_pairs_hook=once)
    except CapacityError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"{what} is broken JSON ({error!s:.60})") from None
    if not isinstance(data, dict):
        raise InvalidArgumentError(f"{what} must be a JSON object; got {shown(data)}")
    return data


def _stated(entry: object) -> tuple[str, Any]:
    """Dtype and shape that the header states for a tensor, even if they are none."""
    stated = entry if isinstance(entry, dict) else {}
    dtype = stated.get("dtype")
    return dtype if isinstance(dtype, str) else shown(dtype), stated.get("shape")


def _misfit(
    shapes: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[str, Any]]
) -> str | None:
    """Reason why tensors don't fit a layer's shapes and dtypes, or None if they do."""
    for what, names in (
        ("lacks", shapes.keys() - found.keys()),
        ("also has", found.keys() - shapes.keys()),
    ):
        if names:
            return (
                f"a layer of this configuration has the tensors {', '.join(shapes)}; this one "
                f"{what} {shown(', '.join(sorted(names)))}"
            )
    for name, shape in shapes.items():
        if found[name][1] != list(shape):
            return f"{name} must have the shape {list(shape)}; it has {shown(found[name][1])}"
    dtypes = sorted({dtype for dtype, _ in found.values()})
    if len(dtypes) > 1 or dtypes[0] not in _DTYPES:
        return (
            "all weights must be F32 (float32), or all F64 (float64); they are "
            f"{shown(', '.join(dtypes))}"
        )
    return None


def _not_a_layer(path: Path, reason: str) -> InvalidArgumentError:
    first = " ".join(reason.rstrip(".").split())
    return InvalidArgumentError(
        f"{path} must hold a layer that AttentionLayer.save wrote; {first}. Save the layer again."
    )
