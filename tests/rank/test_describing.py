"""Rows of a description are recounted, repetitions found by brute force, advice applied."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib.compare import isomorphic

from capacity.database import Database, load, parse_rdf
from capacity.database.describing import repetition
from capacity.database.describing.advice import flags, named
from capacity.database.terms.term import Term
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.rank import Description, describe, rank_interval, slice_rank_sum
from tests.tiers import examples

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
TYPE = Term("iri", f"{RDF}type")

# 12 facts: :madeBy is the inverse of :made, :by a copy of :madeBy, and :seen lies within :made
FILMS = """
@prefix : <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Alien  a :Film ; rdfs:label "Alien"@en, "Alien"@de ; :madeBy :Scott ; :by :Scott .
:Avatar a :Film ; rdfs:label "Avatar" ; :madeBy :Cameron ; :by :Cameron .
:Scott :made :Alien .
:Cameron :made :Avatar ; :seen :Avatar .
"""


def films() -> Database:
    return parse_rdf(FILMS, "turtle", multi="keep")


def graphs() -> st.SearchStrategy[Database]:
    """Graphs in which tokens have several roles, so that predicates meet inverted, too."""
    nodes = [Term("iri", f"x:{c}") for c in "abc"] + [Term("blank", "d")]
    predicates = [Term("iri", f"x:{c}") for c in "apqr"] + [TYPE, Term("iri", f"{RDFS}label")]
    objects = [*nodes, Term("literal", "a"), Term("literal", "a", "", "en")]
    facts = st.tuples(*(st.sampled_from(terms) for terms in (nodes, predicates, objects)))
    return st.sets(facts, min_size=1, max_size=40).map(
        lambda rows: Database.from_triples(rows, multi="keep")
    )


def facts_of(db: Database) -> set[tuple[Term, Term, Term]]:
    return {(db.subjects[k], db.predicates[q], db.objects[v]) for k, q, v in db.triples.tolist()}


def bound(db: Database) -> int:
    return min(slice_rank_sum(db, mode) for mode in range(3))


@settings(max_examples=examples(100), deadline=None)
@given(graphs())
def test_rows_are_what_a_plain_recount_gives(db: Database) -> None:
    found, facts = describe(db), facts_of(db)
    assert {row.predicate for row in found.predicates} == set(db.predicates)
    ranks: dict[Term, int] = {}
    for q in db.predicates:
        pairs = {(k, v) for k, p, v in facts if p == q}
        subjects, objects = sorted({k for k, _ in pairs}), sorted({v for _, v in pairs})
        # at most 4 x 6, whose rank floating point gives
        matrix = np.array([[(k, v) in pairs for v in objects] for k in subjects], float)
        ranks[q] = int(np.linalg.matrix_rank(matrix))
    for row in found.predicates:
        q = row.predicate
        pairs = {(k, v) for k, p, v in facts if p == q}
        several = Counter(k for k, _ in pairs)
        assert row.facts == len(pairs)
        assert row.subjects == len(several)
        assert row.objects == len({v for _, v in pairs})
        assert row.multi_valued_pairs == len([k for k, n in several.items() if n > 1])
        assert row.functional == (max(several.values()) == 1)
        assert row.literal_facts == len([v for _, v in pairs if v.kind == "literal"])
        assert row.literal == all(v.kind == "literal" for _, v in pairs)
        assert row.blank_facts == len([1 for pair in pairs if "blank" in {t.kind for t in pair}])
        assert row.identifies == (row.facts == row.subjects == row.objects > 1)
        assert row.schema == (q.text.startswith((RDF, RDFS)))
        assert row.annotation == q.text.startswith(RDFS)
        assert row.rank == ranks[q]
        assert row.rank_share == pytest.approx(ranks[q] / sum(ranks.values()))
        assert row.facts_share == pytest.approx(len(pairs) / len(facts))
    ordered = [row.rank for row in found.predicates]
    assert ordered == sorted(ordered, reverse=True)
    # the sum of these ranks is the sum over predicate slices
    assert sum(ordered) == found.slices[1] == slice_rank_sum(db, 1)
    assert found.bound == bound(db)
    types = Counter(v for _, p, v in facts if p == TYPE)
    assert dict(found.classes) == types
    assert sum(found.components) == len(facts)
    json.dumps(found.to_dict())


@settings(max_examples=examples(100), deadline=None)
@given(graphs())
def test_repetitions_are_those_of_brute_force(db: Database) -> None:
    facts = facts_of(db)
    pairs = {q: {(k, v) for k, p, v in facts if p == q} for q in db.predicates}
    turned = {q: {(v, k) for k, v in pairs[q]} for q in db.predicates}
    for row in describe(db).predicates:
        mine = pairs[row.predicate]
        others = [q for q in db.predicates if q != row.predicate]
        counts = {(q, inverse): len(mine & (turned if inverse else pairs)[q])
                  for inverse in (False, True) for q in others}  # fmt: skip
        most = max(counts.values(), default=0)
        if not most:
            assert row.repeats is None
            continue
        assert row.repeats is not None
        # of several, one that isn't inverted, and the first
        q, inverse = next(key for key, n in counts.items() if n == most)
        assert (db.predicates[row.repeats.predicate], row.repeats.inverse) == (q, inverse)
        assert row.repeats.facts == most
        whole = "equal" if most == len(pairs[q]) else "contained"
        assert row.repeats.by == (whole if most == len(mine) else "partly")


@settings(max_examples=examples(60), deadline=None)
@given(graphs())
def test_advice_holds_when_its_selection_is_applied(db: Database) -> None:
    found = describe(db)
    shares = [one.rank_share for one in found.advice]
    assert shares == sorted(shares, reverse=True)
    for one in found.advice:
        part = db.select(**one.selection.options())
        assert one.leaves == bound(part)
        assert one.omits == db.n_facts - part.n_facts > 0
        assert one.facts_share == pytest.approx(one.omits / db.n_facts)
        assert one.rank_share == pytest.approx(1 - one.leaves / found.bound)
        # a part of a tensor has no larger rank
        assert 0 <= one.rank_share < 1
        left = f"{part.n_facts:,} facts of rank at most {one.leaves:,}"
        assert f"`{flags(one.selection, named(db))}` leaves {left}" in one.text
    # each kind that is a part of the facts, and not all of them, has its advice
    asked = {name for one in found.advice for name in one.selection.options()}
    for kind, n in found.kinds.items():
        assert (kind in asked) == (0 < n < db.n_facts)


def test_the_flags_of_advice_select_what_the_advice_is_about() -> None:
    # of names with spaces and quotes, too
    db = Database.from_triples(
        [(f"k{i}", q, f"{q}{i}") for i in range(3) for q in ("date of birth", "it's")]
        + [(f"k{i}", "in", "x") for i in range(3)]
    )
    (advice,) = describe(db).advice
    assert shlex.split(flags(advice.selection, named(db))) == [
        "--exclude", "date of birth", "--exclude", "it's",
    ]  # fmt: skip
    # three subjects with one value each: two predicates of rank 3, in which k0, k1 and k2 have
    # the same slices, and one of rank 1
    assert (advice.omits, advice.leaves) == (6, 1)


def test_a_graph_is_described_in_words() -> None:
    rows = {row.name: row for row in describe(films()).predicates}
    assert rows[":madeBy"].in_words() == "equals :by"
    # of predicates that share as many, one that isn't inverted comes first
    assert rows[":made"].in_words() == "is the inverse of :by"
    assert rows[":seen"].in_words() == "lies within :made"
    assert rows["rdfs:label"].example == (":Alien", '"Alien"@de', '"Alien"@en')
    assert rows["rdf:type"].functional
    page = str(describe(films()))
    assert "annotations 3 (25 %)" in page
    assert "1: :Alien -> " in page
    assert ":by equals :madeBy, fact by fact" in page
    assert "; the rank itself stays the same" in page
    html = describe(films())._repr_html_()
    assert html.count("<tr>") == 1 + len(rows)
    assert "&quot;Alien&quot;@de" in html


def test_a_predicate_that_is_a_copy_adds_nothing() -> None:
    (advice,) = [one for one in describe(films()).advice if "equals" in one.text]
    part = films().select(**advice.selection.options())
    # the rank of both is that of the facts in which :by and :madeBy are one predicate
    whole, rest = rank_interval(films()), rank_interval(part)
    assert (whole.lower, whole.upper) == (rest.lower, rest.upper)


def test_labels_are_shown_beside_names() -> None:
    text = f"""<x:p36> <{RDFS}label> "capital"@en, "Hauptstadt"@de . <x:MY> <x:p36> <x:KL> ."""
    found = describe(parse_rdf(text, "turtle", multi="keep"))
    (row,) = [row for row in found.predicates if row.predicate.text == "x:p36"]
    assert row.label == "capital"
    assert "<x:p36> (capital)" in str(found)


def test_counting_that_takes_too_long_is_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    # each of 9 facts has the same pair, so that 81 products are needed
    db = Database.from_triples([("k", f"q{i}", "v") for i in range(9)])
    assert all(row.repeats is not None for row in describe(db).predicates)
    monkeypatch.setattr(repetition, "MOST_PRODUCTS", 0)
    assert all(row.repeats is None for row in describe(db).predicates)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a path": (lambda: describe("films.ttl"), DatabaseFormatError, "no such file"),
    "pairs": (
        lambda: describe(Database.from_tuples([("a", "b")])),
        InvalidArgumentError,
        "three columns",
    ),
    "no facts": (
        lambda: describe(parse_rdf("", "turtle", allow_empty=True)),
        InvalidArgumentError,
        "no facts",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_described_is_said(what: str) -> None:
    call, error, words = WRONG[what]
    with pytest.raises(error, match=words):
        call()


# as triples

VOID = "http://rdfs.org/ns/void#"
OURS = "urn:capacity:rank#"


def query(found: Description, text: str) -> list[tuple[str, ...]]:
    """Answers of another library's SPARQL, over the Turtle."""
    graph = rdflib.Graph().parse(data=found.to_turtle(), format="turtle")
    prefixes = {"void": VOID, "rank": OURS, "dcterms": "http://purl.org/dc/terms/",
                "dcat": "http://www.w3.org/ns/dcat#"}  # fmt: skip
    rows: Any = graph.query(text, initNs=prefixes)
    return [tuple(str(cell) for cell in row) for row in rows]


def test_turtle_has_the_numbers_of_the_rows() -> None:
    found = describe(films())
    (dataset,) = query(found, "SELECT ?n ?s ?p ?o ?r { ?d a void:Dataset, dcat:Dataset ; "
                       "void:triples ?n ; void:distinctSubjects ?s ; void:properties ?p ; "
                       "void:distinctObjects ?o ; rank:rankAtMost ?r }")  # fmt: skip
    db = films()
    assert dataset == tuple(map(str, (db.n_facts, *db.shape, found.bound)))
    parts = query(found, "SELECT ?p ?n ?s ?o ?r ?f { ?d void:propertyPartition [ void:property ?p ;"
                  "void:triples ?n ; void:distinctSubjects ?s ; void:distinctObjects ?o ; "
                  "rank:predicateRank ?r ; rank:functional ?f ] }")  # fmt: skip
    assert set(parts) == {
        (row.predicate.text, *map(str, (row.facts, row.subjects, row.objects, row.rank)),
         str(row.functional).lower())
        for row in found.predicates
    }  # fmt: skip
    assert query(found, "SELECT ?c ?n { ?d void:classPartition [ void:class ?c ; "
                 "void:entities ?n ] }") == [("http://example.org/Film", "2")]  # fmt: skip
    shared = query(found, "SELECT ?p ?q ?n ?i { ?x void:property ?p ; rank:sharesMostWith ?q ; "
                   "rank:sharedPairs ?n ; rank:sharedInverse ?i }")  # fmt: skip
    e = "http://example.org/"
    assert (f"{e}madeBy", f"{e}by", "2", "false") in shared
    assert (f"{e}made", f"{e}by", "2", "true") in shared


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(graphs())
def test_turtle_of_any_graph_loads_again_and_is_the_same_each_time(db: Database) -> None:
    text = describe(db).to_turtle()
    assert text == describe(db).to_turtle()
    mine = parse_rdf(text, "turtle", multi="keep")
    assert mine.n_facts == len(rdflib.Graph().parse(data=text, format="turtle"))
    part = mine.select(predicates=f"{VOID}propertyPartition")
    assert part.n_facts == len(db.predicates)
    # a description can be described
    assert describe(mine).bound >= 1


def test_every_term_of_our_own_is_documented() -> None:
    from capacity.database.describing import void

    used = {term.text.removeprefix(OURS) for term in
            parse_rdf(describe(films()).to_turtle(), "turtle", multi="keep").predicates
            if term.text.startswith(OURS)}  # fmt: skip
    documented = set(re.findall(r"^``(\w+)``", void.__doc__ or "", re.MULTILINE))
    assert used == documented


GOLDEN = """
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix dcat: <http://www.w3.org/ns/dcat#> .
@prefix dcterms: <http://purl.org/dc/terms/> .
@prefix rank: <urn:capacity:rank#> .
@prefix spdx: <http://spdx.org/rdf/terms#> .
@prefix void: <http://rdfs.org/ns/void#> .
<ni:///sha-256;FACTS> a void:Dataset, dcat:Dataset ;
    dcterms:title "two.ttl" ;
    dcterms:description "2 of 3 facts are selected; omitted by literals 1" ;
    dcat:distribution <ni:///sha-256;FILE> ;
    void:triples 2 ; void:distinctSubjects 2 ; void:distinctObjects 2 ;
    void:properties 1 ; void:classes 0 ; void:vocabulary <http://example.org/> ;
    rank:rankAtMost 2 ; rank:components 1 ;
    void:propertyPartition [
        void:property <http://example.org/p> ; dcterms:title ":p" ;
        void:triples 2 ; void:distinctSubjects 2 ; void:distinctObjects 2 ;
        rank:predicateRank 2 ; rank:rankShare 1.000000 ;
        rank:functional true ; rank:multiValued 0
    ] .
<ni:///sha-256;FILE> a dcat:Distribution ; dcterms:title "two.ttl" ;
    dcat:mediaType <https://www.iana.org/assignments/media-types/text/turtle> ;
    spdx:checksum [ a spdx:Checksum ; spdx:checksumValue "HEX"^^xsd:hexBinary ;
                    spdx:algorithm spdx:checksumAlgorithm_sha256 ] .
"""


def test_turtle_of_two_facts_is_this(tmp_path: Path) -> None:
    path = tmp_path / "two.ttl"
    path.write_text("@prefix : <http://example.org/> . :a :p :b ; :q 'c' . :c :p :d .")
    db = load(path, literals="drop")
    # RFC 6920: the digest in base64url, without padding
    digests = {"FACTS": db.facts_sha256, "FILE": hashlib.sha256(path.read_bytes()).hexdigest()}
    golden = GOLDEN.replace("HEX", digests["FILE"])
    for name, digest in digests.items():
        base64 = urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")
        golden = golden.replace(f"sha-256;{name}>", f"sha-256;{base64}>")
    graphs = [rdflib.Graph().parse(data=text, format="turtle")
              for text in (describe(db).to_turtle(), golden)]  # fmt: skip
    assert isomorphic(*graphs)
