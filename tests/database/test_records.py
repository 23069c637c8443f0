"""JSON records are tables: a list of objects, or an object a line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from capacity import Database, load
from capacity.database import read_table
from capacity.errors import DatabaseFormatError

ROWS = [("Ada", "born in", "London"), ("Alan", "knows", "Ada")]
DB = Database.from_triples(ROWS)


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("keys", ["spo", ("head", "relation", "tail")])
@pytest.mark.parametrize("name", ["facts.json", "facts.jsonl", "facts.ndjson", "facts"])
@pytest.mark.parametrize("lines", [True, False])
def test_records_are_rows(keys: tuple[str, ...], name: str, lines: bool, tmp_path: Path) -> None:
    records = [dict(zip(keys, row, strict=True)) for row in ROWS]
    text = "\n".join(map(json.dumps, records)) + "\n" if lines else json.dumps(records, indent=1)
    path = written(tmp_path / name, text)
    assert load(path) == load(path, format="records") == read_table(path) == DB
    assert load(path, columns=list(keys)) == DB


def test_keys_tell_the_roles_in_any_order(tmp_path: Path) -> None:
    text = (
        '[{"tail": "London", "relation": "born in", "head": "Ada"},'
        ' {"head": "Alan", "tail": "Ada", "relation": "knows"}]'
    )
    assert load(written(tmp_path / "facts.json", text)) == DB


def test_a_wide_table_of_records_is_that_of_pandas(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": ["Ann", "Bob"], "born": ["1980", None], "city": ["Rome", None]})
    path = tmp_path / "people.jsonl"
    frame.to_json(path, orient="records", lines=True)
    assert load(path, table="wide") == Database.from_triples(
        [("Ann", "born", "1980"), ("Ann", "city", "Rome")]
    )
    # a key that a row lacks is no fact, either, and numbers are as they are written
    path = written(tmp_path / "more.json", '[{"id": 1, "n": 1.50}, {"id": 2, "is": true}]')
    assert load(path, table="wide") == Database.from_triples(
        [("1", "n", "1.50"), ("2", "is", "true")]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"s": "a", "p": "b", "o": null}]', "line 1.*a cell is missing"),
        ('[{"s": "a", "p": "b", "o": ["x"]}, 1]', "a value must be text.*explode"),
        ('[{"s": "a", "p": "b", "o": "x"}, 7]', "each row must be an object; got '7'"),
        ('[{"s": "a", "p": "b", "o": "x"},\n {"s": ]', "line 2.*broken JSON"),
        ('[{"s": "a", "p": "b", "o": "x"}] 7', "after the end of the list"),
        ('[{"s": "a", "p": "b", "o": "x"} {}]', "no comma"),
        ('[{"s": "a", "p": "b", "o": "x"}', "no comma"),
        ('[{"s": "a", "s": "b", "o": "x"}]', "twice|no number"),
        ('[{"s": "a", "p": "b", "o": NaN}]', "twice|no number"),
        ('[{"s": "a", "p": "b", "o": "x"}, {"@id": "x:a"}]', "of JSON-LD"),
        ('[{"s": "a", "p": "b"}]', "must have the columns"),
        ("[]", "no rows|columns"),
        ('[{"s":' * 9999, "broken JSON|nested"),
    ],
    ids=range(13),
)
def test_what_is_no_table_of_facts_is_told(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DatabaseFormatError, match=rf"(?s){said}"):
        load(written(tmp_path / "facts.json", text), format="records")


def test_a_table_that_may_be_wide_is_refused_as_others_are(tmp_path: Path) -> None:
    path = written(
        tmp_path / "facts.json", json.dumps([dict(zip("xyz", r, strict=True)) for r in ROWS])
    )
    with pytest.raises(DatabaseFormatError, match=r'table="wide" if so.*table="long"'):
        load(path)
    assert load(path, table="long") == DB


def test_a_table_of_more_cells_than_the_limits_allow_is_refused(tmp_path: Path) -> None:
    # each row has a key of its own: a thousand columns of a thousand cells
    text = "\n".join(json.dumps({"name": "a", f"key {i}": "x"}) for i in range(1000))
    path = written(tmp_path / "facts.jsonl", text)
    with pytest.raises(DatabaseFormatError, match="max_cells"):
        load(path, table="wide", max_cells=100_000)


def test_a_large_value_is_refused_before_it_is_made(tmp_path: Path) -> None:
    path = written(tmp_path / "facts.jsonl", '{"s": [' + "[], " * 10**6 + "[]]}")
    with pytest.raises(DatabaseFormatError, match="nested or broken"):
        load(path, table="wide")


def test_json_ld_and_other_json_are_what_they_were(tmp_path: Path) -> None:
    text = '[{"@id": "x:a", "x:p": [{"@value": "b"}]}]'
    assert load(written(tmp_path / "a.json", text)).source.format == "jsonld"  # type: ignore[union-attr]
    with pytest.raises(DatabaseFormatError, match=r"it is plain JSON.*json_normalize"):
        load(written(tmp_path / "b.json", '{"people": {"Ann": {"age": 42}}}'))
