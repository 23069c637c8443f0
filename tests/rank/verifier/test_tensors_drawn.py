"""Certificates of integer tensors of any order, against the second checker.

Entries are negative and up to 2^31 - 1, and few of them differ, so that boxes have several entries
and slices are often combinations of others.
"""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import CapacityError, CertificateError, InvalidArgumentError
from capacity.rank import (
    Boxes,
    Certificate,
    Diagonalization,
    Koszul,
    MaximalRank,
    Pencil,
    Substitution,
    Unfolding,
    View,
    effective_rank_interval,
    rank_interval,
)
from capacity.rank.verifier.checker import verify
from capacity.tensor import (
    SparseTensor,
    from_dense,
    ghz_state,
    kronecker,
    named_tensor,
    w_state,
)
from capacity.testing import databases
from capacity.testing.arguments.combined import KINDS, drawn_certificate
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from tests.oracles import database
from tests.second_checker import claim, second_checker
from tests.tiers import examples

LARGEST = 2**31 - 1
VALUES = (1, -1, 2, -7, 2**30 + 1, LARGEST, -LARGEST)
# largest side by order: tensors that the second checker goes through entry by entry
SIDES = {2: 4, 3: 3, 4: 3, 5: 2}
NONE = np.zeros(0, np.int64)
QUANTITIES: Any = ("rank", "effective_rank")


def a_tensor(choose: Choices, order: int | None = None) -> SparseTensor:
    """A tensor of few values: sparse, a sum of few simple tensors, or both in one."""
    order = choose.integer(2, 5) if order is None else order
    shape = [choose.integer(1, SIDES[order]) for _ in range(order)]
    dense = np.zeros(shape, np.int64)
    palette = [choose.one(VALUES) for _ in range(choose.integer(1, 2))]
    if choose.chance(1, 2):
        for _ in range(choose.integer(1, 3)):
            total = np.array(choose.one(palette))
            for n in shape:
                total = np.multiply.outer(total, [choose.integer(-1, 1) for _ in range(n)])
            # a sum of entries must stay below 2^31
            if np.abs(dense + total).max() <= LARGEST:
                dense += total
    for _ in range(choose.integer(0, 2 * max(shape))):
        place = tuple(choose.integer(0, n - 1) for n in shape)
        dense[place] = choose.one(palette) * choose.integer(0, 1)
    return from_dense(dense)


@st.composite
def tensors(draw: st.DrawFn) -> SparseTensor:
    return a_tensor(Choices.drawn(draw))


def through_json(data: Any) -> Certificate:
    return Certificate.from_dict(json.loads(json.dumps(data)))


@given(st.integers(0, 2**30))
@settings(max_examples=examples(500))
def test_what_is_drawn_is_proved_by_both_checkers_in_memory_and_after_json(seed: int) -> None:
    choose = Choices.seeded(seed)
    tensor = a_tensor(choose)
    certificate = drawn_certificate(choose, tensor)
    again = through_json(certificate.to_dict())
    assert again.to_dict() == certificate.to_dict()
    for one in (certificate, again):
        assert verify(one, tensor).reason is None
    assert second_checker(again, tensor)


@given(tensors())
@settings(max_examples=examples(100))
def test_what_is_found_is_proved_by_both_checkers(tensor: SparseTensor) -> None:
    for interval in (rank_interval(tensor), effective_rank_interval(tensor)):
        assert interval.lower <= interval.upper
        for end in interval.certificates:
            again = through_json(end.to_dict())
            assert verify(again, tensor).reason is None
            assert second_checker(again, tensor)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 7))]
)
def test_mutations_are_proved_only_if_the_second_checker_proves_them(part: int) -> None:
    counts: Counter[Any] = Counter()
    for seed in range(900 * part, 900 * (part + 1)):
        choose = Choices.seeded(seed)
        tensor = a_tensor(choose)
        others = [drawn_certificate(choose, tensor) for _ in range(2)]
        edited = mutated(choose, others[0], others=others)
        try:
            damaged = through_json(edited)
            proved = verify(damaged, tensor).proved
        except CapacityError:
            counts["unread"] += 1
            continue
        counts["proved" if proved else "refuted", tensor.order] += 1
        if proved:
            assert second_checker(damaged, tensor), edited
            counts.update((a.kind, damaged.quantity, damaged.side) for a in damaged.arguments)
    ways = [("proved", n) for n in SIDES] + [("refuted", n) for n in SIDES] + ["unread"]
    assert min(counts[way] for way in ways) > 10, counts


@pytest.mark.slow
def test_arguments_of_one_tensor_prove_nothing_false_of_another() -> None:
    proved = 0
    for seed in range(400):
        choose = Choices.seeded(seed)
        tensor = a_tensor(choose)
        other = tensor.to_numpy()
        for _ in range(choose.integer(1, 3)):
            other[tuple(choose.integer(0, n - 1) for n in other.shape)] = choose.one(VALUES)
        moved = from_dense(other)
        certificate = replace(drawn_certificate(choose, tensor), facts_sha256=moved.sha256)
        if verify(certificate, moved).proved:
            proved += 1
            assert second_checker(certificate, moved)
    # some prove it still: lower bounds of what didn't change
    assert 20 < proved < 350


# a tensor that every kind of order three is about: W of large entries beside a diagonal
ALL_KINDS = from_dense(
    np.array(
        [
            [[0, LARGEST, 0], [LARGEST, 0, 0], [0, 0, 0]],
            [[LARGEST, 0, 0], [0, 0, 0], [0, 0, 0]],
            [[0, 0, 0], [0, 0, 0], [0, 0, -LARGEST]],
        ]
    )
)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize(
    ("side", "kind"), [(side, kind) for side, kinds in KINDS.items() for kind in kinds]
)
def test_each_kind_is_drawn_of_large_entries(quantity: Any, side: Any, kind: str) -> None:
    if (quantity, side) == ("effective_rank", "lower"):
        # all fibers are observed, so that every kind applies
        tensor = from_dense(np.array([[[LARGEST, 0], [0, LARGEST]], [[0, -LARGEST], [LARGEST, 0]]]))
    else:
        tensor = ALL_KINDS
    if kind == "enclosure":
        # a fit of floating-point numbers has a box around it for entries of any size
        tensor = from_dense(np.array([[[3, 1], [1, 0]], [[1, 0], [0, -3]]]))
    if kind == "rank-one locus":
        # the product of x + y e with e^2 = 0, in other bases
        tensor = from_dense(np.array([[[1, 0], [0, 1]], [[1, 1], [0, 1]]]) * LARGEST)
    if kind == "rank-one completion":
        # it is about facts: those of the cyclic group of three elements
        tensor = from_dense(np.eye(3, dtype=int)[(np.arange(3)[:, None] + np.arange(3)) % 3])
    if kind == "published":
        # a theorem is about the named tensor itself
        tensor = w_state(3) if tensor is ALL_KINDS else named_tensor("groups:3")
    if kind == "diagonalization" and side == "upper":
        tensor = from_dense(ghz_state(3, 2).to_numpy() * LARGEST)
    certificate = drawn_certificate(
        Choices.seeded(0), tensor, quantity=quantity, side=side, kind=kind
    )
    assert kind in {argument.kind for argument in certificate.arguments}
    assert verify(certificate, tensor).reason is None
    assert second_checker(certificate, tensor)


@pytest.mark.parametrize("order", [4, 5])
@pytest.mark.parametrize(
    "kind", ["koszul", "pencil", "diagonalization", "unfolding", "algebra", "rank-one locus"]
)
def test_kinds_of_order_three_are_drawn_of_modes_taken_together(order: int, kind: str) -> None:
    tensor = w_state(order) * LARGEST
    seen: set[int] = set()
    for seed in range(20):
        certificate = drawn_certificate(
            Choices.seeded(seed), tensor, quantity="rank", side="lower", kind=kind
        )
        seen.add(len(certificate.groups))
        assert verify(through_json(certificate.to_dict()), tensor).reason is None
        assert second_checker(certificate, tensor)
    assert 3 in seen
    assert (0 in seen) == (kind == "unfolding")


# ---- wrong shapes, in words ----------------------------------------------------------------------


def refused(certificate: Certificate, tensor: Any) -> None:
    """A verdict with a reason, or an error that says what is wrong; the same after JSON."""
    for make in (lambda: certificate, lambda: through_json(certificate.to_dict())):
        reasons: list[str | None] = []
        try:
            verdict = verify(make(), tensor)
            assert not verdict.proved
            reasons.append(verdict.reason)
        except CapacityError as error:
            reasons.append(str(error))
        assert all(reasons)


def view(order: int, n: int = 2) -> View:
    return View(tuple(np.arange(n) for _ in range(order)))


@pytest.mark.parametrize("order", [2, 3, 4, 5])
@pytest.mark.parametrize("other", [2, 3, 4, 5])
def test_arguments_with_another_number_of_modes_are_refused(order: int, other: int) -> None:
    tensor = ghz_state(order, 2) * LARGEST
    one = np.array([[0, 0]])
    arguments = [
        (Koszul(view(other), 0, 0, 2**31 - 1, 2), "lower"),
        (Diagonalization(view(other), 0, np.array([1, 1]), 3), "lower"),
        (Diagonalization(view(other), 0, np.array([1, 1]), 2), "upper"),
        (MaximalRank(view(other), 3), "upper"),
    ]
    if other != order:
        arguments += [
            (Substitution(view(other), one), "lower"),
            (Unfolding(0, np.array([0]), np.zeros((1, other - 1), np.int64), NONE, NONE, 2),
             "lower"),
        ]  # fmt: skip
    for argument, side in arguments:
        if (order, other) == (3, 3):
            continue
        refused(claim(tensor, argument, side=side), tensor)
    for seed in range(10):
        drawn = drawn_certificate(Choices.seeded(seed), ghz_state(other, 2))
        # boxes are named by entries, of which both tensors have two
        modeless = any(isinstance(a, Boxes) for a in drawn.arguments)
        if order != other and not (modeless or drawn.groups):
            refused(replace(drawn, facts_sha256=tensor.sha256), tensor)


@pytest.mark.parametrize("indices", [(), (np.arange(1),)])
def test_views_of_no_modes_or_of_one_are_refused(indices: Any) -> None:
    tensor = ghz_state(3, 2)
    odd = View(indices, (None,) * len(indices))
    for argument, side in [
        (Koszul(odd, 0, 0, 2, 1), "lower"), (Substitution(odd, np.array([[0, 0]])), "lower"),
        (Diagonalization(odd, 0, NONE, 1), "lower"), (Diagonalization(odd, 0, NONE, 1), "upper"),
        (MaximalRank(odd, 1), "upper"),
    ]:  # fmt: skip
        certificate = Certificate("rank", side, 1, "", (argument,), tensor.sha256)  # type: ignore[arg-type]
        assert not verify(certificate, tensor).proved
        if len(indices):
            with pytest.raises(CertificateError, match="two modes or more"):
                through_json(certificate.to_dict())


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_two_slices_without_entries_are_refused_as_a_pencil(side: Any) -> None:
    # a database has an entry in each slice, a tensor needn't
    tensor = SparseTensor([[0, 0, 0]], [LARGEST], (3, 1, 1))
    empty = claim(tensor, Pencil(0, np.array([1, 2]), 0), side=side)
    assert verify(empty, tensor).proved == (side == "lower")
    assert verify(replace(empty, value=1), tensor).reason == "the arguments prove 0"
    rest = Boxes(np.array([0]))
    both = claim(tensor, Pencil(0, np.array([1, 2]), 0), rest, side="upper")
    assert "zero, or multiples of each other" in str(verify(both, tensor).reason)


def test_the_zero_tensor_has_rank_zero() -> None:
    tensor = SparseTensor(np.zeros((0, 3), np.int64), [], (2, 2, 2))
    for seed in range(20):
        certificate = drawn_certificate(Choices.seeded(seed), tensor)
        assert certificate.value == 0
        assert verify(certificate, tensor).proved
        assert second_checker(certificate, tensor)
    wrong = [
        (Unfolding(0, np.array([0]), np.array([[0, 0]]), NONE, NONE, 2), "lower"),
        (Substitution(view(3), np.array([[0, 0]])), "lower"),
        (Koszul(view(3), 0, 0, 2, 1), "lower"), (Pencil(0, np.array([0, 1]), 1), "lower"),
        (Diagonalization(view(3), 0, NONE, 3), "lower"), (MaximalRank(view(3), 3), "upper"),
    ]  # fmt: skip
    for argument, side in wrong:
        verdict = verify(claim(tensor, argument, side=side), tensor)
        assert not verdict.proved


GROUPS: Any = [
    ((0, 1),), ((0, 1), (2,)), ((0, 1), (1, 2), (3,)), ((1, 0), (2,), (3,)), ((), (0, 1), (2, 3)),
    ((0, 1, 2, 3),), ((-1, 0), (1,), (2,)), ((0, 1), (2, 4)), ((0,), (1,), (2,), (3,), ()),
    ((0, 1), (2,), 3), ((0, 1), (2,), ("3",)), ((False, True), (2,), (3,)), ((0, 1), (2,), (3.0,)),
    (None,), (((0,), 1), (2,), (3,)), ((0, 10**30), (1,), (2, 3)),
]  # fmt: skip


@pytest.mark.parametrize("groups", GROUPS)
def test_groups_that_are_none_are_refused(groups: Any) -> None:
    tensor = w_state(4)
    minor = Unfolding(0, np.array([0]), np.array([[0, 0]]), NONE, NONE, 2)
    certificate = claim(tensor, minor, groups=groups)
    data = claim(tensor, minor).to_dict() | {"groups": json.loads(json.dumps(groups))}
    for make in (lambda: certificate, lambda: through_json(data)):
        try:
            verdict = verify(make(), tensor)
        except CertificateError as error:
            assert "group" in str(error)  # noqa: PT017 - one of two right ends
        else:
            assert not verdict.proved


def test_upper_bounds_take_no_modes_together() -> None:
    # two copies of GHZ with modes 0 and 1 together: a matrix of rank 2, but the rank is 4
    tensor = kronecker(ghz_state(4, 2), ghz_state(4, 2))
    upper = rank_interval(tensor).certificates.upper
    assert verify(upper, tensor).proved
    grouped = replace(upper, groups=((0, 1), (2,), (3,)))
    verdict = verify(grouped, tensor)
    assert verdict.reason == "only a lower bound may take modes together"
    assert not second_checker(grouped, tensor)


def test_the_last_mode_stays_alone_for_the_effective_rank() -> None:
    # at (0, 0, 0) and (1, 1, 1): the unfolding of the modes (2, 3) has rank 2, but each tensor that
    # agrees on the two observed fibers, with the same last index, may be simple
    tensor = SparseTensor([[0, 0, 0, 0], [1, 1, 1, 0]], [5, 5], (2, 2, 2, 1))
    assert effective_rank_interval(tensor).lower == 1
    minor = Unfolding(1, np.array([0, 1]), np.array([[0], [1]]), NONE, NONE, 2)
    groups = ((0, 1), (2, 3))
    assert verify(claim(tensor, minor, groups=groups), tensor).proved
    stolen = claim(tensor, minor, groups=groups, quantity="effective_rank")
    assert "last mode must be a group of its own" in str(verify(stolen, tensor).reason)
    assert not second_checker(stolen, tensor)


# ---- what a certificate is about -----------------------------------------------------------------


@pytest.mark.parametrize("value", [2**31, -(2**31), 2**62])
def test_entries_of_more_than_31_bits_are_refused(value: int) -> None:
    tensor = SparseTensor([[0, 0, 0]], [value], (1, 1, 1))
    said = claim(tensor, Boxes(np.array([0])), side="upper")
    with pytest.raises(InvalidArgumentError, match=r"entries below 2\^31 in absolute value"):
        verify(said, tensor)
    with pytest.raises(InvalidArgumentError, match=r"entries below 2\^31 in absolute value"):
        drawn_certificate(Choices.seeded(0), tensor)
    small = SparseTensor([[0, 0, 0]], [value // 2**32 + 2], (1, 1, 1))
    assert verify(claim(small, Boxes(np.array([0])), side="upper"), small).proved


def test_a_tensor_has_two_modes_or_more() -> None:
    tensor = SparseTensor([[0]], [3], (1,))
    with pytest.raises(InvalidArgumentError, match="two modes or more"):
        verify(claim(tensor, Boxes(np.array([0])), side="upper"), tensor)


@given(st.integers(0, 2**20), st.integers(0, 2**20))
@settings(max_examples=examples(100))
def test_a_certificate_of_another_tensor_is_refused(first: int, second: int) -> None:
    a, b = (a_tensor(Choices.seeded(seed)) for seed in (first, second))
    certificate = drawn_certificate(Choices.seeded(first), a)
    if a == b:
        assert verify(certificate, b).proved
        return
    with pytest.raises(CertificateError, match="must be for the tensor"):
        verify(certificate, b)
    assert not second_checker(certificate, b)


def test_the_same_entries_in_another_shape_are_another_tensor() -> None:
    tensor = SparseTensor([[0, 0], [1, 1]], [1, 1], (2, 2))
    wider = SparseTensor([[0, 0], [1, 1]], [1, 1], (2, 3))
    certificate = drawn_certificate(Choices.seeded(0), tensor)
    with pytest.raises(CertificateError, match="must be for the tensor"):
        verify(certificate, wider)


@given(databases(), st.integers(0, 2**20))
@settings(max_examples=examples(100))
def test_a_certificate_of_a_databases_tensor_is_one_of_its_facts(db: Database, seed: int) -> None:
    of_tensor = drawn_certificate(Choices.seeded(seed), db.tensor())
    assert (of_tensor.facts_sha256, of_tensor.multi) == (db.tensor().sha256, None)
    for of in (db, db.tensor()):
        assert verify(through_json(of_tensor.to_dict()), of).reason is None
        assert second_checker(of_tensor, of)
    # the same choices give the same bound
    of_facts = drawn_certificate(Choices.seeded(seed), db)
    roles = ("subjects", "predicates", "objects")
    named = of_tensor.to_dict()["arguments"]
    for one in named:
        if "bases" in one:
            one |= dict(zip(roles, one.pop("indices"), strict=True))
    assert of_facts.to_dict()["arguments"] == named
    assert verify(of_facts, db).proved
    # a tensor doesn't say which facts it is of, nor under which policy
    with pytest.raises(CertificateError, match="must be for the tensor"):
        verify(of_facts, db.tensor())
    assert not second_checker(of_facts, db.tensor())


def test_a_name_is_one_of_facts_or_of_a_tensor() -> None:
    db = database([(0, 0, 0), (1, 1, 1)])
    facts, tensor = (drawn_certificate(Choices.seeded(1), of) for of in (db, db.tensor()))
    for mixed in (
        replace(facts, multi=None), replace(tensor, multi=db.multi),
        replace(facts, facts_sha256=db.tensor().sha256),
    ):  # fmt: skip
        with pytest.raises(CertificateError, match="must be for the facts"):
            verify(mixed, db)
        assert not second_checker(mixed, db)


@pytest.mark.parametrize("order", [2, 4, 5])
def test_enclosures_are_drawn_of_any_order(order: int) -> None:
    tensor = from_dense(np.random.default_rng(0).choice([-2, -1, 1, 2], (2,) * order))
    certificate = drawn_certificate(
        Choices.seeded(0), tensor, quantity="rank", side="upper", kind="enclosure"
    )
    assert "enclosure" in {argument.kind for argument in certificate.arguments}
    assert verify(through_json(certificate.to_dict()), tensor).reason is None
    assert second_checker(certificate, tensor)
