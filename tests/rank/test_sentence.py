"""The sentence of an interval says its ends, and what proves each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from capacity.database import Database, load
from capacity.rank import effective_rank_interval, rank_interval
from capacity.rank.interval import ABOVE, BELOW, TERMS, in_a_sentence
from capacity.rank.verifier.kinds import KINDS
from capacity.tensor import from_dense, matrix_multiplication
from tests.oracles import EXAMPLES

# five subjects, each with a predicate of its own, and one object: five terms, or one that says
# everything of every pair
EXAMPLE_2_4 = Database.from_triples([(k, q, "v") for k, q in zip("abcde", "fghij", strict=True)])


def test_a_closed_interval_says_the_rank_once() -> None:
    assert in_a_sentence(rank_interval(EXAMPLE_2_4)) == (
        "The rank is 5: no less, because the facts of 5 subjects are linearly independent; no "
        "more, because 5 simple tensors add up to the facts."
    )


def test_the_effective_rank_is_about_the_pairs_that_have_a_fact() -> None:
    assert in_a_sentence(effective_rank_interval(EXAMPLE_2_4)) == (
        "The effective rank is 1: no less, because there is a fact; no more, because one simple "
        "tensor agrees with the facts at every pair that has one."
    )


def test_an_open_interval_says_both_ends_and_both_reasons() -> None:
    # 3,155 objects, each the only one of some pair; ranks of the objects' slices add up to 3,339
    said = in_a_sentence(rank_interval(load(EXAMPLES / "countries.ttl")))
    assert said == (
        "The rank is between 3,155 and 3,339: no less, because the facts of 3,155 objects are "
        "linearly independent; no more, because 3,339 simple tensors add up to the facts."
    )


def test_the_reason_is_that_of_the_argument_that_proves_the_end() -> None:
    # Alder and Strassen: 2 n - t for 2 x 2 matrices, n = 4 dimensions and t = 1 ideal
    said = in_a_sentence(rank_interval(matrix_multiplication(2, 2, 2)))
    assert "between 7 and 8: no less, because the product of an algebra takes 7" in said


def test_reasons_of_several_arguments_are_all_said() -> None:
    # W: one slice by an unfolding, two by substitution
    w = from_dense(np.array([[[0, 1], [1, 0]], [[1, 0], [0, 0]]]))
    said = in_a_sentence(rank_interval(w))
    assert said.startswith("The rank is 3: no less, because ")
    assert "the substitution method removes" in said
    assert said.endswith("because 3 simple tensors add up to the tensor.")


def test_a_zero_tensor_has_rank_0_and_needs_no_reason() -> None:
    zero = from_dense(np.zeros((2, 2, 2), int))
    assert in_a_sentence(rank_interval(zero)) == "The rank is 0: every entry is 0."


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_an_argument_of_a_kind_from_outside_is_named(side: str) -> None:
    class Guess:
        kind, value = "guess", 5

    found = rank_interval(EXAMPLE_2_4)
    ends = found.certificates
    guessed = replace(getattr(ends, side), arguments=(Guess(),))
    said = in_a_sentence(replace(found, certificates=ends._replace(**{side: guessed})))
    assert "because an argument of the kind 'guess' gives 5" in said


def test_every_kind_has_words() -> None:
    # minors of unfoldings are told by their mode, and terms by what they add up to
    below = {name for name, kind in KINDS.items() if kind.lower} - {"unfolding"}
    above = {name for name, kind in KINDS.items() if kind.upper} - TERMS
    assert below == BELOW.keys()
    assert above == ABOVE.keys()
