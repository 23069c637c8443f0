"""Databases of known structure: their sizes, their rules, and ranks that are known beforehand."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from capacity import Database, rank_interval
from capacity.database import StructureKind, structured_database
from capacity.database.made.multiplication_tables import (
    groups_of_order,
    isotope,
    random_latin_square,
)
from capacity.database.made.structured import STRUCTURE_KINDS
from capacity.tensor.theory.algebras import checked_group, cyclic_group

SQUARE = ("group", "latin")


def cells(db: Database) -> NDArray[np.int64]:
    """Numbers of objects, by the numbers of subjects and predicates in their labels."""
    table = np.full(db.shape[:2], -1)
    numbers = [np.array([int(term.text[1:]) for term in role]) for role in db.roles]
    k, q, v = (of_role[column] for of_role, column in zip(numbers, db.tuples.T, strict=True))
    table[k, q] = v
    return table


@given(
    seed=st.integers(0, 10_000), kind=st.sampled_from(STRUCTURE_KINDS), copies=st.floats(0, 1),
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(1, 9)),
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_every_cell_is_filled_and_every_object_occurs(
    seed: int, kind: StructureKind, copies: float, sizes: tuple[int, int, int]
) -> None:
    # one predicate alone can then use all objects
    n_subjects, n_predicates, n_objects = sizes[0], sizes[1], min(sizes[2], sizes[0])
    if kind in SQUARE:
        n_predicates = n_objects = n_subjects
    if kind == "classes":
        n_objects = 1
    db = structured_database(
        seed, kind, copies, subjects=n_subjects, predicates=n_predicates, objects=n_objects
    )
    assert db.shape == (n_subjects, n_predicates, n_objects)
    assert db.n_triples == n_subjects * n_predicates
    assert db.is_functional


@pytest.mark.parametrize("kind", STRUCTURE_KINDS)
def test_a_seed_draws_one_database(kind: StructureKind) -> None:
    one, two = (structured_database(3, kind, 0.5) for _ in range(2))
    assert one == two
    assert one == structured_database(np.random.default_rng(3), kind, 0.5)
    assert one != structured_database(4, kind, 0.5)


def test_a_copying_predicate_repeats_the_one_before_it() -> None:
    for seed in range(20):
        table = cells(structured_database(seed, "same", 0.75, objects=10))
        # exactly 9 of 12 subjects copy; the others agree by chance, rarely all of them
        assert ((table[:, 1:] == table[:, :-1]).sum(axis=0) >= 9).all()
        whole = cells(structured_database(seed, "same", 1))
        assert (whole == whole[:, :1]).all()


def best_renaming(left: NDArray[np.int64], right: NDArray[np.int64]) -> int:
    from scipy.optimize import linear_sum_assignment

    together = np.zeros((12, 12), int)
    np.add.at(together, (left, right), 1)
    return int(together[linear_sum_assignment(together, maximize=True)].sum())


def test_a_relabelled_copy_is_a_renaming_at_its_share() -> None:
    for seed in range(20):
        for copies, least in ((0.75, 9), (1, 12)):
            table = cells(structured_database(seed, "relabelled", copies))
            for q in range(1, 12):
                assert best_renaming(table[:, q - 1], table[:, q]) >= least


def test_classes_at_all_subjects_leave_as_many_different_rows() -> None:
    for seed in range(10):
        table = cells(structured_database(seed, "classes", 1, classes=4, objects=6))
        rows = Counter(map(tuple, table.tolist()))
        # 4 classes of 3 subjects; two of them may have drawn the same rows, with chance 6^-12
        assert sorted(rows.values()) == [3, 3, 3, 3]


def is_latin(table: NDArray[np.int64]) -> bool:
    every = np.arange(len(table))
    lines = np.sort(table, axis=0) == every[:, None], np.sort(table, axis=1) == every
    return bool(lines[0].all() and lines[1].all())


@pytest.mark.parametrize("kind", SQUARE)
def test_tables_are_latin_squares_but_for_free_cells(kind: StructureKind) -> None:
    table = cells(structured_database(0, kind, 1))
    assert is_latin(table)
    # the generator draws the square first, so that a share changes at most the other cells
    changed = cells(structured_database(0, kind, 0.75)) != table
    assert 0 < changed.sum() <= 144 - 108


def test_pairs_repeat_what_same_repeats_at_other_subjects() -> None:
    for seed in range(10):
        table = cells(structured_database(seed, "pairs", 1))
        # the objects of each predicate are those of the one before it, dealt anew
        assert (np.sort(table, axis=0) == np.sort(table[:, :1], axis=0)).all()
        agree = (table[:, 1:] == table[:, :-1]).mean()
        assert agree < 0.5


@given(seed=st.integers(0, 1000), copies=st.floats(0, 1), own=st.integers(1, 4))
@settings(deadline=None, max_examples=25)
def test_own_objects_have_rank_their_number_at_every_share(
    seed: int, copies: float, own: int
) -> None:
    db = structured_database(
        seed, "relabelled", copies, subjects=6, predicates=4, objects=4 * own, own_objects=True
    )
    # each object slice has one column: rank <= n_objects; rows of disjoint supports: >= n_objects
    interval = rank_interval(db, effort="quick")
    assert (interval.lower, interval.upper) == (4 * own, 4 * own)
    uses = np.bincount(cells(db).ravel())
    assert set(uses.tolist()) <= {6 // own, -(-6 // own)}


def test_own_objects_at_share_one_are_renamings_of_one_predicate() -> None:
    table = cells(structured_database(5, "relabelled", 1, objects=48, own_objects=True))
    for q in range(12):
        assert set(table[:, q].tolist()) == set(range(4 * q, 4 * q + 4))
        # as many pairs of objects as objects: a bijection
        assert len(set(zip(table[:, 0].tolist(), table[:, q].tolist(), strict=True))) == 4


def test_the_rank_of_a_cyclic_groups_table_lies_in_its_interval() -> None:
    # Alder and Strassen: 2 n minus the number of maximal ideals of R[x] / (x^12 - 1), which are the
    # irreducible factors x - 1, x + 1, x^2 + 1, x^2 +- x + 1, x^2 +- 3^(1/2) x + 1: 24 - 7 = 17
    table = isotope(cyclic_group(12), 0)
    db = Database.from_triples(
        [(f"s{g}", f"p{h}", f"o{table[g, h]}") for g in range(12) for h in range(12)]
    )
    interval = rank_interval(db, effort="quick")
    assert interval.lower <= 17 <= interval.upper


def orders(table: NDArray[np.int64]) -> tuple[int, ...]:
    """Orders of the elements, an invariant of the group."""
    unit = int(np.flatnonzero((table == np.arange(len(table))).all(axis=1))[0])
    found = []
    for g in range(len(table)):
        power, order = g, 1
        while power != unit:
            power, order = int(table[power, g]), order + 1
        found.append(order)
    return tuple(sorted(found))


def test_groups_are_all_groups_up_to_order_15() -> None:
    # OEIS A000001
    known = [1, 1, 1, 2, 1, 2, 1, 5, 2, 2, 1, 5, 1, 2, 1]
    for n, number in enumerate(known, start=1):
        groups = groups_of_order(n)
        for table in groups.values():
            checked_group(table)
        # below order 16 the orders of its elements determine a group
        assert len({orders(table) for table in groups.values()}) == len(groups) == number


@pytest.mark.slow
def test_random_latin_squares_are_uniform_on_those_of_order_four() -> None:
    rng = np.random.default_rng(0)
    draws = 2880
    seen = Counter(random_latin_square(rng, 4).tobytes() for _ in range(draws))
    # 576 squares; chi-squared with 575 degrees of freedom has standard deviation 33.9
    expected = draws / 576
    missing = 576 - len(seen)
    squares = sum((n - expected) ** 2 for n in seen.values()) + missing * expected**2
    assert abs(squares / expected - 575) < 5 * 33.9


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_random_latin_squares_are_latin(n: int) -> None:
    assert is_latin(random_latin_square(1, n))


draw: Any = structured_database
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a kind": (lambda: draw(0, "relabeled", 0.5), "Did you mean `relabelled`"),
    "a share": (lambda: draw(0, "same", 1.5), r"from 0 to 1.*got 1\.5"),
    "no number": (lambda: draw(0, "same", "half"), "from 0 to 1"),
    "not a number": (lambda: draw(0, "same", float("nan")), "from 0 to 1"),
    "a truth value": (lambda: draw(0, "same", True), "from 0 to 1"),
    "a seed": (lambda: draw(None, "same", 0.5), "numpy.random.Generator"),
    "no table": (lambda: draw(0, "group", 1, objects=13), "must be equal"),
    "a large square": (
        lambda: draw(0, "latin", 1, subjects=99, predicates=99, objects=99), "at most 32"),
    "objects that share": (
        lambda: draw(0, "same", 1, own_objects=True), "needs the kind `relabelled`"),
    "own objects that don't divide": (
        lambda: draw(0, "relabelled", 1, objects=13, own_objects=True), "multiple of `predicates`"),
    "more objects than triples": (lambda: draw(0, "same", 0, objects=145), "at least `objects`"),
    "objects that can't occur": (
        lambda: draw(0, "same", 1, objects=13), "none of 100 draws.*Take fewer objects"),
    "classes of another kind": (lambda: draw(0, "same", 1, classes=3), "of the kind `classes`"),
    "more classes than subjects": (lambda: draw(0, "classes", 1, classes=13), "at most 12"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_structure_is_refused(what: str) -> None:
    call, said = REFUSED[what]
    with pytest.raises(ValueError, match=said):
        call()
