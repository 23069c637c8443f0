"""Parquet is read in each encoding and type of text that pyarrow writes and reads."""

from __future__ import annotations

import io
import random
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity import Database, load
from capacity.database.io.tables import parquet_texts as texts_of
from capacity.errors import DatabaseFormatError
from capacity.stores import count_duckdb
from capacity.stores.cluster.parquet_parts import Part, facts_of
from tests.tiers import examples

ROLES = ("subject", "predicate", "object")
# with repeated texts, an empty one, ones that begin alike, and ones of several bytes a character
ROWS = [
    (f"s{i % 97}", ("p", "é", "p q")[i % 3], "thing " * (i % 2) + str(i or "")) for i in range(600)
]
EXPECTED = Database.from_triples(ROWS, multi="keep")


def dictionary(indices: Any, of: Any, *, ordered: bool = False) -> pa.DataType:
    return pa.dictionary(indices, of, ordered=ordered)


PLAIN_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(), "large": pa.large_string(), "view": pa.string_view(),
    "binary": pa.binary(), "large binary": pa.large_binary(), "binary view": pa.binary_view(),
}  # fmt: skip
# of later versions than the lowest of pyproject.toml
if hasattr(pa, "json_"):
    PLAIN_TYPES |= {
        "JSON": pa.json_(), "large JSON": pa.json_(pa.large_string()),
        "another extension": pa.opaque(pa.string(), "text", "somebody"),
    }  # fmt: skip
DICTIONARIES: dict[str, pa.DataType] = {
    f"{size} of {kind}{', ordered' * ordered}": dictionary(size, kind, ordered=ordered)
    for size, kind, ordered in product(
        # whose indices have room for 600 texts
        (pa.int16(), pa.int32(), pa.int64(), pa.uint16(), pa.uint32()),
        (pa.string(), pa.large_string()), (False, True),
    )
}  # fmt: skip
ENCODINGS: dict[str, dict[str, Any]] = {
    "dictionaries": {"use_dictionary": True},
    # small dictionaries, after which pages are plain
    "dictionaries that are full": {"use_dictionary": True, "dictionary_pagesize_limit": 40},
    **{
        of: {"use_dictionary": False, "column_encoding": dict.fromkeys(ROLES, of)}
        for of in ("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
    },
    # one column alone is in deltas
    "both": {"use_dictionary": ["subject", "predicate"],
             "column_encoding": {"object": "DELTA_BYTE_ARRAY"}},
}  # fmt: skip
PAGES: dict[str, dict[str, Any]] = {
    "pages 1.0": {"data_page_version": "1.0"},
    "pages 2.0": {"data_page_version": "2.0", "compression": "zstd"},
    "groups": {"row_group_size": 70, "compression": "none", "write_page_checksum": True},
    "small pages": {"data_page_size": 100, "write_batch_size": 16, "store_schema": False},
}


def column(texts: list[str], of: pa.DataType) -> pa.Array:
    if isinstance(of, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(of, pa.array(texts, of.storage_type))
    if isinstance(of, pa.DictionaryType):
        plain = pa.array(texts).dictionary_encode()
        indices, distinct = plain.indices.cast(of.index_type), plain.dictionary.cast(of.value_type)
        return pa.DictionaryArray.from_arrays(indices, distinct, ordered=of.ordered)
    return pa.array(texts, of)


def table(of: pa.DataType, rows: list[tuple[str, str, str]] = ROWS) -> pa.Table:
    columns = [list(texts) for texts in zip(*rows, strict=True)]
    return pa.table([column(texts, of) for texts in columns], list(ROLES))


def read_everywhere(path: Path, expected: Database) -> None:
    """Read a file whole, out of core, and as a worker of Dask does."""
    assert load(path, multi="keep") == expected
    counts = count_duckdb(path, table="long")
    assert (counts.facts, counts.subjects, counts.objects) == (
        expected.n_facts,
        *expected.shape[::2],
    )
    n_rows = 0
    for group in range(pq.read_metadata(path).num_row_groups):
        n_rows += len(
            facts_of(Part(str(path), group, ROLES, None, False), "label", "0123456789abcdef")
        )
    assert n_rows == pq.read_metadata(path).num_rows


@pytest.mark.parametrize("pages", PAGES)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("of", PLAIN_TYPES)
def test_texts_of_each_type_and_encoding_are_read(
    of: str, encoding: str, pages: str, tmp_path: Path
) -> None:
    path = tmp_path / "facts.parquet"
    pq.write_table(table(PLAIN_TYPES[of]), path, **ENCODINGS[encoding], **PAGES[pages])
    # what pyarrow itself reads
    assert pq.read_table(path).num_rows == len(ROWS)
    read_everywhere(path, EXPECTED)


@pytest.mark.parametrize("of", DICTIONARIES)
def test_dictionaries_of_each_type_are_read(of: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    for dense in (True, False):
        pq.write_table(table(DICTIONARIES[of]), path, use_dictionary=dense, row_group_size=500)
        read_everywhere(path, EXPECTED)


def test_files_of_other_writers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    with duckdb.connect() as con:
        con.execute("create table t as select 's' || i subject, 'p' || (i % 3) predicate, "
                    "'thing ' || i as \"object\" from range(3000) r(i)")  # fmt: skip
        for version in ("V1", "V2"):
            con.execute(f"copy t to '{path}' (format parquet, parquet_version '{version}')")
            # one fact a row, which DuckDB counts as well
            assert con.execute(f"select count(*) from '{path}'").fetchone() == (3000,)
            assert load(path).shape == (3000, 3, 3000)
            assert count_duckdb(path).facts == 3000
    assert "DELTA_LENGTH_BYTE_ARRAY" in pq.read_metadata(path).row_group(0).column(0).encodings


def test_a_way_of_reading_is_chosen_by_the_pages() -> None:
    pieces = []
    for encoding in ENCODINGS.values():
        sink = io.BytesIO()
        pq.write_table(table(pa.string()), sink, row_group_size=150, **encoding)
        pieces.append(sink.getvalue())
    groups = []
    for data in pieces:
        (way,) = texts_of._ways(io.BytesIO(data), pq.ParquetFile(io.BytesIO(data)), [*ROLES], None)
        groups.append(way)
    assert [way[0] for way in groups] == [[0, 1, 2, 3]] * len(ENCODINGS)
    by_dictionary = [name for name, way in zip(ENCODINGS, groups, strict=True) if way[1] is None]
    assert by_dictionary == ["dictionaries", "dictionaries that are full", "PLAIN"]
    # texts of one type, whatever the way: out of core they are appended to one table
    for data in pieces:
        for batch in texts_of.checked_batches(io.BytesIO(data), [*ROLES]):
            assert set(batch.schema.types) == {pa.dictionary(pa.int32(), pa.string())}


def test_columns_of_texts_stand_among_others(tmp_path: Path) -> None:
    # of one name with a dot, after columns of several leaves each
    path = tmp_path / "facts.parquet"
    plain = table(pa.string())
    n = len(ROWS)
    others = {"at": pa.array([{"x": 1, "y": "a"}] * n), "list": pa.array([["a", "b"]] * n),
              "n": pa.array(range(n))}  # fmt: skip
    whole = pa.table({**others, "a.b": plain[0], "p": plain[1], "o": plain[2]})
    for encoding in ("PLAIN", "DELTA_BYTE_ARRAY"):
        of = dict.fromkeys(("a.b", "p", "o"), encoding)
        pq.write_table(whole, path, use_dictionary=False, column_encoding=of)
        found = load(path, columns=["a.b", "p", "o"], multi="keep")
        assert found == EXPECTED


def test_a_missing_cell_is_named_in_each_encoding(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    cells = pa.table({"subject": ["a", "b", None], "predicate": ["p"] * 3, "object": ["x"] * 3})
    nothing = cells.set_column(2, "object", pa.nulls(3))
    for encoding, options in ENCODINGS.items():
        pq.write_table(cells, path, **options)
        with pytest.raises(DatabaseFormatError, match=r"line 3 .* a cell is missing"):
            load(path)
        if "DELTA" not in str(options):
            pq.write_table(nothing, path, **options)
            with pytest.raises(DatabaseFormatError, match=r"line 1 .* a cell is missing"):
                load(path)
        assert encoding


def test_bytes_that_are_no_utf_8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    rows = [(f"subject {i}", "p", f"object {i}") for i in range(20)]
    for encoding in ("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        for of in (pa.string(), pa.string_view(), pa.json_(), pa.binary()):
            pq.write_table(table(of, rows), path, use_dictionary=False, compression="none",
                           column_encoding=dict.fromkeys(ROLES, encoding),
                           write_statistics=False)  # fmt: skip
            data = path.read_bytes()
            at = data.index(b"subject 0") + 3
            path.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
            with pytest.raises(DatabaseFormatError, match=r"(?i)utf-?8"):
                load(path)


def test_other_types_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "facts.parquet"
    for of in (pa.binary(4), pa.list_(pa.string()), pa.uuid(), pa.timestamp("s"), pa.time32("s")):
        pq.write_table(table(pa.string()).set_column(2, "object", pa.nulls(600, of)), path)
        with pytest.raises(DatabaseFormatError, match="'object' is of type"):
            load(path)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_damaged_deltas_are_read_as_written_or_refused(encoding: str) -> None:
    sink, draw = io.BytesIO(), random.Random(0)
    few = table(pa.string(), ROWS[:60])
    pq.write_table(few, sink, use_dictionary=False, write_page_checksum=True, compression="none",
                   column_encoding=dict.fromkeys(ROLES, encoding))  # fmt: skip
    whole, refused = sink.getvalue(), 0
    expected = Database.from_triples(ROWS[:60], multi="keep")
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(draw.choice([1, 2, 16])):
            damaged[draw.randrange(4, len(damaged) - 8)] ^= 1 << draw.randrange(8)
        try:
            assert load(io.BytesIO(damaged), multi="keep") == expected
        except DatabaseFormatError:
            refused += 1
    assert refused > 150


@given(st.integers(1, 400), st.integers(0, 2**31))
@settings(max_examples=examples(20), deadline=None)
def test_whole_texts_are_made_of_few_rows_at_once(longest: int, seed: int) -> None:
    # differences from the text before: a page of few bytes stands for many long texts
    sink, draw = io.BytesIO(), random.Random(seed)
    rows = [("s" * draw.randrange(longest), "p", f"{i}") for i in range(300)]
    pq.write_table(table(pa.string(), rows), sink, data_page_size=draw.choice([50, 5000]),
                   column_encoding=dict.fromkeys(ROLES, "DELTA_BYTE_ARRAY"),
                   use_dictionary=False)  # fmt: skip
    data = io.BytesIO(sink.getvalue())
    ((_, most),) = texts_of._ways(data, pq.ParquetFile(data), [*ROLES], None)
    assert most is not None
    # whatever rows they are, their texts take no more
    assert most * max(sum(map(len, row)) for row in rows) <= texts_of._HELD
