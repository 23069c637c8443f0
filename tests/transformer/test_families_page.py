"""docs/families.md states what is found for each model type today."""

from __future__ import annotations

import pytest

from tools.families import DOCUMENT, Row, page, rows_of, swept, without_sizes
from tools.small_models import model_types

TEXT = DOCUMENT.read_text(encoding="utf-8")
# through the interface, in own code, with a gate, a sink and mixers, of two stacks, and refused
SOME = ("bert", "gpt2", "gemma2", "gpt_oss", "qwen3_next", "lfm2", "t5", "vit",
        "bloom", "deberta-v2", "falcon", "gptj", "fnet", "bitnet")  # fmt: skip


@pytest.mark.parametrize("model_type", SOME)
def test_a_model_type_is_what_its_line_states(model_type: str) -> None:
    for row in rows_of(model_type):
        # numbers that are too large, and other exceptions, would have another outcome
        assert row.outcome in ("captured", "refused"), row.words
        if row.outcome == "captured":
            assert without_sizes(row.line()) in without_sizes(TEXT)
        if row.words:
            (line,) = (one for one in TEXT.splitlines() if one.endswith(f": {row.words}"))
            assert model_type in line.partition(":")[0]


@pytest.mark.slow
@pytest.mark.full
def test_the_page_is_what_a_sweep_writes() -> None:
    rows = [row for _, some in swept(model_types()) for row in some]
    assert not [row for row in rows if row.outcome in ("wrong", "error")]
    assert without_sizes(page(rows)) == without_sizes(TEXT)


def test_a_wrong_number_is_no_capture() -> None:
    # the page lists captured and refused types alone, so that a wrong one is missing from it
    wrong = Row("bert", "wrong", patterns=0.5, words="patterns differ")
    assert wrong.line() not in page([wrong])
