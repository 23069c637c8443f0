"""The table of `capacity describe` fits the terminal, is whole in a pipe, and is written sorted."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from capacity.database import parse_rdf
from capacity.database.describing.writing import as_text
from capacity.display import fitted
from capacity.errors import InvalidArgumentError
from capacity.rank import describe
from tests.commands import run, run_json
from tests.oracles import EXAMPLES

TEXT = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:a :is_associated_with_a_name_that_is_long :b , :c , :d ; :p "x" ; :q "y" ; rdfs:label "A" .
:b :is_associated_with_a_name_that_is_long :c ; :p "x" ; :q "y" ; :r :a , :b .
:c :p "z" ; :q "y" .
"""


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "facts.ttl"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = as_text(describe(parse_rdf(TEXT, "turtle", multi="keep")), width).splitlines()
    # an option that can't be broken may be longer
    assert all(len(line) <= width for line in lines if "--" not in line)
    head = next(line for line in lines if line.startswith("  predicate "))
    assert {"facts", "rank"} <= set(head.split())
    # each predicate has its row
    at = lines.index(head)
    assert len([line for line in lines[at + 1 :] if line and not line.startswith("  *")]) >= 5


@pytest.mark.parametrize("name", ["countries.ttl", "figure-1.ttl", "example-2-4.ttl"])
def test_an_example_is_described_in_80_columns_of_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, _ = run(capsys, "describe", EXAMPLES / name)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80


def test_the_example_goes_first_and_then_what_is_repeated() -> None:
    found = describe(parse_rdf(TEXT, "turtle", multi="keep"))
    whole = as_text(found)
    assert "several objects, such as" in whole
    wide = max(map(len, whole.splitlines()[5:11]))
    narrower = as_text(found, wide - 1)
    assert "several objects" not in narrower
    assert "repeats" in narrower


def test_a_pipe_gets_the_whole_table(capsys: pytest.CaptureFixture[str], facts: Path) -> None:
    code, out, _ = run(capsys, "describe", facts)
    assert code == 0
    assert "several objects, such as" in out
    # columns and kinds that are empty aren't shown as zeros
    assert "blank nodes" not in out


def test_a_row_a_predicate_is_written_in_the_order_that_is_chosen(
    capsys: pytest.CaptureFixture[str], facts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "predicates.csv"
    code, said, _ = run(capsys, "describe", facts, "--out", out, "--sort", "facts")
    assert code == 0
    assert f"table written to  {out}, in a new folder" in said
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    # facts: 4, 3, 3, 2 and 1; of as many, the larger rank first
    assert [row["facts"] for row in rows] == ["4", "3", "3", "2", "1"]
    assert [row["name"] for row in rows][1:3] == [":p", ":q"]
    assert rows[0]["multi_valued_pairs"] == "1"
    # and JSON has the same order
    got = run_json_loudly(capsys, facts, "--sort", "name")
    assert got == sorted(got)


def run_json_loudly(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    found = run_json(capsys, "describe", *arguments, "--multi", "keep")
    return [row["name"] for row in found["predicates"]]


def test_a_table_of_another_kind_and_another_column_are_refused(
    capsys: pytest.CaptureFixture[str], facts: Path
) -> None:
    code, _, err = run(capsys, "describe", facts, "--out", "predicates.txt")
    assert code == 2
    assert "--out must end in .csv or .parquet" in err
    with pytest.raises(InvalidArgumentError, match="Did you mean `facts`"):
        describe(parse_rdf(TEXT, "turtle", multi="keep")).sorted_by("fact")  # type: ignore[arg-type]
    code, _, err = run(capsys, "describe", facts, "--out-of-core", "--sort", "facts")
    assert code == 2
    assert "--sort needs the facts in memory" in err


def test_a_table_that_fits_stays_whole() -> None:
    rows = [("name", "n", "note"), ("a", "1", "long")]
    assert fitted(rows, {1}, 80, [2]) == ["  name  n  note", "  a     1  long"]
