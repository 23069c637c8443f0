"""Bounds over the rational, the real and the complex numbers, and of border ranks.

Ranks over different fields are those of algebras (Alder, Strassen 1981): the product of Q[x]/(x^n -
1) has rank 2 n - t over a field, with t its number of factors there.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import CertificateError, InvalidArgumentError, InvalidTypeError
from capacity.rank import (
    Certificate,
    RankAnalysis,
    RankInterval,
    effective_rank_interval,
    rank_interval,
    verify,
)
from capacity.rank.verifier.certificate import CertificatePair
from capacity.tensor import (
    SparseTensor,
    complex_numbers,
    cyclic_group,
    direct_sum,
    from_dense,
    group_algebra,
    matrix_multiplication,
    w_state,
)
from tests.tiers import examples


def searched(tensor: SparseTensor, **about: Any) -> RankInterval:
    """A searched interval that is verified."""
    interval = rank_interval(tensor, **about)
    assert verify(interval, tensor).proved
    return interval


def of_2_by_2_by_2(array: np.ndarray) -> tuple[int, int, int]:
    """Rank over R and over C, and border rank over C, of a 2 x 2 x 2 tensor, by its invariants."""
    ranks = [np.linalg.matrix_rank(np.moveaxis(array, m, 0).reshape(2, 4)) for m in range(3)]
    if min(ranks) < 2:
        # a matrix in one of its modes, or zero
        rank = int(max(ranks))
        return rank, rank, rank
    a, b = array
    # the discriminant of det(x a + y b): Cayley's hyperdeterminant
    c2, c0 = np.linalg.det(a), np.linalg.det(b)
    discriminant = round((np.linalg.det(a + b) - c2 - c0) ** 2 - 4 * c2 * c0)
    over_r = 2 if discriminant > 0 else 3
    return over_r, 2 if discriminant else 3, 2


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=8, max_size=8))
def test_2_by_2_by_2_tensors_have_the_ranks_of_their_invariants(entries: list[int]) -> None:
    array = np.array(entries).reshape(2, 2, 2)
    tensor = from_dense(array)
    over_r, over_c, border = of_2_by_2_by_2(array)
    interval = searched(tensor)
    assert over_r in interval
    for found in (searched(tensor, field="C"), interval.over("C")):
        assert over_c in found
    # rational decompositions are real ones
    assert searched(tensor, field="Q").upper >= over_r
    for found in (searched(tensor, field="C", border=True), interval.border.over("C")):
        assert border in found
        assert verify(found, tensor).proved


@pytest.mark.parametrize(("n", "over_q", "over_r"), [(3, 4, 4), (4, 5, 5), (5, 8, 7)])
def test_the_product_of_polynomials_modulo_x_to_the_n_less_1(
    n: int, over_q: int, over_r: int
) -> None:
    # x^3 - 1 has 2 factors over Q and R, x^4 - 1 has 3, x^5 - 1 has 2 over Q and 3 over R
    tensor = group_algebra(cyclic_group(n))
    assert searched(tensor).lower == over_r
    assert searched(tensor, field="Q").upper >= over_q
    # over C it is a product of n copies of C
    assert searched(tensor, field="C").lower == n
    assert searched(tensor).over("C").lower == n
    assert searched(tensor).border.over("C").lower == n


def test_border_ranks_of_summands_don_t_add() -> None:
    # Schoenhage 1981: border rank k n + 1, where unfoldings of the summands have k n and m
    k = n = 3
    m = (k - 1) * (n - 1)
    tensor = direct_sum(matrix_multiplication(k, 1, n), matrix_multiplication(1, m, 1))
    interval = searched(tensor)
    assert interval.lower == k * n + m
    assert interval.border.lower == searched(tensor, border=True).lower == k * n + 1
    wrong = replace(interval.certificates.lower, border=True)
    assert verify(wrong, tensor).reason == (
        "bounds of the border rank don't add, but for unfoldings of one mode"
    )


def test_the_border_rank_of_w_is_less_than_its_rank() -> None:
    for n in (3, 4):
        interval = searched(w_state(n))
        assert (interval.lower, interval.border.lower) == (n, 2)
        assert searched(w_state(n), border=True).lower == 2
        wrong = replace(interval.certificates.lower, border=True)
        assert "proves no bound of the border rank" in str(verify(wrong, w_state(n)).reason)


def test_koszul_flattenings_bound_the_border_rank_over_every_field() -> None:
    # Strassen 1983: 3 x 3 x 3 tensors of border rank 5; here 3 x 3 skew-symmetric ones, of 5
    determinant = np.zeros((3, 3, 3), int)
    for p in itertools.permutations(range(3)):
        determinant[p] = round(np.linalg.det(np.eye(3)[list(p)]))
    tensor = from_dense(determinant)
    for field in ("Q", "R", "C"):
        assert searched(tensor, field=field, border=True).lower == 5


def test_what_holds_over_r_alone_is_refused_over_c() -> None:
    tensor = complex_numbers()
    interval = searched(tensor)
    assert interval == (3, 3)
    wrong = replace(interval.certificates.lower, field="C")
    kind = wrong.arguments[0].kind
    assert verify(wrong, tensor).reason == (
        f"an argument of the kind {kind!r} proves no lower bound over C"
    )
    # a real upper bound is one over C, and a rational one is one over every field
    upper = interval.certificates.upper
    assert verify(replace(upper, field="C", border=True), tensor).proved


def test_an_effective_rank_has_fields_and_no_border_rank() -> None:
    facts = Database.from_triples([(k, q, "v") for k, q in zip("abcde", "fghij", strict=True)])
    interval = effective_rank_interval(facts)
    over_c = interval.over("C")
    assert over_c == interval == (1, 1)
    assert verify(over_c, facts).proved
    with pytest.raises(InvalidArgumentError, match="no border rank"):
        _ = interval.border
    with pytest.raises(InvalidArgumentError, match="no border rank"):
        _ = RankAnalysis(facts, border=True).effective_rank
    claimed = replace(interval.certificates.lower, border=True)
    assert not verify(claimed, facts).proved


def test_certificates_say_their_field_and_are_read_back() -> None:
    tensor = w_state(3)
    for about in ({}, {"field": "Q"}, {"field": "C", "border": True}):
        for end in searched(tensor, **about).certificates:
            data = end.to_dict()
            assert {key: data[key] for key in ("field", "border") if key in data} == about
            read = Certificate.from_dict(data)
            assert (read.field, read.border) == (end.field, end.border)
            assert verify(read, tensor).proved
    whole = searched(tensor, field="C").certificates.lower
    assert repr(whole).startswith("Certificate(rank over C >= 3")
    for wrong, name in (({"field": "F_2"}, "`field`"), ({"border": 1}, "border")):
        with pytest.raises(CertificateError, match=name):
            Certificate.from_dict({**whole.to_dict(), **wrong})
        with pytest.raises(CertificateError, match=name):
            verify(replace(whole, **wrong), tensor)
    mixed = CertificatePair(whole, searched(tensor).certificates.upper)
    with pytest.raises(CertificateError, match="of the 'rank over C' and the 'rank'"):
        verify(RankInterval(mixed), tensor)


def test_certificates_of_tensors_name_modes_and_those_of_facts_roles() -> None:
    tensor = w_state(3)
    facts = Database.from_triples([("a", "p", "x"), ("a", "q", "y"), ("b", "p", "y")])
    for of, names in ((tensor, {"indices"}), (facts, {"subjects", "predicates", "objects"})):
        lower = rank_interval(of, methods=["substitution"]).certificates.lower
        views = [one for one in lower.to_dict()["arguments"] if "bases" in one]
        assert views
        assert all(names <= set(one) for one in views)
        assert all(not ({"indices", "subjects"} - names) & set(one) for one in views)
        assert verify(Certificate.from_dict(lower.to_dict()), of).proved


def test_wrong_fields_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match="`field` must be"):
        rank_interval(w_state(3), field="F_2")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="`field` must be"):
        rank_interval(w_state(3)).over("complex")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="`border` must be True or False"):
        rank_interval(w_state(3), border="yes")  # type: ignore[arg-type]
