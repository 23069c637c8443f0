"""The page about a model: shares, nullities and importance are those of the library."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from typing import Any

import numpy as np
import pytest
import torch

from capacity.errors import InvalidArgumentError
from capacity.report import attention_report
from capacity.report.drawing import pictures
from capacity.report.drawing.pictures import averaged, png_address, signed
from capacity.transformer import (
    attention_table,
    capture,
    decompose,
    effective_attention,
    head_importance,
)
from tests.report.parsed import assert_one_file, facts_of, loaded, rows_of, soup_of, text_of
from tests.transformer.conftest import build

# heads have d_head = 4
HOSTILE = '<script>alert("1")</script>'


def captured(family: str, n: int, **changes: Any) -> Any:
    tokens = torch.randint(3, 50, (1, n), generator=torch.Generator().manual_seed(0))
    return capture(build(family, **changes), {"input_ids": tokens})


def named(n: int) -> list[str]:
    return [f"token{i}" for i in range(n)]


@pytest.fixture(scope="module")
def bert() -> tuple[Any, str]:
    found = captured("Bert", 9)
    return found, attention_report(found, named(9))


@pytest.fixture(scope="module")
def gpt() -> tuple[Any, str]:
    found = captured("GPT2", 9)
    return found, attention_report(found, named(9), title="a GPT")


@pytest.mark.slow
def test_the_page_is_one_file_that_loads_nothing(
    bert: tuple[Any, str], gpt: tuple[Any, str]
) -> None:
    for _, page in (bert, gpt):
        assert_one_file(page)


@pytest.mark.parametrize("family", ["bert", "gpt"])
def test_shares_and_nullities_are_those_of_attention_table(
    family: str, request: pytest.FixtureRequest
) -> None:
    found, page = request.getfixturevalue(family)
    rows = rows_of(page, "heads")
    assert len(rows) == 8
    for mode in ("plain", "simplex", "causal") if found.causal else ("plain", "simplex"):
        table = attention_table(found, effective_attention(found, mode))
        told = [float(row[f"{mode} share"]) for row in rows]
        assert told == table["effective_share"].tolist()
    table = attention_table(found, effective_attention(found))
    names = {"layer": "layer", "head": "head", "rank of values": "rank_values",
             "nullity": "nullity", "nullity, simplex": "nullity_simplex",
             "joint nullity": "joint_nullity", "unique rows": "identifiable_rows"}  # fmt: skip
    for title, name in names.items():
        assert [int(row[title]) for row in rows] == table[name].tolist()
    known = ["" if excess is None or excess != excess else str(int(excess))
             for excess in table["p4_excess"].astype(object).where(table["p4_excess"].notna(), None)
             ]  # fmt: skip
    assert [row["P4 excess"] for row in rows] == known
    # nine tokens of four dimensions: five changes of a row have no effect in any head
    assert {row["nullity"] for row in rows} == {"5"}
    assert facts_of(page)["not.unique"] == {"8"}


def test_causal_effective_attention_is_shown_of_causal_models_alone(
    bert: tuple[Any, str], gpt: tuple[Any, str]
) -> None:
    assert "causal" not in rows_of(bert[1], "heads")[0]
    assert "attends to later tokens as well" in text_of(bert[1], "main")
    assert "causal" in rows_of(gpt[1], "heads")[0]
    kinds = [img["alt"] for img in soup_of(gpt[1]).select("#heads tbody tr")[0].select("img")]
    assert [re.findall(r"(\w+) attention", str(alt))[0] for alt in kinds] == [
        "standard", "plain", "simplex", "causal"
    ]  # fmt: skip


def test_importance_is_that_of_the_decomposition(bert: tuple[Any, str]) -> None:
    found, page = bert
    told = [float(row["importance"]) for row in rows_of(page, "heads")]
    assert told == head_importance(found)[:, :, 0].mean(-1).flatten().tolist()
    means = decompose(found).importance()[:, :, 0].mean(-1).tolist()
    for row, mean in zip(rows_of(page, "terms"), means, strict=True):
        assert [float(row[key]) for key in ("input", "heads", "feed forward", "constant")] == mean
        # shares of one embedding
        assert sum(mean) == pytest.approx(1)


def test_where_the_stream_is_unknown_the_page_says_why(bert: tuple[Any, str]) -> None:
    from dataclasses import replace

    cut = replace(bert[0], steps=(), unfollowed="Its stream has a <loop>.")
    page = attention_report(cut, named(9))
    assert "Importance can't be computed here. Its stream has a <loop>." in text_of(page, "main")
    assert {row["importance"] for row in rows_of(page, "heads")} == {""}


@pytest.mark.parametrize(("n", "short"), [(3, True), (4, True), (5, False), (9, False)])
def test_a_text_with_at_most_d_head_tokens_is_told_what_follows(n: int, short: bool) -> None:
    found = captured("Bert", n)
    page = attention_report(found, named(n))
    assert (soup_of(page).select_one("#short") is not None) == short
    if short:
        assert f"It has {n} tokens, and the values of a head have 4 dimensions" in text_of(
            page, "#short"
        )
        assert "more than 5 tokens" in text_of(page, "#short")
        # and it is so
        assert {row["nullity"] for row in rows_of(page, "heads")} == {"0"}
        assert {row["plain share"] for row in rows_of(page, "heads")} == {"1.0"}
        assert "in all heads here." in text_of(page, "#short")


def test_hostile_tokens_and_titles_are_text(bert: tuple[Any, str]) -> None:
    page = attention_report(bert[0], [HOSTILE] * 9, title=HOSTILE)
    assert_one_file(page)
    assert HOSTILE not in page
    assert HOSTILE in text_of(page, "h1")
    assert HOSTILE in text_of(page, "#tokens")


def test_a_page_of_many_heads_and_tokens_stays_small_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pictures, "MOST_CHARACTERS", 20_000)
    found = captured("Bert", 120, max_position_embeddings=128)
    page = attention_report(found, named(120))
    assert_one_file(page)
    (drawn,) = facts_of(page)["drawn"]
    # three pictures for each head that is drawn, and all heads with their numbers
    assert len([one for one in loaded(page) if "image/png" in one]) == 3 * int(drawn)
    rows = rows_of(page, "heads")
    assert 0 < int(drawn) < len(rows) == 8
    assert "a pixel is the mean of 2 x 2 weights" in page
    # those with the least share are drawn
    shares = sorted(float(row["plain share"]) for row in rows)
    pictured = [row for row, tag in zip(rows, soup_of(page).select("#heads tbody tr"), strict=True)
                if tag.img is not None]  # fmt: skip
    assert sorted(float(row["plain share"]) for row in pictured) == shares[: int(drawn)]


def test_other_texts_than_one_are_refused(bert: tuple[Any, str]) -> None:
    with pytest.raises(InvalidArgumentError, match="9 places, and 8 tokens"):
        attention_report(bert[0], named(8))
    two = capture(build("Bert"), {"input_ids": torch.arange(3, 13).reshape(2, 5)})
    with pytest.raises(InvalidArgumentError, match="one text"):
        attention_report(two, named(5))


def decoded(address: str) -> np.ndarray:
    """Colours of an indexed PNG, by its definition and no reader."""
    raw = base64.b64decode(address.partition(",")[2])
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(raw):
        (size,), name = struct.unpack(">I", raw[at : at + 4]), raw[at + 4 : at + 8]
        parts[name] = raw[at + 8 : at + 8 + size]
        (crc,) = struct.unpack(">I", raw[at + 8 + size : at + 12 + size])
        assert crc == zlib.crc32(name + parts[name])
        at += 12 + size
    width, height = struct.unpack(">2I", parts[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    palette = np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)
    return palette[lines[:, 1:]]


def test_a_picture_has_the_colours_of_its_weights(gpt: tuple[Any, str]) -> None:
    found, page = gpt
    first = soup_of(page).select("#heads tbody tr")[0].select("img")
    standard, pattern = decoded(str(first[0]["src"])), found.layers[0].pattern[0, 0].numpy()
    assert standard.shape == (9, 9, 3)
    # a causal model's first token attends to itself alone, with the weight 1: the largest there is
    assert pattern[0, 0] == 1
    assert tuple(standard[0, 0]) == signed(1.0)
    assert tuple(standard[0, 1]) == signed(0.0)
    # between them a colour is that of the square root, in steps of 1/24
    wanted = signed(round(float(pattern[8, 3]) ** 0.5 * 24) / 24)
    largest = float(facts_of(page).get("largest", {"1"}).pop())
    assert largest == 1
    assert np.abs(standard[8, 3].astype(int) - wanted).max() <= 12


def test_pictures_and_averages_are_those_of_the_matrix() -> None:
    indices = np.array([[0, 1, 2], [2, 1, 0]], np.uint8)
    palette = ((1, 2, 3), (4, 5, 6), (7, 8, 9))
    drawn = decoded(png_address(indices, palette))
    assert drawn[0].tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert drawn[1].tolist() == [[7, 8, 9], [4, 5, 6], [1, 2, 3]]
    matrix = np.random.default_rng(0).normal(size=(130, 130))
    means, side = averaged(matrix)
    # 130 is 43 squares of 3, and one line more
    assert (side, means.shape) == (3, (44, 44))
    assert means[1, 2] == pytest.approx(matrix[3:6, 6:9].mean())
    assert means[43, 43] == pytest.approx(matrix[129:, 129:].mean())
