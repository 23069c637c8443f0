"""Shorter decompositions: flip graphs, numerical fits, and making them exact."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.rank import Decomposition, RankAnalysis, effective_rank_interval, rank_interval
from capacity.rank.cp.exact_fits import fits
from capacity.rank.cp.levenberg_marquardt import (
    MOST_DENSE,
    Fit,
    fit_cp,
    normal_matrix,
    random_start,
    solver,
)
from capacity.rank.cp.rationalize import exact_terms
from capacity.rank.lower.single_entries import PEELING
from capacity.rank.lower.substitution.dense import SUBSTITUTION, SUBSTITUTION_IN_OTHER_BASES
from capacity.rank.method import Goal, Problem, findings, value_of
from capacity.rank.options import BUDGETS
from capacity.rank.reductions.singleton_slices import peel_singles
from capacity.rank.upper.binary_search import BINARY_FLIPS
from capacity.rank.upper.ternary.search import TERNARY_FLIPS
from capacity.rank.upper.walk_starts import as_factors, as_terms
from capacity.rank.verifier.checker import verify
from capacity.testing import databases
from tests.oracles import FIGURE_1, KNOWN_RANKS, database, matrix_product, w_tensor
from tests.searches import progress_of
from tests.second_checker import claim, second_checker
from tests.tiers import examples


def fibers(tensor: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    i, j = np.nonzero(tensor.any(axis=2))
    return np.eye(len(tensor), dtype=int)[i], np.eye(tensor.shape[1], dtype=int)[j], tensor[i, j]


def total(factors: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.einsum("ri,rj,rk->ijk", *factors)


# ---- starts of walks ----------------------------------------------------------------------------


def test_terms_and_factors_are_the_same_thing() -> None:
    factors = fibers(matrix_product(2, 2, 2).to_numpy().astype(np.int64))
    back = as_factors(as_terms(factors), (4, 4, 4))
    assert back is not None
    assert all((x == y).all() for x, y in zip(factors, back, strict=True))
    scaled = (3 * factors[0], factors[1], factors[2])
    assert as_factors(as_terms(scaled), (4, 4, 4)) is None


# ---- fits ---------------------------------------------------------------------------------------


def fitted(db: Database, rank: int, seed: int, observed: np.ndarray | None = None) -> Fit:
    tensor = db.to_numpy(np.float64)
    start = random_start(tensor.shape, rank, np.random.default_rng(seed))
    return fit_cp(tensor, start, observed=observed)


def test_the_normal_equations_are_those_of_the_jacobian() -> None:
    rng = np.random.default_rng(0)
    factors = random_start((3, 4, 5), 3, rng)
    mask = (rng.random((3, 4)) < 0.6).astype(float)
    x = np.concatenate([f.ravel() for f in factors])

    def value(x: np.ndarray) -> np.ndarray:
        a, b, c = (p.reshape(-1, 3) for p in np.split(x, [9, 21]))
        return (np.einsum("ir,jr,kr->ijk", a, b, c) * mask[:, :, None]).ravel()

    # central differences are exact to third order, and the sum is cubic in x: linear in each
    h = 1e-4
    J = np.stack([(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(36)], axis=1)
    normal = normal_matrix(factors, mask)
    assert np.allclose(J.T @ J, normal, atol=1e-9)
    # conjugate gradients solve the same system
    gradient = rng.standard_normal(36)
    exact = np.linalg.solve(normal + 0.1 * np.eye(36), gradient)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("capacity.rank.cp.levenberg_marquardt.MOST_DENSE", 10)
        step = solver(factors, mask, np.ones(36, bool))(gradient, 0.1)
    assert step is not None
    assert np.linalg.norm(step - exact) < 1e-2 * np.linalg.norm(exact)
    assert MOST_DENSE > 36


@pytest.mark.parametrize("name", KNOWN_RANKS)
def test_known_ranks_are_fitted_and_none_below(name: str) -> None:
    make, rank = KNOWN_RANKS[name]
    db = make()
    good = [fitted(db, rank, seed) for seed in range(4)]
    assert min(fit.residual for fit in good) < 1e-9
    if rank > 1:
        # border rank: W comes as close as one likes, by terms that grow
        assert fitted(db, rank - 1, 0).residual > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN_RANKS)
def test_fits_are_made_exact(name: str) -> None:
    make, rank = KNOWN_RANKS[name]
    db = make()
    tensor = db.to_numpy().astype(np.int64)
    tried = (fitted(db, rank, seed) for seed in range(6))
    found = (exact_terms(tensor, fit) for fit in tried if fit.residual < 1e-9)
    terms = next(terms for terms in found if terms is not None)
    certificate = claim(db, Decomposition(tuple(terms)), side="upper")
    assert certificate.value == rank
    assert verify(certificate, db).proved
    assert second_checker(certificate, db)


@pytest.mark.slow
def test_the_border_rank_of_w_is_not_taken_for_its_rank() -> None:
    tensor = w_tensor().to_numpy().astype(np.int64)
    limits = BUDGETS["standard"].limits
    assert list(fits(Problem(tensor), Goal(2, 3, 10**10, limits, 0))) == []


def test_two_copies_of_example_2_2_have_effective_rank_nine() -> None:
    rows = [tuple(copy + token for token in row) for copy in "ab" for row in FIGURE_1]
    db = Database.from_triples(rows)
    interval = effective_rank_interval(db, effort="standard")
    assert str(interval) == "[9, 9]"
    for end in interval.certificates:
        assert verify(end, db).proved
        assert second_checker(end, db)
    # as a rank it proves nothing: the terms meet in unobserved fibers
    as_rank = claim(db, *interval.certificates.upper.arguments, side="upper")
    assert not verify(as_rank, db).proved


@pytest.mark.slow
def test_fully_observed_tensors_have_the_effective_rank_of_their_rank() -> None:
    for name in ("Z/3", "Z/4"):
        make, rank = KNOWN_RANKS[name]
        interval = effective_rank_interval(make(), effort="standard")
        assert str(interval) == f"[{rank}, {rank}]"
        assert second_checker(interval.certificates.lower, make())


@pytest.mark.slow
@given(databases(functional=True))
@settings(max_examples=examples(20, part=8), deadline=None)
def test_standard_effort_is_proved_too(db: Database) -> None:
    analysis = RankAnalysis(db, effort="standard")
    rank, effective = analysis.rank, analysis.effective_rank
    for end in (*rank.certificates, *effective.certificates):
        assert verify(end, db).reason is None
        assert second_checker(end, db)
    assert effective.lower <= rank.upper
    assert effective.upper <= rank.upper


def test_walks_ignore_nothing_that_is_observed() -> None:
    db = database([(0, 0, 0), (0, 1, 1), (1, 0, 1)])
    # W with one pair unobserved: effective rank 2, by a pencil with real eigenvectors
    interval = effective_rank_interval(db, effort="standard")
    assert str(interval) == "[2, 2]"
    assert second_checker(interval.certificates.upper, db)


# ---- slices of a single entry -------------------------------------------------------------------


@pytest.mark.slow
@given(databases(max_subjects=6, max_objects=8, max_triples=24), st.booleans(), st.integers(0, 9))
@settings(max_examples=examples(150), deadline=None)
def test_slices_of_a_single_entry_come_off_exactly(
    db: Database, effective: bool, seed: int
) -> None:
    tensor = db.to_numpy().astype(np.int64)
    observed = np.asarray(tensor.any(axis=2))
    known = np.broadcast_to(observed[:, :, None], tensor.shape) if effective else None
    peeled = peel_singles(
        np.argwhere(tensor), tensor[tensor != 0].astype(np.int64), tensor.shape, effective=effective
    )
    if peeled is None:
        axes = [(0, 1)] if effective else [(1, 2), (0, 2), (0, 1)]
        assert min(tensor.sum(axis=others).min() for others in axes) > 1
        return
    quantity = "effective_rank" if effective else "rank"
    limits = BUDGETS["standard"].limits
    values = []
    for method in (PEELING, SUBSTITUTION, SUBSTITUTION_IN_OTHER_BASES, BINARY_FLIPS, TERNARY_FLIPS):
        goal = Goal(0, 99, 10**8, limits, seed)
        for found in findings(method, Problem(tensor, known), goal):
            side = "upper" if isinstance(found[0], Decomposition) else "lower"
            certificate = claim(db, *found, quantity=quantity, side=side)
            assert verify(certificate, db).reason is None
            assert second_checker(certificate, db)
            values.append((side, certificate.value))
    assert max(v for side, v in values if side == "lower") <= min(
        (v for side, v in values if side == "upper"), default=math.inf
    )


def test_a_database_of_objects_that_are_mentioned_once_is_known_exactly() -> None:
    # 12 facts of 12 objects, in a full table of 4 x 3
    db = database([(k, q, 3 * k + q) for k in range(4) for q in range(3)])
    peeled = peel_singles(db.tensor().indices, db.tensor().values, db.shape)
    assert peeled is not None
    assert (len(peeled.taken), peeled.tensor.size) == (12, 0)
    assert str(rank_interval(db)) == "[12, 12]"


@pytest.mark.slow
def test_what_is_left_is_smaller() -> None:
    # sparse facts at random: most objects are mentioned once or twice
    rng = np.random.default_rng(3)
    pairs = rng.permutation(8 * 4)[:20].tolist()
    db = database([(p // 4, p % 4, int(rng.integers(12))) for p in pairs])
    tensor = db.to_numpy().astype(np.int64)
    peeled = peel_singles(np.argwhere(tensor), tensor[tensor != 0].astype(np.int64), tensor.shape)
    assert peeled is not None
    assert len(peeled.taken) == 6
    assert peeled.tensor.size < tensor.size // 2
    goal = Goal(0, 99, 10**9, BUDGETS["standard"].limits, 0)
    # the same search finds no more on the whole
    plain, both = (
        min(value_of(one) for one in findings(method, Problem(tensor), goal))
        for method in (replace(BINARY_FLIPS, peeled="never"), BINARY_FLIPS)
    )
    assert both <= plain


def test_a_small_rest_of_a_large_component_is_searched() -> None:
    # the 2 x 2 matrix product, and 300 facts of own objects that tie it to 300 subjects
    product = matrix_product(2, 2, 2).triples.tolist()
    rows = [(k, q, v) for k, q, v in product] + [(i, 9, 100 + i) for i in range(300)]
    db = database(rows)
    told: list[str] = []
    interval = rank_interval(db, progress=progress_of(lambda _l, _u, method: told.append(method)))
    # the whole is too large to be dense at this effort: 300 x 5 x 304 entries times 609 slices
    assert "spanning tree" in told
    assert interval.certificates.lower.by == "substitution"
    # unfoldings see 4 and the slices 8 of the product; greedy substitution goes on to 5
    assert (interval.lower, interval.upper) == (305, 308)
    for end in interval.certificates:
        assert verify(end, db).proved
