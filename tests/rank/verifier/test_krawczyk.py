"""Real decompositions proved to be near a fit."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.rank import Certificate, Enclosure, View, rank_interval
from capacity.rank.cp.levenberg_marquardt import Fit, fit_cp, random_start
from capacity.rank.cp.making_exact import Target, enclose
from capacity.rank.method import Problem
from capacity.rank.reductions.singleton_slices import peel_singles
from capacity.rank.reductions.subtensor import relocated
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.procedures.krawczyk import contracts
from capacity.tensor import SparseTensor, from_dense, w_state
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from tests.oracles import database, w_tensor
from tests.second_checker import claim, proved_by_both, second_checker
from tests.tiers import examples


def fitted(tensor: np.ndarray, rank: int, seed: int, observed: np.ndarray | None = None) -> Fit:
    start = random_start(tensor.shape, rank, np.random.default_rng(seed))
    return fit_cp(tensor.astype(float), start, observed=observed)


def whole(db: Database) -> View:
    k, q, v = (np.arange(n) for n in db.shape)
    return View((k, q, v))


@pytest.mark.slow
@given(st.integers(0, 999))
@settings(max_examples=examples(30), deadline=None)
def test_dense_tensors_have_real_decompositions_near_their_fits(seed: int) -> None:
    rows = np.argwhere(np.random.default_rng(seed).random((3, 3, 3)) < 0.5).tolist()
    db = database([(k, q, v) for k, q, v in [*rows, [0, 0, 0]]])
    tensor = db.to_numpy().astype(np.int64)
    fit = fitted(tensor, 6, seed)
    found = enclose(tensor, fit.factors)
    if found is not None:
        assert fit.residual < 1e-9
        certificate = claim(db, Enclosure(whole(db), *found), side="upper")
        assert verify(certificate, db).reason is None
        assert second_checker(certificate, db)


def example() -> tuple[Database, Enclosure]:
    db = database([(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (2, 1, 1)])
    tensor = db.to_numpy().astype(np.int64)
    fit = fitted(tensor, 5, 0)
    found = enclose(tensor, fit.factors)
    assert found is not None
    return db, Enclosure(whole(db), *found)


def test_a_proof_needs_a_fit_a_box_and_the_facts() -> None:
    db, near = example()
    assert verify(claim(db, near, side="upper"), db).proved
    # what gives D itself represents the facts
    represents = claim(db, near, side="upper", quantity="effective_rank")
    assert verify(represents, db).proved
    assert second_checker(represents, db)
    off = tuple(f + 1e-3 for f in near.factors)
    fewer = near.varying[:-1]
    part = View((near.view.indices[0][:2], near.view.indices[1], near.view.indices[2]))
    for bad in (
        replace(near, factors=off),  # type: ignore[arg-type]
        replace(near, varying=fewer),
        replace(near, radius=1e-16),  # smaller than the fit's error
        replace(near, radius=0.9),  # the Jacobian is singular somewhere in so large a box
        replace(near, varying=np.append(fewer, fewer[0])),
        replace(near, view=part, factors=(near.factors[0][:2], *near.factors[1:])),
    ):
        certificate = claim(db, bad, side="upper")
        assert not verify(certificate, db).proved
        assert not second_checker(certificate, db) or bad.radius == 0.9


def test_the_border_rank_of_w_is_not_proved_at_any_radius() -> None:
    tensor = w_tensor().to_numpy().astype(np.int64)
    fit = fitted(tensor, 2, 0)
    assert fit.residual < 1e-3
    assert enclose(tensor, fit.factors) is None
    a, b, c = fit.factors
    for radius in (1e-10, 1e-7, 1e-4, 1e-2):
        for varying in (np.arange(8), np.arange(4, 12), np.delete(np.arange(12), [0, 5, 8, 11])):
            assert not contracts(tensor, (a, b, c), varying, radius)


def test_a_mask_leaves_unobserved_fibers_alone() -> None:
    db = database([(0, 0, 0), (0, 1, 1), (1, 0, 1), (2, 1, 0), (2, 2, 1), (1, 2, 2)])
    tensor = db.to_numpy().astype(np.int64)
    observed = np.asarray(tensor.any(axis=2))
    for seed in range(9):
        fit = fitted(tensor, 4, seed, observed)
        known = np.broadcast_to(observed[:, :, None], tensor.shape)
        found = enclose(tensor, fit.factors, known)
        if found is not None:
            break
    else:
        pytest.fail("no fit was proved")
    near = Enclosure(whole(db), *found)
    certificate = claim(db, near, quantity="effective_rank", side="upper")
    assert verify(certificate, db).reason is None
    assert second_checker(certificate, db)
    # it is no decomposition of D itself
    assert not verify(claim(db, near, side="upper"), db).proved


def peeled_example(mode: int) -> tuple[Database, Enclosure]:
    """Slices of a single entry in one mode, and a rest that isn't sparse."""
    rng = np.random.default_rng(mode)
    rest = np.argwhere(rng.random((3, 3, 3)) < 0.6).tolist()
    singles = [(0, 1, 7), (1, 2, 8), (2, 0, 9)]
    rows = [np.roll(row, mode + 1).tolist() for row in [*rest, *singles]]
    db = database([(k, q, v) for k, q, v in rows])
    peeled = peel_singles(db.tensor().indices, db.tensor().values, db.shape)
    assert peeled is not None
    assert peeled.order[2] == mode
    for seed in range(20):
        observed = peeled.known[:, :, 0]
        fit = fitted(peeled.tensor.astype(np.int64), 6, seed, observed)
        found = enclose(peeled.tensor.astype(np.int64), fit.factors, peeled.known)
        if found is not None:
            view = View(tuple(np.arange(n) for n in peeled.tensor.shape))  # type: ignore[arg-type]
            return db, peeled.enclosed(Enclosure(view, *found))
    raise AssertionError("no fit was proved")


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_fibers_with_a_simple_tensor_each_need_not_fit(mode: int) -> None:
    db, near = peeled_example(mode)
    assert near.value == 6 + len(near.fibers) >= 6 + 3
    certificate = claim(db, near, side="upper")
    assert verify(certificate, db).reason is None
    assert second_checker(certificate, db)
    again = Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
    assert verify(again, db).proved
    elsewhere = near.fibers.copy()
    elsewhere[0] = (elsewhere[0] + 1) % 3
    twice = np.concatenate([near.fibers[:1], near.fibers[:-1]])
    for bad in (
        replace(near, fibers=near.fibers[:-1]),
        replace(near, fibers=elsewhere),
        replace(near, fibers=twice),
        replace(near, fibers=near.fibers + 100),
        replace(near, mode=(mode + 1) % 3),
        replace(near, mode=3),
    ):
        wrong = claim(db, bad, side="upper")
        assert not verify(wrong, db).proved
        assert not second_checker(wrong, db)


@pytest.mark.slow
def test_hundreds_of_equations_are_proved_exactly() -> None:
    tensor = np.random.default_rng(0).integers(0, 2, (8, 8, 8))
    found = enclose(tensor, fitted(tensor, 26, 0).factors)
    assert found is not None
    factors, varying, radius = found
    assert len(varying) == 512
    assert contracts(tensor, factors, varying, radius)
    # the facts are not those of another tensor
    tensor[0, 0, 0] = 1 - tensor[0, 0, 0]
    assert not contracts(tensor, factors, varying, radius)


def of_order(shape: tuple[int, ...], rank: int) -> tuple[SparseTensor, Enclosure]:
    """A random tensor, and an enclosure of as many terms."""
    dense = np.random.default_rng(0).integers(-2, 3, shape)
    for seed in range(20):
        fit = fitted(dense, rank, seed)
        found = enclose(dense, fit.factors)
        if found is not None:
            near = Enclosure(View(tuple(np.arange(n) for n in shape)), *found)
            return from_dense(dense), near
    raise AssertionError("no fit was proved")


# generic ranks, of almost all tensors over C: 36 entries and 7 free numbers for a term, 6; 32 and 6
@pytest.mark.parametrize(("shape", "rank"), [((2, 2, 3, 3), 6), ((2, 2, 2, 2, 2), 6), ((3, 4), 3)])
def test_tensors_of_any_order_have_real_decompositions_near_their_fits(
    shape: tuple[int, ...], rank: int
) -> None:
    tensor, near = of_order(shape, rank)
    assert near.value == rank
    certificate = claim(tensor, near, side="upper")
    again = Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
    for one in (certificate, again):
        assert verify(one, tensor).reason is None
    assert second_checker(again, tensor)
    # it is no decomposition of a tensor with another entry
    dense = tensor.to_numpy().copy()
    dense[(0,) * len(shape)] += 1
    other = from_dense(dense)
    false = claim(other, near, side="upper")
    assert not verify(false, other).proved
    assert not second_checker(false, other)


def test_a_fit_of_the_core_is_one_of_the_whole_in_any_place() -> None:
    tensor, near = of_order((2, 2, 3, 3), 6)
    # an equal slice, which the core hasn't, and a larger tensor around it
    problem = Problem(np.concatenate([tensor.to_numpy(), tensor.to_numpy()[:1]]))
    found = Target(problem, 10**12).enclosed(Fit(near.factors, 0.0, 0))
    assert found is not None
    around = np.zeros((4, 3, 4, 3), np.int64)
    indices = (np.array([0, 2, 3]), np.array([0, 2]), np.array([1, 2, 3]), np.arange(3))
    around[np.ix_(*indices)] = problem.tensor
    moved = relocated(found, indices)
    certificate = claim(from_dense(around), moved, side="upper")
    assert verify(certificate, from_dense(around)).reason is None
    assert second_checker(certificate, from_dense(around))


# the same generic ranks; without enclosures, 10 and 11 terms were found
@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 2, 3, 3), (2, 2, 2, 2, 2)])
def test_least_squares_bounds_tensors_of_any_order(shape: tuple[int, ...]) -> None:
    rank = 6
    tensor, _ = of_order(shape, rank)
    # with an equal slice, which the core hasn't
    more = from_dense(np.concatenate([tensor.to_numpy(), tensor.to_numpy()[:1]]))
    for one in (tensor, more):
        interval = rank_interval(one, effort="standard", methods=["least squares"])
        assert interval.upper == rank
        upper = interval.certificates.upper
        assert upper.arguments[0].kind == "enclosure"
        again = Certificate.from_dict(json.loads(json.dumps(upper.to_dict())))
        assert verify(again, one).proved
        assert second_checker(again, one)


def test_fits_of_any_order_are_refused_where_they_prove_nothing() -> None:
    tensor, near = of_order((2, 2, 3, 3), 6)
    a, b, c, d = near.factors
    for bad in (
        replace(near, factors=(a, b, c)),
        replace(near, factors=(a, b, c, d, d)),
        replace(near, factors=(a, b, d, c[:, :5])),
        replace(near, factors=(a[:, :5], b[:, :5], c[:, :5], d[:, :5])),
        replace(near, factors=(a, b, c, d + 1e-3)),
        replace(near, factors=(b, a, c, d)),
        replace(near, varying=near.varying[:-1]),
        replace(near, radius=0.9),
        # a fiber of its own simple tensor is for order three
        replace(near, fibers=np.array([[0, 0]])),
        replace(near, fibers=np.array([[0, 0, 0]])),
    ):
        false = claim(tensor, bad, side="upper")
        assert not verify(false, tensor).proved
        assert not second_checker(false, tensor) or bad.radius == 0.9


def test_mutations_of_higher_order_are_proved_only_if_both_checkers_prove_them() -> None:
    tensor, near = of_order((2, 2, 2, 2), 5)
    certificate = claim(tensor, near, side="upper")
    refuted = 0
    for seed in range(60):
        edited = mutated(Choices.seeded(seed), certificate, others=[certificate])
        refuted += proved_by_both(edited, tensor) is False
    assert refuted > 10


def test_the_border_rank_of_w_of_four_qubits_is_not_proved_at_any_radius() -> None:
    # W of four modes has rank 4, and is a limit of tensors of rank 2
    dense = w_state(4).to_numpy()
    for rank in (2, 3):
        for seed in range(3):
            factors = fitted(dense, rank, seed).factors
            assert enclose(dense, factors) is None
            for radius in (1e-10, 1e-6, 1e-2):
                for varying in (np.arange(16), np.arange(8 * rank - 16, 8 * rank)):
                    assert not contracts(dense, factors, varying, radius)
