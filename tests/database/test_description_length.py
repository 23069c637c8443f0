"""Lengths of descriptions are those of codes, and see what repeats."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from capacity import Database
from capacity.database import (
    StructureKind,
    description_length,
    object_entropy,
    structured_database,
)
from capacity.database.codes import lengths
from capacity.database.codes.forests import lightest_parents
from capacity.database.codes.lengths import merged_classes
from capacity.database.codes.objects import (
    Cells,
    bits_alone,
    bits_in_groups,
    bits_of_copies,
    partition_bits,
)
from capacity.database.made.structured import STRUCTURE_KINDS
from capacity.errors import MemoryBudgetError, MultiValuedError

Pairs = tuple[tuple[int, int], ...]
FULL: Pairs = tuple(itertools.product(range(3), range(2)))
lib: Any = description_length


def databases(pairs: Pairs, n_objects: int) -> Iterator[Database]:
    """Yield each database with these pairs in which all objects occur."""
    for objects in itertools.product(range(n_objects), repeat=len(pairs)):
        if len(set(objects)) == n_objects:
            yield Database.from_triples(
                [(f"s{k}", f"p{q}", f"o{v}") for (k, q), v in zip(pairs, objects, strict=True)]
            )


# codes


@pytest.mark.slow
@pytest.mark.parametrize("n_objects", [2, 3])
@pytest.mark.parametrize("pairs", [FULL, FULL[:-1], tuple((q, k) for k, q in FULL[1:])])
def test_lengths_are_those_of_a_code(pairs: Pairs, n_objects: int) -> None:
    # Kraft's inequality over all databases that the decoder can't tell apart beforehand
    total = 0.0
    for db in databases(pairs, n_objects):
        # the plain code, with a third of the weight, must not hide the others
        cells = lengths._cells(db, "test")
        weights = lengths.Weights.of(cells)
        found = [lengths._shortest(db, weights, None).bits]
        for labels in merged_classes(cells.table):
            classes = labels, lengths._class_bits(cells, labels)
            found.append(lengths._shortest(db, weights, classes).bits)
        total += 2 ** -min(found)
    # these two forms share two thirds
    assert total <= 2 / 3


@pytest.mark.parametrize("n_objects", [1, 2])
def test_all_lengths_together_are_those_of_a_code(n_objects: int) -> None:
    assert sum(2 ** -description_length(db).bits for db in databases(FULL, n_objects)) <= 1


def columns(n: int, n_objects: int) -> Iterator[NDArray[np.int64]]:
    for objects in itertools.product(range(n_objects), repeat=n):
        yield np.array(objects, np.int64)


def test_codes_of_one_predicate_satisfy_krafts_inequality() -> None:
    # n = 4 subjects, 3 objects
    sums = sum(2 ** -bits_alone(Cells.of(x[:, None], 3))[0] for x in columns(4, 3))
    # uniform: every sequence once. By frequencies: number of objects, which, counts, order; the
    # decoder needs nothing else. 4 subjects can't have 3 objects without repetition
    np.testing.assert_allclose(np.asarray(sums)[[0, 2, 3]], [1, 1, 0])
    assert np.asarray(sums)[1] < 1
    without = sum(2 ** -bits_alone(Cells.of(x[:, None], 3))[0, 3] for x in columns(2, 3))
    assert math.isclose(without, 1)


def test_codes_given_another_predicate_satisfy_krafts_inequality() -> None:
    for given_objects in ([0, 0, 1, 2], [0, 0, 0, -1], [-1, -1, -1, -1], [2, 2, 2, 2]):
        sums = np.zeros(5)
        for x in columns(4, 3):
            cells = Cells.of(np.stack([given_objects, x], axis=1), 3)
            sums[:3] += 2 ** -bits_in_groups(cells, cells.table[:, :1], 1)[0]
            sums[3:] += 2 ** -bits_of_copies(cells, 1)[0]
        # the adaptive code on all objects, and copies with uniform exceptions, waste nothing
        np.testing.assert_allclose(sums[[0, 3]], 1)
        assert (sums < 1 + 1e-9).all()


def partitions(n: int) -> Iterator[NDArray[np.int64]]:
    for labels in itertools.product(range(n), repeat=n):
        # numbered in the order of their first members
        if all(label <= max((-1, *labels[:i])) + 1 for i, label in enumerate(labels)):
            yield np.array(labels)


def test_partitions_satisfy_krafts_inequality() -> None:
    found = [partition_bits(labels) for labels in partitions(5)]
    # the Bell number
    assert len(found) == 52
    assert math.isclose(sum(2**-bits for bits in found), 1)


def test_parts_sum_to_the_total() -> None:
    for kind in STRUCTURE_KINDS:
        for copies in (0, 1):
            found = description_length(structured_database(0, kind, copies))
            parts = sum(one.bits for one in found.predicates)
            assert math.isclose(found.bits, parts + found.form_bits + found.class_bits)


# bounds and invariance


def facts(seed: int, size: int) -> Database:
    """Facts of which some pairs are missing."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"s{k}", f"p{q}", f"o{rng.integers(size)}")
        for k, q in itertools.product(range(size), range(4)) if rng.random() < 0.7
    ]  # fmt: skip
    return Database.from_triples([*rows, ("s0", "p9", "o0")])


@given(seed=st.integers(0, 10_000), size=st.integers(1, 9))
@settings(deadline=None, max_examples=40)
def test_no_description_is_longer_than_the_plain_one(seed: int, size: int) -> None:
    db = facts(seed, size)
    plain = db.n_triples * math.log2(db.shape[2])
    assert 0 <= description_length(db).bits <= plain + math.log2(3) + 1e-9
    assert 0 <= object_entropy(db) <= plain + 1e-9


@pytest.mark.slow
@given(
    seed=st.integers(0, 10_000), kind=st.sampled_from(STRUCTURE_KINDS),
    copies=st.sampled_from([0, 0.5, 0.8, 1]), holes=st.sampled_from([0, 0.2]),
)  # fmt: skip
@settings(deadline=None, max_examples=40)
def test_names_and_their_order_dont_matter(
    seed: int, kind: StructureKind, copies: float, holes: float
) -> None:
    db = structured_database(seed, kind, copies, subjects=8, predicates=8, objects=8)
    rng = np.random.default_rng(seed)
    rows = [row for row in db.tuples.tolist() if rng.random() >= holes]
    names = [[f"{role}{i:02}" for i in rng.permutation(8)] for role in "abc"]
    before = Database.from_triples([(f"a{k}", f"b{q}", f"c{v}") for k, q, v in rows])
    after = Database.from_triples([(names[0][k], names[1][q], names[2][v]) for k, q, v in rows])
    lengths = description_length(before), description_length(after)
    assert math.isclose(lengths[0].bits, lengths[1].bits)
    assert lengths[0].classes == lengths[1].classes
    assert math.isclose(object_entropy(before), object_entropy(after))


# what it sees


@pytest.mark.parametrize("kind", ["same", "relabelled", "classes"])
def test_more_copies_are_shorter_to_describe(kind: StructureKind) -> None:
    sizes: dict[str, Any] = {"subjects": 24, "predicates": 8, "objects": 6}
    mean = [
        np.mean([description_length(structured_database(seed, kind, copies, **sizes)).bits
                 for seed in range(5)])
        for copies in (0, 0.5, 0.75, 1)
    ]  # fmt: skip
    # half of the subjects pay for no renaming and no classes: 24 of them are too few
    assert mean[0] >= mean[1] > mean[2] > mean[3]
    assert mean[3] < 0.6 * mean[0]


def test_pairs_across_predicates_are_no_structure() -> None:
    sizes: dict[str, Any] = {"subjects": 24, "predicates": 8, "objects": 6}
    same, pairs = (
        description_length(structured_database(0, kind, 1, **sizes)) for kind in ("same", "pairs")
    )
    assert pairs.bits > 3 * same.bits


def test_a_groups_table_is_no_shorter_than_a_latin_square() -> None:
    # by no code that sees two slices at a time
    group, latin = (
        description_length(structured_database(0, kind, 1)).bits for kind in ("group", "latin")
    )
    assert math.isclose(group, latin)
    # 12 permutations of 12 objects, and no more than a bit a predicate of choices
    assert 12 * math.log2(math.factorial(12)) < group < 12 * math.log2(math.factorial(12)) + 12


def test_codes_are_those_that_a_database_calls_for() -> None:
    # a permutation and renamed copies: by a copy; 3 classes under 8 predicates: by classes
    copies = description_length(structured_database(0, "same", 1, objects=6))
    used = Counter(one.code for one in copies.predicates)
    assert used["copy with exceptions"] == 11
    assert sum(one.given is None for one in copies.predicates) == 1
    classes = description_length(structured_database(0, "classes", 1))
    assert classes.classes == 3
    assert {one.code for one in classes.predicates} == {"class"}


def test_a_copy_of_half_of_the_subjects_is_seen_where_the_others_have_no_object() -> None:
    rng = np.random.default_rng(0)
    objects = rng.integers(20, size=60)
    rows = [(f"s{k}", "p", f"o{v}") for k, v in enumerate(objects)]
    rows += [(f"s{k}", "q", f"o{v}") for k, v in enumerate(objects) if k % 2]
    found = description_length(Database.from_triples(rows))
    # 60 objects are new, 30 are copies; 30 bits are more than both choices cost
    assert found.bits < 60 * math.log2(20) + 30
    assert "copy with exceptions" in {one.code for one in found.predicates}


def test_entropy_is_that_of_each_predicates_objects() -> None:
    # p: 4 facts of one bit each; q: objects 1/4, 3/4; r: one object
    rows = [(f"s{k}", "p", f"o{k % 2}") for k in range(4)]
    rows += [(f"s{k}", "q", f"o{k > 0}") for k in range(4)] + [("s0", "r", "o1")]
    expected = 4 + 4 * (0.25 * 2 + 0.75 * math.log2(4 / 3))
    assert math.isclose(object_entropy(Database.from_triples(rows)), expected)


# parents


@given(st.integers(1, 7), st.integers(0, 10_000))
@settings(deadline=None, max_examples=60)
def test_parents_are_the_lightest_arborescence(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # small integers, so that there are ties and circles
    roots, edges = rng.integers(5, 20, n).astype(float), rng.integers(0, 12, (n, n)).astype(float)
    parents = lightest_parents(roots, edges)
    mine = sum(roots[q] if p < 0 else edges[p, q] for q, p in enumerate(parents))
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((-1, q, roots[q]) for q in range(n))
    graph.add_weighted_edges_from(
        (p, q, edges[p, q]) for p, q in itertools.product(range(n), repeat=2) if p != q
    )
    best = nx.minimum_spanning_arborescence(graph).size("weight")
    assert mine == best
    chosen = nx.DiGraph((int(p), q) for q, p in enumerate(parents))
    assert nx.is_arborescence(chosen)


# what is refused


def test_what_has_no_length_is_refused() -> None:
    multi = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep")
    for call in (description_length, object_entropy):
        with pytest.raises(MultiValuedError):
            call(multi)
        with pytest.raises(ValueError, match="arity"):
            call(Database.from_tuples([("a", "b", "c", "d")]))
        with pytest.raises(ValueError, match=r"films\.ttl: no such file"):
            call("films.ttl")


def test_a_table_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "LARGEST_TABLE", 3)
    with pytest.raises(MemoryBudgetError, match="Take a part of the facts"):
        description_length(structured_database(0, "same", 0, subjects=2, predicates=2, objects=2))


def test_no_facts_and_one_fact_need_no_bits_but_the_form() -> None:
    empty = Database.from_ids([], np.empty((0, 3), np.int64), allow_empty=True)
    for db in (empty, Database.from_triples([("a", "p", "x")])):
        assert description_length(db).bits == pytest.approx(math.log2(3))
        assert object_entropy(db) == 0
