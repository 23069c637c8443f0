"""Up to N broken lines of a format of lines are omitted and told; of more the first is an error."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, load, parse_rdf, read_table
from capacity.database.io.skipping import broken_in
from capacity.errors import DatabaseFormatError, InvalidArgumentError, SkippedLinesWarning
from capacity.stores import count_dask, count_duckdb
from tests.commands import run
from tests.database.ways import WAYS, read_by
from tests.tiers import examples

# sound lines, and broken ones of each kind
SOUND = [b"<x:a> <x:p> <x:b> .", b'<x:a> <x:q> "c"@en . # note', b"", b"# a comment",
         b'_:b <x:p> "d\\n"^^<x:t> .', b'VERSION "1.2"']  # fmt: skip
BROKEN = {
    "no full stop": b"<x:a> <x:p> <x:c>",
    "no object": b"<x:a> <x:p> .",
    "an IRI with a space": b"<x:a b> <x:p> <x:c> .",
    "a relative IRI": b"<a> <x:p> <x:c> .",
    "a quote that doesn't end": b'<x:a> <x:p> "c .',
    "a wrong escape": b'<x:a> <x:p> "\\q" .',
    "a literal as subject": b'"a" <x:p> <x:c> .',
    "words": b"an error has occurred",
    "not UTF-8": b'<x:a> <x:p> "caf\xe9" .',
    "two statements": b"<x:a> <x:p> <x:b> . <x:a> <x:p> <x:c> .",
}


def omitting(path: Path, n: int, **options: Any) -> tuple[Database, str]:
    """The facts, and what is told."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", SkippedLinesWarning)
        db = load(path, multi="keep", skip_errors=n, **options)
    return db, " ".join(str(one.message) for one in told)


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("way", [None, *WAYS])
def test_a_broken_line_is_omitted_and_told(what: str, way: str | None, tmp_path: Path) -> None:
    path, sound = tmp_path / "facts.nt", tmp_path / "sound.nt"
    path.write_bytes(b"\n".join([*SOUND[:2], BROKEN[what], *SOUND[2:]]))
    sound.write_bytes(b"\n".join(SOUND))
    wanted = load(sound, multi="keep")

    def check() -> None:
        with pytest.raises(DatabaseFormatError):
            load(path, multi="keep")
        db, told = omitting(path, 1)
        assert db == wanted
        assert "1 broken line is omitted from" in told
        assert "line 3: " in told
        assert db.source is not None
        assert [line for line, _ in db.source.skipped] == [3]
        # the hash is that of the file
        assert db.source.sha256 != load(sound, multi="keep").source.sha256  # type: ignore[union-attr]

    if way is None:
        check()
    else:
        with read_by(way):
            check()


def test_one_line_too_many_is_the_first_error_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "facts.nt"
    path.write_bytes(b"\n".join([SOUND[0], BROKEN["no object"], SOUND[1], BROKEN["words"], b""]))
    with pytest.raises(DatabaseFormatError) as today:
        load(path, multi="keep")
    with pytest.raises(DatabaseFormatError) as one:
        load(path, multi="keep", skip_errors=1)
    assert str(one.value) == str(today.value)
    assert omitting(path, 2)[0].n_facts == 2
    assert omitting(path, 100)[0].n_facts == 2
    db, _ = omitting(tmp_path / "facts.nt", 2)
    assert db.source is not None
    assert [line for line, _ in db.source.skipped] == [2, 4]


def test_a_file_without_errors_is_read_as_ever_and_nothing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "facts.nt"
    path.write_bytes(b"\n".join(SOUND))
    db, told = omitting(path, 5)
    assert (db, told) == (load(path, multi="keep"), "")
    assert db.source is not None
    assert db.source.skipped == ()


def test_quads_compressed_files_and_texts_have_it_too(tmp_path: Path) -> None:
    path = tmp_path / "facts.nq.gz"
    path.write_bytes(gzip.compress(b"<x:a> <x:p> <x:b> <x:g> .\nbroken\n<x:a> <x:p> <x:c> .\n"))
    assert omitting(path, 1)[0].n_facts == 2
    assert omitting(path, 1, graph="x:g")[0].n_facts == 1
    with pytest.warns(SkippedLinesWarning, match="line 2"):
        parse_rdf("<x:a> <x:p> <x:b> .\nbroken", "ntriples", skip_errors=1)


def test_a_file_of_broken_lines_alone_is_refused_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "facts.nt"
    path.write_text("one\ntwo\n")
    with pytest.raises(DatabaseFormatError, match="line 1"):
        load(path, skip_errors=9)


ROWS = ["a\tp\tb", "a\tq\tc", "b\tp\tc"]
# of a table, what is broken in it, and which facts stay
TABLES: dict[str, tuple[str, str, dict[str, Any], int, list[int]]] = {
    "too few cells": ("tsv", "\n".join([*ROWS[:2], "a\tb", ROWS[2], "x"]), {}, 3, [3, 5]),
    "too many cells": ("tsv", "\n".join([ROWS[0], "a\tb\tc\td", *ROWS[1:], "1\t2\t3\t4"]), {}, 3,
                       [2, 5]),
    "a first row that is broken": ("tsv", "\n".join(["export", *ROWS]), {}, 3, [1]),
    "a cell that is no term": (
        "tsv", "<x:a>\t<x:p>\t<x:b>\n<x:a>\t<x:p>\tc d\n<x:b>\t<x:p>\t<x:c>\n",
        {"table": "n3"}, 2, [2],
    ),
    "a row of CSV": ("csv", 'a,p,"b, c"\r\na,b\r\nb,p,"d\r\ne"\r\nc,p,d\r\n', {}, 3, [2]),
    "a wide table": ("csv", "name,born,city\nAnn,1980,Rome\nBob,1990\n", {"table": "wide"}, 2, [3]),
    "an empty subject": ("csv", "name,born\nAnn,1980\n,1990\n", {"table": "wide"}, 1, [3]),
    "text that isn't UTF-8": ("tsv", "a\tp\tb\na\tq\tc\xe9\nb\tp\tc", {}, 2, [2]),
}  # fmt: skip


@pytest.mark.parametrize("what", TABLES)
def test_a_broken_row_of_a_table_is_omitted_and_told(what: str, tmp_path: Path) -> None:
    format, text, options, n, lines = TABLES[what]
    path = tmp_path / f"facts.{format}"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DatabaseFormatError):
        load(path, multi="keep", **options)
    with pytest.raises(DatabaseFormatError):
        load(path, multi="keep", skip_errors=len(lines) - 1, **options)
    db, told = omitting(path, len(lines), **options)
    assert db.n_facts == n
    assert f"line {lines[0]}: " in told
    assert db.source is not None
    assert [line for line, _ in db.source.skipped] == lines
    with pytest.warns(SkippedLinesWarning):
        assert read_table(path, multi="keep", skip_errors=9, **options) == db


NEVER: dict[str, tuple[str, str]] = {
    "a row over several lines": ("csv", 'a,p,b\n"a\nb",p\nb,p,c\n'),
    "a quote that doesn't end": ("csv", 'a,p,b\nb,p,"c\nd,p,e\n'),
    "a table that can be read in two ways": ("tsv", "name\tborn\tcity\nAnn\t1980\tRome\n"),
    "Turtle": ("ttl", "<x:a> <x:p> <x:b> .\n<x:a> <x:p> .\n"),
}


@pytest.mark.parametrize("what", NEVER)
def test_what_is_not_wrong_with_a_line_alone_is_refused_as_ever(what: str, tmp_path: Path) -> None:
    format, text = NEVER[what]
    path = tmp_path / f"facts.{format}"
    path.write_text(text)
    with pytest.raises(DatabaseFormatError):
        load(path, multi="keep", skip_errors=9)


def test_other_formats_say_which_have_it(tmp_path: Path) -> None:
    path = tmp_path / "facts.ttl"
    path.write_text("<x:a> <x:p> <x:b> .")
    with pytest.raises(DatabaseFormatError, match="ntriples, nquads, tsv, csv"):
        load(path, skip_errors=1)
    with pytest.raises(InvalidArgumentError, match="`skip_errors`"):
        load(path, skip_errors=-1)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.sampled_from([*SOUND, *BROKEN.values()]), max_size=30))
def test_broken_lines_are_those_that_the_parser_refuses_alone(lines: list[bytes]) -> None:
    found = [number for number, _ in broken_in(b"\n".join(lines), "ntriples")]
    assert found == [i for i, line in enumerate(lines, start=1) if line in BROKEN.values()]


def test_the_command_line_tells_and_prints_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "facts.nt"
    path.write_bytes(b"\n".join([SOUND[0], BROKEN["no object"], SOUND[1], b""]))
    code, out, err = run(capsys, "rank", path, "--skip-errors", 1, "--json")
    assert code == 0
    assert "1 broken line is omitted" in err
    selection = json.loads(out)["selection"]
    assert selection["options"] == {"skip_errors": 1}
    assert selection["omitted"] == {"skip_errors": 1}
    (skipped,) = selection["skipped"]
    assert skipped["line"] == 2
    certificate = tmp_path / "c.json"
    assert run(capsys, "rank", path, "--skip-errors", 1, "--certificate", certificate)[0] == 0
    assert run(capsys, "verify", certificate, path, "--skip-errors", 1)[0] == 0
    code, _, err = run(capsys, "rank", path)
    assert code == 2
    assert "line 2" in err


@pytest.mark.parametrize("way", [None, *WAYS])
@pytest.mark.parametrize("what", ["no object", "not UTF-8", "two statements"])
def test_lines_are_omitted_where_facts_are_counted(
    way: str | None, what: str, tmp_path: Path
) -> None:
    path, sound = tmp_path / "facts.nt", tmp_path / "sound.nt"
    path.write_bytes(b"\n".join([*SOUND, BROKEN[what], SOUND[0], BROKEN["words"], b""]))
    sound.write_bytes(b"\n".join(SOUND))
    wanted = count_duckdb(sound)

    def check() -> None:
        found = count_duckdb(path, skip_errors=2)
        assert (found.facts, found.upper, found.lower) == (wanted.facts, wanted.upper, wanted.lower)
        (note,) = found.notes
        assert "2 broken lines are omitted" in note
        assert "line 7: " in note
        with pytest.raises(DatabaseFormatError, match=r"line 7 .*over 1 lines are broken"):
            count_duckdb(path, skip_errors=1)
        with pytest.raises(DatabaseFormatError):
            count_duckdb(path)

    if way is None:
        check()
    else:
        with read_by(way), pytest.MonkeyPatch.context() as patch:
            patch.setattr("capacity.stores.lines.rdf_lines.LARGE", 0)
            patch.setattr("capacity.stores.lines.rdf_lines.pays", lambda *_, **__: way == WAYS[0])
            check()


def test_tables_are_not_counted_without_their_broken_rows(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("\n".join(ROWS))
    with pytest.raises(DatabaseFormatError, match=r"load the file with capacity\.load"):
        count_duckdb(path, skip_errors=1)


def test_counting_from_the_command_line_tells_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "facts.nt"
    path.write_bytes(b"\n".join([SOUND[0], BROKEN["no object"], b""]))
    code, out, err = run(capsys, "rank", path, "--out-of-core", "--skip-errors", 1, "--json")
    assert code == 0
    assert "1 broken line is omitted" in err
    assert json.loads(out)["selection"]["options"] == {"skip_errors": 1}


@pytest.mark.slow
# the port of the dashboard, which isn't asked for, may be another cluster's
@pytest.mark.filterwarnings("default")
def test_a_cluster_omits_them_too(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    path, table = tmp_path / "facts.nt", tmp_path / "facts.tsv"
    path.write_bytes(b"\n".join([*SOUND, BROKEN["no object"], b""]))
    table.write_text("\n".join([*ROWS, "a\tb"]))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://",
        dashboard_address=None, silence_logs=50,
    ) as cluster:  # fmt: skip
        for file, line in (path, 7), (table, 4):
            found = count_dask(file, cluster.scheduler_address, skip_errors=1)
            assert found.facts == 3
            (note,) = found.notes
            assert f"line {line}: " in note
