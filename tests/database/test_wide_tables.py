"""Tables of another number of columns than three are read when the user says so, and only then."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import (
    Database,
    from_pandas,
    load,
    read_table,
    to_pandas,
)
from capacity.errors import CapacityError, DatabaseFormatError, InvalidArgumentError

HEAD = "id,city,month,year,weather\n"
BODY = "1,Oslo,May,2024,sun\n2,Oslo,June,2024,rain\n3,Rome,May,2024,sun\n"
ROWS = [("Oslo", "May", "2024", "sun"), ("Oslo", "June", "2024", "rain"),
        ("Rome", "May", "2024", "sun")]  # fmt: skip
NAMED = ["city", "month", "year", "weather"]
FRAME = pd.DataFrame(ROWS, columns=pd.Index(NAMED))


def put(folder: Path, text: str, name: str = "facts.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_wide_table_is_refused_with_the_option_that_reads_it(tmp_path: Path) -> None:
    path = put(tmp_path, BODY)
    for read in (load, read_table):
        with pytest.raises(DatabaseFormatError, match=r"line 1.*has 5 cells.*`arity=5`"):
            read(path)
    # a row that strays from three columns in the middle, as before
    with pytest.raises(DatabaseFormatError, match=r"line 2.*has 4 cells"):
        load(put(tmp_path, "a,b,c\na,b,c,d\n"))


def test_arity_reads_all_columns_the_last_as_object(tmp_path: Path) -> None:
    path = put(tmp_path, "".join(",".join(row) + "\n" for row in ROWS))
    for read in (load, read_table):
        assert read(path, arity=4) == Database.from_tuples(ROWS)
    tabs = put(tmp_path, "Oslo\tsun\nRome\tsun\n", "facts.tsv")
    assert load(tabs, arity=2) == Database.from_tuples([("Oslo", "sun"), ("Rome", "sun")])
    with pytest.raises(DatabaseFormatError, match=r"must hold 3 cells|must hold subject"):
        load(path, arity=3)
    with pytest.raises(DatabaseFormatError, match=r"must hold 2 cells; this one has 4 cells"):
        load(path, arity=2)


def test_columns_are_chosen_by_the_names_in_the_first_row(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD + BODY)
    assert read_table(path, columns=NAMED) == Database.from_tuples(ROWS)
    by_city = read_table(path, columns=["city", "month", "weather"])
    assert by_city == Database.from_triples([(row[0], row[1], row[3]) for row in ROWS])
    # the order is the user's
    turned = read_table(path, columns=["weather", "id"], multi="keep")
    assert [t.text for t in turned.objects] == ["1", "2", "3"]
    assert read_table(path, columns=NAMED, arity=4).arity == 4


def test_the_header_of_another_arity_is_the_one_that_to_pandas_writes(tmp_path: Path) -> None:
    db = Database.from_tuples(ROWS)
    frame = to_pandas(db)
    assert list(frame.columns) == ["key_1", "key_2", "key_3", "object"]
    path = tmp_path / "facts.csv"
    frame.to_csv(path, index=False)
    assert load(path, arity=4) == db
    assert from_pandas(frame, arity=4) == db
    # no other first row is one
    assert load(put(tmp_path, "city,weather\nOslo,sun\n"), arity=2).n_facts == 2


@given(st.integers(2, 5).flatmap(
    lambda n: st.lists(st.tuples(*[st.sampled_from(["", "NA", '"', "a,b"])] * n), min_size=1)
))  # fmt: skip
def test_frames_of_any_arity_round_trip(rows: list[tuple[str, ...]]) -> None:
    db = Database.from_tuples(rows, multi="keep")
    assert from_pandas(to_pandas(db), arity=db.arity, multi="keep") == db


def test_frames_are_read_by_arity_or_by_columns() -> None:
    db = Database.from_tuples(ROWS)
    assert from_pandas(FRAME, arity=4) == db
    assert from_pandas(FRAME.assign(note="x"), columns=NAMED) == db
    assert from_pandas(pd.DataFrame(ROWS), columns=[0, 1, 2, 3]) == db
    assert from_pandas(to_pandas(db).assign(note="x"), arity=4) == db


TWICE = pd.DataFrame(
    [["a", "p", "x", "y"]], columns=pd.Index(["subject", "predicate", "object"] * 2)[:4]
)
REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a wide frame": (lambda _: from_pandas(FRAME), "got.*`arity=4`"),
    "a frame of another arity": (lambda _: from_pandas(FRAME, arity=3), "or three columns"),
    "a frame that is too narrow": (lambda _: from_pandas(FRAME, arity=5), "or 5 columns"),
    "a column that a frame lacks": (
        lambda _: from_pandas(FRAME, columns=["city", "wind"]),
        "must have the columns city, wind; got",
    ),
    "one name for two columns": (lambda _: from_pandas(TWICE), "must have the columns"),
    "arity 1": (lambda path: load(path, arity=1), "`arity` must be an integer of at least 2"),
    "arity 33": (lambda path: read_table(path, arity=33), "`arity` must be at most 32"),
    "arity of a letter": (lambda path: load(path, arity="4"), "`arity` must be"),  # type: ignore
    "two numbers of columns": (
        lambda path: read_table(path, arity=3, columns=NAMED),
        "must be the number of `columns`, 4; got 3",
    ),
    "one column": (lambda path: read_table(path, columns=["city"]), "from 2 to 32 names"),
    "a column twice": (lambda path: read_table(path, columns=["city", "city"]), "each once"),
    "columns in a word": (lambda path: read_table(path, columns="city"), "got 'city'"),
    "a column that no header names": (
        lambda path: read_table(path, columns=["city", "wind"]),
        "first row must name the column 'wind' once; it reads",
    ),
    "a header of one name twice": (
        lambda path: read_table(put(path.parent, "a,a,b\n1,2,3\n"), columns=["a", "b"]),
        "must name the column 'a' once",
    ),
    "a ragged table": (
        lambda path: read_table(put(path.parent, HEAD + "1,Oslo\n"), columns=NAMED),
        "line 2 .*must hold 5 cells, as the first one does; this one has 2",
    ),
    "a header alone": (
        lambda path: read_table(put(path.parent, HEAD), columns=NAMED),
        "the table has no rows",
    ),
    "no header": (
        lambda path: read_table(put(path.parent, ""), columns=NAMED),
        "facts.csv",
    ),
    "RDF of arity 4": (
        lambda path: load(put(path.parent, "<x:a> <x:p> <x:b> .", "a.ttl"), arity=4),
        "only tables hold facts of 4 columns",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_what_to_do(case: str, tmp_path: Path) -> None:
    asked, message = REFUSED[case]
    path = put(tmp_path, HEAD + BODY)
    with pytest.raises(CapacityError, match=message) as refusal:
        asked(path)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 500
    assert re.search(r"facts\.csv|a\.ttl|must|needs", str(refusal.value))


def test_policies_of_wide_tables_are_checked_for_the_arity(tmp_path: Path) -> None:
    path = put(tmp_path, HEAD + BODY)
    with pytest.raises(InvalidArgumentError, match="needs predicates"):
        read_table(path, columns=NAMED, multi="drop-predicate")
