"""Certificates that Hypothesis makes: the valid ones are proved, and nothing false ever is."""

import itertools
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import CapacityError
from capacity.rank import Certificate, Koszul, Substitution, Unfolding
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.kinds import KINDS as REGISTERED
from capacity.testing import (
    KnownDatabase,
    KnownEffectiveRank,
    certificates,
    databases,
    databases_of_known_effective_rank,
    databases_of_known_rank,
    hard_databases,
    mutations,
)
from capacity.testing.arguments.combined import KINDS, drawn_certificate
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from capacity.testing.known_databases import known_effective_rank, known_rank
from tests.oracles import database
from tests.second_checker import second_checker
from tests.tiers import examples

# where one is asked for, the simplest isn't
UNSHRUNK = settings(phases=[Phase.generate], max_examples=examples(1000))
QUANTITIES: Any = ("rank", "effective_rank")
# Z/3 of which all pairs are observed, W of which one isn't, and a single fact: every kind is here,
# for the effective rank too, which isn't the rank
ALL_KINDS = [
    *((k, q, (k + q) % 3) for k in range(3) for q in range(3)),
    *((3 + k, 3 + q, 3 + k + q) for k, q in ((0, 0), (0, 1), (1, 0))),
    (5, 5, 5),
]


def through_json(data: Any) -> Certificate:
    return Certificate.from_dict(json.loads(json.dumps(data)))


def within(certificate: Certificate, known: KnownDatabase | KnownEffectiveRank) -> bool:
    """Whether the bound agrees with what is known."""
    rank = known.rank if certificate.quantity == "rank" else known.effective_rank
    if rank is None:
        # the effective rank is the rank at most
        return not (
            known.rank is not None
            and certificate.side == "lower"
            and certificate.value > known.rank
        )
    return certificate.value <= rank if certificate.side == "lower" else certificate.value >= rank


@given(st.data(), st.one_of(databases(), hard_databases()))
@settings(max_examples=examples(500))
def test_what_is_drawn_is_proved_by_both_checkers_in_memory_and_after_json(
    data: st.DataObject, db: Database
) -> None:
    certificate = data.draw(certificates(db))
    again = through_json(certificate.to_dict())
    assert again.to_dict() == certificate.to_dict()
    for one in (certificate, again):
        assert verify(one, db).reason is None
    assert second_checker(again, db)


@pytest.mark.slow
def test_both_checkers_agree_on_fields_and_border_ranks() -> None:
    outcomes: Counter[tuple[str, bool, bool]] = Counter()
    for seed in range(120):
        db = database(ALL_KINDS)
        of = db if seed % 3 else db.tensor()
        certificate = drawn_certificate(Choices.seeded(seed), of)
        for field, border in itertools.product(("Q", "R", "C"), (False, True)):
            claimed = replace(certificate, field=field, border=border)
            proved = verify(claimed, of).proved
            assert second_checker(claimed, of) == proved
            outcomes[field, border, proved] += 1
    # each is proved at times, and not always, but for the real numbers without a border
    assert not outcomes["R", False, False]
    assert len(outcomes) == 11


@given(st.data(), st.one_of(databases_of_known_rank(), databases_of_known_effective_rank()))
@settings(max_examples=examples(300))
def test_no_drawn_certificate_contradicts_a_theorem(
    data: st.DataObject, known: KnownDatabase | KnownEffectiveRank
) -> None:
    certificate = data.draw(certificates(known.database))
    assert verify(certificate, known.database).reason is None
    assert second_checker(certificate, known.database)
    assert within(certificate, known)


@given(st.data(), st.one_of(databases(), hard_databases()))
@settings(max_examples=examples(500))
def test_a_mutation_that_is_proved_is_proved_by_the_second_checker_too(
    data: st.DataObject, db: Database
) -> None:
    certificate = data.draw(certificates(db))
    others = [data.draw(certificates(db, side=certificate.side))]
    edited = data.draw(mutations(certificate, others=others))
    try:
        damaged = through_json(edited)
        proved = verify(damaged, db).proved
    except CapacityError:
        return
    assert not proved or second_checker(damaged, db)


@pytest.mark.slow
def test_no_mutation_of_a_certificate_contradicts_a_theorem() -> None:
    # by seeds, which is quicker than by Hypothesis; `make soak` does thousands
    outcomes: Counter[str] = Counter()
    for seed in range(600):
        choose = Choices.seeded(seed)
        known = known_rank(choose) if seed % 2 else known_effective_rank(choose)
        db = known.database
        others = [drawn_certificate(choose, db) for _ in range(2)]
        edited = mutated(choose, others[0], others=others)
        try:
            damaged = through_json(edited)
            proved = verify(damaged, db).proved
        except CapacityError:
            outcomes["unread"] += 1
            continue
        outcomes["proved" if proved else "refuted"] += 1
        if proved:
            assert within(damaged, known)
            assert second_checker(damaged, db)
        elif not within(damaged, known):
            outcomes["false"] += 1
    assert min(outcomes[what] for what in ("unread", "proved", "refuted", "false")) > 20, outcomes


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize(
    ("side", "kind"), [(side, kind) for side, kinds in KINDS.items() for kind in kinds]
)
def test_each_kind_is_drawn_for_both_quantities(quantity: Any, side: Any, kind: str) -> None:
    db = database(ALL_KINDS)
    asked = certificates(db, quantity=quantity, side=side, kind=kind)
    certificate = find(asked, lambda one: one.value > 0, settings=UNSHRUNK)
    assert (certificate.quantity, certificate.side) == (quantity, side)
    assert kind in {argument.kind for argument in certificate.arguments}
    assert verify(certificate, db).reason is None
    assert second_checker(certificate, db)


def test_kinds_are_all_there_are() -> None:
    # a kind that is added must be drawn as well
    assert {kind for kinds in KINDS.values() for kind in kinds} == set(REGISTERED)


def kinds(certificate: Certificate) -> list[str]:
    return [argument.kind for argument in certificate.arguments]


@pytest.mark.slow
def test_combinations_views_and_primes_are_reached() -> None:
    db = database(ALL_KINDS)
    pool = [drawn_certificate(Choices.seeded(seed), db) for seed in range(1500)]
    lower = [kinds(one) for one in pool if (one.quantity, one.side) == ("rank", "lower")]
    upper = [set(kinds(one)) for one in pool if (one.quantity, one.side) == ("rank", "upper")]
    strong = {"koszul", "pencil", "diagonalization"}
    # a strong argument with others: first, last, and between them
    assert any(len(some) > 1 and some[0] in strong for some in lower)
    assert any(len(some) > 1 and some[-1] in strong for some in lower)
    assert any(len(some) > 2 and some[1] in strong for some in lower)
    assert any({"boxes", "decomposition", "pencil"} <= some for some in upper)
    assert any({"diagonalization", "enclosure"} <= some for some in upper)
    # the effective rank has one argument or a pair
    effective = {tuple(kinds(one)) for one in pool
                 if (one.quantity, one.side) == ("effective_rank", "lower")}  # fmt: skip
    assert {("unfolding", kind) for kind in ("unfolding", "substitution", "koszul")} <= effective
    arguments = [argument for one in pool for argument in one.arguments]
    for kind in (Substitution, Koszul):
        assert any(P is not None for a in arguments if isinstance(a, kind) for P in a.view.bases)
    for kind in (Unfolding, Koszul):
        primes = {argument.prime for argument in arguments if isinstance(argument, kind)}
        assert primes == {2, 3, 2**31 - 1, 2**62 - 57}
    minors = [argument for argument in arguments if isinstance(argument, Unfolding)]
    assert any(len(a.blocks) > 1 for a in minors)
    assert any((a.eliminated > 0).any() for a in minors)
    assert any(0 < a.blocks.sum() < len(a.rows) for a in minors)
    # Z/3 has rank 4 and W 3: additive, by Jaja and Takche
    values = [one.value for one in pool if (one.quantity, one.side) == ("rank", "lower")]
    assert 7 <= max(values) <= 8
