"""Tensors in the files of other libraries: archives (``.npz``, ``.pt``), and MatrixMarket.

What an archive or a header promises is compared with the limits before anything is made of it, and
no pickle is read. A matrix is a tensor of two modes.

References
----------
R. F. Boisvert, R. Pozo, K. Remington, The Matrix Market Exchange Formats, NISTIR 5935, 1996.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any, BinaryIO

import numpy as np

from capacity.checks import in_a_line, shown
from capacity.errors import InvalidArgumentError, TensorFormatError
from capacity.reading_limits import Limits
from capacity.tensor.dense import from_coo
from capacity.tensor.formats.npy import parse_npy, refuse_order
from capacity.tensor.formats.pt import is_pt, parse_pt
from capacity.tensor.sparse import SparseTensor

ZIP, MATRIX_MARKET = b"PK\x03\x04", b"%%MatrixMarket"
# arrays of a file that `scipy.sparse.save_npz` or `sparse.save_npz` has written
_SCIPY, _COO = {"format", "shape", "data"}, {"coords", "data", "shape"}
_SIZES = re.compile(
    rb"^[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+(\d{1,18}))?[ \t]*\r?$", re.MULTILINE
)


def parse_archive(name: str, stream: BinaryIO, limits: Limits, *, max_order: int) -> SparseTensor:
    """Read an archive: of numpy (``.npz``), where it has one array or a sparse one, or of torch.

    Errors are those of `capacity.tensor.read_tensor`.
    """
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise _broken(name, "npz", error) from None
    with archive:
        sizes = {one.filename.removesuffix(".npy"): one.file_size for one in archive.infolist()}
        _refuse(name, "npz", limits.excess(grown=sum(sizes.values())))
        if is_pt(archive.namelist()):
            return parse_pt(name, archive, limits, max_order)
        if len(sizes) == 1:
            with archive.open(archive.infolist()[0]) as member:
                return parse_npy(name, io.BufferedReader(member), limits, max_order=max_order)  # type: ignore[type-var]
        if not (sizes.keys() >= _SCIPY or sizes.keys() >= _COO):
            raise TensorFormatError(
                name,
                f"it must hold one array, or a sparse one; it holds {shown(sorted(sizes))}",
                format="npz",
                advice="Save one alone: numpy.save('T.npy', numpy.load(FILE)[NAME]).",
            )
        try:
            indices, values, shape = _entries(stream, archive, sizes)
        except MemoryError:
            raise
        # what the libraries raise for a broken file is of many kinds
        except Exception as error:
            raise _broken(name, "npz", error) from None
    return _made(name, "npz", indices, values, shape, limits, max_order)


def _entries(
    stream: BinaryIO, archive: zipfile.ZipFile, sizes: dict[str, int]
) -> tuple[Any, Any, tuple[int, ...]]:
    if sizes.keys() >= _SCIPY:
        import scipy.sparse

        stream.seek(0)
        stored: Any = scipy.sparse.load_npz(stream)
        matrix = stored.tocoo()
        return np.stack(matrix.coords, axis=1), matrix.data, tuple(matrix.shape)
    arrays = {}
    for key in _COO:
        with archive.open(f"{key}.npy") as member:
            arrays[key] = np.lib.format.read_array(member, allow_pickle=False)
    if "fill_value.npy" in archive.namelist():
        with archive.open("fill_value.npy") as member:
            if np.any(np.lib.format.read_array(member, allow_pickle=False)):
                raise InvalidArgumentError("what isn't stored must be zero")
    return arrays["coords"].T, arrays["data"], tuple(arrays["shape"].tolist())


def parse_mtx(name: str, stream: BinaryIO, limits: Limits, *, max_order: int) -> SparseTensor:
    """Read a matrix in the format of MatrixMarket.

    Errors are those of `capacity.tensor.read_tensor`.
    """
    import scipy.io
    from scipy.sparse import coo_array

    text = stream.read(limits.max_bytes + 1)
    sizes = _SIZES.search(text)
    if sizes is None:
        raise _broken(name, "mtx", "no line has its sizes")
    rows, columns = int(sizes[1]), int(sizes[2])
    if sizes[3] is None:
        _refuse(name, "mtx", limits.excess(cells=rows * columns))
    else:
        # a symmetric one has each entry twice
        _refuse(name, "mtx", limits.excess(rows=2 * min(int(sizes[3]), text.count(b"\n") + 1)))
    try:
        matrix = coo_array(scipy.io.mmread(io.BytesIO(text), spmatrix=False))
    except MemoryError:
        raise
    except Exception as error:
        raise _broken(name, "mtx", error) from None
    indices = np.stack(matrix.coords, axis=1)
    return _made(name, "mtx", indices, matrix.data, (rows, columns), limits, max_order)


def _made(
    name: str,
    format: str,
    indices: Any,
    values: Any,
    shape: tuple[int, ...],
    limits: Limits,
    max_order: int,
) -> SparseTensor:
    refuse_order(name, format, len(shape), max_order)
    _refuse(name, format, limits.excess(rows=len(indices)))
    try:
        return from_coo(indices, values, shape)
    except InvalidArgumentError as error:
        raise TensorFormatError(name, str(error), format=format) from None


def _broken(name: str, format: str, error: Exception | str) -> TensorFormatError:
    said = error if isinstance(error, str) else in_a_line(error)
    reason = f"it can't be read ({said})"
    return TensorFormatError(name, reason, format=format, advice="Fetch or write it again.")


def _refuse(name: str, format: str, excess: tuple[str, str] | None) -> None:
    if excess is not None:
        raise TensorFormatError(name, excess[0], format=format, advice=excess[1])
