"""Decompositions over a number field: what they prove, what is refused, and what a check costs."""

import copy
import json
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from capacity.database import Database
from capacity.errors import CertificateError, MemoryBudgetError
from capacity.rank import AlgebraicDecomposition, Boxes, Certificate, Decomposition, rank_interval
from capacity.rank.verifier.budget import STEPS, CheckBudget
from capacity.rank.verifier.checker import verify
from capacity.rank.verifier.entries import Entries
from capacity.rank.verifier.kinds.algebraic import (
    cost_of_algebraic_terms,
    entries_of_algebraic_terms,
)
from tests.clock import slowness
from tests.oracles import database
from tests.second_checker import claim, second_checker

ZERO, ONE, ROOT = (), (Fraction(1),), (Fraction(0), Fraction(1))
# the powers of x modulo x^2 + x + 1, which are a primitive third root of unity and its square
OMEGA = (ONE, ROOT, (Fraction(-1), Fraction(-1)))


def vector(*values: Any) -> Any:
    return tuple(range(len(values))), values


def rational(*numbers: Any) -> Any:
    return tuple(Fraction(x) for x in numbers)


def cyclic(n: int) -> Database:
    return database([(i, j, (i + j) % n) for i in range(n) for j in range(n)])


def golden() -> tuple[Database, AlgebraicDecomposition]:
    """A square of four facts by the golden ratio g, for which g (g - 1) = 1."""
    db = database([(k, q, 0) for k in range(2) for q in range(2)])
    g, less = ROOT, rational(-1, 1)
    terms = ((vector(g, g), vector(less, less), vector(ONE)),)
    return db, AlgebraicDecomposition((-1, -1, 1), Fraction(1), Fraction(2), terms)


def third_roots(lo: int, hi: int) -> AlgebraicDecomposition:
    """Z/3 as three terms, by the discrete Fourier transform: right modulo x^2 + x + 1."""
    terms = tuple(
        (
            vector(*(OMEGA[k * i % 3] for i in range(3))),
            vector(*(OMEGA[k * i % 3] for i in range(3))),
            vector(*(tuple(x / 3 for x in OMEGA[-k * i % 3]) for i in range(3))),
        )
        for k in range(3)
    )
    return AlgebraicDecomposition((1, 1, 1), Fraction(lo), Fraction(hi), terms)


def through_json(certificate: Certificate) -> Certificate:
    return Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))


def test_a_sum_in_a_real_field_is_proved_in_memory_and_after_json() -> None:
    db, found = golden()
    said = claim(db, found, side="upper")
    again = through_json(said)
    assert again.to_dict() == said.to_dict()
    for one in (said, again):
        assert one.value == 1
        assert verify(one, db).proved
        assert second_checker(one, db)


def test_a_field_without_a_real_root_proves_nothing() -> None:
    # Z/3 has rank 3 over the complex numbers and 4 over the reals: the identity holds modulo f, so
    # that all depends on the root
    db = cyclic(3)
    assert rank_interval(db).lower == 4
    for lo, hi in ((-1, 1), (-9, 9), (0, 5)):
        said = claim(db, third_roots(lo, hi), side="upper")
        assert verify(said, db).reason == "f must have different signs at lo and hi"
        assert not second_checker(said, db)
    # with a factor of odd degree there is a root, at which the terms add up to something else
    product = replace(third_roots(0, 2), f=(-1, 0, 0, 1))
    reason = verify(claim(db, product, side="upper"), db).reason
    assert reason is not None
    assert reason.startswith("the terms don't add up to an integer at")


def test_a_polynomial_may_be_reducible_and_have_several_roots() -> None:
    db, found = golden()
    # (x^2 - x - 1)^2 (x - 7) changes its sign at 7 alone, where g isn't the golden ratio
    f = np.convolve(np.convolve([-1, -1, 1], [-1, -1, 1]), [-7, 1]).tolist()
    other = replace(found, f=tuple(f), hi=Fraction(8))
    assert not verify(claim(db, other, side="upper"), db).proved
    # modulo x^2 - 3 x + 2 the identity 3 x - x^2 - 1 = 1 holds, at both roots
    one = (rational(0, 1), rational(Fraction(3, 2), Fraction(-1, 2)))
    terms = ((vector(one[0], one[0]), vector(one[1], one[1]), vector(ONE)),)
    for lo, hi in ((0, Fraction(3, 2)), (Fraction(3, 2), 3)):
        both = AlgebraicDecomposition((2, -3, 1), Fraction(lo), Fraction(hi), terms)
        said = claim(db, both, side="upper")
        assert verify(said, db).proved
        assert second_checker(said, db)
    # between 0 and 3 are both of them, and the signs are equal
    wide = replace(both, lo=Fraction(0), hi=Fraction(3))
    assert not verify(claim(db, wide, side="upper"), db).proved


def test_each_argument_may_have_a_field_of_its_own() -> None:
    rows = [(k, q, 0) for k in range(2) for q in range(2)]
    moved = [(k + 2, q + 2, v + 1) for k, q, v in rows]
    db = database([*rows, *moved, (9, 9, 9), (8, 8, 8)])
    _, found = golden()
    # sqrt(2) sqrt(2) / 2 = 1
    two = (2, 3), (ROOT, ROOT)
    other = AlgebraicDecomposition(
        (-2, 0, 1), Fraction(1), Fraction(2), ((two, two, ((1,), (rational(Fraction(1, 2)),))),)
    )
    box = np.where(db.triples[:, 0] == 4, 0, -1)
    last: Any = tuple(((n - 1,), (Fraction(1),)) for n in db.shape)
    arguments = found, other, Boxes(box), Decomposition((last,))
    said = claim(db, *arguments, side="upper")
    assert said.value == 4
    assert verify(through_json(said), db).proved
    assert second_checker(said, db)
    for n in range(4):
        less = claim(db, *(a for i, a in enumerate(arguments) if i != n), side="upper")
        assert not verify(less, db).proved


def test_for_the_effective_rank_unobserved_fibers_are_free() -> None:
    # W: sum_i (1, s_i) x (1, s_i) x (p_i, q_i) has sum p = 1, sum p s = 0, sum q = 0, sum q s = 1
    # for s = sqrt(2), -sqrt(2), and for s = sqrt(2), 1; at the pair that isn't observed it is
    # (2, 0), and (-sqrt(2), 1 + sqrt(2))
    db = database([(0, 0, 0), (0, 1, 1), (1, 0, 1)])
    half, quarter = Fraction(1, 2), Fraction(1, 4)
    for s, p, q in (
        (
            (ROOT, rational(0, -1)),
            ((half,), (half,)),
            (rational(0, quarter), rational(0, -quarter)),
        ),
        ((ROOT, ONE), (rational(-1, -1), rational(2, 1)), (rational(1, 1), rational(-1, -1))),
    ):
        terms = tuple((vector(ONE, s[i]), vector(ONE, s[i]), vector(p[i], q[i])) for i in range(2))
        found = AlgebraicDecomposition((-2, 0, 1), Fraction(1), Fraction(2), terms)
        effective = claim(db, found, side="upper", quantity="effective_rank")
        assert verify(effective, db).proved
        assert second_checker(effective, db)
        of_rank = claim(db, found, side="upper")
        assert not verify(of_rank, db).proved
        assert not second_checker(of_rank, db)


def edited(data: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The argument with each of its fields changed in turn."""
    changes: list[tuple[str, Any]] = [
        ("f", ["-1", "-1", "2"]), ("f", ["-1", "1", "1"]), ("f", ["1"]), ("f", []),
        ("f", ["-1", "-1", "1", "0"]), ("f", ["0", "-1", "-1", "1"]), ("lo", "2"), ("lo", "5/3"),
        ("lo", "-3"), ("hi", "1"), ("hi", "3/2"), ("hi", "-1/2"), ("terms", []),
        ("terms", [data["terms"][0], data["terms"][0]]),
    ]  # fmt: skip
    found = [(name, {**data, name: value}) for name, value in changes]
    for mode in range(3):
        for part, values in ((0, ([], [7], [0, 0])), (1, ([], [["2"]], [["1"], ["1"]]))):
            for value in values:
                other = copy.deepcopy(data)
                other["terms"][0][mode][part] = value
                found.append((f"terms {mode} {part}", other))
        for value in ([], ["1", "1"], ["0", "1", "1"], ["1", "0", "0"]):
            other = copy.deepcopy(data)
            other["terms"][0][mode][1][0] = value
            found.append((f"terms {mode} coefficient", other))
        other = copy.deepcopy(data)
        del other["terms"][0][mode]
        found.append((f"terms without {mode}", other))
    return found


def test_each_changed_field_is_refused_or_still_true() -> None:
    db, found = golden()
    data = claim(db, found, side="upper").to_dict()
    proved = 0
    for name, argument in edited(data["arguments"][0]):
        try:
            certificate = Certificate.from_dict(
                {**data, "arguments": [argument], "value": len(argument["terms"])}
            )
        except CertificateError:
            continue
        verdict = verify(certificate, db)
        if verdict.proved:
            proved += 1
            assert second_checker(certificate, db), name
    # no other root lies between -3 and 2 where the signs differ; 0 as f's last coefficient and
    # 3/2 < g are refused, and all changes of terms but those that agree modulo f
    assert proved <= 2


@pytest.mark.parametrize(
    "text", ["1e9", "0x1", " 1", "1.0", "9" * 401, "1/0", "", "\u0661", 1, None]
)
def test_numbers_are_fractions_in_plain_digits(text: Any) -> None:
    db, found = golden()
    good = claim(db, found, side="upper").to_dict()
    for name in ("f", "lo", "hi", "terms"):
        data = copy.deepcopy(good)
        argument = data["arguments"][0]
        if name == "f":
            argument["f"][0] = text
        elif name == "terms":
            argument["terms"][0][0][1][0][0] = text
        else:
            argument[name] = text
        with pytest.raises(CertificateError, match="must be a fraction"):
            Certificate.from_dict(data)
    good["arguments"][0]["f"][0] = "1/2"
    with pytest.raises(CertificateError, match="integer coefficients"):
        Certificate.from_dict(good)


def test_fields_in_memory_have_their_types() -> None:
    db, found = golden()
    wrongs: list[dict[str, Any]] = [
        {"f": (-1.0, -1, 1)}, {"f": (-1, True, 1)}, {"f": [-1, -1, 1]}, {"f": 5}, {"lo": 1},
        {"hi": 2.0}, {"hi": None}, {"terms": None}, {"terms": ((),)}, {"terms": ((1, 2, 3),)},
        {"terms": ((vector(1, 1), vector(ONE, ONE), vector(ONE)),)},
        {"terms": ((vector((1.0,), ONE), vector(ONE, ONE), vector(ONE)),)},
        {"terms": ((vector(*([Fraction(1)], ONE)), vector(ONE, ONE), vector(ONE)),)},
    ]  # fmt: skip
    for wrong in wrongs:
        said = Certificate(
            "rank", "upper", 1, "", (replace(found, **wrong),), db.facts_sha256, db.multi
        )
        assert not verify(said, db).proved, wrong


def test_the_sums_are_told_as_integers() -> None:
    # twice the golden square: no database's tensor, but the sums are there to be added to others
    db, found = golden()
    entries = Entries(db.tensor(), effective=False, budget=CheckBudget())
    rows, values = entries_of_algebraic_terms(replace(found, terms=found.terms * 2), entries)
    assert (rows.tolist(), values.tolist()) == ([0, 1, 2, 3], [2, 2, 2, 2])


# ---- cost ---------------------------------------------------------------------------------------


def large(n: int, degree: int, digits: int, *, fractions: bool, terms: int = 1) -> Any:
    """Terms of n x n x n entries with long coefficients, and the same with the other sign.

    So all entries are 0, and none of them ends a check early.
    """
    rng = np.random.default_rng(0)

    def number() -> Fraction:
        above, below = (int("".join(map(str, rng.integers(1, 10, digits)))) for _ in range(2))
        return Fraction(above, below if fractions else 1)

    def element() -> tuple[Fraction, ...]:
        return tuple(number() for _ in range(degree))

    made = tuple(
        tuple(vector(*(element() for _ in range(n))) for _ in range(3)) for _ in range(terms)
    )
    made += tuple((a, b, (i, tuple(tuple(-y for y in x) for x in c))) for a, b, (i, c) in made)
    f = (-2, *(number().numerator for _ in range(degree - 1)), 1)
    return AlgebraicDecomposition(f, Fraction(0), Fraction(10**digits), made)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "degree", "digits", "fractions", "terms"),
    [
        (20, 2, 1, False, 2),
        (20, 2, 1, True, 1),
        (8, 3, 100, True, 1),
        (4, 8, 400, True, 1),
        (4, 8, 400, False, 2),
        (2, 30, 400, True, 1),
        (2, 200, 30, False, 1),
        (1, 1_000, 3, False, 1),
        (1, 60, 400, True, 1),
        (2, 6, 400, True, 6),
        (1, 2, 400, True, 60),
    ],
)
def test_a_check_takes_no_longer_than_it_is_charged(
    n: int, degree: int, digits: int, fractions: bool, terms: int
) -> None:
    db = database([(i, i, i) for i in range(n)])
    said = claim(db, large(n, degree, digits, fractions=fractions, terms=terms), side="upper")
    budget = CheckBudget(10**14, 10**12)
    slow = slowness()
    start = time.process_time()
    reason = verify(said, db, budget=budget).reason
    assert reason == "the arguments add up to 0 at (0, 0, 0), which holds 1"
    taken = 1e9 * (time.process_time() - start)
    assert taken < max(slow, slowness()) * (10**14 - budget.steps + 10**7)


@pytest.mark.slow
def test_coefficients_of_many_digits_are_paid_for() -> None:
    db = database([(i, i, i) for i in range(12)])
    costly = large(12, 20, 400, fractions=True, terms=2)
    with pytest.raises(MemoryBudgetError, match="too costly to check"):
        verify(claim(db, costly, side="upper"), db)
    assert cost_of_algebraic_terms(costly) > STEPS


def test_a_root_of_a_huge_polynomial_is_paid_for() -> None:
    db, found = golden()
    for f, at in (((-1, *[1] * 200_000), Fraction(1, 3)), ((-1, -1, 1), Fraction(1, 2**10**7))):
        with pytest.raises(MemoryBudgetError, match="too costly to check"):
            verify(claim(db, replace(found, f=f, lo=at), side="upper"), db)
