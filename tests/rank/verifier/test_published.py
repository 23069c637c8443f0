"""Bounds by published theorems: what they cite, what they are about, and what they refuse."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.embedding import dimension, verify_dimension
from capacity.errors import CertificateError, InvalidArgumentError, InvalidTypeError
from capacity.rank import (
    Certificate,
    Method,
    Published,
    View,
    effective_rank_interval,
    rank_interval,
    verify,
)
from capacity.rank.lower.published import published_bounds
from capacity.rank.reductions import relabelling as module
from capacity.rank.reductions.relabelling import relabelling
from capacity.rank.verifier.procedures.theorems import THEOREMS, named, published
from capacity.tensor import (
    SparseTensor,
    direct_sum,
    from_dense,
    matrix_multiplication,
    named_tensor,
)
from capacity.tensor.known import KNOWN_RANKS
from tests.second_checker import claim, second_checker
from tests.second_checker.theorems import theorem
from tests.tiers import examples

# with the lower ends that are known over every field (over R for the quaternions)
NAMES = {
    "matrices:2x2x3": 11, "matrices:2x3x3": 14, "matrices:2x3x4": 18, "matrices:3x3x3": 19,
    "matrices:2x4x4": 23, "matrices:3x3x4": 24, "matrices:4x4x4": 34, "quaternions:": 8,
    "permanent:4": 8, "determinant:4": 12,
}  # fmt: skip


NO_THEOREM = "there is no published theorem about a tensor of this name"


def turned(tensor: SparseTensor, seed: int) -> SparseTensor:
    """The tensor with its indices in another order, and other signs."""
    rng = np.random.default_rng(seed)
    T = tensor.to_numpy()[np.ix_(*(rng.permutation(n) for n in tensor.shape))]
    for mode, n in enumerate(T.shape):
        sides = [1] * T.ndim
        sides[mode] = n
        T = T * rng.choice([-1, 1], n).reshape(sides)
    return from_dense(T)


@pytest.mark.parametrize("name", NAMES)
def test_a_named_tensor_in_any_order_has_its_bound_which_is_cited(name: str) -> None:
    tensor = turned(named_tensor(name), seed=len(name))
    found = rank_interval(tensor, methods=["published theorem"])
    assert found.lower == NAMES[name]
    (argument,) = found.certificates.lower.arguments
    assert isinstance(argument, Published)
    again = Certificate.from_dict(json.loads(json.dumps(found.certificates.lower.to_dict())))
    verdict = verify(again, tensor)
    assert verdict.proved
    assert verdict.cited == found.cited != ()
    assert second_checker(again, tensor)
    refused = verify(again, tensor, cited=False)
    assert not refused.proved
    assert refused.reason == f"it rests on a published theorem ({found.cited[0]})"


def test_without_citations_no_proof_rests_on_a_theorem() -> None:
    tensor = matrix_multiplication(2, 2, 2)
    found = rank_interval(tensor, cited=False)
    assert found.cited == ()
    assert verify(found, tensor, cited=False).proved
    # Alder and Strassen's theorem is one, and so is that of the largest rank of a format
    assert rank_interval(tensor).cited == ("Alder, Strassen 1981",)
    small = from_dense(np.random.default_rng(0).integers(-3, 4, (2, 3, 3)))
    cites = rank_interval(small, methods=["maximal rank of the format"])
    assert cites.cited == ("Ja'Ja' 1979",)
    assert rank_interval(small, cited=False).cited == ()


def test_the_effective_rank_needs_observed_fibers() -> None:
    tensor = named_tensor("groups:5")
    assert effective_rank_interval(tensor, methods=["published theorem"]).lower == 7
    # W has an unobserved fiber, in which another tensor may have an entry
    w = named_tensor("w:3")
    cited = Published("w:3", View(tuple(np.arange(2) for _ in range(3))), 3)
    assert verify(claim(w, cited), w).proved
    verdict = verify(claim(w, cited, quantity="effective_rank"), w)
    assert verdict.reason == "the sub-tensor has entries in unobserved fibers"


def test_a_bound_over_the_real_numbers_is_none_over_the_complex_ones() -> None:
    for name, holds in (("quaternions:", False), ("matrices:3x3x3", True)):
        tensor = named_tensor(name)
        below = rank_interval(tensor, methods=["published theorem"]).certificates.lower
        for field, proved in (("Q", True), ("R", True), ("C", holds)):
            one = replace(below, field=field)
            assert verify(one, tensor).proved is proved is second_checker(one, tensor)
        assert not verify(replace(below, border=True), tensor).proved


def test_a_part_of_a_tensor_has_the_bound_of_the_named_one() -> None:
    tensor = direct_sum(named_tensor("matrices:2x2x3"), named_tensor("w:3"))
    found = rank_interval(tensor)
    # values of published theorems don't add, and the substitution method's does
    assert found.lower == 11 + 3
    assert verify(found, tensor).proved


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "matrices:2x2x4"}, "the theorem's bound is 14"),
        ({"name": "matrices:2x2x4", "value": 14}, "the sub-tensor isn't matrices:2x2x4"),
        ({"value": 12}, "the theorem's bound is 11"),
        ({"name": "matrices:1x2x3"}, NO_THEOREM),
        ({"name": "groups:-5", "value": -8}, NO_THEOREM),
        ({"name": "groups:0", "value": -1}, NO_THEOREM),
        ({"name": "w:999999999", "value": 999999999}, NO_THEOREM),
        ({"name": "nothing at all"}, NO_THEOREM),
        ({"name": "x" * 10**6}, "`name` of an argument must be a short text"),
        ({"name": 3}, "`name` of an argument must be a short text"),
    ],
)
def test_another_claim_is_refuted(change: Any, reason: str) -> None:
    tensor = named_tensor("matrices:2x2x3")
    one = Published("matrices:2x2x3", View(tuple(map(np.arange, tensor.shape))), 11)
    assert verify(claim(tensor, one), tensor).proved
    assert verify(claim(tensor, replace(one, **change)), tensor).reason == reason


def test_a_name_of_a_huge_tensor_is_refuted_at_once() -> None:
    tensor = named_tensor("matrices:2x2x3")
    name = "matrices:99999x99999x99999"
    found = published(name)
    assert found is not None
    one = Published(name, View(tuple(map(np.arange, tensor.shape))), found[1].value)
    assert verify(claim(tensor, one), tensor).reason == f"the sub-tensor isn't {name}"


def test_a_tensor_that_differs_in_one_entry_is_not_recognised() -> None:
    T = matrix_multiplication(2, 2, 3).to_numpy()
    for place in ((0, 0, 0), (1, 1, 1)):
        other = T.copy()
        other[place] += 1
        assert rank_interval(from_dense(other), methods=["published theorem"]).cited == ()


def test_names_that_json_does_not_hold_as_text_are_refused() -> None:
    tensor = named_tensor("w:3")
    one = claim(tensor, Published("w:3", View(tuple(np.arange(2) for _ in range(3))), 3)).to_dict()
    one["arguments"][0]["name"] = 3
    with pytest.raises(CertificateError, match="`name` must be of type str; got 3"):
        Certificate.from_dict(one)
    with pytest.raises(InvalidTypeError, match="`cited` must be True or False; got 1"):
        rank_interval(tensor, cited=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="`cited` must be True or False; got 0"):
        verify(rank_interval(tensor), tensor, cited=0)  # type: ignore[arg-type]


def test_no_theorem_contradicts_a_decomposition_or_another_table() -> None:
    for known in KNOWN_RANKS:
        for name in named(known.tensor.shape):
            bound = published(name)
            if bound is not None and relabelling(known.tensor, named_tensor(name)):
                assert bound[1].value <= known.upper, known.name
                # what is known by one theorem or another is at least that
                assert known.lower >= bound[1].value or known.upper > known.lower, known.name
    # n m p multiplications are enough; if m = 2, Hopcroft and Kerr's ceil((3 n p + max(n, p)) / 2)
    for n, m, p in itertools.product(range(1, 6), repeat=3):
        bound = published(f"matrices:{n}x{m}x{p}")
        enough = n * m * p
        if m == 2:
            enough = min(enough, math.ceil((3 * n * p + max(n, p)) / 2))
        assert bound is None or bound[1].value <= enough, (n, m, p)


def test_both_tables_of_theorems_are_one() -> None:
    names = [f"matrices:{'x'.join(map(str, sizes))}"
             for sizes in itertools.product(range(1, 6), repeat=3)]  # fmt: skip
    names += [f"groups:{n}" for n in range(1, 31)] + [f"w:{n}" for n in range(2, 11)]
    names += ["quaternions:", "determinant:4", "permanent:4", "determinant:3", "groups:2x2"]
    for name in names:
        bound = published(name)
        assert (None if bound is None else (bound[1].value, bound[1].complex)) == theorem(name)


def test_a_certificate_about_modes_taken_together_cites_a_theorem() -> None:
    # the outer product of matrices of 2 x 2 and a vector: of order four, and one mode joins another
    T = np.multiply.outer(named_tensor("matrices:2x2x2").to_numpy(), [0, 1])
    tensor = from_dense(T)
    found = rank_interval(tensor, methods=["published theorem"])
    assert (found.lower, found.cited) == (7, ("Bläser 1999",))
    lower = found.certificates.lower
    assert lower.groups != ()
    assert verify(lower, tensor).proved
    assert second_checker(lower, tensor)
    assert not verify(replace(lower, groups=()), tensor).proved


def test_a_method_from_outside_that_cites_has_to_declare_it() -> None:
    tensor = named_tensor("matrices:2x2x3")
    hidden = Method("hidden", published_bounds, sides=("lower",))
    assert rank_interval(tensor, methods=[hidden]).lower == 11
    with pytest.raises(InvalidArgumentError, match=r"must have `cites=True`; hidden hasn't"):
        rank_interval(tensor, methods=[hidden], cited=False)
    with pytest.raises(InvalidArgumentError, match="no method may rest on published theorems"):
        rank_interval(tensor, methods=["published theorem"], cited=False)


def test_a_dimension_is_not_proved_by_a_theorem_if_none_may_be_cited() -> None:
    rows = named_tensor("matrices:2x2x3").indices.tolist()
    db = Database.from_triples([[f"{mode}{i}" for mode, i in zip("spo", row, strict=True)]
                                for row in rows])  # fmt: skip
    found = dimension(db, "CP", shared=False, task="exact", witness=False)
    assert found.necessary == 11
    verdict = verify_dimension(found, db)
    assert (verdict.proved, verdict.cited) == (True, ("Alekseyev 1985",))
    refused = verify_dimension(found, db, cited=False)
    assert "it rests on a published theorem (Alekseyev 1985)" in str(refused.reason)
    # without the theorem, what the search proves by itself
    uncited = dimension(db, "CP", shared=False, task="exact", witness=False, cited=False)
    assert uncited.necessary == rank_interval(db, cited=False).lower < 11
    assert verify_dimension(uncited, db, cited=False).proved


def test_every_theorem_has_its_tensor() -> None:
    numbers = {"matrices": (2, 3, 4), "groups": (6,), "w": (4,), "determinant": (4,),
               "permanent": (4,), "quaternions": ()}  # fmt: skip
    assert set(numbers) == set(THEOREMS)
    for family, of in numbers.items():
        name = f"{family}:{'x'.join(map(str, of))}"
        known = published(name)
        assert known is not None
        assert known[0] == named_tensor(name).shape
        assert name in named(known[0])


@st.composite
def small_tensors(draw: st.DrawFn) -> SparseTensor:
    shape = draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    values = st.lists(
        st.sampled_from([0, 0, 0, 1, 1, -1, 2]),
        min_size=math.prod(shape),
        max_size=math.prod(shape),
    )
    return from_dense(np.array(draw(values)).reshape(shape))


@given(small_tensors(), st.integers(0, 10**6))
@settings(max_examples=examples(300))
def test_a_relabelling_that_is_found_is_one(tensor: SparseTensor, seed: int) -> None:
    other = turned(tensor, seed)
    found = relabelling(other, tensor)
    # a limit of refinements may end the search for very regular tensors, and none here is
    assert found is not None
    T = other.to_numpy()[np.ix_(*found.indices)]
    for mode, signs in enumerate(found.signs):
        T = np.moveaxis(np.moveaxis(T, mode, -1) * signs, -1, mode)
    assert (tensor.to_numpy() == T).all()


def test_a_search_gives_up_after_its_number_of_refinements(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = matrix_multiplication(3, 3, 3)
    assert relabelling(turned(tensor, 0), tensor) is not None
    monkeypatch.setattr(module, "REFINEMENTS", 1)
    assert relabelling(turned(tensor, 0), tensor) is None


@pytest.mark.parametrize("name", ["groups:8", "groups:30", "matrices:4x4x4", "w:12"])
def test_regular_tensors_are_recognised_in_any_order(name: str) -> None:
    # a Latin square's colours don't refine before nodes of two modes have their own
    tensor = named_tensor(name)
    assert all(relabelling(turned(tensor, seed), tensor) is not None for seed in range(3))


def test_large_sparse_tensors_are_recognised() -> None:
    # a million places; and 4,096 entries, which are too many for other methods at this effort
    for name, value in (("w:20", 20), ("groups:64", 2 * 64 - 1 - 32)):
        tensor = turned(named_tensor(name), 0)
        interval = rank_interval(tensor)
        assert interval.lower == value
        assert interval.cited
        assert verify(interval, tensor).proved
        assert rank_interval(tensor, cited=False).lower < value
