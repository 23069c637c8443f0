"""What a certificate may cost to check: a few bytes can't ask for hours, nor for all memory.

Each case is one that took minutes or gigabytes. Costs are charged in steps before the work, and so
are the same on any machine.
"""

import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from capacity.database import Database, random_database
from capacity.errors import MemoryBudgetError
from capacity.rank import (
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    Koszul,
    Pencil,
    RankAnalysis,
    Substitution,
    Unfolding,
    View,
)
from capacity.rank.verifier.budget import FACTS, MEMORY, STEPS, CheckBudget
from capacity.rank.verifier.checker import verify
from tests.oracles import KNOWN_RANKS, database
from tests.second_checker import claim

NONE = np.zeros(0, np.int64)
PRIME = 2**61 - 1


def diagonal(n: int, *, objects: int | None = None) -> Database:
    """n facts that share nothing; or but the object."""
    return database([(f"{i:05}", f"{i:05}", f"{i % (objects or n):05}") for i in range(n)])


def arrow(n: int) -> tuple[Database, Any]:
    """A full row and column and a diagonal: eliminating the first pivot fills all of it."""
    rows = [(f"{i:05}", "0", "0") for i in range(n)]
    rows += [("0" * 5, f"{i:05}", "0") for i in range(1, n)]
    rows += [(f"{i:05}", f"{i:05}", "0") for i in range(1, n)]
    db = database(rows)
    columns = np.stack([np.arange(n), np.zeros(n, np.int64)], axis=1)
    return db, Unfolding(0, np.arange(n), columns, np.array([n]), np.array([n - 400]), PRIME)


def crowded(n: int) -> tuple[Database, Any]:
    """A minor with some twelve ones a row, all of it made dense."""
    rng = np.random.default_rng(1)
    rows = {(i, i) for i in range(n)}
    rows |= {(i, j) for i in range(n) for j in rng.integers(0, n, 12).tolist()}
    db = database([(f"{i:05}", f"{j:05}", 0) for i, j in sorted(rows)])
    columns = np.stack([np.arange(n), np.zeros(n, np.int64)], axis=1)
    return db, Unfolding(0, np.arange(n), columns, np.array([n]), np.array([0]), PRIME)


def too_costly(
    db: Database, *arguments: Any, side: str = "lower", copies: int = 1, steps: int = STEPS
) -> None:
    """The last of some copies is refused as too costly."""
    certificate = claim(db, *arguments, side=side)
    budget = CheckBudget(steps)
    for _ in range(copies - 1):
        verify(certificate, db, budget=budget)
    with pytest.raises(MemoryBudgetError, match="too costly to check: it needs"):
        verify(certificate, db, budget=budget)


def test_a_term_of_many_entries_is_added_up_fiber_by_fiber() -> None:
    # 20 million entries, once held as keys of a dict: 2 GB. The first subject refutes it
    db = diagonal(300)
    vector = (tuple(range(271)), (Fraction(1),) * 271)
    certificate = claim(db, Decomposition(((vector, vector, vector),)), side="upper")
    tracemalloc.start()
    verdict = verify(certificate, db)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.reason == "the terms don't add up to 0 at (0, 0, 1), where T is 0"
    assert peak < 20 * 2**20


@pytest.mark.slow
def test_terms_that_cancel_are_added_up_fiber_by_fiber() -> None:
    # nothing is refuted before all 1.7 million entries are there, twice
    db = diagonal(120)
    whole, less = ((tuple(range(120)), (Fraction(x),) * 120) for x in (1, -1))
    certificate = claim(
        db, Decomposition(((whole, whole, whole), (less, whole, whole))), side="upper"
    )
    tracemalloc.start()
    verdict = verify(certificate, db)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.reason == "the arguments add up to 0 at (0, 0, 0), which holds 1"
    assert peak < 10 * 2**20


@pytest.mark.slow
def test_an_elimination_that_fills_up_is_refused() -> None:
    too_costly(*arrow(3000))


def test_a_dense_block_of_a_minor_is_paid_for() -> None:
    too_costly(*crowded(4000))


@pytest.mark.slow
def test_arguments_of_one_certificate_draw_on_one_budget() -> None:
    db, minor = crowded(600)
    assert verify(claim(db, minor), db, budget=CheckBudget(10**9)).proved
    too_costly(db, *[minor] * 20, steps=10**9)


@pytest.mark.slow
def test_certificates_of_one_file_draw_on_one_budget() -> None:
    # about 200 million steps each
    db, minor = crowded(600)
    too_costly(db, minor, copies=6, steps=10**9)


def test_a_basis_of_many_rows_is_paid_for() -> None:
    ones = np.ones((5790, 1), np.int64)
    db = diagonal(1)
    one = np.array([0])
    too_costly(db, Substitution(View((one, one, one), (ones, ones, None)), np.array([[0, 0]])))
    # a tensor of 9 million entries for each of 30 components
    db = diagonal(30)
    arguments = [
        Substitution(View((i, i, i), (ones[:3000], ones[:3000], None)), np.array([[0, 0]]))
        for i in np.arange(30).reshape(-1, 1)
    ]
    assert verify(claim(db, arguments[0]), db).proved
    too_costly(db, *arguments, steps=10**9)


def test_products_with_bases_are_paid_for() -> None:
    n = 5000
    db = diagonal(n, objects=1)
    P = np.random.default_rng(0).integers(0, 2, (n, n))
    view = View((np.arange(n), np.arange(n), np.array([0])), (P, P, None))
    too_costly(db, Substitution(view, np.array([[0, 0]])))


def test_a_long_game_costs_as_much_as_its_entries() -> None:
    # 5,000 removals on 5,000 x 5,000 entries took half a minute, when each looked at all of them
    n = 5000
    db = diagonal(n, objects=1)
    view = View((np.arange(n), np.arange(n), np.array([0])))
    removals = np.stack([np.zeros(n, np.int64), np.arange(n)], axis=1)
    budget = CheckBudget()
    assert verify(claim(db, Substitution(view, removals)), db, budget=budget).proved
    assert STEPS - budget.steps < 4 * 10**9


def test_pencils_are_paid_for_as_they_are_solved() -> None:
    # one block of 300 x 301 that doesn't split takes minutes; its entries are below the limit
    rng = np.random.default_rng(0)
    slices = [rng.integers(0, (300, 301), (700, 2)).tolist() for _ in range(2)]
    db = database([(f"{i:03}", q, f"{j:03}") for q in range(2) for i, j in slices[q]])
    too_costly(db, Pencil(1, np.array([0, 1]), 1), steps=10**9)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "entries"), [(200, 9), (300, 6)])
def test_characteristic_polynomials_of_pencils_are_paid_for(n: int, entries: int) -> None:
    # square and regular: no blocks to reduce, but a polynomial of degree n with long coefficients
    rng = np.random.default_rng(0)
    places = {(i, j): int(rng.integers(3)) for i in range(n)
              for j in rng.permutation(n)[:entries].tolist()}  # fmt: skip
    rows = [(f"{i:03}", q, f"{j:03}") for (i, j), where in places.items() for q in range(2)
            if where in (q, 2)]  # fmt: skip
    too_costly(database(rows), Pencil(1, np.array([0, 1]), 1), steps=4 * 10**9)


@pytest.mark.slow
def test_wide_blocks_of_pencils_are_paid_for_one_by_one() -> None:
    # dense, each of them takes 16 MB, and more on its way into flint
    n, rows = 990, []
    for block in range(3):
        at = [f"{block} {i:03}" for i in range(n + 1)]
        rows += [(at[i], q, at[i + q]) for i in range(n) for q in range(2)]
        rows.append((at[0], 0, at[3 + block]))
    too_costly(database(rows), Pencil(1, np.array([0, 1]), 1), steps=3 * 10**9)


@pytest.mark.slow
def test_many_small_blocks_of_a_pencil_are_paid_for() -> None:
    db = database([(f"{i:06}", i % 2, f"{i:06}") for i in range(30_000)])
    budget = CheckBudget()
    assert verify(claim(db, Pencil(1, np.array([0, 1]), 30_000)), db, budget=budget).proved
    assert STEPS - budget.steps > 30_000 * 60_000


@pytest.mark.slow
def test_a_star_is_added_up_soon() -> None:
    # one term of very many subjects, with a fact each
    n = 100_000
    db = database([(f"{i:06}", 0, 0) for i in range(n)])
    one = ((0,), (Fraction(1),))
    many = (tuple(range(n)), (Fraction(1),) * n)
    budget = CheckBudget()
    star = claim(db, Decomposition(((many, one, one),)), side="upper")
    assert verify(star, db, budget=budget).proved
    assert STEPS - budget.steps < 2 * 10**9


def test_fits_of_large_views_hold_no_list_of_all_entries() -> None:
    n = 200
    db = diagonal(n)
    one = np.ones((n, 1))
    view = View((np.arange(n), np.arange(n), np.arange(n)))
    near = Enclosure(view, (one, one, one), np.array([0]), 1e-9)
    certificate = claim(db, near, side="upper")
    tracemalloc.start()
    assert not verify(certificate, db).proved
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 24 bytes an entry are paid for; a list of places took 48 more
    assert peak < 30 * n**3


def test_flattenings_are_paid_for() -> None:
    db = database([(i, j, k) for i in range(13) for j in range(9) for k in range(9)
                   if (i * j + k) % 3])  # fmt: skip
    view = View((np.arange(13), np.arange(9), np.arange(9)))
    too_costly(db, Koszul(view, 0, 6, PRIME, 1))


def test_determinants_are_paid_for() -> None:
    n = 24
    db = database([(q, i, (i + q) % n) for q in range(4) for i in range(n)])
    view = View((np.arange(4), np.arange(n), np.arange(n)))
    singular = Diagonalization(view, 0, NONE, n + 1)
    assert not verify(claim(db, singular), db).proved
    too_costly(db, singular, steps=STEPS // 2)


@pytest.mark.parametrize(("n", "rank"), [(11, 60), (1, 2_000_000)])
def test_fits_are_paid_for(n: int, rank: int) -> None:
    rng = np.random.default_rng(0)
    rows = np.argwhere(rng.random((n, n, n)) < (0.3 if n > 1 else 2)).tolist()
    db = database([(k, q, v) for k, q, v in rows])
    sides = tuple(rng.random((m, rank)) * 2.0**-100 for m in db.shape)
    view = View((np.arange(db.shape[0]), np.arange(db.shape[1]), np.arange(db.shape[2])))
    size = int(np.prod(db.shape))
    near = Enclosure(view, sides, np.arange(size), 2.0**-90)  # type: ignore[arg-type]
    too_costly(db, near, side="upper", steps=STEPS // 2)


@pytest.mark.slow
def test_an_argument_pays_for_the_facts_that_it_is_about_alone() -> None:
    # an argument about each of 3,000 components of a database: each once looked at all facts
    db = diagonal(3000)
    arguments = [
        Substitution(View((np.array([i]),) * 3), np.array([[0, 0]]))  # type: ignore[arg-type]
        for i in range(3000)
    ]
    budget = CheckBudget()
    assert verify(claim(db, *arguments), db, budget=budget).proved
    assert STEPS - budget.steps < STEPS / 4


def test_the_budget_grows_with_the_facts_beyond_a_million() -> None:
    assert (CheckBudget.of(1).steps, CheckBudget.of(FACTS).steps) == (STEPS, STEPS)
    assert CheckBudget.of(3 * FACTS).steps == 3 * STEPS
    assert CheckBudget.of(3 * FACTS).memory == 3 * MEMORY


def found(db: Database, effort: Any = "standard") -> list[Certificate]:
    analysis = RankAnalysis(db, effort=effort)
    rank, effective = analysis.rank, analysis.effective_rank
    return [*rank.certificates, *effective.certificates]


def components(n: int) -> Database:
    """Many small components, all of them different."""
    c, k, q, v = np.argwhere(np.random.default_rng(0).random((n, 3, 3, 3)) < 0.4).T
    rows = np.stack([3 * c + k, 3 * c + q, 3 * c + v], axis=1).tolist()
    return database([(k, q, v) for k, q, v in rows])


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: random_database(0),
        lambda: components(2_000),
        lambda: KNOWN_RANKS["matrices 2 x 2 x 3"][0](),
        lambda: crowded(600)[0],
    ],
)
def test_what_is_found_is_cheap_enough_to_check_in_one_file(make: Callable[[], Database]) -> None:
    db = make()
    budget = CheckBudget.of(db.n_triples)
    for certificate in found(db, "quick"):
        assert verify(certificate, db, budget=budget).proved
