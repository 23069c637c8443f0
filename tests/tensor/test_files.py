"""Files of tensors: what is written is read, and what is broken is refused with its place."""

import contextlib
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import (
    CapacityError,
    CountedFromZeroWarning,
    InvalidArgumentError,
    InvalidTypeError,
    MemoryBudgetError,
    StorageError,
    TensorFormatError,
)
from capacity.tensor import SparseTensor, from_coo, from_dense, read_tensor, write_tensor
from capacity.tensor.files import SUFFIXES
from capacity.tensor.formats.npy import npy_bytes, parse_npy
from capacity.tensor.formats.tns import BLOCK, parse_tns, tns_text
from capacity.testing import integer_tensors
from tests.tiers import examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tensors")


@given(tensor=integer_tensors(), suffix=st.sampled_from(SUFFIXES))
def test_what_is_written_is_read(folder: Path, tensor: SparseTensor, suffix: str) -> None:
    path = folder / f"tensor{suffix}"
    write_tensor(tensor, path)
    before = path.read_bytes()
    assert read_tensor(path) == read_tensor(str(path)) == tensor
    # the same tensor gives the same file
    write_tensor(tensor, path)
    assert path.read_bytes() == before


def test_the_format_is_told_by_the_first_bytes(tmp_path: Path) -> None:
    T = from_dense([[0, 5], [0, 0]])
    write_tensor(T, tmp_path / "a.npy")
    (tmp_path / "a.npy").rename(tmp_path / "a.tns")
    assert read_tensor(tmp_path / "a.tns") == T


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Piped:
        buffer = io.BytesIO(gzip.compress(b"1 1 5\n"))

    monkeypatch.setattr("sys.stdin", Piped)
    assert read_tensor("-") == from_dense([[5]])


# ---- text ---------------------------------------------------------------------------------------


def test_text_of_frostt_is_read() -> None:
    text = b"""\xef\xbb\xbf# a comment with 1_000 signs
    # Shape: 3  3 4

    1 2\t3 -4\r
    2 2 2 1.000
    2 2 2 2e0
    3 1 1 -.5e+1
    1 1 1 0
    """
    # the two values at (1, 1, 1) are added up, and the zero is dropped
    want = from_coo([[0, 1, 2], [1, 1, 1], [2, 0, 0]], [-4, 3, -5], (3, 3, 4))
    assert parse_tns("a.tns", io.BytesIO(text)) == want
    # without the comment the shape is that of the largest indices
    assert parse_tns("a.tns", io.BytesIO(text.replace(b"Shape", b"Size"))).shape == (3, 2, 3)
    assert parse_tns("a.tns", io.BytesIO(b"# shape: 2 2")).n_entries == 0
    assert parse_tns("a.tns", io.BytesIO(b"7 9223372036854775807")).largest == 2**63 - 1


def test_the_header_of_the_tensor_toolbox_is_read() -> None:
    # as pyttb.export_data writes it
    text = b"sptensor\n3\n3 3 4\n2\n1 2 3 -4\n3 1 1 5.0\n"
    want = from_coo([[0, 1, 2], [2, 0, 0]], [-4, 5], (3, 3, 4))
    assert parse_tns("a.tns", io.BytesIO(text)) == want


def test_indices_count_from_0_where_one_is_0() -> None:
    # the same entries, counted from 1 and from 0
    one = parse_tns("a.tns", io.BytesIO(b"1 2 7\n3 1 5\n"))
    with pytest.warns(CountedFromZeroWarning, match=r"a.tns: .*counting from 0"):
        zero = parse_tns("a.tns", io.BytesIO(b"0 1 7\n2 0 5\n"))
    assert zero == one == from_coo([[0, 1], [2, 0]], [7, 5], (3, 2))


LINES: dict[str, tuple[bytes, str]] = {
    "fields missing": (b"1 1 1 1\n1 1 1\n", "line 2 .*3 fields, where lines before have 4"),
    "a value alone": (b"# a\n\n5\n", "line 3 .*the number of its fields is 1"),
    "too many modes": (b"1 " * 40, "line 1 .*the number of its fields is 40"),
    "a decimal": (b"1 1 1\n1 2 0.5\n", "line 2 .*got '0.5'. Multiply all values"),
    "a near integer": (b"1 1 1." + b"0" * 40 + b"1", "line 1 .*must be an integer"),
    "a fraction": (b"1 1 1/2", "line 1 .*a value must be an integer; got '1/2'"),
    "an underscore": (b"1 1 1_0", "a value must be an integer; got '1_0'"),
    "not a number": (b"1 1 nan", "got 'nan'"),
    "words": (b"a b c", "an index must be an integer .* got 'a'"),
    "other digits": ("\u0661 \u0661 \u0661".encode(), "an index must be an integer"),
    "other bytes": (b"\xff\xfe1 1", "an index must be an integer"),
    "a comment behind": (b"1 1 1 # one", "an index must be an integer"),
    "counted from 0, too large": (
        b"# shape: 2 2\n1 2 1\n0 1 1\n",
        r"line 2 .*must count from 0, for one is 0, .*got \[1, 2\]",
    ),
    "a header of other sizes": (b"sptensor\n3\n2 2\n1\n1 1 1 1\n", "line 3 .*3 sizes must follow"),
    "a header of words": (b"sptensor\nthree\n", "line 2 .*a header must have a number"),
    "a header of more entries": (
        b"sptensor\n2\n2 2\n3\n1 1 1\n",
        "its header has 3 entries, and it has 1",
    ),
    "a dense tensor's header": (b"tensor\n2\n2 2\n1\n0\n0\n1\n", "line 1 .*isn't sparse"),
    "a negative index": (b"1 -1 1", "must count from 1"),
    "a decimal index": (b"1 1.0 1", "an index must be an integer"),
    "a large index": (b"1 2147483648 1", r"line 1 .*up to 2\^31 - 1"),
    "a huge index": (b"1 " + b"9" * 30 + b" 1", "an index must be an integer from 1"),
    "a large value": (b"1 1 9223372036854775808", "at most 63 bits"),
    "the least of int64": (b"1 1 -9223372036854775808", "line 1 .*at most 63 bits"),
    "a huge value": (b"1 1 1" + b"0" * 5000, "at most 63 bits"),
    "a huge exponent": (b"1 1 1e999999999", "at most 63 bits"),
    "a tiny exponent": (b"1 1 1e-999999999", "must be an integer"),
    "a longer exponent": (b"1 1 1e9999999999", "must be an integer"),
    "a large sum": (b"1 1 9223372036854775807\n" * 2, r"would be 18446744073709551614"),
    "a long line": (b"1 1 1\n" + b"1 " * 10**6, "line 2 .*a line of over 65,536 bytes"),
    "a shape of other order": (b"# shape: 2 2\n1 1 1 1\n", "its shape has 2 sizes, and .* 3"),
    "a small shape": (b"# shape: 2 2\n3 1 1\n", r"line 2 .*the shape \(2, 2\); got \[3, 1\]"),
    "a shape of words": (b"# shape: two\n1 1\n", "line 1 .*a shape must be 1 to 32 sizes"),
    "an empty mode": (b"# shape: 2 0\n", "line 1 .*a shape must be 1 to 32 sizes"),
    "a huge shape": (b"# shape: 2 99999999999\n", "a shape must be 1 to 32 sizes"),
    "comments alone": (b"# nothing\n", "it holds no entries.*# shape"),
}


@pytest.mark.parametrize("what", LINES)
def test_broken_text_is_refused_with_its_line(what: str) -> None:
    text, reason = LINES[what]
    with pytest.raises(TensorFormatError, match=reason) as error:
        parse_tns("a.tns", io.BytesIO(text))
    assert str(error.value).startswith("a.tns")
    assert len(str(error.value)) < 400


@pytest.mark.slow
def test_lines_are_counted_over_blocks() -> None:
    text = b"1 1\n" * (BLOCK + 5) + b"1 x\n"
    with pytest.raises(TensorFormatError, match=rf"line {BLOCK + 6} "):
        parse_tns("a.tns", io.BytesIO(text))
    with pytest.raises(TensorFormatError, match=rf"line {BLOCK + 6} .*count from 1"):
        parse_tns("a.tns", io.BytesIO(text.replace(b"1 x", b"-1 1")))
    assert parse_tns("a.tns", io.BytesIO(text[:-4])).values.tolist() == [BLOCK + 5]


@pytest.mark.filterwarnings("ignore::capacity.errors.CountedFromZeroWarning")
@given(integer_tensors(), st.data())
@settings(max_examples=examples(300))
def test_damaged_files_are_read_or_refused(tensor: SparseTensor, data: st.DataObject) -> None:
    good = data.draw(st.sampled_from([tns_text(tensor), npy_bytes(tensor.to_numpy())]))
    at = data.draw(st.integers(0, len(good)))
    bad = good[:at] + data.draw(st.binary(max_size=3)) + good[at + data.draw(st.integers(0, 3)) :]
    # no other error comes up
    with contextlib.suppress(TensorFormatError):
        (parse_npy if good[:1] == b"\x93" else parse_tns)("a", io.BytesIO(bad))


# ---- arrays -------------------------------------------------------------------------------------


def saved(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header(text: str, version: bytes = b"\1\0") -> bytes:
    line = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY" + version + len(line).to_bytes(2, "little") + line


def test_arrays_that_numpy_saved_are_read() -> None:
    for array in (
        np.arange(8).reshape(2, 2, 2), np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.eye(3, dtype=bool), np.eye(3, dtype=">i4"), np.eye(3), np.arange(3, dtype=np.uint8),
    ):  # fmt: skip
        assert np.array_equal(parse_npy("a.npy", io.BytesIO(saved(array))).to_numpy(), array)


GOOD = saved(np.arange(8).reshape(2, 2, 2))
PLAIN = "{{'descr': '{}', 'fortran_order': False, 'shape': {}}}"
ARRAYS: dict[str, tuple[bytes, str]] = {
    "truncated": (GOOD[:-1], "promises 64 bytes of entries, and 63 follow"),
    "more than promised": (GOOD + b"x", "promises 64 bytes of entries, and more follow"),
    "half a header": (GOOD[:40], "its header is broken"),
    "no header": (GOOD[:7], "its header is broken"),
    "pickled": (saved(np.array([{}], object)), "holds object. Pickled objects are not read"),
    "said to be pickled": (header(PLAIN.format("O", "(1,)")) + b"12345678", "it holds object"),
    "text": (saved(np.array(["a"])), "it holds <U1"),
    "complex": (saved(np.eye(2) * 1j), "it holds complex128"),
    "structured": (saved(np.zeros(2, [("a", int)])), "it must hold bools, integers or floats"),
    "fractions": (saved(np.eye(2) / 2), r"got 0.5 at \[0, 0\]"),
    "nan": (saved(np.array([np.nan])), "Replace what isn't finite"),
    "a number": (saved(np.array(3)), "a size for each mode"),
    "an empty mode": (saved(np.zeros((0, 2))), r"`shape\[0\]`"),
    # 8 * 10^18 bytes could not be allocated
    "a bomb": (header(PLAIN.format("<i8", "(10**9, 10**9)".replace("10**9", "1" + "0" * 9))),
               "promises 8,000,000,000,000,000,000 bytes of entries, and 0 are stored"),
    "a negative size": (header(PLAIN.format("<i8", "(-1,)")), "an integer of at least 1; got -1"),
    "deep brackets": (header("(" * 100), "its header is broken"),
    "code": (header("__import__('os')"), "its header is broken"),
    "a warning": (header("{0or 1: 2}"), "its header is broken"),
    "another version": (header(PLAIN.format("<i8", "()"), b"\x09\0"), "its header is broken"),
}  # fmt: skip


@pytest.mark.parametrize("what", ARRAYS)
def test_broken_arrays_are_refused_before_they_are_made(what: str) -> None:
    data, reason = ARRAYS[what]
    with pytest.raises(TensorFormatError, match=reason) as error:
        parse_npy("a.npy", io.BytesIO(data))
    assert str(error.value).startswith("a.npy (read as npy): ")


# ---- files --------------------------------------------------------------------------------------


def test_what_is_no_file_of_a_tensor_is_refused(tmp_path: Path) -> None:
    wrong: dict[str, tuple[bytes, str]] = {
        "empty": (b" \n", "the file is empty"),
        "binary": (b"\1\2\0\0\0", "the file is binary"),
        "cut": (gzip.compress(b"1 1\n" * 1000)[:-10], "the gzip stream is broken"),
        "no stream": (b"\x1f\x8babc", "the gzip stream is broken"),
        "empty stream": (gzip.compress(b""), "the file is empty"),
    }
    for name, (data, reason) in wrong.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(TensorFormatError, match=f"{name}: {reason}"):
            read_tensor(tmp_path / name)
    with pytest.raises(TensorFormatError, match="it is a folder"):
        read_tensor(tmp_path)
    with pytest.raises(TensorFormatError, match="no such file"):
        read_tensor(tmp_path / "none.tns")
    array: Any = np.eye(2)
    with pytest.raises(InvalidTypeError, match="`from_dense` takes arrays"):
        read_tensor(array)


def test_a_file_that_grows_over_the_limit_is_refused(tmp_path: Path) -> None:
    # 50 MB of zeros compress to 50 kB
    (tmp_path / "bomb.npy").write_bytes(gzip.compress(saved(np.zeros(50_000_000, np.int8))))
    with pytest.raises(TensorFormatError, match="holds more than 1,000,000 bytes"):
        read_tensor(tmp_path / "bomb.npy", max_bytes=10**6)
    (tmp_path / "long.tns").write_bytes(b"1 1\n" * 10)
    with pytest.raises(TensorFormatError, match="holds more than 39 bytes"):
        read_tensor(tmp_path / "long.tns", max_bytes=39)


def test_an_array_without_zeros_is_read_though_it_is_a_few_bytes(tmp_path: Path) -> None:
    # 729,000 entries in 9 kB, more than the rows that a file of this size may have
    ones = from_dense(np.ones((90, 90, 90), np.int8))
    write_tensor(ones, tmp_path / "ones.npy.gz")
    assert read_tensor(tmp_path / "ones.npy.gz") == ones
    with pytest.raises(TensorFormatError, match="more than 9 rows"):
        read_tensor(tmp_path / "ones.npy.gz", max_rows=9)


def test_what_can_not_be_written_is_refused(tmp_path: Path) -> None:
    T = SparseTensor([[0, 0]], [1], (10**6, 10**6))
    with pytest.raises(MemoryBudgetError, match="would take 8,000,000,000,000"):
        write_tensor(T, tmp_path / "a.npy")
    with pytest.raises(InvalidArgumentError, match=r"must end in \.npy, \.tns"):
        write_tensor(T, tmp_path / "a.mat")
    (tmp_path / "a.tns").mkdir()
    with pytest.raises(StorageError, match="it is a folder"):
        write_tensor(T, tmp_path / "a.tns")
    write_tensor(T, tmp_path / "b.tns")
    assert read_tensor(tmp_path / "b.tns") == T
    assert issubclass(TensorFormatError, CapacityError)


@pytest.mark.slow
def test_a_million_entries_are_read_in_seconds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    T = from_coo(rng.integers(0, 1000, (10**6, 3)), rng.integers(-5, 6, 10**6), (1000,) * 3)
    write_tensor(T, tmp_path / "T.tns")
    assert read_tensor(tmp_path / "T.tns") == T
