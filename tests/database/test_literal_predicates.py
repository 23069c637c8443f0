"""In a table of terms no predicate is a literal: such a row is a header, a question, or wrong.

``quoted-header.tsv`` is of the public reports (comunica/comunica#1712).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from capacity.database import from_sparql, load
from capacity.errors import DatabaseFormatError
from capacity.stores import count_duckdb
from tests.endpoints import result, says, serving

ROWS = '<http://e/a>\t<http://e/p>\t"x"\n<http://e/b>\t<http://e/p>\t"y"\n'


def written(folder: Path, text: str, suffix: str) -> Path:
    path = folder / f"facts.{suffix}"
    rows = [line.split("\t") for line in text.splitlines()]
    if suffix == "tsv":
        path.write_text(text)
    elif suffix == "csv":
        # quotes are of the cells, and doubled
        pd.DataFrame(rows).to_csv(path, header=False, index=False)
    else:
        names = ["subject", "predicate", "object"]
        pd.DataFrame(rows, columns=pd.Index(names), dtype=str).to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
@pytest.mark.parametrize(
    "head", ['"subject"\t"predicate"\t"object"', '"s"\t"p"\t"o"', '"Head"\t"relation"\t"tail"']
)
def test_a_row_of_literals_that_names_the_roles_is_a_header(
    head: str, suffix: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f"{head}\n{ROWS}", suffix)
    db = load(path, multi="keep")
    assert (db.n_facts, [term.text for term in db.predicates]) == (2, ["http://e/p"])
    assert count_duckdb(path).facts == 2


@pytest.mark.parametrize("suffix", ["tsv", "csv"])
def test_a_row_of_other_literals_is_a_question(suffix: str, tmp_path: Path) -> None:
    path = written(tmp_path, f'"film"\t"prop"\t"value"\n{ROWS}', suffix)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match="may be a header and may be a fact"):
            read(path)


# pandas' QUOTE_NONNUMERIC quotes the header of a table of numbers, say
@pytest.mark.parametrize("suffix", ["tsv", "csv"])
@pytest.mark.parametrize("rows", ["a\tp\tx\nb\tp\ty\n", "1\t2\t3\n4\t2\t6\n"])
def test_quotes_in_the_first_row_alone_are_those_of_a_header(
    rows: str, suffix: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f'"tail"\t"head"\t"relation"\n{rows}', suffix)
    assert load(path).n_facts == count_duckdb(path).facts == 2
    assert load(path).shape[1] == 2
    path = written(tmp_path, f'"film"\t"prop"\t"value"\n{rows}', suffix)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match="may be a header and may be a fact"):
            read(path)
    # a quote below it, and the first row is one as others
    path = written(tmp_path, f'"film"\t"prop"\t"value"\na\tp\t"x"\n{rows}', suffix)
    assert load(path, multi="keep", table="long").n_facts == 4


@pytest.mark.parametrize("suffix", ["tsv", "csv", "parquet"])
@pytest.mark.parametrize("predicate", ['"p"', '"p"@en', '"5"^^<http://e/t>'])
def test_a_literal_as_predicate_is_refused_with_its_line(
    predicate: str, suffix: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f'{ROWS}<http://e/a>\t{predicate}\t"x"\n', suffix)
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=r"line 3.* must not be a literal") as refusal:
            read(path)
        assert re.search(re.escape(repr(predicate)[:20]), str(refusal.value))


@pytest.mark.parametrize("predicate", ["true", "42"])
def test_a_short_form_of_a_literal_is_no_predicate(predicate: str, tmp_path: Path) -> None:
    path = tmp_path / "result.tsv"
    path.write_text(f"?s\t?p\t?o\n<http://e/a>\t<http://e/p>\t1\n<http://e/a>\t{predicate}\t2\n")
    for read in (load, count_duckdb):
        with pytest.raises(DatabaseFormatError, match=r"line 3.* must not be a literal"):
            read(path)


def test_labels_with_quotes_are_labels_if_one_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, f'"film"\t"prop"\t"value"\n{ROWS}', "tsv")
    options: dict[str, Any] = {"table": "long", "multi": "keep"}
    assert load(path, **options).n_facts == 3


def test_facts_of_another_arity_have_no_predicates(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text('<http://e/a>\t"5"\n')
    assert load(path, arity=2).n_facts == 1


def test_a_query_whose_second_column_holds_literals_is_refused() -> None:
    # ?film ?title ?year is no fact, and ?film ?title alone is one of two columns
    title = {"type": "literal", "value": "Alien", "xml:lang": "en"}
    rows = [("x:a", "x:p", "x:o"), ("x:film", title, "x:1979")]
    with (
        serving(says(result("film title year", *rows))) as server,
        pytest.raises(
            DatabaseFormatError,
            match=r"predicate.*in row 1, from 0, \?title is \"Alien\"@en\. Name",
        ),
    ):
        from_sparql(server.url, "SELECT ?film ?title ?year { }", completeness="trust")
    pair = result("film title", ("x:film", title))
    with serving(says(pair)) as server:
        query = "SELECT ?film ?title { }"
        assert from_sparql(server.url, query, completeness="trust").arity == 2
