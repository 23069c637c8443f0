import dataclasses

import numpy as np
import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database, Term, label, parse_rdf
from capacity.database.policy import POLICIES
from capacity.errors import MultiValuedError, MultiValuedWarning, UnknownTokenError
from capacity.testing import databases
from tests.oracles import FIGURE_1, figure_1

MULTI = [("a", "p", "x"), ("a", "p", "y"), ("b", "p", "y"), ("a", "q", "x")]


def test_vocabularies_are_sorted_and_a_token_may_have_several_roles() -> None:
    db = figure_1()
    assert [t.text for t in db.subjects] == ["Astrid", "Bernard", "Colin", "Malaysia", "Singapore"]
    assert [t.text for t in db.predicates] == ["born_in", "currency", "lives_in"]
    assert [t.text for t in db.objects] == ["Dollar", "Malaysia", "Ringgit", "Singapore"]
    # 5 + 3 + 4 less Malaysia and Singapore, which are subjects and objects
    assert db.n_tokens == 10
    assert list(db.tokens) == sorted(db.tokens)


def test_triples_are_unique_sorted_and_read_only() -> None:
    db = Database.from_triples(FIGURE_1[::-1] + FIGURE_1)
    assert db.n_triples == 8
    assert np.array_equal(db.triples, np.unique(db.triples, axis=0))
    with pytest.raises(ValueError, match="read-only"):
        db.triples[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        db.token_triples[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        db.multi = "first"  # type: ignore[misc]


@given(databases(), st.randoms())
def test_order_and_repetition_of_rows_change_nothing(db: Database, random) -> None:
    rows = [tuple(db.tokens[i] for i in row) for row in db.token_triples]
    shuffled = rows + rows[:3]
    random.shuffle(shuffled)
    again = Database.from_triples(shuffled, multi="keep")
    assert again == db
    assert hash(again) == hash(db)
    assert again.facts_sha256 == db.facts_sha256


@given(databases(), databases())
def test_hash_tells_different_facts_apart(a: Database, b: Database) -> None:
    assert (a.facts_sha256 == b.facts_sha256) == (a == b)


def test_kinds_that_read_alike_are_three_tokens() -> None:
    kinds = [Term("iri", "x:"), Term("literal", "x:"), label("x:")]
    db = Database.from_triples([(label("s"), label("p"), o) for o in kinds], multi="keep")
    assert len(db.objects) == 3
    assert {t.kind for t in db.objects} == {"iri", "literal", "label"}


def test_rdflib_terms_are_not_taken_for_labels() -> None:
    db = Database.from_triples([(rdflib.URIRef("x:s"), "p", rdflib.Literal("o", lang="EN"))])
    assert db.subjects == (Term("iri", "x:s"),)
    assert db.objects == (Term("literal", "o", language="en"),)


@pytest.mark.parametrize("row", [("a", "b"), "abc", ("a", "b", "c", "d")])
def test_a_row_without_three_cells_is_named(row: object) -> None:
    with pytest.raises(ValueError, match="row 1 is"):
        Database.from_triples([("a", "b", "c"), row])  # type: ignore[list-item]


def test_an_integer_is_a_label_and_no_other_number_is_a_term() -> None:
    assert Database.from_triples([("a", "b", 3)]) == Database.from_triples([("a", "b", "3")])
    for number, name in ((3.0, "float"), (True, "bool")):
        with pytest.raises(TypeError, match=rf"got {number} of type {name}.*str\(x\)"):
            Database.from_triples([("a", "b", number)])


def test_no_facts_are_no_database() -> None:
    with pytest.raises(ValueError, match="at least one fact"):
        Database.from_triples([])


def test_lookup_is_the_partial_function() -> None:
    db = figure_1()
    assert db("Colin", "lives_in") == label("Malaysia")
    with pytest.raises(KeyError, match="outside the domain"):
        db("Malaysia", "born_in")
    with pytest.raises(KeyError, match="No subject is called 'Zoe'"):
        db("Zoe", "born_in")


def test_default_keeps_all_values_and_warns_once() -> None:
    with pytest.warns(MultiValuedWarning, match="1 of 3") as caught:
        db = Database.from_triples(MULTI)
    assert len(caught) == 1
    assert (db.n_triples, db.n_pairs, db.n_multi_valued_pairs) == (4, 3, 1)
    assert not db.is_functional
    assert "1 of 3 pairs multi-valued" in repr(db)


def test_what_needs_a_function_lists_the_policies() -> None:
    db = Database.from_triples(MULTI, multi="keep")
    with pytest.raises(MultiValuedError) as error:
        db("a", "p")
    assert all(policy in str(error.value) for policy in POLICIES)


def texts(db: Database) -> set[tuple[str, ...]]:
    return {tuple(db.tokens[i].text for i in row) for row in db.token_triples}


def test_each_policy_does_what_its_name_says() -> None:
    db = Database.from_triples(MULTI, multi="keep")
    by = {p: texts(db.with_policy(p)) for p in POLICIES if p != "error"}
    assert by["keep"] == set(MULTI)
    # (a, p) has x and y: x sorts first; y is the more frequent object of p
    assert by["first"] == {("a", "p", "x"), ("b", "p", "y"), ("a", "q", "x")}
    assert by["majority"] == {("a", "p", "y"), ("b", "p", "y"), ("a", "q", "x")}
    assert by["drop-pair"] == {("b", "p", "y"), ("a", "q", "x")}
    assert by["drop-predicate"] == {("a", "q", "x")}
    sets = db.with_policy("set")
    assert sets.n_triples == 3
    (made,) = [t for t in sets.objects if t.kind == "set"]
    assert '"x"' in made.text
    assert '"y"' in made.text
    with pytest.raises(MultiValuedError, match=r"1 of 3 pairs.*\(a, p\)"):
        db.with_policy("error")


def test_equal_sets_of_values_are_one_token() -> None:
    rows = [(k, "p", v) for k in "ab" for v in "xy"] + [("c", "p", "x")]
    db = Database.from_triples(rows, multi="set")
    assert db.shape == (3, 1, 2)


@given(databases())
def test_policies_make_functional_databases(db: Database) -> None:
    for policy in ("first", "majority", "set"):
        made = db.with_policy(policy)
        assert made.is_functional
        # one fact a pair
        assert made.n_triples == db.n_pairs
    if db.is_functional:
        assert all(db.with_policy(p) == db for p in POLICIES)


def test_a_policy_that_leaves_nothing_says_so() -> None:
    db = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep")
    for policy in ("drop-pair", "drop-predicate"):
        with pytest.raises(MultiValuedError, match="leaves no fact"):
            db.with_policy(policy)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of keep, error"):
        Database.from_triples(MULTI, multi="last")  # type: ignore[arg-type]


def test_sampled_subjects_keep_all_their_facts() -> None:
    db = figure_1()
    part = db.sample_subjects(2, 0)
    assert part.shape[0] == 2
    names = {t.text for t in part.subjects}
    assert texts(part) == {row for row in FIGURE_1 if row[0] in names}
    assert part == db.sample_subjects(2, 0)
    with pytest.raises(ValueError, match="between 1 and the 5 subjects"):
        db.sample_subjects(6, 0)


def test_a_token_is_found_by_its_local_name_and_a_misspelt_one_gets_the_nearest() -> None:
    db = parse_rdf(
        "<http://a.org/people#Astrid> <http://a.org/born_in> <http://a.org/Singapore> .\n"
        "<http://a.org/people#Bernard> <http://a.org/born_in> <http://a.org/Malaysia> .\n"
        "<http://b.org/Bernard> <http://a.org/born_in> <http://a.org/Malaysia> .\n",
        "ntriples",
    )
    assert db("Astrid", "born_in").text == "http://a.org/Singapore"
    with pytest.raises(UnknownTokenError, match="Did you mean `Astrid`"):
        db("Astrit", "born_in")
    # two tokens have that local name
    with pytest.raises(UnknownTokenError, match=r"2 subjects are called 'Bernard'.*a\.org/people"):
        db("Bernard", "born_in")
