"""Large tables are read as columns: the same facts and errors as row by row."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import load, read_table
from capacity.database.io import pieces
from capacity.database.term_columns import TermColumns
from capacity.errors import CapacityError
from tests.database.test_large import assert_same
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


def both(text: bytes, format: str, **options: object) -> tuple[object, object]:
    """Read a table in both ways; an error instead of a database is its class and message."""
    results: list[object] = []
    for least in (0, 2**62):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pieces, "LARGE", least)
            try:
                results.append(load(io.BytesIO(text), format=format, **options))  # type: ignore[arg-type]
            except CapacityError as error:
                results.append((type(error), str(error)))
    return results[0], results[1]


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
    assert_same(*both(text, format, multi="keep", table=table, arity=arity))


def test_a_plain_table_is_read_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LARGE", 0)
    for text in (
        b"subject\tpredicate\tobject\na\tp\tb\n",
        b'a\tp\t"b" c\r\nb\tp\t',
        b"_:a\tp\tb\n",
    ):
        db = load(io.BytesIO(text), format="tsv")
        assert isinstance(db.tokens, TermColumns), text
        assert {term.kind for term in db.tokens} == {"label"}


@pytest.mark.slow
def test_a_large_table_is_the_same_as_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if the code had been compiled before, which a longer file alone would pay for
    monkeypatch.setattr(pieces, "UNKEPT", 1)
    rng = np.random.default_rng(0)
    rows = zip(*(rng.integers(0, n, 350_000).tolist() for n in (30_000, 20, 50_000)), strict=True)
    path = tmp_path / "facts.tsv"
    path.write_text("".join(f"subject {s}\tpredicate {p}\tobject {o}\n" for s, p, o in rows))
    assert path.stat().st_size > pieces.LARGE
    db = read_table(path, multi="keep")
    assert isinstance(db.tokens, TermColumns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LARGE", 2**62)
        assert_same(db, read_table(path, multi="keep"))
