from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError
from capacity.rank import paper_bound, rank_interval
from capacity.tensor import from_counts

WORDS = st.lists(st.sampled_from(["a", "b", "cc", "é"]), min_size=1, max_size=30)


@given(WORDS, st.integers(1, 5))
def test_entries_are_the_counts_of_the_n_grams(words: list[str], n: int) -> None:
    if len(words) < n:
        with pytest.raises(InvalidArgumentError, match="at least n"):
            from_counts(words, n)
        return
    tensor = from_counts(" ".join(words), n)
    assert tensor == from_counts(words, n)
    names = sorted(set(words))
    counted = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    found = {
        tuple(names[i] for i in at): value
        for at, value in zip(tensor.indices.tolist(), tensor.values.tolist(), strict=True)
    }
    assert found == counted
    assert tensor.shape == (len(names),) * n


def test_the_rank_of_bigrams_is_that_of_their_matrix() -> None:
    text = "one two one three two one one three"
    matrix = np.zeros((3, 3), int)
    names = sorted(set(text.split()))
    for a, b in pairwise(text.split()):
        matrix[names.index(a), names.index(b)] += 1
    interval = rank_interval(from_counts(text, 2))
    assert interval.lower == interval.upper == np.linalg.matrix_rank(matrix)


def test_trigrams_of_a_cycle_have_as_many_simple_tensors_as_words() -> None:
    # abcabcab...: each word has one successor, so that T is a permuted diagonal
    tensor = from_counts("a b c d " * 5, 3)
    interval = rank_interval(tensor)
    assert (interval.lower, interval.upper) == (4, 4)
    assert paper_bound(tensor) == 4


@pytest.mark.parametrize(
    ("text", "n", "message"),
    [("", 1, "at least n = 1"), ("a b", 0, "n"), ("a b", 33, "n"), ([1, 2], 2, "must be a str")],
)
def test_other_texts_are_refused(text: Any, n: int, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        from_counts(text, n)
