"""Pages of a Parquet file are measured by their own headers, whatever its metadata say."""

from __future__ import annotations

import io
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capacity.database import load
from capacity.database.io.tables import parquet
from capacity.database.io.tables.parquet_pages import sizes_of_pages
from capacity.errors import DatabaseFormatError
from capacity.stores import count_duckdb
from tests.harmful_binaries import understated, varint

N = 4000
TABLE = pa.table(
    {"subject": [f"s{i % 97}" for i in range(N)], "predicate": ["p"] * N,
     "object": [f"o{i}" for i in range(N)]}
)  # fmt: skip
WAYS = [
    {"compression": packed, "use_dictionary": dictionary, "data_page_version": version,
     "row_group_size": rows, "write_page_checksum": dictionary, "write_page_index": not dictionary,
     "data_page_size": 2000}
    for packed, dictionary, version, rows in product(
        ("none", "zstd", "snappy"), (True, False), ("1.0", "2.0"), (N, 700)
    )
]  # fmt: skip


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("way", WAYS)
def test_pages_take_what_honest_metadata_say(way: dict[str, Any]) -> None:
    data = written(TABLE, **way)
    meta = pq.read_metadata(io.BytesIO(data))
    said = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    sizes = list(sizes_of_pages(io.BytesIO(data)))
    # the metadata count the headers, too, of less than 100 bytes each
    assert said - 100 * len(sizes) < sum(sizes) < said
    # a page, or more, of each column of each group
    assert len(sizes) >= 3 * meta.num_row_groups


def test_metadata_that_understate_are_found_out_before_a_page_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 70 MB, where any file may take 64 MiB
    table = pa.table({"subject": ["a"] * 7, "predicate": ["p"] * 7, "object": ["x" * 10**7] * 7})
    data = understated(written(table, compression="zstd", use_dictionary=False))
    meta = pq.read_metadata(io.BytesIO(data))
    assert meta.row_group(0).total_byte_size == meta.row_group(0).column(2).total_uncompressed_size
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    assert load(path, multi="keep", max_growth=10**6).n_triples == 1
    monkeypatch.setattr(parquet, "checked_batches", None)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match="it decompresses to over 250 times its size"):
            read(path)


def test_broken_metadata_and_headers_are_refused() -> None:
    data = written(TABLE, compression="none")
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")

    def said(changed: bytes) -> str:
        with pytest.raises(ValueError, match=r"metadata|header") as error:
            list(sizes_of_pages(io.BytesIO(changed)))
        return str(error.value)

    # a list of bytes where groups are structs; an unknown type; a struct without an end
    for end, reason in (
        (b"\x49\x13\0", "isn't one of structs"), (b"\x1f", "an unknown type"), (b"\x15", "cut"),
        (b"\x1c" * 99, "nest too deep"), (b"\x15" + b"\x80" * 99, "too long"),
        # a field of 10^9 bytes, and a list of as many
        (b"\x18" + varint(10**9), "cut"), (b"\x19\xf1" + varint(10**9), "cut"),
    ):  # fmt: skip
        assert reason in said(data[:begin] + end + len(end).to_bytes(4, "little") + b"PAR1")
    # the first page's header: no field, and a size below zero
    for header, reason in ((b"\0", "no size"), (b"\x25\x01\x15\x02\0", "no size")):
        assert reason in said(data[:4] + header + data[4 + len(header) :])
