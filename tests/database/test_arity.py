"""Facts of any number of columns; triples are those of three."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database, from_numpy, label, random_database
from capacity.database.policy import OF_TRIPLES, policies_for
from capacity.errors import (
    InvalidArgumentError,
    InvalidTypeError,
    MultiValuedError,
    MultiValuedWarning,
    UnknownTokenError,
)
from capacity.tensor.structure import component_labels, is_complete
from tests.oracles import FIGURE_1, figure_1
from tests.tiers import examples

Rows = list[tuple[str, ...]]


@st.composite
def rows_of_any_arity(draw: st.DrawFn, *, least: int = 2) -> Rows:
    """Rows of 2 to 5 cells, in which a token may stand in several columns."""
    arity = draw(st.integers(least, 5))
    row = st.tuples(*[st.sampled_from("abc")] * arity)
    return draw(st.lists(row, min_size=1, max_size=12))


def of(rows: Rows) -> Database:
    return Database.from_tuples(rows, multi="keep")


def texts(db: Database) -> set[tuple[str, ...]]:
    return {tuple(db.tokens[i].text for i in row) for row in db.token_tuples}


def values(rows: Rows) -> dict[tuple[str, ...], set[str]]:
    """The objects of each key."""
    found: dict[tuple[str, ...], set[str]] = {}
    for *key, v in rows:
        found.setdefault(tuple(key), set()).add(v)
    return found


WEATHER = [
    ("Oslo", "May", "2024", "sun"),
    ("Oslo", "June", "2024", "rain"),
    ("Rome", "May", "2024", "sun"),
]


def test_the_hash_of_triples_is_the_one_that_certificates_name() -> None:
    # computed before facts had an arity
    assert figure_1().facts_sha256 == (
        "b0e0f99bfb607024b72cd0cefb50178948ff5c90ab1a5b43c0651ce68ab13cdf"
    )
    assert random_database(7).facts_sha256 == (
        "62823b10378b24889ffb440efaa2ce1238f03120f244d7c3dadae6c230c18403"
    )


def test_the_same_numbers_in_pairs_and_in_triples_have_two_hashes() -> None:
    # the tokens are a, b, c and the numbers 0 1 1 2 2 0 in both
    pairs = of([("a", "b"), ("b", "c"), ("c", "a")])
    triples = of([("a", "b", "b"), ("c", "c", "a")])
    assert pairs.tokens == triples.tokens
    assert pairs.token_tuples.tobytes() == triples.token_tuples.tobytes()
    assert pairs.facts_sha256 != triples.facts_sha256
    assert pairs != triples


@pytest.mark.slow
@given(rows_of_any_arity(), st.randoms())
def test_facts_are_the_set_of_rows(rows: Rows, random: Any) -> None:
    db = of(rows)
    assert texts(db) == set(rows)
    assert (db.arity, db.n_facts) == (len(rows[0]), len(set(rows)))
    assert np.array_equal(db.tuples, np.unique(db.tuples, axis=0))
    again = rows + rows[:2]
    random.shuffle(again)
    assert of(again) == db
    assert of(again).facts_sha256 == db.facts_sha256


@given(rows_of_any_arity(), rows_of_any_arity())
def test_hash_tells_facts_of_all_arities_apart(a: Rows, b: Rows) -> None:
    assert (of(a).facts_sha256 == of(b).facts_sha256) == (set(a) == set(b))


def test_rows_of_three_cells_are_triples() -> None:
    db = Database.from_tuples(FIGURE_1)
    assert db == figure_1()
    assert repr(db) == repr(figure_1())
    assert db.triples is db.tuples
    assert db.token_triples is db.token_tuples
    assert db.role_ids == (db.subject_ids, db.predicate_ids, db.object_ids)
    assert db.roles == (db.subjects, db.predicates, db.objects)


@given(rows_of_any_arity())
def test_the_tensor_has_a_mode_for_each_column(rows: Rows) -> None:
    db = of(rows)
    dense = np.zeros(db.shape, int)
    for row in rows:
        names = zip(row, db.roles, strict=True)
        dense[tuple([t.text for t in role].index(cell) for cell, role in names)] = 1
    assert np.array_equal(db.to_numpy(), dense)
    assert np.array_equal(db.to_coo().toarray(), dense)
    assert np.array_equal(db.tensor().to_numpy(), dense)
    again = from_numpy(dense)
    assert np.array_equal(again.to_numpy(), dense)
    # all fibers of the last mode hold a one
    assert is_complete(db.tensor()) == dense.any(axis=-1).all()


@given(rows_of_any_arity())
def test_keys_are_all_columns_but_the_last(rows: Rows) -> None:
    db, by_key = of(rows), values(rows)
    several = sum(len(found) > 1 for found in by_key.values())
    assert (db.n_pairs, db.n_multi_valued_pairs) == (len(by_key), several)
    assert db.is_functional == (several == 0)


@given(rows_of_any_arity())
def test_lookup_is_the_partial_function_of_any_arity(rows: Rows) -> None:
    db = of(rows).with_policy("first")
    by_key = values(rows)
    for key in itertools.product(*({t.text for t in role} for role in db.roles[:-1])):
        if key in by_key:
            assert db(*key).text == min(by_key[key])
        else:
            with pytest.raises(UnknownTokenError, match="outside the domain"):
                db(*key)


def test_a_key_of_another_length_is_refused() -> None:
    db = of(WEATHER)
    assert db("Rome", "May", "2024") == label("sun")
    with pytest.raises(InvalidTypeError, match="is 3 tokens; got 2 tokens"):
        db("Rome", "May")
    with pytest.raises(InvalidTypeError, match="a subject and a predicate; got 3 tokens"):
        figure_1()("Colin", "lives_in", "Malaysia")


@given(rows_of_any_arity())
def test_policies_act_on_keys(rows: Rows) -> None:
    db, by_key = of(rows), values(rows)
    assert texts(db.with_policy("keep")) == set(rows)
    assert texts(db.with_policy("first")) == {(*key, min(vs)) for key, vs in by_key.items()}
    sets = db.with_policy("set")
    assert sets.is_functional
    assert sets.n_facts == len(by_key)
    # one value stays a label; equal sets are one object
    assert len(sets.objects) == len({frozenset(vs) for vs in by_key.values()})
    single = {(*key, *vs) for key, vs in by_key.items() if len(vs) == 1}
    if single:
        assert texts(db.with_policy("drop-pair")) == single
    if db.is_functional:
        assert db.with_policy("error") == db
    else:
        with pytest.raises(MultiValuedError, match="must have one object"):
            db.with_policy("error")


@pytest.mark.parametrize("arity", [2, 4, 5])
@pytest.mark.parametrize("policy", OF_TRIPLES)
def test_policies_that_name_predicates_need_triples(policy: Any, arity: int) -> None:
    # functional, so that the policy would change nothing
    rows = [tuple("abcde"[:arity])]
    with pytest.raises(InvalidArgumentError, match=f"for facts of arity {arity}.*needs predicates"):
        Database.from_tuples(rows, multi=policy)
    assert policy not in policies_for(arity)


def test_messages_speak_of_keys_where_there_are_no_pairs() -> None:
    rows = [*WEATHER, ("Oslo", "May", "2024", "rain")]
    with pytest.warns(MultiValuedWarning, match="1 of 3 keys have several.*set, drop-pair") as seen:
        db = Database.from_tuples(rows)
    # the advice names no policy that the next call would refuse
    assert not any(policy in str(seen[0].message) for policy in OF_TRIPLES)
    assert repr(db) == (
        "Database(4 facts of arity 4: 2 x 2 x 1 x 2, 7 tokens; 1 of 3 keys multi-valued)"
    )
    with pytest.raises(MultiValuedError, match=r"A lookup needs one object per key; 1 of 3 keys"):
        db("Oslo", "May", "2024")
    with pytest.raises(MultiValuedError, match=r"every key .*first is \(Oslo, May, 2024\)"):
        db.with_policy("error")
    shown = db._repr_html_()
    assert "<th>key_3</th><td>1</td>" in shown
    assert "<th>multi-valued keys</th><td>1</td>" in shown


def test_the_table_of_triples_in_a_notebook_names_their_roles() -> None:
    shown = figure_1()._repr_html_()
    for name, n in (("triples", 8), ("subjects", 5), ("predicates", 3), ("multi-valued pairs", 0)):
        assert f"<th>{name}</th><td>{n}</td>" in shown


NAMES = ("subjects", "predicates", "subject_ids", "predicate_ids", "triples", "n_triples",
         "token_triples")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [WEATHER, [("Oslo", "sun")]], ids=["arity 4", "arity 2"])
def test_names_of_triples_are_refused_for_other_facts(name: str, rows: Rows) -> None:
    with pytest.raises(InvalidArgumentError, match="needs facts of three columns") as refusal:
        getattr(of(rows), name)
    assert f"have {len(rows[0])}" in str(refusal.value)


def test_every_arity_has_objects() -> None:
    db = of(WEATHER)
    assert [t.text for t in db.objects] == ["rain", "sun"]
    assert np.array_equal(db.object_ids, db.role_ids[-1])


@given(rows_of_any_arity(), st.data())
def test_parts_keep_the_arity(rows: Rows, data: st.DataObject) -> None:
    db = of(rows)
    mask = data.draw(st.lists(st.booleans(), min_size=db.n_facts, max_size=db.n_facts))
    if any(mask):
        part = db.subset(np.array(mask))
        assert part.arity == db.arity
        kept = db.token_tuples[np.array(mask)]
        assert texts(part) == {tuple(db.tokens[i].text for i in row) for row in kept}
    one = db.sample_subjects(1, 0)
    (first,) = one.roles[0]
    assert texts(one) == {row for row in rows if row[0] == first.text}


@settings(max_examples=examples(100))
@given(rows_of_any_arity(), rows_of_any_arity())
def test_components_of_a_direct_sum_are_those_of_its_parts(a: Rows, b: Rows) -> None:
    n = min(len(a[0]), len(b[0]))
    one, two = of([row[:n] for row in a]), of([row[:n] for row in b])
    moved = [tuple(cell + "'" for cell in row[:n]) for row in b]
    total = component_labels(of([row[:n] for row in a] + moved).tensor())
    parts = (len(set(component_labels(db.tensor()).tolist())) for db in (one, two))
    assert len(set(total.tolist())) == sum(parts)


@given(rows_of_any_arity())
def test_components_are_the_finest_that_keep_shared_tokens_together(rows: Rows) -> None:
    db = of(rows)
    labels = component_labels(db.tensor()).tolist()
    # by definition: the closure of "two facts share a token in a column"
    group = list(range(db.n_facts))
    for i, j in itertools.combinations(range(db.n_facts), 2):
        if (db.tuples[i] == db.tuples[j]).any():
            group = [group[i] if g == group[j] else g for g in group]
    # two partitions are equal if no part of one meets two parts of the other
    assert len(set(labels)) == len(set(group)) == len(set(zip(labels, group, strict=True)))


def test_many_columns_are_too_large_to_pack_and_still_sorted() -> None:
    # 30 tokens in 32 columns: 30^32 > 2^62, so that rows are sorted as rows
    rows = [tuple(str((i * j + j) % 30) for j in range(32)) for i in range(30)]
    db = of(rows + rows[:3])
    assert texts(db) == set(rows)
    assert np.array_equal(db.tuples, np.unique(db.tuples, axis=0))
    assert len(repr(db)) < 200


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a",)], "the cells of a key and an object, from 2 to 32 in all; row 0 is"),
        ([tuple("a" * 33)], "from 2 to 32"),
        (["ab"], "row 0 is 'ab'"),
        ([("a", "b"), ("a", "b", "c")], "2 cells, as the first row does; row 1 is"),
        ([], "at least one fact"),
        ("facts.csv", "must be rows of cells.*capacity.load"),
    ],
)
def test_rows_that_are_no_tuples_are_refused(rows: Any, message: str) -> None:
    with pytest.raises((InvalidArgumentError, InvalidTypeError), match=message):
        Database.from_tuples(rows)


def test_triples_stay_three_cells_and_the_message_names_the_other_call() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Database\.from_tuples\(rows\)"):
        Database.from_triples(WEATHER)


def test_ids_of_another_arity_are_asked_for() -> None:
    tokens, ids = [label(c) for c in "abcd"], np.array([[0, 1, 2, 3]])
    with pytest.raises(InvalidArgumentError, match=r"shape \(n, 3\).*`arity=n`"):
        Database.from_ids(tokens, ids)
    assert Database.from_ids(tokens, ids, arity=4) == of([tuple("abcd")])
    for wrong in (1, 33, 2.5):
        with pytest.raises(InvalidArgumentError, match="`arity` must be"):
            Database.from_ids(tokens, ids, arity=wrong)  # type: ignore[arg-type]
