"""Folders of a table that is divided by a column, as Hive, Spark, Dask and pandas write them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capacity import Database, load
from capacity.database.io.tables.parquet import columns_of_folders
from capacity.errors import DatabaseFormatError
from capacity.stores import count_duckdb

ROWS = [("Ann", "knows", "Bob"), ("Bob", "knows", "Cid"), ("Ann", "born in", "Rome"),
        ("Bob", "b=c% d", "Oslo")]  # fmt: skip
EXPECTED = Database.from_triples(ROWS)
FRAME = pd.DataFrame(ROWS, columns=["head", "relation", "tail"])


def pandas_writes(folder: Path) -> None:
    FRAME.to_parquet(folder, partition_cols=["relation"], index=False)


def duckdb_writes(folder: Path) -> None:
    with duckdb.connect() as con:
        con.register("t", FRAME)
        con.execute(f"copy (from t) to '{folder}' (format parquet, partition_by (relation))")


def dask_writes(folder: Path) -> None:
    dd = pytest.importorskip("dask.dataframe")
    dd.from_pandas(FRAME, npartitions=1).to_parquet(
        folder, partition_on=["relation"], write_index=False, write_metadata_file=True
    )


@pytest.mark.parametrize("write", [pandas_writes, duckdb_writes, dask_writes])
def test_the_predicate_is_that_of_the_folder(write: object, tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    write(folder)  # type: ignore[operator]
    # each writes special characters of a value in its own way: the facts are those of the frame
    found = load(folder)
    assert found == EXPECTED
    assert load(str(folder / "**" / "*.parquet")) == EXPECTED
    counts = count_duckdb(folder)
    assert (counts.facts, counts.predicates) == (4, 3)
    # one file of them, by its own name
    (one,) = (folder / "relation=knows").glob("*.parquet")
    assert load(one) == Database.from_triples(ROWS[:2])


def test_folders_nest_and_may_hold_keys(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    frame = pd.DataFrame({"object": ["x", "y"], "subject": ["a", "b"], "predicate": ["p", "q"]})
    frame.to_parquet(folder, partition_cols=["subject", "predicate"])
    assert load(folder) == Database.from_triples([("a", "p", "x"), ("b", "q", "y")])


def test_another_column_of_folders_adds_nothing_to_facts(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    FRAME.assign(day=["1", "1", "2", "2"]).to_parquet(folder, partition_cols=["day"])
    assert load(folder) == EXPECTED
    # but where it is asked for
    found = load(folder, columns=["head", "day", "tail"], multi="keep")
    assert {found.tokens[i].text for i in found.token_tuples[:, 1]} == {"1", "2"}


def test_columns_that_no_name_tells_are_asked_about(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    frame = FRAME.rename(columns={"head": "first", "relation": "way", "tail": "last"})
    frame.to_parquet(folder, partition_cols=["way"], index=False)
    with pytest.raises(DatabaseFormatError, match=r"it has \['first', 'last', 'way'\].*`columns`"):
        load(folder)
    assert load(folder, columns=["first", "way", "last"]) == EXPECTED
    # of three columns of text and a fourth
    FRAME.assign(note="n").to_parquet(tmp_path / "more", partition_cols=["relation"], index=False)
    with pytest.raises(DatabaseFormatError, match=r"Say columns=\['head', 'relation', 'tail'\]"):
        load(tmp_path / "more")


def test_a_part_without_a_value_has_a_missing_cell(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    FRAME.assign(relation=pd.Series(["knows", None, "p", "q"], dtype=object)).to_parquet(
        folder, partition_cols=["relation"], index=False
    )
    with pytest.raises(DatabaseFormatError, match="a cell is missing"):
        load(folder)
    with pytest.raises(DatabaseFormatError, match="a cell is missing"):
        count_duckdb(folder)


def test_a_column_of_the_file_is_its_own(tmp_path: Path) -> None:
    path = tmp_path / "relation=no" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pandas(FRAME), path)
    assert load(path) == EXPECTED
    assert columns_of_folders("a=1/b/c=2/x.parquet") == {"c": "2"}
    assert columns_of_folders("=1/x.parquet") == {}


def test_a_link_that_leads_back_is_not_followed(tmp_path: Path) -> None:
    pandas_writes(tmp_path / "facts")
    (tmp_path / "facts" / "relation=again").symlink_to(tmp_path / "facts")
    assert load(tmp_path / "facts") == EXPECTED
