import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.errors import InvalidArgumentError
from capacity.transformer.encoder.vocabulary import RESERVED, Vocabulary, words_of
from tests.tiers import examples

PIECES = ["A", "b", " ", "\n", "'", '"', ".", ",", "(", ")", "!", "?", ";", ":", "<br />", "<", "-"]
texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(texts)
@settings(deadline=None, max_examples=examples(100))
def test_words_are_those_of_the_documented_replacements_one_after_another(text: str) -> None:
    expected = text.lower()
    for old, new in (
        ("'", " ' "),
        ('"', ""),
        (".", " . "),
        ("<br />", " "),
        *((mark, f" {mark} ") for mark in ",()!?"),
        (";", " "),
        (":", " "),
    ):
        expected = expected.replace(old, new)
    assert words_of(text) == expected.split()


def test_vocabulary_keeps_frequent_words_in_a_fixed_order() -> None:
    # c occurs 3 times, b and a twice, d once
    texts = ["c b a", "C b d", "c A"]
    assert Vocabulary.of_texts(texts, at_least=2).words == (*RESERVED, "c", "a", "b")
    assert Vocabulary.of_texts(texts).words == (*RESERVED, "c", "a", "b", "d")
    assert len(Vocabulary.of_texts(texts)) == 7


def test_texts_become_tokens_clipped_and_padded() -> None:
    vocabulary = Vocabulary.of_texts(["a b c"])
    tokens, mask = vocabulary.encode(["c a", "", "B x a b"], n_positions=4)
    # <cls> is 2, a to c are 3 to 5, x is <unk> = 1; the last b is clipped
    assert torch.equal(tokens, torch.tensor([[2, 5, 3, 0], [2, 0, 0, 0], [2, 4, 1, 3]]))
    assert torch.equal(mask, torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]]).bool())
    assert vocabulary.encode([""], n_positions=4)[0].tolist() == [[2]]


def test_no_text_can_write_a_reserved_token() -> None:
    vocabulary = Vocabulary.of_texts(["<pad> <cls> <unk> a"])
    assert vocabulary.words == (*RESERVED, "a")
    tokens, mask = vocabulary.encode(["<pad> <cls> a"], n_positions=9)
    assert tokens.tolist() == [[2, 1, 1, 3]]
    assert mask.all()


def test_arguments_that_make_no_sense_are_refused() -> None:
    vocabulary = Vocabulary.of_texts(["a"])
    with pytest.raises(InvalidArgumentError, match="got one string"):
        Vocabulary.of_texts("a b")
    with pytest.raises(InvalidArgumentError, match="got one string"):
        vocabulary.encode("a b", 3)
    with pytest.raises(InvalidArgumentError, match="`at_least` must be at least 1; got 0"):
        Vocabulary.of_texts(["a"], at_least=0)
    with pytest.raises(InvalidArgumentError, match="`n_positions` must be at least 1; got 0"):
        vocabulary.encode(["a"], 0)
    with pytest.raises(InvalidArgumentError, match="at least one text; got none"):
        vocabulary.encode([], 3)
    with pytest.raises(InvalidArgumentError, match="must begin with <pad>, <unk>, <cls>; got a"):
        Vocabulary(("a",))
    with pytest.raises(InvalidArgumentError, match="'a' comes twice"):
        Vocabulary((*RESERVED, "a", "b", "a"))
