"""Sign changes along orders, and the moment curves that they bound, in exact fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.embedding import Quantities, QueryGraph
from capacity.embedding.curves import changes_of_rows, seriated, sign_changes
from tests.tiers import examples


def matrix(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    M = rng.random((rng.integers(1, 6), rng.integers(1, 8))) < rng.choice([0.2, 0.5])
    M[0, 0] = True
    rows, columns = np.nonzero(M)
    return M, rows, columns


@given(st.integers(0, 2**20), st.booleans())
@settings(max_examples=examples(80))
def test_changes_are_those_of_the_rows(seed: int, from_minus: bool) -> None:
    M, rows, columns = matrix(seed)
    order = np.random.default_rng(seed + 1).permutation(M.shape[1])
    along = M[:, order][M.any(axis=1)]
    if from_minus:
        along = np.concatenate([np.zeros((len(along), 1), bool), along], axis=1)
    expected = (along[:, 1:] != along[:, :-1]).sum(axis=1)
    found = changes_of_rows(rows, columns, order, from_minus=from_minus)
    assert found.tolist() == expected.tolist()
    most = sign_changes(rows, columns, order, from_minus=from_minus)
    assert most == expected.max(initial=0)
    best = seriated(rows, columns, M.shape[1], from_minus=from_minus)
    assert sorted(best.tolist()) == [*range(M.shape[1])]
    plain = sign_changes(rows, columns, np.arange(M.shape[1]), from_minus=from_minus)
    assert sign_changes(rows, columns, best, from_minus=from_minus) <= plain


def polynomial(row: np.ndarray) -> list[Fraction]:
    """Coefficients of one that is positive at 1, 2, ... where the row is true, and -1 at 0."""
    found = [Fraction(-1)]
    padded = [False, *row.tolist()]
    for x, (before, here) in enumerate(itertools.pairwise(padded)):
        if before != here:
            root = x + Fraction(1, 2)
            # times 1 - t / root
            wider = [*found, Fraction(0)]
            found = [
                c - (wider[i - 1] / root if i else 0) for i, c in enumerate(wider)
            ]  # fmt: skip
    return found


@given(st.integers(0, 2**20))
@settings(max_examples=examples(60))
def test_a_polynomial_of_as_many_roots_has_the_signs(seed: int) -> None:
    M, rows, columns = matrix(seed)
    order = seriated(rows, columns, M.shape[1], from_minus=True)
    k = sign_changes(rows, columns, order, from_minus=True)
    for row in M[:, order]:
        p = polynomial(row)
        assert len(p) - 1 <= k
        values = [sum(c * x**i for i, c in enumerate(p)) for x in range(1, len(row) + 1)]
        assert [value > 0 for value in values] == row.tolist()
        # divided by its linear coefficient, for a common first coordinate
        assert len(p) == 1 or p[1] > 0


@given(st.integers(0, 2**20))
@settings(max_examples=examples(30))
def test_relations_on_curves_have_the_signs_of_the_facts(seed: int) -> None:
    """1 + sum_q k_q terms, as CP: the theorem by which a relation's terms are counted."""
    rng = np.random.default_rng(seed)
    D = rng.random((4, 2, 5)) < 0.35
    D[0, :, 0] = True
    T = np.full(D.shape, Fraction(-1), object)
    n_terms = 1
    for q in range(2):
        M = D[:, q]
        rows, columns = np.nonzero(M)
        order = seriated(rows, columns, 5, from_minus=True)
        k = sign_changes(rows, columns, order, from_minus=True)
        n_terms += k
        # objects without a fact of the relation are at 0
        x = np.zeros(5, int)
        x[order] = np.arange(1, 6)
        for s in range(4):
            p = polynomial(M[s][order])
            for i in range(1, len(p)):
                T[s, q] = T[s, q] + np.array([p[i] * int(t) ** i for t in x], object)
    assert ((T > 0) == D).all()
    assert n_terms <= 1 + 2 * D.sum(axis=2).max(axis=0).sum()


@pytest.mark.parametrize("seed", range(5))
def test_many_groups_are_counted_without_an_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    facts = {tuple(map(int, rng.integers(0, (9, 4, 6)))) for _ in range(60)}
    db = Database.from_triples([(f"s{s}", f"r{q}", f"o{o}") for s, q, o in sorted(facts)],
                               multi="keep")  # fmt: skip
    sought = Quantities(db, QueryGraph.of(db), "quick", 0).curve_terms_of_subjects
    monkeypatch.setattr("capacity.embedding.graph_counts.MOST_ORDERS", 2)
    plain = Quantities(db, QueryGraph.of(db), "quick", 0).curve_terms_of_subjects
    assert (sought <= plain).all()
    assert (plain <= 2 * 6).all()
