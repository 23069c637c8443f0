"""Certificates are checked, and checked again by a second, slower checker written here."""

import copy
import itertools
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import CapacityError, CertificateError, MemoryBudgetError
from capacity.rank import (
    Boxes,
    Certificate,
    Decomposition,
    Diagonalization,
    Enclosure,
    MaximalRank,
    Substitution,
    Unfolding,
    View,
    effective_rank_interval,
    load_certificates,
    rank_interval,
    save_certificates,
)
from capacity.rank.cp.levenberg_marquardt import fit_cp, random_start
from capacity.rank.cp.making_exact import enclose
from capacity.rank.lower.substitution.dense import rebased_orders
from capacity.rank.method import Goal, Problem
from capacity.rank.options import Limits
from capacity.rank.verifier.budget import STEPS, CheckBudget
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.kinds import KINDS
from capacity.testing import databases
from capacity.testing.arguments.combined import drawn_certificate
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from tests.oracles import FIGURE_1, KNOWN_RANKS, database, example_2_4, figure_1
from tests.rank.verifier.test_krawczyk import peeled_example
from tests.second_checker import claim, second_checker
from tests.tiers import examples

# ---- what is found is proved --------------------------------------------------------------------


def certificates_of(db: Database) -> list[Certificate]:
    intervals = (rank_interval(db), effective_rank_interval(db))
    return [end for interval in intervals for end in interval.certificates]


def whole(db: Database) -> View:
    k, q, v = (np.arange(n) for n in db.shape)
    return View((k, q, v))


def through_json(certificate: Certificate) -> Certificate:
    return Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))


@pytest.mark.slow
@given(databases())
@settings(max_examples=examples(1000))
def test_what_is_found_is_proved_after_json_by_both_checkers(db: Database) -> None:
    for certificate in certificates_of(db):
        again = through_json(certificate)
        assert again.to_dict() == certificate.to_dict()
        assert verify(again, db).reason is None
        assert second_checker(again, db)


@pytest.mark.parametrize("name", KNOWN_RANKS)
def test_known_ranks_lie_in_proved_intervals(name: str) -> None:
    make, rank = KNOWN_RANKS[name]
    db = make()
    interval = rank_interval(db)
    assert rank in interval
    for end in interval.certificates:
        assert verify(end, db).proved


# ---- what is damaged is not ---------------------------------------------------------------------


def all_kinds() -> list[tuple[Database, Certificate]]:
    """Certificates with arguments of every kind: found, and a few that need a search or luck."""
    dbs = [make() for make, _ in KNOWN_RANKS.values()]
    # one component that the substitution method bounds, and one beside it
    beside = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 0), (2, 0, 1), (2, 1, 1), (9, 9, 9)]
    dbs += [database(beside), database([(0, 0, 0), (0, 1, 1), (1, 0, 1), (2, 2, 2), (3, 2, 3)])]
    beside_db = dbs[-2]
    pool = [(db, certificate) for db in dbs for certificate in certificates_of(db)]
    diagonal = database([(i, i, i) for i in range(3)])
    view = View((np.arange(3), np.arange(3), np.arange(3)))
    spans = Diagonalization(view, 0, np.array([1, 1, 1]), 3)
    pool += [(diagonal, claim(diagonal, spans, side="upper"))] * 10
    four = database([(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (2, 1, 1)])
    dense = four.to_numpy().astype(np.int64)
    start = random_start(dense.shape, 5, np.random.default_rng(0))
    fit = fit_cp(dense.astype(float), start)
    found = enclose(dense, fit.factors)
    assert found is not None
    near = Enclosure(whole(four), *found)
    pool += [(four, claim(four, near, side="upper"))] * 10
    w = KNOWN_RANKS["W"][0]()
    pool += [(w, claim(w, MaximalRank(whole(w), 3), side="upper"))] * 10
    for quantity, seed in itertools.product(("rank", "effective_rank"), range(10)):
        kind = "algebraic decomposition"
        drawn = drawn_certificate(Choices.seeded(seed), four, quantity=quantity, kind=kind)
        pool.append((four, drawn))
    for quantity, seed in itertools.product(("rank", "effective_rank"), range(10)):
        for kind in (
            "block substitution", "cases", "rank-one locus", "rank-one completion", "algebra",
        ):  # fmt: skip
            of = w if quantity == "rank" else four
            drawn = drawn_certificate(Choices.seeded(seed), of, quantity=quantity, kind=kind)
            pool.append((of, drawn))
    z3 = database([(k, q, (k + q) % 3) for k in range(3) for q in range(3)])
    for quantity, seed in itertools.product(("rank", "effective_rank"), range(10)):
        drawn = drawn_certificate(Choices.seeded(seed), z3, quantity=quantity, kind="published")
        pool.append((z3, drawn))
        of_sides: list[tuple[Any, str]] = [("lower", "koszul"), ("upper", "complex decomposition")]
        for side, kind in of_sides:
            drawn = drawn_certificate(
                Choices.seeded(seed), four, quantity=quantity, side=side, kind=kind
            )
            pool.append((four, drawn))
    for mode in range(3):
        db, free = peeled_example(mode)
        pool += [(db, claim(db, free, side="upper"))] * 5
    for seed in range(10):
        kind = "algebraic decomposition"
        pool.append((beside_db, drawn_certificate(Choices.seeded(seed), beside_db, kind=kind)))
        rows = np.argwhere(np.random.default_rng(seed).random((4, 4, 4)) < 0.4).tolist()
        db = database([(k, q, v) for k, q, v in rows])
        tensor = db.to_numpy().astype(np.int64)
        observed = np.broadcast_to(tensor.any(axis=2, keepdims=True), tensor.shape)
        goal = Goal(0, 99, 10**8, Limits(8, 0, 1, 500, 0, 0, 0, 10**8), seed)
        for quantity, known in (("rank", None), ("effective_rank", observed)):
            (found,) = rebased_orders(Problem(tensor, known), goal)
            pool.append((db, claim(db, *found, quantity=quantity)))
    return pool


@pytest.mark.slow
def test_random_edits_are_accepted_only_if_they_still_prove_their_claim() -> None:
    rng = random.Random(0)
    pool = all_kinds()
    of_kind: dict[tuple[str, str, str], list[tuple[Database, Certificate]]] = {}
    for db, one in pool:
        for argument in one.arguments:
            of_kind.setdefault((argument.kind, one.side, one.quantity), []).append((db, one))
    kinds = sorted(of_kind)
    assert {kind for kind, _, _ in kinds} == set(KINDS)
    tried = accepted = 0
    refused = dict.fromkeys(kinds, 0)
    while tried < 1500:
        kind = rng.choice(kinds)
        db, certificate = rng.choice(of_kind[kind])
        data = mutated(Choices(rng.randint), certificate)
        if data == certificate.to_dict():
            continue
        tried += 1
        try:
            damaged = Certificate.from_dict(data)
            proved = verify(damaged, db).proved
        except CapacityError:
            continue
        # whatever passes must be true by definitions alone
        if proved:
            accepted += 1
            assert second_checker(damaged, db), data
        else:
            refused[kind] += 1
    # some edits do no harm (two removals that commute, boxes renumbered), most do, in every kind
    assert 0 < accepted < 750
    assert all(refused.values())


def test_other_facts_and_other_policies_are_refused() -> None:
    certificate = rank_interval(figure_1()).certificates.lower
    with pytest.raises(CertificateError, match="must be for the facts"):
        verify(certificate, example_2_4())
    same = Database.from_ids(figure_1().tokens, figure_1().token_triples, multi="first")
    with pytest.raises(CertificateError, match="with multi=first; it is for"):
        verify(certificate, same)


@given(databases(), databases(), st.booleans())
@settings(max_examples=examples(50))
def test_arguments_about_other_facts_prove_nothing_false(
    a: Database, b: Database, effective: bool
) -> None:
    # the arguments of a under the name of b: accepted only where they hold for b as well
    find = effective_rank_interval if effective else rank_interval
    for end in find(a).certificates:
        data = {**end.to_dict(), "facts_sha256": b.facts_sha256, "multi": b.multi}
        moved = Certificate.from_dict(data)
        if verify(moved, b).proved:
            assert second_checker(moved, b)


def test_the_failing_step_is_named() -> None:
    db = figure_1()
    removals = np.array([[0, 0], [0, 0]])
    verdict = verify(claim(db, Substitution(whole(db), removals)), db)
    assert verdict.reason == "substitution step 1, slice 0 of mode 0: it was removed before"
    box = Boxes(np.zeros(8, np.int64))
    reason = verify(claim(db, box, side="upper"), db).reason
    # five subjects x three predicates x four objects
    assert reason == "box 0 has entries at 8 of 60 places"
    nothing = Boxes(np.full(8, -1))
    assert "add up to 0 at (0, 0, 3), which" in str(verify(claim(db, nothing, side="upper"), db))


def test_lower_bounds_of_one_component_do_not_add() -> None:
    db = example_2_4()
    whole = rank_interval(db).certificates.lower.arguments
    doubled = claim(db, *whole, *whole)
    assert verify(doubled, db).reason == "argument 0 may change what argument 1 is about"


def test_effective_lower_bounds_do_not_add_over_components() -> None:
    # two copies of Example 2.2 have effective rank 9, and rank 5 each
    rows = [tuple(copy + token for token in row) for copy in "ab" for row in FIGURE_1]
    db = Database.from_triples(rows)
    rank = rank_interval(db)
    assert str(rank) == "[10, 10]"
    stolen = claim(db, *rank.certificates.lower.arguments, quantity="effective_rank")
    assert not verify(stolen, db).proved
    assert effective_rank_interval(db).lower <= 9


def test_damaged_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    for text, reason in [
        ("{", "isn't JSON, at line 1, column 2"), ("[]", "holds none"),
        ("[1]", "must be a JSON object"),
        ('[{"format": "other"}]', "must have the format"), ("\xff", "UTF-8"),
    ]:  # fmt: skip
        path.write_text(text, encoding="latin-1")
        with pytest.raises(CertificateError, match=rf"c\.json must hold certificates.*{reason}"):
            load_certificates(path)
    save_certificates(certificates_of(figure_1()), path)
    assert len(load_certificates(path)) == 4


def test_a_small_component_is_checked_in_a_large_database() -> None:
    rows = [tuple(f"{copy}.{t}" for t in row) for copy in range(300) for row in
            [("0", "0", "1"), ("0", "1", "0"), ("1", "0", "0")]]  # fmt: skip
    # 300 copies of W: dense, 600 x 600 x 600 entries; each copy has eight
    db = Database.from_triples([(f"k{k}", f"q{q}", f"v{v}") for k, q, v in rows])
    interval = rank_interval(db)
    assert str(interval) == "[900, 900]"
    assert verify(interval.certificates.lower, db).proved


def test_coefficients_are_fractions_without_exponents() -> None:
    db = database([(k, q, 0) for k in range(2) for q in range(2)])
    data = rank_interval(db).certificates.upper.to_dict()
    data["arguments"] = [{"kind": "decomposition", "terms": [[[[0], ["1e300000000"]]] * 3]}]
    with pytest.raises(CertificateError, match="fraction"):
        Certificate.from_dict(data)


def test_a_flattening_of_nothing_proves_nothing() -> None:
    db = KNOWN_RANKS["matrices 2 x 2 x 2"][0]()
    data = rank_interval(db).certificates.lower.to_dict()
    for name in ("subjects", "predicates"):
        changed = copy.deepcopy(data)
        changed["arguments"][0][name] = []
        assert not verify(Certificate.from_dict(changed), db).proved


# ---- what reviewers broke -----------------------------------------------------------------------


def test_bases_of_large_numbers_do_not_wrap_around_into_a_proof() -> None:
    # 17 facts on a diagonal: rank 17. One factor of the determinant vanished twice modulo 2^64.
    db = database([(i, i, i) for i in range(17)])
    a, b = [0, *(-k for k in [*range(1, 16), 17])], [2**20] + [1] * 16
    scaled = 2**20 * np.eye(17, dtype=np.int64)
    view = View(whole(db).indices, (np.array([a, b]), scaled, scaled))
    singular = Diagonalization(view, 0, np.zeros(0, np.int64), 18)
    assert not verify(through_json(claim(db, singular)), db).proved
    three = database([(i, i, i) for i in range(3)])
    rng = np.random.default_rng(0)
    bases = tuple(rng.integers(-(2**18), 2**18, (3, 3)) for _ in range(3))
    large = rng.integers(-(2**18), 2**18, 3)
    for view in (View(whole(three).indices, bases), whole(three)):  # type: ignore[arg-type]
        argument = Diagonalization(view, 0, large, 4)
        assert not verify(through_json(claim(three, argument)), three).proved


def test_a_negative_index_is_no_other_name_for_a_column() -> None:
    # rank 1; the second minor would be about the column of the first
    db = database([(k, q, 0) for k in range(2) for q in range(2)])
    none = np.zeros(0, np.int64)
    first = Unfolding(0, np.array([0]), np.array([[0, 0]]), none, none, 2)
    second = Unfolding(0, np.array([1]), np.array([[1, -1]]), none, none, 2)
    verdict = verify(claim(db, first, second), db)
    assert verdict.reason == "an index is out of range"
    argument = Substitution(whole(db), np.array([[-1, 0]]))
    assert verify(claim(db, argument), db).reason == "a mode must be from 0 to 2"


def test_an_argument_for_the_other_side_proves_nothing() -> None:
    db = figure_1()
    upper = rank_interval(db).certificates.upper.arguments
    assert verify(claim(db, *upper), db).reason == "an argument can't argue for a lower bound"


def test_huge_numbers_are_refused_in_words() -> None:
    db = database([(0, 0, 0)])
    data = rank_interval(db).certificates.upper.to_dict()
    data["arguments"] = [
        {"kind": "decomposition", "terms": [[[[0], ["1" + "0" * 399]], [[0], ["1" + "0" * 399]],
                                             [[0], ["1"]]]]}
    ]  # fmt: skip
    verdict = verify(Certificate.from_dict(data), db)
    assert verdict.reason == "the terms add up to too large a number at (0, 0, 0)"
    lower = rank_interval(KNOWN_RANKS["matrices 2 x 2 x 2"][0]()).certificates.lower.to_dict()
    lower["arguments"][0]["value"] = 9 * 10**4299
    with pytest.raises(CertificateError, match="64 bits"):
        Certificate.from_dict(lower)


def test_what_takes_too_long_to_check_is_refused() -> None:
    n = 5_000
    db = database([(i, i, i) for i in range(n)])
    many = (tuple(range(n)), (Fraction(1),) * n)
    # 5,000^3 products, of 190 steps each, or slices of 5,000^2 places, of 12 steps each
    with pytest.raises(MemoryBudgetError, match="too costly to check"):
        verify(claim(db, Decomposition(((many, many, many),)), side="upper"), db)
    twice = (((0, 0), (Fraction(1), Fraction(0))), ((0,), (Fraction(1),)), ((0,), (Fraction(1),)))
    verdict = verify(claim(db, Decomposition((twice,)), side="upper"), db)
    assert verdict.reason == "term 0 has an index twice"
    lacks = (((0, 1), (Fraction(1),)), ((0,), (Fraction(1),)), ((0,), (Fraction(1),)))
    verdict = verify(claim(db, Decomposition((lacks,)), side="upper"), db)
    assert verdict.reason == "term 0 must have a coefficient for each index"


@pytest.mark.slow
def test_fractions_take_the_longer_the_more_digits_they_have() -> None:
    db = database([(i, 0, 0) for i in range(300)])
    one = ((0,), (Fraction(1),))
    # 300 products of 10^5 bits each
    long = (tuple(range(300)), tuple(Fraction(n, 2**99_999) for n in range(1, 301)))
    terms = tuple((long, one, one) for _ in range(100))
    with pytest.raises(MemoryBudgetError, match="too costly to check"):
        verify(claim(db, Decomposition(terms), side="upper"), db)
    # short ones, of other primes each: their sum is long, until they cancel
    primes = [n for n in range(2, 3_000) if all(n % d for d in range(2, n))]
    few = (tuple(range(300)), (Fraction(1),) * 300)
    signed = [*primes, *(-p for p in primes)] * 3
    terms = tuple((few, ((0,), (Fraction(1, p),)), one) for p in signed)
    budget = CheckBudget()
    with pytest.raises(MemoryBudgetError, match="too costly to check"):
        verify(claim(db, Decomposition(terms), side="upper"), db, budget=budget)
    # it was found out on the way, and not before
    assert budget.steps < STEPS // 2


@pytest.mark.parametrize("shape", [(3, 40, 90), (2, 90, 40), (1, 60, 150)])
def test_what_slices_that_lack_rank_give_can_be_checked(shape: tuple[int, int, int]) -> None:
    # dense predicate slices of full rank but one, along the wide side of which fractions abound
    rng = np.random.default_rng(0)
    n, k, v = shape
    slices = rng.random(shape) < 0.5
    slices[:, -1] = slices[:, 0]
    rows = [(int(i), int(q), int(j)) for q, i, j in np.argwhere(slices)]
    db = database(rows)
    interval = rank_interval(db)
    assert interval.upper <= n * (min(k, v) - (k <= v))
    assert verify(interval.certificates.upper, db).proved


def test_a_box_of_many_unobserved_fibers_is_checked_by_its_observed_ones() -> None:
    n = 20_000
    db = Database.from_triples([(f"k{i}", f"q{i}", "v") for i in range(n)])
    box = Boxes(np.zeros(n, np.int64))
    certificate = claim(db, box, quantity="effective_rank", side="upper")
    assert verify(certificate, db).proved
    # one answer that differs
    other = Database.from_triples([*[(f"k{i}", f"q{i}", "v") for i in range(5)], ("k0", "q1", "w")])
    mine = np.array([int(str(other.objects[v]) == "w") for v in other.triples[:, 2]])
    certificate = claim(other, Boxes(mine), quantity="effective_rank", side="upper")
    verdict = verify(certificate, other)
    assert str(verdict.reason).startswith("box 0 has places without its entry at")
    assert not second_checker(certificate, other)
