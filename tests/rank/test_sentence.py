"""The sentence of an interval says its ends, and what proves each."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from capacity.database import Database, load
from capacity.rank import effective_rank_interval, rank_interval
from capacity.rank.sentence import ABOVE, BELOW, TERMS, in_a_sentence
from capacity.rank.verifier.kinds import KINDS
from capacity.tensor import direct_sum, from_dense, matrix_multiplication, w_state
from tests.oracles import EXAMPLES

# five subjects, each with a predicate of its own, and one object: five terms, or one that says
# everything of every pair
EXAMPLE_2_4 = Database.from_triples([(k, q, "v") for k, q in zip("abcde", "fghij", strict=True)])


def test_a_closed_interval_says_the_rank_once() -> None:
    assert in_a_sentence(rank_interval(EXAMPLE_2_4)) == (
        "The rank is 5: at least 5, because the facts of 5 subjects are linearly independent; at "
        "most 5, because 5 simple tensors add up to the facts."
    )


def test_the_effective_rank_is_about_the_pairs_that_have_a_fact() -> None:
    assert in_a_sentence(effective_rank_interval(EXAMPLE_2_4)) == (
        "The effective rank is 1: at least 1, because there is a fact; at most 1, because one "
        "simple tensor agrees with the facts at every pair that has one."
    )


def test_an_open_interval_says_both_ends_and_both_reasons() -> None:
    # 3,155 objects, each the only one of some pair; ranks of the objects' slices add up to 3,339
    said = in_a_sentence(rank_interval(load(EXAMPLES / "countries.ttl")))
    assert said == (
        "The rank is between 3,155 and 3,339: at least 3,155, because the facts of 3,155 objects "
        "are linearly independent; at most 3,339, because 3,339 simple tensors add up to the facts."
    )


def test_the_reason_is_that_of_the_argument_that_proves_the_end() -> None:
    # Alder and Strassen: 2 n - t for 2 x 2 matrices, n = 4 dimensions and t = 1 ideal
    said = in_a_sentence(rank_interval(matrix_multiplication(2, 2, 2)))
    assert "is 7: at least 7, because the product of an algebra proves 7 (Alder and" in said


def test_reasons_of_several_arguments_are_all_said() -> None:
    # W: one slice by an unfolding, two by substitution
    w = from_dense(np.array([[[0, 1], [1, 0]], [[1, 0], [0, 0]]]))
    said = in_a_sentence(rank_interval(w))
    assert said.startswith("The rank is 3: at least 3, because 1 + 2 of different parts of the")
    assert "add up: an entry isn't 0, and the substitution" in said
    assert said.endswith("because 3 simple tensors add up to the tensor.")


# of a direct sum of blocks, how large the rank is, and the summands that prove each end: by hand a
# W takes 1 + 2 from below and 3 boxes from above, <2,2,2> 7 from below, two slices of 9 x 9 their
# canonical form
W = w_state(3)
GENERIC = from_dense(np.random.default_rng(0).integers(-3, 3, (2, 9, 9)))
SUMS = {
    "W and a product": (direct_sum(W, matrix_multiplication(2, 2, 2)), "1 + 2 + 7", None),
    "two W": (direct_sum(W, W), "2 + 4", None),
    "W and two slices": (direct_sum(GENERIC, W), "1 + 2 + 10", "3 + 10"),
}


@pytest.mark.parametrize("what", SUMS)
def test_values_of_several_arguments_are_written_as_the_sum_that_they_are(what: str) -> None:
    tensor, lower, upper = SUMS[what]
    found = rank_interval(tensor)
    said = in_a_sentence(found)
    assert f"because {lower} of different parts of the tensor add up: " in said
    if upper is not None:
        assert f"because {upper} simple tensors together add up to the tensor: " in said
    for of, end in (("least", found.lower), ("most", found.upper)):
        (summands,) = re.findall(rf"at {of} {end}, because ([\d,]+(?: \+ [\d,]+)*)", said)
        assert sum(map(int, summands.replace(",", "").split(" + "))) == end


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
    assert "an argument of the kind 'guess'" in said


def test_every_kind_has_words() -> None:
    # minors of unfoldings are named by their mode, theorems by tensor and source, and terms by what
    # they add up to
    below = {name for name, kind in KINDS.items() if kind.lower} - {"unfolding", "published"}
    above = {name for name, kind in KINDS.items() if kind.upper} - TERMS
    assert below == BELOW.keys()
    assert above == ABOVE.keys()
