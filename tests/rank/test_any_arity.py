"""Proposition 2.1 for facts of any arity, against its definition and its proof."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import InvalidArgumentError
from capacity.rank import matrix_rank, paper_bound
from capacity.rank.bounds import tuple_bound
from capacity.testing import databases
from tests.oracles import figure_1

Rows = list[tuple[int, ...]]


@st.composite
def facts(draw: st.DrawFn) -> Rows:
    arity = draw(st.integers(2, 5))
    row = st.tuples(*[st.integers(0, 2)] * arity)
    return draw(st.lists(row, min_size=1, max_size=14, unique=True))


def dense(rows: Rows) -> np.ndarray[Any, np.dtype[np.int64]]:
    tensor = np.zeros(np.max(rows, axis=0) + 1, np.int64)
    tensor[tuple(np.transpose(rows))] = 1
    return tensor


def terms_of(rows: Rows, m: int) -> list[list[np.ndarray[Any, Any]]]:
    """The simple tensors of the proof, each as a vector for each mode."""
    sides = np.max(rows, axis=0) + 1
    terms: list[list[np.ndarray[Any, Any]]] = []
    for y in {row[:m] + row[m + 1 : -1] for row in rows}:
        mine = [row for row in rows if row[:m] + row[m + 1 : -1] == y]
        xs, vs = {row[m] for row in mine}, {row[-1] for row in mine}
        # a column of M_y for each object, or a row for each x
        by = -1 if len(vs) <= len(xs) else m
        for one in vs if by == -1 else xs:
            vectors = [np.zeros(n, np.int64) for n in sides]
            for mode in range(len(sides)):
                vectors[mode][[row[mode] for row in mine if row[by] == one]] = 1
            terms.append(vectors)
    return terms


def sum_of(terms: list[list[np.ndarray[Any, Any]]]) -> Any:
    products = []
    for vectors in terms:
        product = np.ones((), np.int64)
        for vector in vectors:
            product = np.multiply.outer(product, vector)
        products.append(product)
    return sum(products)


@given(facts())
def test_the_bound_counts_simple_tensors_that_add_up_to_the_facts(rows: Rows) -> None:
    by_column = [terms_of(rows, m) for m in range(len(rows[0]) - 1)]
    for terms in by_column:
        assert np.array_equal(sum_of(terms), dense(rows))
    assert tuple_bound(np.array(rows)) == min(map(len, by_column))


@given(facts())
def test_the_bound_is_at_least_the_rank_of_every_flattening(rows: Rows) -> None:
    tensor = dense(rows)
    bound = tuple_bound(np.array(rows))
    for size in range(1, tensor.ndim // 2 + 1):
        for modes in itertools.combinations(range(tensor.ndim), size):
            moved = np.moveaxis(tensor, modes, range(size))
            n_rows = int(np.prod(moved.shape[:size]))
            assert matrix_rank(moved.reshape(n_rows, -1)) <= bound
    assert bound <= len(rows)


@given(databases(functional=True))
def test_of_functional_triples_it_is_the_papers_bound(db: Database) -> None:
    assert tuple_bound(db.triples) == paper_bound(db)


@given(databases())
def test_of_any_triples_it_is_at_most_the_papers_bound(db: Database) -> None:
    assert tuple_bound(db.triples) <= paper_bound(db)


def test_of_multi_valued_triples_it_can_be_below_the_papers_bound() -> None:
    # one subject and one predicate with three objects: M_y is 1 x 3, and the paper counts |V_k| = 3
    db = Database.from_triples([("a", "p", v) for v in "xyz"], multi="keep")
    assert (tuple_bound(db.triples), paper_bound(db)) == (1, 3)


def test_known_bounds() -> None:
    # Example 2.2 of Wong 2025: sum_q |V_q| = 2 + 2 + 2, and sum_k |V_k| = 2 + 1 + 1 + 1 + 1
    assert tuple_bound(figure_1().triples) == 6
    # a matrix: its smaller side
    assert tuple_bound(np.array([(i, j) for i in range(3) for j in range(5)])) == 3
    # W with four modes, ones where the indices add up to 1. For m = 0, y = (x_1, x_2): at (0, 0)
    # M_y is [[0, 1], [1, 0]], and at (0, 1) and (1, 0) it has one 1: 2 + 1 + 1, the rank of W
    assert tuple_bound(np.eye(4, dtype=int)) == 4


@given(facts(), st.randoms())
def test_order_repetition_and_names_change_nothing(rows: Rows, random: Any) -> None:
    names = [random.sample(range(-(10**12), 10**12), 3) for _ in rows[0]]
    renamed = [tuple(of[i] for of, i in zip(names, row, strict=True)) for row in rows + rows[:2]]
    random.shuffle(renamed)
    assert tuple_bound(np.array(renamed)) == tuple_bound(np.array(rows))
    turned = [(*reversed(row[:-1]), row[-1]) for row in rows]
    assert tuple_bound(np.array(turned)) == tuple_bound(np.array(rows))


@pytest.mark.parametrize(
    "wrong", [np.zeros((3, 1), int), np.zeros(3, int), np.zeros((3, 3)), [["a", "b"]]]
)
def test_other_arrays_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="integers of shape"):
        tuple_bound(wrong)
