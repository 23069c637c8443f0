"""Every reader has limits, which the page on trust states, and files that were made to harm it."""

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capacity.cli.selection_options import OPTIONS
from capacity.database import from_sparql, load, parse_rdf, read_rdf, read_table
from capacity.database.io.files.formats import FORMATS
from capacity.errors import CapacityError, DatabaseFormatError, InvalidArgumentError
from capacity.reading_limits import (
    FREE_BYTES,
    FREE_CELLS,
    FREE_ROWS,
    FREE_TEXT,
    Limits,
)
from capacity.stores import count_dask, count_duckdb
from capacity.tensor import read_tensor
from tests.harmful_files import OTHERS, kinds_of
from tests.hostile import READERS
from tests.oracles import ROOT

PAGE = (ROOT / "docs" / "trust.md").read_text()
FUNCTIONS = {
    one.__name__: one
    for one in (load, read_rdf, parse_rdf, read_table, read_tensor, count_duckdb, count_dask,
                from_sparql)
}  # fmt: skip
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
# what each reader must be harmed by: what grows, what has rows, as many as may be, a long term
KINDS = {"blanks", "rows", "as many rows as may be", "a term"}


def rows() -> list[list[str]]:
    """The rows of the page's table of limits, without its head."""
    text = PAGE.partition("### Limits of what is read")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def number(text: str) -> int:
    n, _, unit = text.partition(" ")
    return int(n.replace(",", "")) * UNITS.get(unit, 1)


def test_the_page_has_the_limits_of_each_reader_and_their_defaults() -> None:
    for _what, by, *cells in rows():
        functions = [FUNCTIONS[name] for name in re.findall(r"`(\w+)`", by) if name in FUNCTIONS]
        assert functions or by == "`Snapshots.recall`"
        said = re.findall(r"`(max_\w+)`(?:: ([\d,]+(?: [KMG]iB)?))?", " ".join(cells))
        for function in functions:
            parameters = inspect.signature(function).parameters
            # each limit of the function stands in the row, and no other
            assert {name for name, _ in said} == {n for n in parameters if n.startswith("max_")}
            for name, default in said:
                mine = parameters[name].default
                if mine is None:
                    mine = {"max_rows": FREE_ROWS, "max_cells": FREE_CELLS}[name]
                assert not default or number(default) == mine, (function, name)
    assert f"{FREE_BYTES // 2**20} MiB at least" in PAGE
    assert f"{FREE_TEXT // 2**20} MiB at least" in PAGE


def test_each_registered_format_stands_in_the_table() -> None:
    listed = {one for what, *_ in rows() for one in re.findall(r"[\w.]+", what)}
    assert {*FORMATS, "npy", "npy.gz", "tns", "tns.gz", "duckdb", "SPARQL", "snapshots"} <= listed


def test_each_limit_of_a_file_is_an_option_of_the_commands() -> None:
    limits = {n for n in inspect.signature(load).parameters if n.startswith("max_")}
    assert limits <= {option.keyword for option in OPTIONS}
    for flag in ("file-bytes", "growth", "rows", "cells", "term-bytes"):
        assert f"`--max-{flag}`" in PAGE


# readers whose guards are their own; the others share them, and take minutes
FIRST = {"ntriples", "turtle", "rdfxml", "csv", "parquet", "npy"}


@pytest.mark.parametrize("format", [one for one in READERS if one != "others"])
def test_each_reader_has_a_harmful_file_of_each_kind(format: str) -> None:
    assert kinds_of(format).keys() >= KINDS


@pytest.mark.slow
@pytest.mark.parametrize(
    "format", [pytest.param(one, marks=[pytest.mark.full] * (one not in FIRST)) for one in READERS]
)
def test_harmful_files_end_within_five_seconds_and_a_gigabyte(format: str) -> None:
    n = len(OTHERS if format == "others" else kinds_of(format))
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile", f"harmful {format}", str(n), "0"],
        cwd=ROOT, capture_output=True, text=True, timeout=400, check=True,
    )  # fmt: skip
    counts = json.loads(done.stdout)
    assert counts["not_right"] == []
    assert counts["line"] > n / 2 or format == "others"


def test_a_limit_depends_on_the_bytes_that_are_stored() -> None:
    assert Limits().of(10).rows == FREE_ROWS
    assert Limits().of(10**7).rows == Limits().of(10**7).cells == 10**7
    assert Limits(packed=True).of(10**7).rows == 4 * 10**7
    assert Limits(packed=True).of(10**7).cells == 4 * 10**8
    assert Limits(max_rows=3).of(10**7).rows == 3
    assert Limits(max_rows=10**7).cells == 10**8
    assert Limits(max_cells=7).of(10**7).cells == 7
    assert Limits().of(10).grown == FREE_BYTES
    assert Limits(max_growth=2).of(10**9).grown == 2 * 10**9
    for name in ("max_bytes", "max_growth", "max_rows", "max_cells", "max_term_bytes"):
        for wrong in (0, -1, 1.5, "9", True):
            with pytest.raises(InvalidArgumentError, match=f"`{name}` must be"):
                Limits(**{name: wrong})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "text", "limit", "said"),
    [("a.ttl", "<x:a> <x:p> 1, 2, 3 .", {"max_rows": 2}, "it has more than 2 rows"),
     ("a.nt", "<x:a> <x:p> <x:b> .\n" * 3, {"max_rows": 2}, "it has more than 2 rows"),
     ("a.jsonld", '[{"@id": "x:a", "x:p": [1, 2, 3]}]', {"max_cells": 5}, "more than 5 cells"),
     ("a.tsv", "a\tp\tx\n" * 3, {"max_rows": 2}, "it has more than 2 rows"),
     ("a.tsv", "a\tp\tx\n" * 3, {"max_cells": 8}, "it has more than 8 cells"),
     ("a.csv", "a,p,x\n" * 3, {"max_rows": 2}, "it has more than 2 rows"),
     ("a.csv", "a,p,xxx\n", {"max_term_bytes": 2}, "longer than 2 bytes")],
)  # fmt: skip
def test_a_limit_that_is_given_is_held(
    name: str, text: str, limit: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DatabaseFormatError, match=said) as error:
        load(tmp_path / name, multi="keep", **limit)
    # and which option raises it
    assert f"raise `{next(iter(limit))}`" in str(error.value)
    assert load(tmp_path / name, multi="keep").n_facts


@pytest.mark.parametrize(
    ("name", "text", "limit", "said"),
    [("a.nt", "<x:a> <x:p> <x:b> .\n" * 3, {"max_rows": 2}, "it has more than 2 rows"),
     ("a.nt", '<x:a> <x:p> "xxx" .\n', {"max_term_bytes": 2}, "longer than 2 bytes"),
     ("a.tsv", "a\tp\tx\n" * 3, {"max_rows": 2}, "it has more than 2 rows"),
     ("a.tsv", "a\tp\txxx\n" * 3, {"max_term_bytes": 2}, "longer than 2 bytes"),
     ("a.csv", "a,p,x\n" * 3, {"max_cells": 8}, "it has more than 8 cells")],
)  # fmt: skip
def test_a_limit_is_held_in_a_stream(
    name: str, text: str, limit: dict[str, Any], said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CapacityError, match=said):
        count_duckdb(tmp_path / name, **limit)
    assert count_duckdb(tmp_path / name).facts == 1
