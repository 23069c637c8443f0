"""Decompositions with complex numbers, which bound the rank over C alone."""

import json
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.rank import (
    AlgebraicNumber,
    Certificate,
    CheckBudget,
    ComplexDecomposition,
    Factors,
    GaussianRational,
    RankAnalysis,
    effective_rank_interval,
    rank_interval,
    verify,
    verify_decomposition,
)
from capacity.tensor import complex_numbers, from_dense
from capacity.testing.arguments.combined import drawn_certificate
from capacity.testing.arguments.edits import mutated
from capacity.testing.choices import Choices
from tests.rank.verifier.test_tensors_drawn import a_tensor
from tests.second_checker import claim, proved_by_both, second_checker
from tests.tiers import examples

# (a + b i)(c + d i) from the products of the values and of their conjugates
A = [[1, 1], [1j, -1j]]
C = [[0.5, 0.5], [-0.5j, 0.5j]]


def test_the_product_of_complex_numbers_has_rank_2_over_c_and_3_over_r() -> None:
    product = complex_numbers()
    interval = rank_interval(product, start=[A, A, C])
    # a theorem: the rank over R is 3 (Winograd 1977), and an unfolding has rank 2
    assert interval == (3, 3)
    assert interval.over("Q").upper > 2
    over_c = interval.over("C")
    assert over_c == (2, 2)
    assert verify(over_c, product).proved
    assert second_checker(over_c.certificates.upper, product)
    assert rank_interval(product, start=[A, A, C], field="C") == (2, 2)
    # a tensor of rank 2 over C is one of border rank 2
    assert over_c.border == (2, 2)
    # all fibers are observed, so the effective rank is the rank
    effective = RankAnalysis(product, start=[A, A, C]).effective_rank.over("C")
    assert (effective, effective.quantity) == ((2, 2), "effective_rank")
    assert verify(effective, product).proved
    again = over_c.decomposition()
    assert again.is_complex
    assert [of.dtype for of in again.to_floats()] == [np.complex128] * 3
    assert np.allclose(np.einsum("ir,jr,kr->ijk", *again.to_floats()), product.to_numpy())
    assert verify_decomposition(product, again).proved


@pytest.mark.parametrize("field", ["R", "Q"])
def test_it_proves_nothing_over_the_reals(field: str) -> None:
    over_c = rank_interval(complex_numbers(), start=[A, A, C]).over("C").certificates.upper
    false = replace(over_c, field=field)
    verdict = verify(false, complex_numbers())
    assert verdict.reason is not None
    assert "'complex decomposition' proves no upper bound" in verdict.reason
    assert not second_checker(false, complex_numbers())


def test_what_does_not_add_up_is_refused() -> None:
    product = complex_numbers()
    third = Fraction(1, 3)
    for factors, why in (
        # the conjugate of the product; the product by i; its real part and a bit more
        ([A, A, [[0.5, 0.5], [0.5j, -0.5j]]], "the arguments add up to -1 at"),
        ([A, A, [[0.5j, 0.5j], [0.5, -0.5]]], "real part|real numbers|don't add up"),
        ([A, A, [[0.5, 0.5], [-0.5j, -0.5j]]], "real numbers|don't add up"),
        ([A, A, [[third, third], [GaussianRational(0, third), 0]]], "don't add up"),
    ):
        verdict = verify_decomposition(product, factors)
        assert re.search(why, str(verdict.reason))
        with pytest.raises(InvalidArgumentError, match="`start` must be a decomposition"):
            rank_interval(product, start=factors, field="C")


def test_other_numbers_are_refused() -> None:
    one = from_dense(np.array([[1]]))
    for number, why in (
        (1 / 3 + 1j, "halves, quarters"),
        (complex("nan"), "halves, quarters"),
        (GaussianRational(1, 0.3), "halves, quarters"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgumentError, match=why):
            verify_decomposition(one, [[[number]], [[1]]])
    root = AlgebraicNumber((-2, 0, 1), Fraction(1), Fraction(2), (Fraction(0), Fraction(1)))
    with pytest.raises(InvalidArgumentError, match="in one number field; got complex"):
        verify_decomposition(one, [[[root]], [[1j]]])


def test_terms_of_high_order_are_counted_before_they_are_split() -> None:
    # a term of complex vectors has 2^order parts
    order = 24
    tensor = from_dense(np.ones((1,) * order, np.int64))
    i = ((0,), ((Fraction(0), Fraction(1)),))
    both = ((0,), ((Fraction(1), Fraction(1)),))
    # i^24 = 1, and a vector of one part alone isn't split
    assert verify(claim(tensor, ComplexDecomposition(((i,) * order,)), side="upper", field="C"),
                  tensor).proved  # fmt: skip
    costly = claim(tensor, ComplexDecomposition(((both,) * order,)), side="upper", field="C")
    with pytest.raises(CapacityError, match="too costly"):
        verify(costly, tensor, budget=CheckBudget(10**9))


@given(st.integers(0, 2**30))
@settings(max_examples=examples(60), deadline=None)
def test_what_is_drawn_is_proved_by_both_checkers(seed: int) -> None:
    tensor = a_tensor(Choices.seeded(seed))
    if not tensor.n_entries:
        return
    certificate = drawn_certificate(
        Choices.seeded(seed), tensor, side="upper", kind="complex decomposition"
    )
    again = Certificate.from_dict(json.loads(json.dumps(certificate.to_dict())))
    assert certificate.field == again.field == "C"
    assert verify(again, tensor).reason is None
    assert second_checker(again, tensor)


def test_mutations_are_proved_only_if_both_checkers_prove_them() -> None:
    refuted = 0
    for seed in range(150):
        choose = Choices.seeded(seed)
        tensor = a_tensor(choose)
        if not tensor.n_entries:
            continue
        certificate = drawn_certificate(choose, tensor, side="upper", kind="complex decomposition")
        edited = mutated(choose, certificate, others=[certificate])
        refuted += proved_by_both(edited, tensor) is False
    assert refuted > 20


def test_the_effective_rank_over_c_needs_only_the_observed_fibers() -> None:
    # the fiber (1, 1) isn't observed: what a term has there, real or not, doesn't count
    tensor = from_dense(np.array([[[1], [1]], [[1], [0]]]))
    one, both = ((0,), ((Fraction(1),),)), ((0, 1), ((Fraction(1),), (Fraction(1),)))
    argument = ComplexDecomposition(((both, both, one),))
    effective = claim(tensor, argument, side="upper", quantity="effective_rank", field="C")
    assert verify(effective, tensor).proved
    assert second_checker(effective, tensor)
    assert not verify(claim(tensor, argument, side="upper", field="C"), tensor).proved
    assert effective_rank_interval(tensor) == (1, 1)


def test_factors_show_their_numbers() -> None:
    factors = Factors((np.array([[GaussianRational(Fraction(1, 2), -1)]], object),) * 2)
    assert str(factors.matrices[0]) == "[[1/2 - i]]"
    assert [str(GaussianRational(*x)) for x in ((0, -1), (0, 2), (1, 3), (5, 0))] == [
        "-i", "2 i", "1 + 3 i", "5",
    ]  # fmt: skip
