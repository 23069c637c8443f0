"""DataFrames as people have them: an index, numbers, dates, what is missing, several values."""

from __future__ import annotations

import datetime
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from capacity import Database, load
from capacity.database import from_arrow, from_pandas, read_table
from capacity.errors import (
    CapacityError,
    DatabaseFormatError,
    MissingExtraError,
    MultiValuedWarning,
)

PEOPLE = pd.DataFrame({"name": ["Ann", "Bob"], "born": [1980, None], "city": ["Rome", None]})
# two facts about Ann, and none about Bob
ANN = Database.from_triples([("Ann", "born", "1980"), ("Ann", "city", "Rome")])


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame,
        lambda frame: frame.convert_dtypes(),
        lambda frame: frame.astype(object),
        lambda frame: frame.astype({"born": "Int64"}),
        lambda frame: frame.astype({"city": "category"}),
        lambda frame: frame.set_index("name"),
        lambda frame: frame.set_index(frame["name"].rename(None)).drop(columns="name"),
        lambda frame: frame.iloc[::-1].reset_index(drop=True),
        lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    ],
    ids=["floats", "NA", "objects", "Int64", "category", "index", "index without a name",
         "other order", "pyarrow"],
)  # fmt: skip
def test_whole_numbers_are_text_and_what_is_missing_is_no_fact(
    change: Callable[[pd.DataFrame], pd.DataFrame],
) -> None:
    assert from_pandas(change(PEOPLE), table="wide") == ANN


def test_a_pivoted_frame_has_its_subjects_in_the_index() -> None:
    long = pd.DataFrame({"s": ["DE", "DE", "FR"], "p": ["in", "money", "in"], "o": ["EU"] * 3})
    wide = long.pivot(index="s", columns="p", values="o")
    assert from_pandas(wide, table="wide") == from_pandas(long)


def test_numbers_are_subjects_where_the_index_has_a_name() -> None:
    frame = pd.DataFrame({"in": ["EU", "AS"]}, index=pd.Index([49, 81], name="code"))
    assert {token.text for token in from_pandas(frame, table="wide").subjects} == {"49", "81"}
    # without one they may be what is left of a choice of rows
    chosen = pd.DataFrame({"name": ["DE", "JP", "FR"], "in": ["EU", "AS", "EU"]}).iloc[[0, 2]]
    with pytest.raises(CapacityError, match=r"reset_index\(drop=True\).*rename_axis"):
        from_pandas(chosen, table="wide")
    db = from_pandas(chosen.reset_index(drop=True), table="wide")
    assert db == Database.from_triples([("DE", "in", "EU"), ("FR", "in", "EU")])


def test_the_index_of_a_long_frame_holds_no_facts_unless_it_is_asked_for() -> None:
    rows = pd.DataFrame([("a", "p", "x"), ("b", "p", "y")], columns=pd.Index(["s", "p", "o"]))
    assert from_pandas(rows.iloc[1:]) == Database.from_triples([("b", "p", "y")])
    by_index = rows.set_index("s")
    assert from_pandas(by_index, columns=["s", "p", "o"]) == from_pandas(rows)


def test_an_index_of_two_levels_is_refused() -> None:
    frame = PEOPLE.set_index(["name", "city"])
    with pytest.raises(CapacityError, match="one level"):
        from_pandas(frame, table="wide")


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        ([1.5, 2.0], ["1.5", "2"]),
        (np.array([0.1, 3], np.float32), ["0.1", "3"]),
        ([True, False], ["True", "False"]),
        (pd.to_datetime(["2020-01-02", "2021-03-04"]), ["2020-01-02", "2021-03-04"]),
        (pd.to_datetime(["2020-01-02 10:00", "2021-03-04 00:00"]),
         ["2020-01-02 10:00:00", "2021-03-04 00:00:00"]),
        ([datetime.date(2020, 1, 2), 7], ["2020-01-02", "7"]),
        ([2**70, -1], [str(2**70), "-1"]),
        (["007", "NA"], ["007", "NA"]),
    ],
    ids=str,
)  # fmt: skip
def test_cells_are_written_as_people_write_them(cells: Any, texts: list[str]) -> None:
    frame = pd.DataFrame({"name": ["a", "b"], "is": cells})
    assert from_pandas(frame, table="wide") == Database.from_triples(
        [("a", "is", texts[0]), ("b", "is", texts[1])]
    )


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NaT, pd.NA, np.datetime64("NaT")])
def test_a_fact_without_a_value_is_refused_where_a_row_is_a_fact(missing: object) -> None:
    frame = pd.DataFrame({"s": ["a", "b"], "p": ["p", "p"], "o": pd.Series(["x", missing])})
    with pytest.raises(CapacityError, match="a cell is missing"):
        from_pandas(frame)


def test_tables_of_arrow_are_read_as_frames_are() -> None:
    table = pa.Table.from_pandas(PEOPLE)
    assert from_arrow(table, table="wide") == ANN
    with pytest.raises(CapacityError, match="must be a table of Arrow"):
        from_arrow([1])


# several values

GENRES = [("Alien", "genre", "Horror"), ("Alien", "genre", "SciFi"), ("Up", "genre", "Comedy")]
WIDE = 'film,genre\nAlien,"Horror, SciFi"\nUp,Comedy\n'
LONG = "Alien\tgenre\tHorror, SciFi\nUp\tgenre\tComedy\n"


@pytest.mark.filterwarnings("ignore::capacity.errors.MultiValuedWarning")
def test_a_cell_of_several_values_is_split_if_asked(tmp_path: Path) -> None:
    both = Database.from_triples(GENRES)
    wide, long = tmp_path / "films.csv", tmp_path / "films.tsv"
    wide.write_text(WIDE)
    long.write_text(LONG)
    frame = pd.DataFrame({"film": ["Alien", "Up"], "genre": ["Horror, SciFi", "Comedy"]})
    assert load(wide, table="wide", split=",") == both
    assert load(long, split=",") == read_table(long, split=", ") == both
    assert from_pandas(frame, table="wide", split=",") == both
    assert from_arrow(pa.Table.from_pandas(frame), table="wide", split=",") == both
    frame.to_parquet(tmp_path / "films.parquet")
    assert load(tmp_path / "films.parquet", table="wide", split=",") == both
    assert load(long).n_facts == 2


def test_a_separator_alone_is_a_value_and_nothing_is_lost(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\tp\t;\nb\tp\tx;;y; \n")
    with pytest.warns(MultiValuedWarning):
        db = load(tmp_path / "t.tsv", split=";")
    assert db == Database.from_triples([("a", "p", ";"), ("b", "p", "x"), ("b", "p", "y")],
                                       multi="keep")  # fmt: skip


@pytest.mark.parametrize("split", ["", 3, [","]])
def test_a_separator_is_a_text(split: Any) -> None:
    with pytest.raises(CapacityError, match="`split` must be what is between"):
        from_pandas(PEOPLE, table="wide", split=split)


def test_terms_and_rdf_are_not_split(tmp_path: Path) -> None:
    with pytest.raises(CapacityError, match="not of N-Triples terms"):
        from_pandas(PEOPLE, table="wide", terms="n3", split=",")
    (tmp_path / "t.nt").write_text("<x:a> <x:p> <x:b> .\n")
    with pytest.raises(CapacityError, match="`split` is an option of tables"):
        load(tmp_path / "t.nt", split=",")


@pytest.mark.filterwarnings("ignore::capacity.errors.MultiValuedWarning")
def test_large_tables_are_split_as_small_ones_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "films.csv"
    path.write_text(WIDE)
    small = load(path, table="wide", split=",")
    monkeypatch.setattr("capacity.database.io.files.pieces.LARGE", 1)
    assert load(path, table="wide", split=",") == small


# three columns, which were read as subject, predicate and object
COUNTRIES = pd.DataFrame(
    {"continent": ["EU", "AS"], "currency": ["EUR", "JPY"], "capital": ["Rome", "Tokyo"]}
)
NAMED = {
    "named": pd.Index(["IT", "JP"], name="country"),
    "text": pd.Index(["IT", "JP"]),
    "named numbers": pd.Index([380, 392], name="code"),
    "levels": pd.MultiIndex.from_tuples([("IT", 1), ("JP", 2)], names=["country", "n"]),
    "dates": pd.to_datetime(["2024-05-01", "2024-05-02"]),
}


@pytest.mark.parametrize("name", NAMED)
def test_an_index_that_may_hold_subjects_is_never_ignored_in_silence(name: str) -> None:
    frame = COUNTRIES.set_index(NAMED[name])
    with pytest.raises(CapacityError, match=r'table="wide".*table="long"'):
        from_pandas(frame)
    assert from_pandas(frame, table="long").n_facts == 2
    if name != "levels":
        assert from_pandas(frame, table="wide").n_facts == 6


def test_rows_that_are_chosen_of_a_long_frame_stay_facts() -> None:
    rows = pd.DataFrame([("a", "p", "x"), ("b", "q", "y"), ("c", "q", "z")])
    assert from_pandas(rows[rows[1] == "q"]).n_facts == 2
    # also with names of roles, and any index
    for columns in (["head", "relation", "tail"], ["subject", "predicate", "object"]):
        named = rows.set_axis(columns, axis=1).set_axis(["i", "j", "k"])
        assert from_pandas(named) == from_pandas(rows)


def test_an_index_that_names_a_role_is_a_column() -> None:
    rows = pd.DataFrame([("a", "p", "x"), ("b", "q", "y")],
                        columns=pd.Index(["subject", "predicate", "object"]))  # fmt: skip
    for index in ("subject", ["subject", "predicate"], ["predicate", "object"]):
        assert from_pandas(rows.set_index(index)) == from_pandas(rows)


ROWS = [("Ada", "born in", "London"), ("Alan", "born", "1912")]


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "facts.xlsx"
    path.write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"A workbook of Excel needs openpyxl.*`excel`"):
        load(path)


def test_what_is_no_workbook_is_told(tmp_path: Path) -> None:
    path = tmp_path / "facts.xlsx"
    path.write_bytes(b"a,b,c")
    with pytest.raises(DatabaseFormatError, match="no workbook of Excel"):
        load(path)
    with pytest.raises(DatabaseFormatError, match="no such file"):
        load(tmp_path / "none.xlsx")
    with pytest.raises(DatabaseFormatError, match="`graph` is an option of RDF"):
        load(path, graph="default")


def test_a_workbook_that_promises_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "facts.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(65 * 2**20))
    with pytest.raises(DatabaseFormatError, match="would decompress to"):
        load(path)


def test_sheets_are_read_as_frames_are(tmp_path: Path) -> None:
    long, wide = tmp_path / "long.xlsx", tmp_path / "wide.xlsx"
    columns = pd.Index(["subject", "predicate", "object"])
    pd.DataFrame(ROWS, columns=columns).to_excel(long, index=False)
    assert load(long) == read_table(long) == Database.from_triples(ROWS)
    people = pd.DataFrame({"name": ["Ann", "Bob"], "born": [1980, None], "in": ["a;b", None]})
    people.to_excel(wide, index=False)
    db = load(wide, table="wide", split=";", multi="keep")
    assert db == Database.from_triples(
        [("Ann", "born", "1980"), ("Ann", "in", "a"), ("Ann", "in", "b")], multi="keep"
    )
    assert db.source is not None
    assert db.source.format == "excel"
