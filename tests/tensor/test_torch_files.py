"""Tensors in the files of torch: exact, without code, and without a byte beyond what is stored."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capacity import load, rank_interval
from capacity.errors import DatabaseFormatError, MissingExtraError, TensorFormatError
from capacity.tensor import as_tensor, from_dense, read_tensor
from tests.commands import run, run_json

torch = pytest.importorskip("torch")
# of torch about sparse matrices, as tests make them
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
# the W state, whose rank is 3
W = [[[0, 1], [1, 0]], [[1, 0], [0, 0]]]
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
          "float16", "bfloat16", "float32", "float64")  # fmt: skip


def saved(path: Path, held: object) -> Path:
    torch.save(held, path)
    return path


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_of_each_type_is_read_as_it_was_saved(dtype: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "w.pt", torch.tensor(W, dtype=getattr(torch, dtype)))
    assert read_tensor(path) == as_tensor(str(path)) == from_dense(W)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63) + 1, 2**53 + 1])
def test_integers_are_exact(value: int, tmp_path: Path) -> None:
    path = saved(tmp_path / "w.pt", torch.tensor([[value, 0], [0, 1]]))
    assert read_tensor(path).values.tolist() == [value, 1]


@pytest.mark.parametrize(
    ("dtype", "value", "reason"),
    [
        ("float64", 0.5, r"got 0\.5 at \[0, 0\]"), ("float64", 2.0**53, "rounded"),
        ("float32", 2.0**24, "rounded"), ("float16", 2.0**11, "rounded"),
        ("bfloat16", 2.0**8, "rounded"), ("float64", float("nan"), "finite"),
        ("int64", -(2**63), "63"), ("complex64", 1j, "complex64"),
    ],
)  # fmt: skip
def test_what_isnt_an_integer_or_may_be_rounded_is_refused(
    dtype: str, value: complex, reason: str, tmp_path: Path
) -> None:
    path = saved(tmp_path / "w.pt", torch.tensor([[value]], dtype=getattr(torch, dtype)))
    with pytest.raises(TensorFormatError, match=rf"w\.pt.*{reason}"):
        read_tensor(path)


# ways to hold the same numbers
FORMS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda t: t.permute(2, 1, 0).contiguous().permute(2, 1, 0),
    "part of a larger one": lambda t: torch.stack([t - 5, t, t + 5])[1],
    "every second row": lambda t: torch.repeat_interleave(t, 2, dim=0)[::2],
    "parameter": lambda t: torch.nn.Parameter(t.float()),
    "with a gradient": lambda t: t.double().requires_grad_(),
    "negated view": lambda t: torch._neg_view(-t.float()),
    "coo": lambda t: t.to_sparse(),
    "coo, with places twice": lambda t: torch.sparse_coo_tensor(
        torch.cat([t.to_sparse().indices()] * 2, dim=1),
        torch.cat([t.to_sparse().values() + 127, t.to_sparse().values() - 128]).to(torch.int16),
        t.shape,
    ),
    "a batch of csr": lambda t: torch.stack([one.to_sparse_csr().to_dense() for one in t]),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_tensor_is_read(form: str, tmp_path: Path) -> None:
    assert read_tensor(saved(tmp_path / "w.pt", FORMS[form](torch.tensor(W)))) == from_dense(W)


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_compressed_matrices_are_read(layout: str, tmp_path: Path) -> None:
    matrix = torch.tensor([[0, 3, 0, 1], [0, 0, 0, 0], [2, 0, 0, -7], [0, 0, 1, 0]])
    size = ((2, 2),) if layout[0] == "b" else ()
    stored = getattr(matrix, f"to_sparse_{layout}")(*size)
    assert read_tensor(saved(tmp_path / "m.pt", stored)) == from_dense(matrix.numpy())


def test_places_that_stand_twice_are_added_exactly(tmp_path: Path) -> None:
    # 100 + 100 is -56 in eight bits
    twice = torch.tensor([100, 100], dtype=torch.int8)
    held = torch.sparse_coo_tensor(torch.tensor([[0, 0], [1, 1]]), twice, (2, 2))
    assert as_tensor(held).values.tolist() == [200]
    assert read_tensor(saved(tmp_path / "m.pt", held)).values.tolist() == [200]


HELD: dict[str, tuple[Callable[[], Any], str]] = {
    "state dict": (lambda: torch.nn.Linear(2, 2).state_dict(), r"'weight', 'bias'.*\[NAME\]"),
    "state dict of one": (lambda: {"only": torch.ones(2, 2)}, "'only'"),
    "checkpoint": (lambda: {"model": {"w": torch.ones(2)}, "epoch": 3}, "'model', 'epoch'"),
    "list": (lambda: [torch.ones(2), torch.ones(2)], "a list of 2"),
    "number": (lambda: 7, "type int"),
    "model": (lambda: torch.nn.Linear(2, 2), r"torch\.nn.*Linear.*not read"),
    "array": (lambda: np.ones((2, 2)), "numpy.*not read"),
    "of this test": (lambda: Harmful(), "not read"),
    "bytes without end": (lambda: Bomb(), "bytearray.*not read"),
    "no modes": (lambda: torch.tensor(3), "mode"),
    "nothing": (lambda: torch.ones(2, 0), r"shape\[1\]"),
}


class Harmful:
    def __reduce__(self) -> Any:
        return os.system, ("touch harmed",)


class Bomb:
    def __reduce__(self) -> Any:
        return bytearray, (2**40,)


@pytest.mark.parametrize("name", HELD)
def test_what_is_no_tensor_is_named_and_no_code_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, reason = HELD[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TensorFormatError, match=rf"(?s)x\.pt.*{reason}"):
        read_tensor(saved(tmp_path / "x.pt", made()))
    assert not (tmp_path / "harmed").exists()


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A file of torch with other members."""
    with zipfile.ZipFile(path) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            if (new := change(name, data)) is not None:
                archive.writestr(name, new)
    return path


BROKEN: dict[str, Callable[[str, bytes], bytes | None]] = {
    # torch itself would read beyond the end
    "numbers that aren't stored": lambda name, data: data[:8] if "/data/" in name else data,
    "no numbers": lambda name, data: None if "/data/" in name else data,
    "no program": lambda name, data: b"" if name.endswith("data.pkl") else data,
    "a cut program": lambda name, data: data[:-9] if name.endswith("data.pkl") else data,
    "another order of bytes": lambda name, data: b"big" if name.endswith("order") else data,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_told(name: str, tmp_path: Path) -> None:
    path = rewritten(saved(tmp_path / "w.pt", torch.tensor(W)), BROKEN[name])
    with pytest.raises(TensorFormatError, match=r"w\.pt"):
        read_tensor(path)


def test_limits_hold(tmp_path: Path) -> None:
    # one number that stands for 10^12
    path = saved(tmp_path / "a.pt", torch.ones(1, dtype=torch.int8).expand(10**6, 10**6))
    with pytest.raises(TensorFormatError, match="cells"):
        read_tensor(path)
    path = saved(tmp_path / "b.pt", torch.ones(100, 100))
    with pytest.raises(TensorFormatError, match="rows"):
        read_tensor(path, max_rows=1000)
    with pytest.raises(TensorFormatError, match="2 modes"):
        read_tensor(path, max_order=1)
    with zipfile.ZipFile(tmp_path / "c.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(200 * 2**20))
    with pytest.raises(TensorFormatError, match="decompresses"):
        read_tensor(tmp_path / "c.pt")


@pytest.mark.parametrize("suffix", ["pt", "pth", "pt.gz", "txt"])
def test_the_command_ranks_it_by_its_content(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import gzip

    path = saved(tmp_path / f"w.{suffix}", torch.tensor(W))
    if suffix.endswith("gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    options = ("--format", "pt") if suffix == "txt" else ()
    assert run_json(capsys, "rank", str(path), *options)["rank"]["upper"] == 3
    assert rank_interval(read_tensor(path)) == (3, 3)
    code, said, _ = run(capsys, "verify", str(tmp_path / "none.json"), str(path), *options)
    assert code == 2, said


def test_facts_arent_read_from_it(tmp_path: Path) -> None:
    path = saved(tmp_path / "w.pt", torch.tensor(W))
    with pytest.raises(DatabaseFormatError, match=r"ends in \.pt"):
        load(path)


def test_old_files_and_pickles_are_told(tmp_path: Path) -> None:
    torch.save(torch.tensor(W), tmp_path / "w.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(TensorFormatError, match=r"before 1\.6.*torch\.save\(torch\.load"):
        read_tensor(tmp_path / "w.pt")
    (tmp_path / "w.pkl").write_bytes(pickle.dumps(np.array(W)))
    with pytest.raises(TensorFormatError, match=r"pickle.*numpy\.save"):
        read_tensor(tmp_path / "w.pkl")


def test_without_torch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "w.pt", torch.tensor(W))
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"w\.pt.*torch.*layers"):
        read_tensor(path)


def test_other_archives_are_read_without_torch(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", T=np.array(W))
    program = (
        "import sys; from capacity.tensor import read_tensor; read_tensor('w.npz'); "
        "print('torch' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "False"


def test_the_bytes_of_an_archive_may_be_read_from_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held = io.BytesIO(saved(tmp_path / "w.pt", torch.tensor(W)).read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(held))
    assert run_json(capsys, "rank", "-")["rank"]["upper"] == 3
