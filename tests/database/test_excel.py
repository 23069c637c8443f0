"""Workbooks of Excel are tables, which pandas and openpyxl read."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from capacity import Database, load
from capacity.database import read_table
from capacity.errors import DatabaseFormatError, MissingExtraError

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
