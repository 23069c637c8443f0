"""The page about a database: its numbers are the library's, its labels are escaped."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest

import capacity
from capacity.database import Database, load
from capacity.database.describing.dataset import describe
from capacity.embedding import dimensions
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.evaluator import held_size
from capacity.layer import LayerConfig, layer_rank_assumed, store_in_query_key
from capacity.rank import Certificate, database_bounds, paper_bound, rank_interval
from capacity.report import database_report
from capacity.report.holding import holding_layer
from capacity.report.rendering import MOST_BYTES
from tests.oracles import EXAMPLES
from tests.report.parsed import assert_one_file, facts_of, loaded, rows_of, soup_of, text_of

ALGEBRA = re.compile(r"\b(rank|tensor|slice|mode|unfolding)(s|ed|ing)?\b", re.IGNORECASE)
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>\'"{{ 7 * 7 }}'


@pytest.fixture(scope="module")
def figure_1() -> Database:
    return load(EXAMPLES / "figure-1.ttl")


@pytest.fixture(scope="module")
def page(figure_1: Database) -> str:
    return database_report(figure_1)


@pytest.fixture(scope="module")
def films() -> Database:
    """Seven facts in two components, one pair of them with two objects, and labels."""
    rows = [("Alien", "director", "Scott"), ("Thelma", "director", "Scott"),
            ("Alien", "genre", "Horror"), ("Alien", "genre", "SciFi"), ("Thelma", "genre", "Drama"),
            ("x", "y", "z"), ("w", "y", "z")]  # fmt: skip
    return Database.from_triples(rows, multi="keep")


def test_the_page_is_one_file_that_loads_nothing(page: str) -> None:
    assert_one_file(page)
    assert page.startswith("<!DOCTYPE html>")


def test_the_first_screen_has_no_word_of_algebra(page: str, films: Database) -> None:
    for text in (text_of(page, "#first"), text_of(database_report(films), "#first")):
        assert not ALGEBRA.findall(text)
        for question in ("How large", "What carries", "What layer", "What embedding"):
            assert question in text
    # and the pattern finds them where they are
    assert ALGEBRA.findall(text_of(page, "main"))


def test_every_number_of_the_size_is_the_librarys(page: str, figure_1: Database) -> None:
    got, interval, bounds = facts_of(page), rank_interval(figure_1), database_bounds(figure_1)
    assert got["triples"] == {str(bounds.triples)}
    for name, n in zip(("subjects", "predicates", "objects"), figure_1.shape, strict=True):
        assert got[name] == {str(n)}
    assert got["lower"] == got["certified.lower"] == {str(interval.lower)}
    assert got["certified.upper"] == {str(interval.upper)}
    assert got["paper"] == {str(bounds.paper)}
    for role, low, high in zip(
        ("subject", "predicate", "object"), bounds.unfoldings, bounds.slices, strict=True
    ):
        assert got[f"unfolding.{role}"] == {str(low)}
        assert got[f"slices.{role}"] == {str(high)}
    lines = [tag.get_text(strip=True) for tag in soup_of(page).select("#explanation li")]
    assert tuple(lines) == interval.explanation


def test_each_bound_is_a_mark_at_its_place_with_a_sentence(page: str, figure_1: Database) -> None:
    marks, most = soup_of(page).select("figure .mark"), figure_1.n_facts
    sentences = [tag.get_text(" ", strip=True) for tag in soup_of(page).select("#bounds li")]
    # three unfoldings, three sums, the paper's, the triples, and both ends
    assert len(marks) == len(sentences) == 10
    for mark, said in zip(marks, sentences, strict=True):
        value = int(re.findall(r"at (?:least|most) ([\d,]+)", mark.get_text(" "))[0])
        inner = mark.select_one("svg")
        assert inner is not None
        # the line goes from 0 to the number of facts, the largest bound
        assert float(str(inner["x"]).rstrip("%")) == pytest.approx(100 * value / most, abs=1e-3)
        assert str(mark["data-says"]) in said
        assert str(mark["data-says"]).endswith(".")
    # one stop of Tab for all of them
    assert [str(mark["tabindex"]) for mark in marks] == ["0", *["-1"] * 9]


def test_the_table_of_predicates_is_that_of_describe(films: Database) -> None:
    page = database_report(films)
    rows = rows_of(page, "predicates")
    for row, known in zip(rows, describe(films).predicates, strict=True):
        assert row == {
            "predicate": known.name, "label": known.label or "", "rank": repr(known.rank),
            "of rank": repr(known.rank_share), "facts": repr(known.facts),
            "of facts": repr(known.facts_share), "subjects": repr(known.subjects),
            "objects": repr(known.objects), "several": repr(known.multi_valued_pairs),
            "kind": "", "repeats": known.in_words(),
        }  # fmt: skip
    assert [int(row["rank"]) for row in rows] == sorted(
        (int(row["rank"]) for row in rows), reverse=True
    )
    kinds = {row["kind"]: int(row["facts"]) for row in rows_of(page, "kinds")}
    assert list(kinds.values()) == list(describe(films).kinds.values())


def test_pairs_with_several_values_and_components_are_counted(films: Database) -> None:
    page = database_report(films)
    assert facts_of(page)["multi_valued_pairs"] == {"1"}
    (row,) = rows_of(page, "several")
    assert (row["predicate"], row["pairs"], row["such as"]) == ("genre", "1", "Alien")
    assert row["has"] == "Horror | SciFi"
    # the films, of five facts, and x and w, of two
    assert rows_of(page, "components") == [
        {"facts": "5", "components": "1"}, {"facts": "2", "components": "1"}
    ]  # fmt: skip
    assert facts_of(page)["largest"] == {"5"}
    # a layer gives one answer, and no width is told
    assert "written.d_model" not in facts_of(page)
    assert "No layer yet" in text_of(page, "#first")


def test_the_layer_is_the_one_that_holds_the_facts(page: str, figure_1: Database) -> None:
    got, written = facts_of(page), store_in_query_key(figure_1).config
    assert got["written.d_model"] == {str(written.d_model)}
    assert got["written.parameters"] == {str(written.n_parameters)}
    assert got["written.embedding"] == {str(written.n_embedding_parameters(figure_1.n_tokens))}
    assert written.name in text_of(page, "main")
    count = paper_bound(figure_1)
    assert got["paper.count"] == {str(count)}
    assert int(*got["start.rank"]) >= count


@pytest.mark.parametrize("count", [*range(1, 60), 406, 10**6])
def test_the_layer_to_begin_with_has_several_heads_and_the_paper_s_count(
    count: int, figure_1: Database
) -> None:
    start = holding_layer(figure_1, count, ()).start
    assert start is not None
    # rounding to whole dimensions adds less than one for each head
    assert max(count, 3) <= layer_rank_assumed(start) < max(count, 3) + start.n_heads
    assert start.n_heads == min(6, max(1, count // 2 - 1))


def test_tokens_in_two_roles_need_the_wider_layer() -> None:
    # q is a predicate and a subject: d_model = 2 |Q| + 2 with |Q| = 2
    db = Database.from_triples([("a", "p", "x"), ("q", "p", "y"), ("a", "q", "y")])
    found = holding_layer(db, 3, ())
    assert found.written == store_in_query_key(db).config
    assert found.written is not None
    assert found.written.d_model == 6


@pytest.mark.parametrize(
    ("n_triples", "d_model"), [(4, None), (100, 4), (300, 6), (500, 8), (4000, None)]
)
def test_the_foretold_layer_is_the_smallest_of_the_fit(n_triples: int, d_model: int | None) -> None:
    db = Database.from_triples([(f"s{i}", "p", f"o{i}") for i in range(n_triples)])
    foretold = holding_layer(db, n_triples, ()).foretold
    if d_model is None:
        assert foretold is None
        return
    assert foretold is not None
    layer, size = foretold
    assert (layer, size.outside) == (LayerConfig(d_model, 4, 2, 1), ())
    assert n_triples <= size.triples
    # the law was fitted to none narrower with four heads within 4 d_model
    smaller = held_size(LayerConfig(d_model - 1, 4, 2, 1), by="reach")
    assert smaller.triples < n_triples or d_model == 4


def test_dimensions_are_those_of_the_library(page: str, figure_1: Database) -> None:
    ranking = {one.model: one for one in dimensions(figure_1, witness=False)}
    exact = {one.model: one for one in dimensions(figure_1, task="exact")}
    rows = rows_of(page, "dimensions")
    assert {row["family"] for row in rows} == set(ranking)
    for row in rows:
        one, other = ranking[row["family"]], exact[row["family"]]
        told = [row[key] for key in ("at least", "enough", "exact: at least", "exact: enough")]
        ends = (one.necessary, one.sufficient, other.necessary, other.sufficient)
        assert told == ["" if end is None else str(end) for end in ends]
    (embedding,) = facts_of(page)["embedding"]
    trained = [one.sufficient for name, one in ranking.items() if name not in
               ("linear", "attention") and one.sufficient is not None]  # fmt: skip
    assert int(embedding) == min(trained)


def test_the_certificates_in_the_page_prove_both_ends(page: str, figure_1: Database) -> None:
    links = {str(a["download"]): str(a["href"]) for a in soup_of(page).select("a[download]")}
    assert set(links) == {"rank.json", "dimensions.json"}
    data = json.loads(base64.b64decode(links["rank.json"].partition(",")[2]))
    certificates = [Certificate.from_dict(one) for one in data]
    assert [one.side for one in certificates] == ["lower", "upper"]
    assert all(capacity.verify(one, figure_1).proved for one in certificates)
    assert facts_of(page)["certified.upper"] == {str(certificates[1].value)}


@pytest.mark.slow
def test_large_certificates_are_a_command() -> None:
    # each of 20,000 facts without repetition has a place of some five digits in each certificate
    rows = [(f"s{i}", f"p{i % 3}", f"o{7919 * i % 20_000}") for i in range(20_000)]
    page = database_report(Database.from_triples(rows))
    told = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) bytes, more", page)]
    assert told
    assert min(told) > 0
    held = sum(len(base64.b64decode(a.partition(",")[2])) for a in loaded(page) if "json" in a)
    assert held <= MOST_BYTES
    assert "capacity rank FILE --certificate rank.json" in text_of(page, "main")
    assert_one_file(page)


def test_hostile_labels_are_text() -> None:
    rows = [(HOSTILE, HOSTILE + "p", HOSTILE + "v"), (HOSTILE, HOSTILE + "p", "</svg>"),
            ("javascript:alert(1)", "{% raw %}", "-->")]  # fmt: skip
    page = database_report(Database.from_triples(rows, multi="keep"))
    assert_one_file(page)
    soup = soup_of(page)
    assert not soup.find_all("img")
    assert "<script>alert" not in page
    assert "49" not in text_of(page, "#several")
    assert "<script>alert(1)</script>" in text_of(page, "#several")


@pytest.mark.slow
def test_many_predicates_and_long_labels_stay_small() -> None:
    # a thousand predicates, whose names have 2,000 characters each
    rows = [("a", f"{i:04d}" + "p" * 2000, f"{i}") for i in range(1000)]
    page = database_report(Database.from_triples(rows))
    assert len(rows_of(page, "predicates")) == 500
    assert "500 predicates of smaller rank" in text_of(page, "main")
    assert_one_file(page)


def test_commands_on_the_page_name_any_file_and_options(films: Database) -> None:
    page = database_report(films, options=["--multi", "keep", "--exclude", "a b; rm -rf ~"])
    command = "capacity rank FILE --multi keep --exclude 'a b; rm -rf ~' --certificate rank.json"
    assert command in text_of(page, "#main")


def test_the_same_facts_give_the_same_page(page: str, figure_1: Database) -> None:
    assert database_report(figure_1) == page


def test_what_is_no_database_is_refused() -> None:
    with pytest.raises(DatabaseFormatError, match=r"films\.ttl: no such file"):
        database_report("films.ttl")
    with pytest.raises(InvalidArgumentError, match="only zeros and ones"):
        database_report(np.full((2, 2, 2), 2))
    with pytest.raises(InvalidArgumentError, match="thorough"):
        database_report(Database.from_triples([("a", "p", "x")]), effort="much")  # type: ignore[arg-type]
