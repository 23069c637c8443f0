"""Large tables are read as columns: the same facts and errors as row by row."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, load, read_table
from capacity.database.io.files import pieces
from capacity.database.terms.columns import TermColumns
from tests.database.test_large import assert_same
from tests.database.ways import WAYS, in_each_way, read_by
from tests.tiers import examples

DOUBTFUL = ["", "1", "2.5", "0", "<http://e/a>", "<a>", "_:a", '"a"', '"', 'a"b', '"a ""b"']
NAMES = ["subject", "predicate", "object", "head", "relation", "?s", "x\rb", "\0", "\ufeff"]
CELLS = st.one_of(
    st.sampled_from(["a", "b", "p", "q", "Ann", "Oslo", "é", "a b"]),
    st.sampled_from(DOUBTFUL),
    st.sampled_from(NAMES),
)
WORDS = st.sampled_from(["a", "b", "c", "p", "q", "1"])
FIRST = st.sampled_from(
    [(), ("subject", "predicate", "object"), ("head", "relation", "tail"), ("0", "1", "2"),
     ("name", "born", "city"), ("?s", "?p", "?o"), ("s", "p"), ("a", "b", "c", "d"), ("", "", "")]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\n\n", "\n \n", "\r"])


@settings(max_examples=examples(1000), deadline=None)
@given(
    FIRST,
    st.one_of(
        st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=1, max_size=6),
        st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=4),
    ),
    st.lists(ENDS, min_size=8, max_size=8),
    st.sampled_from([("tsv", "\t"), ("csv", ",")]),
    st.sampled_from([None, "long", "wide", "n3"]),
    st.sampled_from([None, 2, 3]),
)
def test_any_table_is_the_same_as_columns(
    first: tuple[str, ...],
    rows: list[list[str]],
    ends: list[str],
    form: tuple[str, str],
    table: str | None,
    arity: int | None,
) -> None:
    format, separator = form
    given_rows = [row for row in (list(first), *rows) if row]
    text = "".join(
        separator.join(row) + end for row, end in zip(given_rows, ends, strict=False)
    ).encode()
    options: Any = {"format": format, "multi": "keep", "table": table, "arity": arity}
    assert_same(*in_each_way(lambda: load(io.BytesIO(text), **options)))


@pytest.mark.parametrize("way", WAYS[:2])
def test_a_plain_table_is_read_as_columns(way: str) -> None:
    for text in (
        b"subject\tpredicate\tobject\na\tp\tb\n",
        b'a\tp\t"b" c\r\nb\tp\t\na\tp\tb',
        b"_:a\tp\tb\nc\tp\tb\nc\tq\tb\n",
        b"\r\n\n\na\tp\tb\r\n\r\n\na\tp\tc\r\na\tp\t\r",
    ):
        with read_by(way):
            db = load(io.BytesIO(text), format="tsv", multi="keep")
        assert isinstance(db.tokens, TermColumns), text
        assert {term.kind for term in db.tokens} == {"label"}


HARD = {
    # a header of literals over terms, and a question
    "literals": '"subject"\t"predicate"\t"object"\n'
    + "".join(f"_:b{i}\tknows\tthing {i % 7}\n" for i in range(50)),
    "other literals": '"x"\t"y"\t"z"\n' + "".join(f"_:b{i}\tknows\ta\n" for i in range(50)),
    # the second predicate comes late
    "wide": "name\tborn\tcity\n" + "".join(f"n{i}\tb{i // 5000}\tc\n" for i in range(5002)),
    "a long first row": f"country\tof{'x' * 1_200_000}\tvalue\n" + "a\tp\t1\nb\tp\t2\n" * 9,
}


@pytest.mark.parametrize("case", HARD)
def test_what_all_rows_tell_is_told_of_a_large_table(case: str, tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(HARD[case])
    assert_same(*in_each_way(lambda: load(path, multi="keep")))


@pytest.mark.slow
def test_a_large_table_is_the_same_as_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = zip(*(rng.integers(0, n, 350_000).tolist() for n in (30_000, 20, 50_000)), strict=True)
    path = tmp_path / "facts.tsv"
    path.write_text("".join(f"subject {s}\tpredicate {p}\tobject {o}\n" for s, p, o in rows))
    assert path.stat().st_size > pieces.LARGE
    db, *others = in_each_way(lambda: read_table(path, multi="keep"))
    assert isinstance(db, Database)
    assert isinstance(db.tokens, TermColumns)
    assert_same(db, *others)
