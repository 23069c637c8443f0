"""The committed examples are what they say, and their scripts still make them."""

import importlib.util

import pytest

from capacity.database import from_rdflib, load, to_rdflib
from capacity.rank import database_bounds, effective_rank_interval, rank_interval
from capacity.tensor import KNOWN_RANKS as KNOWN_TENSORS
from tests.oracles import EXAMPLES, KNOWN_RANKS, ROOT, example_2_4, figure_1
from tools.known_ranks import BLOCKS, RANDOM, measured, of_dense_parts, of_random_databases


def test_the_papers_examples_are_the_papers() -> None:
    for name, made in (("figure-1.ttl", figure_1()), ("example-2-4.ttl", example_2_4())):
        graph = to_rdflib(made, base="http://example.org/")
        assert from_rdflib(graph) == load(EXAMPLES / name)


def test_countries_have_the_stated_size() -> None:
    db = load(EXAMPLES / "countries.ttl", multi="error")
    assert (db.n_triples, *db.shape) == (4103, 252, 17, 3155)
    assert db.is_functional
    b = database_bounds(db)
    assert b.slices[2] <= b.paper == min(b.slices[:2]) < b.triples


def test_countries_are_what_the_script_writes(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("make", EXAMPLES / "make_countries.py")
    assert spec is not None
    assert spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    target = tmp_path_factory.mktemp("made") / "countries.ttl"
    monkeypatch.setattr(make, "TARGET", target)
    make.main()
    assert target.read_bytes() == (EXAMPLES / "countries.ttl").read_bytes()


def test_every_example_names_its_source_and_licence() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.glob("*.ttl"):
        assert path.name in readme
    assert "CC BY 4.0" in readme


def test_the_changelog_and_the_citation_name_the_version() -> None:
    from capacity import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {__version__}" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.slow
def test_the_table_of_known_ranks_is_what_is_found_today() -> None:
    lines = (ROOT / "docs" / "known-ranks.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]
    rows = [row for row in cells if len(row) == 9 and row[1].isdecimal()]
    assert [row[0] for row in rows] == list(KNOWN_RANKS)
    for name, facts, rank, quick, standard, thorough, _, _, effective in rows:
        make, known = KNOWN_RANKS[name]
        db = make()
        assert (int(facts), int(rank)) == (db.n_triples, known)
        assert quick == str(rank_interval(db))
        assert standard == str(rank_interval(db, effort="standard"))
        assert effective == str(effective_rank_interval(db, effort="standard"))
        # the slow column is checked for what must hold
        lower, upper = map(int, thorough.strip("[]").split(","))
        assert lower <= known <= upper


def test_the_tables_of_drawn_databases_are_those_of_the_records() -> None:
    drawn, dense = of_random_databases(), of_dense_parts()
    tables = (
        measured(head, record) + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)
        for head, record, rows in (
            (RANDOM, "interval_width", drawn),
            (BLOCKS, "block_substitution", dense),
        )
    )
    text = (ROOT / "docs" / "known-ranks.md").read_text(encoding="utf-8")
    assert text.endswith("".join(tables))
    assert {"rank-one locus", "cases"} <= {method for method, *_ in drawn}
    assert dense


@pytest.mark.slow
def test_the_table_of_known_tensors_is_what_quick_finds_today() -> None:
    lines = (ROOT / "docs" / "known-ranks.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines]
    rows = [row for row in cells if len(row) == 8 and row[2][0].isdecimal()]
    assert [row[0] for row in rows] == [known.name for known in KNOWN_TENSORS]
    for known, (_, _, _, quick, standard, *_) in zip(KNOWN_TENSORS, rows, strict=True):
        assert quick == str(rank_interval(known.tensor))
        # the slow column is checked for what must hold
        lower, upper = map(int, standard.strip("[]").split(","))
        assert lower <= known.upper
        assert upper >= known.lower
