"""Numbers of texts by compiled code, and their order by it and by Arrow, beside Python's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity import kept_code
from capacity.database.io.files.numbering import Numbering, hash_of
from capacity.database.terms.columns import joined, order_of
from capacity.database.terms.text_order import sorted_order

# few letters, zeros too, and long shared beginnings: groups at every depth
TEXTS = st.builds(
    lambda start, end: b"http://example.org/"[:start] + end,
    st.integers(0, 19),
    st.binary(max_size=20) | st.text("ab\0", max_size=20).map(str.encode),
)


@given(st.lists(st.tuples(TEXTS, st.integers(0, 3)), max_size=120), st.integers(1, 3))
def test_texts_are_sorted_as_python_sorts_their_bytes(
    drawn: list[tuple[bytes, int]], times: int
) -> None:
    drawn = drawn * times
    texts = [text for text, _ in drawn]
    starts = np.cumsum([0, *map(len, texts)])
    data = np.frombuffer(b"".join(texts), np.uint8)
    ties = np.array([tie for _, tie in drawn], np.int32)
    compiled = sorted_order(starts, data, ties)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_code, "pays", lambda *_, **__: False)
        by_arrow = order_of(joined(texts), ties)
    for order in (compiled, by_arrow):
        assert sorted(order.tolist()) == list(range(len(drawn)))
        assert [drawn[i] for i in order.tolist()] == sorted(drawn)


@given(st.lists(st.lists(st.tuples(TEXTS, st.integers(0, 2)), max_size=700), max_size=3))
def test_tokens_have_the_numbers_that_a_dictionary_gives(
    pieces: list[list[tuple[bytes, int]]],
) -> None:
    numbering, known = Numbering(), {}
    for piece in pieces:
        texts = [text for text, _ in piece]
        ends = np.cumsum(list(map(len, texts)), dtype=np.int32)
        begins = (ends - np.array(list(map(len, texts)), np.int32)).astype(np.int32)
        codes = np.array([code for _, code in piece], np.int32)
        data = np.frombuffer(b"".join(texts), np.uint8)
        # hashes of two bits: most tokens collide
        hashes = np.array(
            [
                hash_of(data, *at) & np.uint64(0x300000001)
                for at in zip(begins, ends, codes, strict=True)
            ],
            np.uint64,
        )
        found = numbering.number(data, begins, ends, codes, hashes)
        assert found.tolist() == [known.setdefault(token, len(known)) for token in piece]
    assert numbering.n == len(known)
    assert list(
        zip(map(bytes, _bytes_of(numbering)), numbering.codes.tolist(), strict=True)
    ) == list(known)


def _bytes_of(numbering: Numbering) -> list[bytes]:
    texts = numbering.texts().cast("large_binary")
    return texts.to_pylist()
