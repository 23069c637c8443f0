"""A language model with real weights: what is captured, and terms that sum to what it computes."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch

from capacity.transformer import ActivationCache, capture, decompose
from experiments.common.models import smollm2

pytestmark = pytest.mark.slow
TEXTS = [
    "The capital of Japan is Tokyo, and the currency of Kenya is the shilling.",
    "Lima is in Peru.",
]


@cache
def captured() -> tuple[Any, dict[str, Any], ActivationCache]:
    model, tokenizer = smollm2()
    tokenizer.padding_side = "left"
    inputs = dict(tokenizer(TEXTS, padding=True, return_tensors="pt"))
    found = capture(model, inputs)
    # the second text is padded, and counted from its first token, as `capture` does
    assert not inputs["attention_mask"][1, 0]
    inputs["position_ids"] = (inputs["attention_mask"].cumsum(1) - 1).clamp_min(0)
    model.set_attn_implementation("eager")
    return model, inputs, found


def test_patterns_are_those_of_eager_attention() -> None:
    model, inputs, found = captured()
    assert (found.n_layers, found.layers[0].pattern.shape[1]) == (30, 9)
    with torch.no_grad():
        told = model(**inputs, output_attentions=True).attentions
    real = found.mask[:, None, :, None]
    for layer, pattern in zip(found.layers, told, strict=True):
        assert (layer.pattern - pattern * (real & real.mT)).abs().max() == 0.0


def test_terms_sum_to_every_hidden_state() -> None:
    model, inputs, found = captured()
    split = decompose(found)
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    real = found.mask
    assert len(states) == len(split.embeddings) == 31
    for ours, theirs in zip(split.embeddings, states, strict=True):
        off = (ours - theirs)[real].norm(dim=-1) / theirs[real].norm(dim=-1)
        assert off.max() < 1e-6


def test_padding_on_the_left_changes_nothing_that_is_captured() -> None:
    model, inputs, found = captured()
    n = int(inputs["attention_mask"][1].sum())
    alone = capture(model, {name: value[1:, -n:] for name, value in inputs.items()})
    for one, both in zip(alone.layers, found.layers, strict=True):
        assert (one.pattern[0] - both.pattern[1, :, -n:, -n:]).abs().max() < 1e-5
        assert torch.allclose(one.z[0], both.z[1, :, -n:], rtol=1e-4, atol=1e-4)
