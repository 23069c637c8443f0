"""The constructions behind the upper bounds, built in exact fractions and checked by definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import schur

from capacity.database import Database
from capacity.embedding import MODELS, Quantities, QueryGraph
from tests.embedding.test_curves import polynomial
from tests.tiers import examples

Exact = Any


def graph(seed: int) -> tuple[Database, np.ndarray]:
    """Facts of separate subjects and objects, whose tensor has no empty slice."""
    rng = np.random.default_rng(seed)
    D = rng.random(rng.integers(1, 5, 3)) < rng.choice([0.3, 0.6])
    for mode in range(3):
        for i in range(D.shape[mode]):
            if not D.take(i, mode).any():
                D[tuple(i if m == mode else int(rng.integers(D.shape[m])) for m in range(3))] = True
    rows = [(f"s{s}", f"r{q}", f"o{o}") for s, q, o in np.argwhere(D).tolist()]
    return Database.from_triples(rows, multi="keep"), D


def fractions(rng: np.random.Generator, *shape: int) -> Exact:
    """Small fractions at random."""
    found = np.empty(shape, object)
    for place in np.ndindex(*shape):
        found[place] = Fraction(int(rng.integers(-9, 10)), int(rng.integers(1, 5)))
    return found


def cp(a: Exact, b: Exact, c: Exact) -> Exact:
    return np.einsum("sr,qr,or->sqo", a, b, c)


def ranks(T: Exact, D: np.ndarray) -> bool:
    return all(
        T[s, q][D[s, q]].min() > T[s, q][~D[s, q]].max()
        for s, q in np.argwhere(D.any(axis=2) & ~D.all(axis=2)).tolist()
    )


@pytest.mark.slow
@given(st.integers(0, 2**20), st.sampled_from([0, 1]))
@settings(max_examples=examples(60), deadline=None)
def test_one_curve_with_a_common_first_coordinate_ranks_by_as_many_terms_of_cp(
    seed: int, mode: int
) -> None:
    """1 + sum_q (k_q - 1): the first coordinate of all queries is one term, constants are free."""
    db, D = graph(seed)
    of = Quantities(db, QueryGraph.of(db, shared=False), "quick", 0)
    terms = of.common_terms if mode else of.common_terms_of_subjects
    x = np.zeros(D.shape[2], int)
    x[of.common_order] = np.arange(1, D.shape[2] + 1)
    # factors: ones, ones and x, then for each group the powers from 2 on
    a, b, c = (
        [[Fraction(1)] * D.shape[0]],
        [[Fraction(1)] * D.shape[1]],
        [[Fraction(int(t)) for t in x]],
    )
    coefficients: dict[tuple[int, int], list[Fraction]] = {}
    for s, q in np.argwhere(D.any(axis=2)).tolist():
        p = polynomial(D[s, q][of.common_order])
        assert len(p) - 1 <= terms[q if mode else s]
        coefficients[s, q] = [value / p[1] for value in p]
    for group in range(D.shape[mode]):
        for power in range(2, int(terms[group]) + 1):
            column = np.full(D.shape[1 - mode], Fraction(0), object)
            for other in range(D.shape[1 - mode]):
                p = coefficients.get((other, group) if mode else (group, other), [])
                if power < len(p):
                    column[other] = p[power]
            one = [Fraction(int(i == group)) for i in range(D.shape[mode])]
            a.append([*column] if mode else one)
            b.append(one if mode else [*column])
            c.append([Fraction(int(t)) ** power for t in x])
    assert len(a) == 1 + np.maximum(terms - 1, 0).sum()
    T = cp(*(np.array(factor, object).T for factor in (a, b, c)))
    assert ranks(T, D)
    words = "one moment curve of objects"
    values = [one.value for one in MODELS["CP"].bounds(of, "ranking") if words in one.words]
    assert len(a) in values


@given(st.integers(0, 2**20), st.booleans(), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_cp_is_within_the_other_families_by_the_dimensions_that_are_told(
    seed: int, shared: bool, constant: bool
) -> None:
    """Terms of CP as SimplE, RESCAL and TuckER; the last may be 1 for every triple."""
    rng = np.random.default_rng(seed)
    n, n_relations, d = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    a, b, c = (fractions(rng, k, d) for k in (n, n_relations, n))
    if constant:
        a[:, -1], b[:, -1], c[:, -1] = Fraction(1), Fraction(1), Fraction(1)
    T = cp(a, b, c)
    each, more = 2 if shared else 1, int(constant)
    wide = each * (d - more) + more
    # SimplE: (<a_s, v_q, b_o> + <a_o, w_q, b_s>) / 2, with w = 0
    half = cp(a, 2 * b, c) + np.einsum("or,qr,sr->sqo", a, 0 * b, c)
    assert (half / 2 == T).all()
    # RESCAL and TuckER: entities [A | C], where both sides have the constant's vector
    front = d - more if shared else 0
    if shared:
        ones = [np.ones((n, 1), int) * Fraction(1)] * more
        E = np.concatenate([a[:, : d - more], c[:, : d - more], *ones], axis=1)
        left, right = E, E
    else:
        left, right = a, c
    assert left.shape[1] == wide
    W = np.full((n_relations, wide, wide), Fraction(0), object)
    for r in range(d - more if shared else d):
        W[:, r, front + r] = b[:, r]
    if shared and constant:
        W[:, -1, -1] = Fraction(1)
    assert (np.einsum("si,qij,oj->sqo", left, W, right) == T).all()


@given(st.integers(0, 2**20))
@settings(max_examples=examples(60), deadline=None)
def test_cp_is_within_complex_of_twice_the_dimension(seed: int) -> None:
    """Of each term X = a c^T, X + i X^T is normal, of rank 2 at most; vectors are irrational."""
    rng = np.random.default_rng(seed)
    n, n_relations, d = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    a, b, c = (rng.integers(-3, 4, (k, d)).astype(float) for k in (n, n_relations, n))
    e, w = [], []
    for r in range(d):
        X = np.outer(a[:, r], c[:, r])
        values, vectors = schur(X + 1j * X.T, output="complex")
        largest = np.argsort(-np.abs(np.diag(values)))[:2]
        e += [vectors[:, i] for i in largest]
        w += [b[:, r] * values[i, i] for i in largest]
    assert len(e) <= 2 * d
    E, W = np.array(e).T, np.array(w).T
    T = np.einsum("sr,qr,or->sqo", E, W, E.conj()).real
    assert np.allclose(T, cp(a, b, c), atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_exact_scores_less_a_half_have_the_signs(seed: int) -> None:
    _, D = graph(seed)
    T = D.astype(int) - Fraction(1, 2)
    assert ((T > 0) == D).all()
    assert ranks(T, D)
