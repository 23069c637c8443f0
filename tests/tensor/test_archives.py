"""Tensors in the files of numpy, scipy, sparse and MatrixMarket, and those that are told."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from capacity import load
from capacity.errors import DatabaseFormatError, InvalidArgumentError, TensorFormatError
from capacity.rank import verify_decomposition
from capacity.tensor import from_dense, matrix_multiplication, read_tensor
from tests.commands import run, run_json

MATRICES = st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=4)


@given(MATRICES, st.sampled_from(["csr", "csc", "coo", "bsr", "dia", "npz", "mtx", "mtx.gz", "T"]))
def test_a_matrix_comes_back_from_each_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[int]], kind: str
) -> None:
    folder, matrix = tmp_path_factory.mktemp("matrices"), np.array(rows)
    path = folder / f"m.{kind if 'mtx' in kind else 'npz'}"
    if kind in ("npz", "T"):
        arrays: dict[str, Any] = {"T" if kind == "T" else "arr_0": matrix}
        np.savez_compressed(path, **arrays)
    elif "mtx" in kind:
        held = io.BytesIO()
        scipy.io.mmwrite(held, scipy.sparse.coo_array(matrix))
        text = held.getvalue()
        path.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    else:
        stored: Any = scipy.sparse.coo_array(matrix)
        scipy.sparse.save_npz(path, stored.asformat(kind))
    assert read_tensor(path) == from_dense(matrix)


def test_a_sparse_array_of_any_order_is_read(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "coords": np.array([[0, 1], [1, 0], [1, 1]]), "data": np.array([3, -4]),
        "shape": np.array([2, 2, 2]), "fill_value": np.array(0),
    }  # fmt: skip
    np.savez(tmp_path / "a.npz", **arrays)
    expected = np.zeros((2, 2, 2), int)
    expected[0, 1, 1], expected[1, 0, 1] = 3, -4
    assert read_tensor(tmp_path / "a.npz") == from_dense(expected)
    np.savez(tmp_path / "a.npz", **{**arrays, "fill_value": np.array(1)})
    with pytest.raises(TensorFormatError, match="what isn't stored must be zero"):
        read_tensor(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["array", "symmetric"])
def test_other_forms_of_matrix_market_are_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    head = "%%MatrixMarket matrix "
    if kind == "array":
        # by columns
        path.write_text(f"{head}array integer general\n% said\n2 2\n1\n2\n3\n4\n")
        expected = [[1, 3], [2, 4]]
    else:
        path.write_text(f"{head}coordinate integer symmetric\n2 2 2\n1 1 5\n2 1 7\n")
        expected = [[5, 7], [7, 0]]
    assert read_tensor(path) == from_dense(expected)


BROKEN: dict[str, tuple[bytes, str]] = {
    "a.npz": (b"PK\x03\x04 and no archive", "it can't be read"),
    "b.mtx": (b"%%MatrixMarket matrix coordinate integer general\n", "no line has its sizes"),
    "c.mtx": (b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 x 3\n", "can't be read"),
    "d.mtx": (b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 0.5\n", "integer"),
    "e.mtx": (b"%%MatrixMarket matrix coordinate integer general\n2 2 1\n3 1 1\n", "can't be read"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_named(name: str, tmp_path: Path) -> None:
    data, reason = BROKEN[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(TensorFormatError, match=rf"{name}.*{reason}"):
        read_tensor(tmp_path / name)


def test_what_a_file_promises_is_held_against_the_limits(tmp_path: Path) -> None:
    head = b"%%MatrixMarket matrix "
    (tmp_path / "a.mtx").write_bytes(head + b"array integer general\n99999999 99999999\n1\n")
    (tmp_path / "b.mtx").write_bytes(
        head + b"coordinate integer general\n9 9 999999999\n" + b"1 1 1\n" * 200_000
    )
    with zipfile.ZipFile(tmp_path / "c.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        held = io.BytesIO()
        np.save(held, np.zeros(30_000_000))
        archive.writestr("T.npy", held.getvalue())
    for name, reason in (("a.mtx", "cells"), ("b.mtx", "rows"), ("c.npz", "decompresses to over")):
        with pytest.raises(TensorFormatError, match=reason):
            read_tensor(tmp_path / name, max_rows=1000 if name == "b.mtx" else None)


def test_several_arrays_and_other_programs_files_are_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=1, b=2)
    with pytest.raises(TensorFormatError, match=r"must hold one array.*'a', 'b'.*numpy\.load"):
        read_tensor(tmp_path / "a.npz")
    scipy.io.savemat(tmp_path / "a.mat", {"T": np.ones((2, 2))})
    with pytest.raises(TensorFormatError, match=r"scipy\.io\.loadmat"):
        read_tensor(tmp_path / "a.mat")
    # of MATLAB 4, which has no such beginning, and of 7.3, which is HDF5
    scipy.io.savemat(tmp_path / "b.mat", {"T": np.ones((2, 2))}, format="4")
    (tmp_path / "c.mat").write_bytes(
        b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM" + bytes(384) + b"\x89HDF"
    )
    for name, what in (("b.mat", r"scipy\.io\.loadmat"), ("c.mat", r"h5py\.File\(FILE\).*\.T\)")):
        with pytest.raises(TensorFormatError, match=what):
            read_tensor(tmp_path / name)
    for name, what in (
        ("a.mat", "a MATLAB file"),
        ("c.mat", "HDF5.*h5py"),
        ("a.npz", "ends in .npz"),
    ):
        with pytest.raises(DatabaseFormatError, match=what):
            load(tmp_path / name)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", T=np.array([{}], dtype=object))
    with pytest.raises(TensorFormatError, match="Pickled objects are not read"):
        read_tensor(tmp_path / "a.npz")


def test_the_command_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "w.npz", T=np.array([[[0, 1], [1, 0]], [[1, 0], [0, 0]]]))
    # the W state
    assert run_json(capsys, "rank", str(tmp_path / "w.npz"))["rank"]["upper"] == 3
    (tmp_path / "m").write_text("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1\n")
    code, _, _ = run(capsys, "rank", str(tmp_path / "m"), "--format", "mtx")
    assert code == 0


STRASSEN = [
    ([1, 0, 0, 1], [1, 0, 0, 1], [1, 0, 0, 1]), ([0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 1, -1]),
    ([1, 0, 0, 0], [0, 1, 0, -1], [0, 1, 0, 1]), ([0, 0, 0, 1], [-1, 0, 1, 0], [1, 0, 1, 0]),
    ([1, 1, 0, 0], [0, 0, 0, 1], [-1, 1, 0, 0]), ([-1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]),
    ([0, 1, 0, -1], [0, 0, 1, 1], [1, 0, 0, 0]),
]  # fmt: skip


def factors() -> list[Any]:
    return [np.array([term[mode] for term in STRASSEN]).T for mode in range(3)]


@pytest.mark.parametrize("part", [2, 4, 64])
def test_floats_that_are_parts_of_whole_numbers_are_taken_as_they_are(part: int) -> None:
    u, v, w = factors()
    product = matrix_multiplication(2, 2, 2)
    assert verify_decomposition(product, [u / part, v * float(part), w]).proved
    assert not verify_decomposition(product, [u / part, v, w]).proved


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "complex64"])
def test_factors_of_torch_are_taken_by_their_values(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    u, v, w = (torch.tensor(factor).to(getattr(torch, dtype)) for factor in factors())
    product = matrix_multiplication(2, 2, 2)
    given = [(u / 2).requires_grad_(), v * 2, w.to_sparse() if dtype == "float64" else w]
    assert verify_decomposition(product, given).proved
    with pytest.raises(InvalidArgumentError, match="whole numbers, halves, quarters"):
        verify_decomposition(product, [u / 3, v * 3, w])


@pytest.mark.parametrize("sides", [(2, 2, 2), (2, 3, 4), (3, 1, 2)])
def test_the_factors_of_the_transposed_product_are_named(sides: tuple[int, int, int]) -> None:
    n, m, p = sides
    # a term for each entry of the product
    terms = [
        (i * m + j, j * p + k, i * p + k) for i in range(n) for j in range(m) for k in range(p)
    ]
    given = [np.eye(size, dtype=int)[:, list(rows)] for size, rows in
             zip((n * m, m * p, n * p), zip(*terms, strict=True), strict=True)]  # fmt: skip
    product = matrix_multiplication(*sides)
    assert verify_decomposition(product, given).proved
    rank = len(terms)
    other = given[2].reshape(n, p, rank).transpose(1, 0, 2).reshape(n * p, rank)
    verdict = verify_decomposition(product, [*given[:2], other])
    assert not verdict.proved
    said = f"C.reshape({p}, {n}, {rank}).transpose(1, 0, 2).reshape({n * p}, {rank})"
    assert said in str(verdict.reason)
    # what is said proves it
    again = other.reshape(p, n, rank).transpose(1, 0, 2).reshape(n * p, rank)
    assert verify_decomposition(product, [*given[:2], again]).proved


def test_other_factors_have_no_hint() -> None:
    u, v, w = factors()
    verdict = verify_decomposition(matrix_multiplication(2, 2, 2), [u, v, w[::-1]])
    assert "transposed" not in str(verdict.reason)
