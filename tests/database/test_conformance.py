"""The W3C's suites are passed but for the tests listed here, each with the reason.

`make conformance W3C=FOLDER` writes docs/conformance.md, beside other readers. Without the variable
W3C there is nothing to run.

``jsonld_features.json`` has each document, and the facts that ``to_rdf`` of pyld 3.3 wrote of it
with the base http://b/doc when the file was made, or null if it refused the document.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from capacity.database import parse_rdf
from capacity.database.io.files.content import check
from capacity.database.io.files.formats import FORMATS
from capacity.database.io.rdf.quads import checked_text, parser_of
from capacity.database.terms.grammar import RDF
from capacity.errors import DatabaseFormatError
from tests.oracles import ROOT
from tests.w3c import REFUSAL, by_capacity, by_pyoxigraph, folder, guessed_alike, passes, suites

JSONLD = FORMATS["jsonld"]
XSD = "http://www.w3.org/2001/XMLSchema#"
_DOTS = "the parser keeps the dots of a base IRI, as in http://a/./b"
_KEPT = "JSON-LD 1.1 drops the base direction, and RDF 1.2 has it: it is kept"
_OPTION = "an optional mapping of base directions, which came before RDF 1.2 had them"
_MODE = "the mode of JSON-LD 1.0 isn't offered"
_LENIENT = "the parser accepts what it should refuse"

# each test that isn't passed, and why; pyoxigraph passes none of them
MISSES: dict[str, dict[str, str]] = {
    "jsonld 1.1": {
        "#t0122": _DOTS,
        "#t0123": _DOTS,
        "#te062": _DOTS,
        "#te091": _DOTS,
        "#tc013": "the parser doesn't take keys of a type map within a scoped context as types",
        "#tc029": _MODE,
        "#tep02": _MODE,
        "#ter21": _MODE,
        "#ter42": _LENIENT,
        "#ttn01": _LENIENT,
        "#tdi02": _KEPT,
        "#tdi04": _KEPT,
        "#tdi05": _KEPT,
        "#tdi06": _KEPT,
        "#tdi09": _OPTION,
        "#tdi10": _OPTION,
        "#tdi11": _OPTION,
        "#tdi12": _OPTION,
        "#te077": "a context that no document names can't be given",
        "#tli12": "the parser refuses a base that is no IRI",
    },
}
# tests in each suite, so that none is skipped unseen
TESTS = {
    "ntriples 1.1": 70,
    "nquads 1.1": 87,
    "turtle 1.1": 313,
    "trig 1.1": 356,
    "rdfxml 1.1": 166,
    "ntriples 1.2": 70,
    "nquads 1.2": 68,
    "turtle 1.2": 103,
    "trig 1.2": 60,
    "rdfxml 1.2": 31,
    "jsonld 1.1": 455,
}
PAGE = ROOT / "docs" / "conformance.md"
SUITES = folder()


@pytest.mark.skipif(SUITES is None, reason="the variable W3C names no folder of suites")
@pytest.mark.parametrize("suite", TESTS)
def test_a_suite_is_passed_but_for_what_is_listed(suite: str) -> None:
    assert SUITES is not None
    cases = suites(SUITES)[suite]
    assert len(cases) == TESTS[suite]
    missed = [case for case in cases if not passes(case, by_capacity, REFUSAL)]
    assert {case.name for case in missed} == MISSES.get(suite, {}).keys()
    # at least as well as the parser alone
    assert not [case.name for case in missed if passes(case, by_pyoxigraph)]
    # and what is read is read the same without its format
    read = [case for case in cases if case not in missed and case.must != "be refused"]
    assert [case.name for case in read if not guessed_alike(case)] == []


def test_the_page_says_what_is_missed() -> None:
    from tools.conformance import missed_table, title

    text = PAGE.read_text(encoding="utf-8")
    assert missed_table(MISSES) in text
    rows = [[cell.strip(" *") for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    assert [row[:3] for row in rows if len(row) == 5 and row[1].isdecimal()] == [
        [title(suite), str(n), str(n - len(MISSES.get(suite, {})))] for suite, n in TESTS.items()
    ]


FEATURES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("jsonld_features.json").read_text(encoding="utf-8")
)
_ROUNDED = "JSON-LD rounds to 16 digits, so that several numbers are one: all digits are kept"
_WITHIN = "its type would be read in another context: refused, with what to write"
_DIRECTION = "JSON-LD 1.1 drops the base direction, and RDF 1.2 has it: it is kept"
_MALFORMED = "JSON-LD 1.1 Processing Algorithms, 8.2.2: a value with it is no fact"
# the facts here, or None for a refusal, and why they differ
OTHER: dict[str, tuple[list[str] | None, str]] = {
    "a direction": (['<http://e/g> <http://e/p> "a"@ar--rtl .'], _DIRECTION),
    "a direction of a language map": (['<http://e/g> <http://e/h> "a"@ar--rtl .'], _DIRECTION),
    "a malformed language": ([], _MALFORMED),
    "a malformed language in a map": (['<http://e/g> <http://e/h> "b"@de .'], _MALFORMED),
    "an empty language": ([], _MALFORMED),
    "a datatype that needs a language": (None, "RDF 1.1 Concepts, 3.3: no literal of it has none"),
    "contexts of a type and of a type map's term": (None, _WITHIN),
    "a vocabulary of a node in a type map": (None, _WITHIN),
    "an array in a list": (
        [
            "<http://e/g> <http://e/h> _:a .",
            *(f'_:{text} <{RDF}first> "{text}" .' for text in "an"),
            f"_:a <{RDF}rest> _:n .",
            f"_:n <{RDF}rest> <{RDF}nil> .",
        ],
        "JSON-LD 1.1 Processing Algorithms, 5.1.2, step 5.2: its values are those of the list",
    ),
    "keys of JSON beyond the first plane": (
        [rf'<http://e/g> <http://e/h> "{{\"\uFB33\":3,\"\U0001F600\":5}}"^^<{RDF}JSON> .'],
        "the parser sorts them by code points, and RFC 8785 by those of UTF-16",
    ),
    "integers of 21 digits": (
        [
            f'<http://e/g> <http://e/h> "{digits}E20"^^<{XSD}double> .'
            for digits in ("1.0", "1.2345678901234568")
        ],
        "the parser takes integers from 10^20 on as doubles, and JSON-LD from 10^21 on",
    ),
    "doubles of 17 digits": (
        [f'<http://e/g> <http://e/h> "1.7976931348623157E308"^^<{XSD}double> .'], _ROUNDED,
    ),
}  # fmt: skip


def canonical(quads: Any) -> set[str]:
    """Facts with canonical names of blank nodes."""
    dataset = ox.Dataset(quads)
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))


def of_lines(lines: list[str]) -> set[str]:
    return canonical(ox.parse("\n".join(lines), format=ox.RdfFormat.N_QUADS))


@pytest.mark.parametrize("row", FEATURES, ids=lambda row: row["feature"])
def test_a_feature_is_read_as_by_pyld(row: dict[str, Any]) -> None:
    text = json.dumps(row["document"], ensure_ascii=False)
    lines = OTHER[row["feature"]][0] if row["feature"] in OTHER else row["facts"]
    if lines is None:
        with pytest.raises(DatabaseFormatError, match="read as jsonld"):
            parse_rdf(text, "jsonld", base="http://b/doc")
        return
    content = check("a", text.encode())
    where, data = checked_text(content, JSONLD, "http://b/doc", None)
    read = canonical(parser_of(content, ox.RdfFormat.JSON_LD, where, data))
    assert read == of_lines(lines)
    # the reader has as many, of all graphs
    db = parse_rdf(text, "jsonld", base="http://b/doc", multi="keep", allow_empty=True)
    assert db.n_facts == len(read)


def test_each_difference_is_explained_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for feature, (_, why) in OTHER.items():
        assert f"| {feature} | {why} |" in page
