"""The laws that bounds of the rank obey; near-laws that are false are not here."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from capacity.database import Database
from capacity.rank import (
    RankInterval,
    database_bounds,
    effective_rank_interval,
    matrix_rank,
    paper_bound,
    rank_interval,
    slice_rank_sum,
    unfolding_rank,
)
from capacity.testing import KnownRank, databases, tensors_of_known_rank
from tests.oracles import KNOWN_RANKS, database, example_2_4, figure_1


def rows_of(db: Database, tag: str = "") -> list[tuple[str, str, str]]:
    return [(f"{tag}k{k}", f"{tag}q{q}", f"{tag}v{v}") for k, q, v in db.triples.tolist()]


def made(rows: Sequence[tuple[str, ...]]) -> Database:
    return Database.from_triples(rows, multi="keep")


def assert_both_hold(a: RankInterval, b: RankInterval) -> None:
    """Two intervals of one number intersect; a search need not find the same one twice."""
    assert max(a.lower, b.lower) <= min(a.upper, b.upper)


@given(databases())
def test_sparse_bounds_agree_with_dense_ones(db: Database) -> None:
    dense = db.to_numpy().astype(np.int64)
    b = database_bounds(db)
    for mode in range(3):
        slices = np.moveaxis(dense, mode, 0)
        assert b.slices[mode] == slice_rank_sum(db, mode) == sum(matrix_rank(s) for s in slices)
        unfolded = slices.reshape(dense.shape[mode], -1)
        assert b.unfoldings[mode] == unfolding_rank(db, mode) == matrix_rank(unfolded)


@given(databases())
def test_lower_bound_never_exceeds_upper_bound(db: Database) -> None:
    for interval in (rank_interval(db), effective_rank_interval(db)):
        assert 1 <= interval.lower <= interval.upper
    assert rank_interval(db).upper <= min(database_bounds(db).slices)
    assert max(database_bounds(db).unfoldings) <= rank_interval(db).lower


@given(databases())
def test_the_papers_count_is_an_upper_bound_between_slices_and_triples(db: Database) -> None:
    subject_slices, predicate_slices, _ = database_bounds(db).slices
    assert min(subject_slices, predicate_slices) <= paper_bound(db) <= db.n_triples


@given(databases(functional=True))
def test_on_functional_data_the_papers_count_is_exact_and_object_slices_do_no_worse(
    db: Database,
) -> None:
    subject_slices, predicate_slices, object_slices = database_bounds(db).slices
    assert paper_bound(db) == min(subject_slices, predicate_slices)
    assert object_slices <= paper_bound(db)


def test_on_multi_valued_data_the_papers_equality_fails() -> None:
    # one subject, two predicates with the same two objects: slice rank 1, two distinct objects
    db = database([(0, q, v) for q in range(2) for v in range(2)])
    assert paper_bound(db) == 2
    assert database_bounds(db).slices == (1, 2, 2)


@given(databases(), st.permutations(range(3)))
def test_permuted_modes_give_permuted_bounds(db: Database, order: list[int]) -> None:
    turned = made([tuple(row[m] for m in order) for row in rows_of(db)])
    b, t = database_bounds(db), database_bounds(turned)
    assert t.slices == tuple(b.slices[m] for m in order)
    assert t.unfoldings == tuple(b.unfoldings[m] for m in order)
    assert_both_hold(rank_interval(turned), rank_interval(db))


@given(databases())
def test_effective_rank_bounds_swap_subjects_and_predicates(db: Database) -> None:
    swapped = made([(q, k, v) for k, q, v in rows_of(db)])
    assert_both_hold(effective_rank_interval(swapped), effective_rank_interval(db))


@given(databases(), st.randoms())
def test_relabelling_changes_no_bound(db: Database, random) -> None:
    names = list(range(20))
    random.shuffle(names)
    renamed = made([(f"a{names[k]}", f"b{names[q]}", f"c{names[v]}") for k, q, v in db.triples])
    a, b = database_bounds(db), database_bounds(renamed)
    assert (a.slices, a.unfoldings, a.paper) == (b.slices, b.unfoldings, b.paper)


@pytest.mark.slow
@given(databases(), databases())
def test_direct_sums_add(a: Database, b: Database) -> None:
    total = made(rows_of(a, "a") + rows_of(b, "b"))
    x, y, both = database_bounds(a), database_bounds(b), database_bounds(total)
    assert both.slices == tuple(np.add(x.slices, y.slices))
    assert both.unfoldings == tuple(np.add(x.unfoldings, y.unfoldings))
    # only superadditive: the minimum may be taken in different modes
    assert both.paper >= x.paper + y.paper
    # component by component: the same methods, up to the order in which a search breaks ties
    parts = (rank_interval(a), rank_interval(b))
    assert rank_interval(total).lower <= sum(part.upper for part in parts)
    assert rank_interval(total).upper >= sum(part.lower for part in parts)


def test_the_papers_count_does_not_add() -> None:
    # one subject and two predicates of one object: sums 1 and 2; turned around: 2 and 1
    wide = [("k", "q0", "v"), ("k", "q1", "v")]
    tall = [("l0", "r", "w"), ("l1", "r", "w")]
    assert paper_bound(made(wide)) == paper_bound(made(tall)) == 1
    assert paper_bound(made(wide + tall)) == 3


@given(databases())
def test_a_duplicated_subject_raises_subject_slices_alone(db: Database) -> None:
    first = [row for row in rows_of(db) if row[0] == "k0"]
    doubled = made(rows_of(db) + [("copy", q, v) for _, q, v in first])
    a, b = database_bounds(db), database_bounds(doubled)
    assert a.unfoldings == b.unfoldings
    assert a.slices[1:] == b.slices[1:]
    assert b.slices[0] - a.slices[0] == slice_rank_sum(made(first), 0) >= 1


@given(databases(), st.integers(0, 10**6))
def test_removing_a_fact_changes_the_rank_by_at_most_one(db: Database, which: int) -> None:
    assume(db.n_triples > 1)
    rows = rows_of(db)
    del rows[which % len(rows)]
    less = made(rows)
    a, b = rank_interval(db), rank_interval(less)
    assert a.lower <= b.upper + 1
    assert b.lower <= a.upper + 1
    assert paper_bound(db) - 1 <= paper_bound(less) <= paper_bound(db)
    if db.is_functional:
        x, y = effective_rank_interval(db), effective_rank_interval(less)
        assert y.lower <= x.upper
        assert x.lower - 1 <= y.upper


def test_removing_a_fact_may_raise_the_rank() -> None:
    constant = [(k, q, 0) for k in range(2) for q in range(2)]
    assert rank_interval(database(constant)).to_dict()["upper"] == 1
    assert rank_interval(database(constant[1:])).to_dict()["lower"] == 2


@given(tensors_of_known_rank())
def test_tensors_of_known_rank_have_that_rank(known: KnownRank) -> None:
    unfoldings = [
        matrix_rank(np.moveaxis(known.tensor, m, 0).reshape(known.tensor.shape[m], -1))
        for m in range(3)
    ]
    # at least one unfolding reaches the number of terms, which bounds every other
    assert max(unfoldings) == known.rank
    assert all(f.shape[1] == known.rank for f in known.factors)


@pytest.mark.parametrize("name", KNOWN_RANKS)
def test_intervals_contain_the_known_rank(name: str) -> None:
    make, rank = KNOWN_RANKS[name]
    assert rank in rank_interval(make())


def test_example_2_2_has_the_papers_numbers() -> None:
    b = database_bounds(figure_1())
    assert b.slices == (6, 6, 6)
    assert b.unfoldings == (5, 3, 4)
    assert (b.paper, b.triples) == (6, 8)
    assert rank_interval(figure_1()).lower == 5


def test_example_2_4_has_rank_5_and_lower_effective_rank_1() -> None:
    assert str(rank_interval(example_2_4())) == "[5, 5]"
    # one object: the constant layer of effective rank 1 is not excluded
    assert effective_rank_interval(example_2_4()).lower == 1
    # transposed, the five objects need five terms
    turned = made([(k, v, q) for k, q, v in rows_of(example_2_4())])
    assert effective_rank_interval(turned).lower == 5


def test_two_copies_of_example_2_2_are_not_certified_at_effective_rank_10() -> None:
    rows = [tuple(f"{copy}{t}" for t in row) for copy in "ab" for row in rows_of(figure_1())]
    # their effective rank is 9
    assert effective_rank_interval(made(rows)).lower <= 9
