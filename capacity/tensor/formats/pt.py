"""Tensors as torch saves them (``.pt``), without pickled objects.

torch alone understands the program of such a file, and lets it name none but tensors
(``weights_only``). It is run without the numbers (``map_location="meta"``): this yields type, shape
and strides, which are compared with what is stored, for torch would read beyond it.
"""

from __future__ import annotations

import io
import math
import pickletools
import sys
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

from capacity.checks import in_a_line, shown
from capacity.errors import InvalidArgumentError, TensorFormatError
from capacity.optional import needed_by
from capacity.reading_limits import Limits
from capacity.tensor.coordinates import checked_shape
from capacity.tensor.dense import from_dense
from capacity.tensor.formats.npy import refuse_order
from capacity.tensor.sparse import SparseTensor

if TYPE_CHECKING:
    import torch

# the program, within the folder of an archive
PROGRAM = "data.pkl"
# how a file begins that torch wrote before 1.6, and any pickle
OLD, PICKLE = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.", b"\x80"
# what the program of tensors names: `weights_only` allows some others, as bytes of any length
_MODULES = {"torch", "torch._utils", "torch._tensor", "torch.serialization", "torch.storage"}
_NAMES = {"collections OrderedDict", "torch.nn.parameter Parameter"}
# bools, integers and floats: not complex numbers, and none of eight bits that are quantised
_TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
          "float16", "bfloat16", "float32", "float64")  # fmt: skip
# keys that a message lists
_SHOWN = 10
_ALONE = "Save a tensor alone: torch.save(tensor, 'T.pt')."


def is_pt(names: list[str]) -> bool:
    """Return whether torch has written an archive, by the names in it."""
    return any(name.endswith(f"/{PROGRAM}") for name in names)


def parse_pt(name: str, archive: zipfile.ZipFile, limits: Limits, max_order: int) -> SparseTensor:
    """Read the only tensor of an archive that ``torch.save`` has written.

    Parameters
    ----------
    name : str
        Path of the file, for messages.
    archive : ZipFile
        The whole file, whose size is within the limits.
    limits : Limits
        Limits of reading it.
    max_order : int
        Maximum of the modes.

    Raises
    ------
    TensorFormatError
        If it holds anything else than one tensor, which is then named, a tensor of other numbers
        than bools, integers and floats, or fewer numbers than its shape promises; if an entry isn't
        an integer of at most 63 bits, or there are more than the limits allow.
    MissingExtraError
        If torch isn't installed.
    """
    with needed_by(f"Reading {name}"):
        import torch
    try:
        folder = next(one for one in archive.namelist() if one.endswith(f"/{PROGRAM}"))[:-8]
        program = archive.read(folder + PROGRAM)
        _refuse_others(name, program)
        held = _without_numbers(program, archive.namelist(), folder)
        order = folder + "byteorder"
        if order in archive.namelist() and archive.read(order).decode() != sys.byteorder:
            raise InvalidArgumentError(
                f"its bytes aren't in the order of this machine, {sys.byteorder}"
            )
    except (TensorFormatError, MemoryError):
        raise
    # what torch and zipfile raise for a broken file is of many kinds
    except Exception as error:
        raise _broken(name, error) from None
    if not isinstance(held, torch.Tensor):
        reason, advice = _what(held)
        raise TensorFormatError(name, reason, format="pt", advice=advice)
    _require_fitting(name, held, limits, max_order)
    try:
        tensor = _with_numbers(held, archive, f"{folder}data/")
        n_entries = int(tensor.count_nonzero()) if limits.max_rows is not None else 0
    except MemoryError:
        raise
    except Exception as error:
        raise _broken(name, error) from None
    _refuse(name, limits.excess(rows=n_entries))
    try:
        return from_dense(tensor)
    except InvalidArgumentError as error:
        raise TensorFormatError(name, str(error), format="pt") from None


def old_or_pickle(beginning: bytes) -> tuple[str, str] | None:
    """Explain what is wrong with a file of this beginning; None if it is no pickle."""
    if beginning.startswith(OLD):
        advice = "Write it again: torch.save(torch.load(FILE), 'T.pt')."
        return "it has the form that torch had before 1.6, which isn't read", advice
    # protocols 2 to 5 begin so
    if beginning.startswith(PICKLE) and beginning[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        advice = "Save an array of it: numpy.save('T.npy', array)."
        return "it is a pickle, which may hold any program and isn't read", advice
    return None


def _refuse_others(name: str, program: bytes) -> None:
    for step, said, _ in pickletools.genops(program):
        module = str(said).partition(" ")[0]
        # that of protocol 4 takes what it names from the stack, and torch writes none
        if step.name in ("GLOBAL", "INST", "STACK_GLOBAL") and not (
            module in _MODULES or said in _NAMES
        ):
            what = str(said or "an object").replace(" ", ".")
            raise TensorFormatError(
                name, f"it holds {shown(what)[1:-1]}, and pickled objects are not read",
                format="pt", advice=_ALONE,
            )  # fmt: skip


def _without_numbers(program: bytes, names: list[str], folder: str) -> Any:
    """Run the program of a file, which makes tensors that have a shape and no numbers."""
    import torch

    # torch sees no other byte of the file; it asks for the places of numbers by their names
    stored = [one.removeprefix(folder) for one in names if one.startswith(f"{folder}data/")]
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as alone:
        for member, data in {
            PROGRAM: program,
            "version": b"3\n",
            **dict.fromkeys(stored, b""),
        }.items():
            alone.writestr(f"archive/{member}", data)
    held.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.load(held, map_location="meta", weights_only=True)


def _what(held: object) -> tuple[str, str]:
    """Explain what a file holds in place of a tensor, and what to do."""
    if isinstance(held, dict):
        advice = "Save one alone: torch.save(torch.load(FILE)[NAME], 'T.pt')."
        names = ", ".join(map(shown, list(held)[:_SHOWN])) + ", ..." * (len(held) > _SHOWN)
        return f"it must hold a tensor; it holds a dict with the keys {names or 'none'}", advice
    kind = type(held).__name__
    if isinstance(held, list | tuple):
        advice = "Save one alone: torch.save(torch.load(FILE)[0], 'T.pt')."
        return f"it must hold a tensor; it holds a {kind} of {len(held)}", advice
    return f"it must hold a tensor; it holds an object of type {kind}", _ALONE


def _require_fitting(name: str, held: torch.Tensor, limits: Limits, max_order: int) -> None:
    """Refuse a type that isn't read, and what is larger than the limits."""
    if str(held.dtype).removeprefix("torch.") not in _TYPES:
        raise TensorFormatError(
            name, f"it must hold bools, integers or floats; it holds {held.dtype}", format="pt",
            advice="Convert it: torch.save(tensor.long(), 'T.pt').",
        )  # fmt: skip
    try:
        shape = checked_shape(tuple(held.shape))
    except InvalidArgumentError as error:
        raise TensorFormatError(name, str(error), format="pt") from None
    refuse_order(name, "pt", len(shape), max_order)
    sizes = {"cells": math.prod(shape)}
    if "sparse" in str(held.layout):
        sizes = {"rows": math.prod(_parts(held)[-1].shape)}
    _refuse(name, limits.excess(**sizes))


def _parts(held: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Dense tensors that a tensor is made of, in the order in which torch writes them."""
    layout = str(held.layout)
    if "coo" in layout:
        return held._indices(), held._values()
    if layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        return held.crow_indices(), held.col_indices(), held.values()
    if "sparse" in layout:
        return held.ccol_indices(), held.row_indices(), held.values()
    return (held,)


def _with_numbers(held: torch.Tensor, archive: zipfile.ZipFile, folder: str) -> torch.Tensor:
    """Make a tensor of the numbers that are stored."""
    import torch

    parts = _parts(held)
    stored = sorted(one for one in archive.namelist() if one.startswith(folder))
    # one may have any name
    if len(stored) != len(parts) or (
        len(parts) > 1 and stored != [f"{folder}{i}" for i in range(len(parts))]
    ):
        raise InvalidArgumentError(f"for {len(parts)} arrays it has stored {shown(stored)}")
    read = (archive.read(one) for one in stored)
    dense = [_strided(part, data) for part, data in zip(parts, read, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "coo" in str(held.layout):
            places, values = dense
            return torch.sparse_coo_tensor(places, values, held.shape, check_invariants=True)
        if len(dense) > 1:
            starts, places, values = dense
            return torch.sparse_compressed_tensor(
                starts, places, values, size=held.shape, layout=held.layout, check_invariants=True
            )
    return dense[0]


def _strided(part: torch.Tensor, data: bytes) -> torch.Tensor:
    """Make a dense tensor of bytes; torch refuses strides that lead beyond them."""
    import torch

    if part.device.type != "meta" or not data:
        raise InvalidArgumentError("its numbers aren't where they are declared")
    # a byte of another value than 0 and 1 is no bool
    read = torch.uint8 if part.dtype == torch.bool else part.dtype
    numbers = torch.frombuffer(bytearray(data), dtype=read)
    placed = numbers.as_strided(part.size(), part.stride(), part.storage_offset())
    if part.dtype == torch.bool:
        return placed != 0
    return -placed if part.is_neg() else placed


def _refuse(name: str, excess: tuple[str, str] | None) -> None:
    if excess is not None:
        raise TensorFormatError(name, excess[0], format="pt", advice=excess[1])


def _broken(name: str, error: Exception) -> TensorFormatError:
    reason = f"it can't be read ({in_a_line(error)})"
    return TensorFormatError(name, reason, format="pt", advice="Fetch or write it again.")
