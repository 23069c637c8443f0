"""Parts sum to logits, and given attention is the model's own, in families with their own ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from capacity.recall.components.logits import component_logits
from capacity.recall.components.patterns import Patterns
from capacity.recall.components.prompts import Prompts
from capacity.recall.components.replaced import Outputs
from capacity.recall.templates import Template
from capacity.transformer import capture
from capacity.transformer.activations.fixed_attention import fixed_attention
from tests.transformer.tiny_models import build

# a norm before each sum and a cap, experts and sinks, gates, Mamba, no attention in some layers
FAMILIES = ("Phi", "Gemma 2", "GPT-OSS", "Qwen3-Next", "Jamba", "Granite", "Gemma 4")
QUICK = ("GPT-OSS",)
MARKED = [pytest.param(f, marks=[] if f in QUICK else pytest.mark.slow) for f in FAMILIES]


def prompts() -> Prompts:
    """Prompts of four subjects, of one to three tokens."""
    subjects = [(11,), (12, 13), (14, 15, 16), (17,)]
    n = len(subjects)
    own = np.array([0, 1, 2, 0])
    return Prompts(
        "capital",
        Template("The capital of {subject} is {object}"),
        ("a", "b", "c", "d"),
        tuple((5, 6, *subject, 7) for subject in subjects),
        tuple((1, 1, *(0 for _ in subject), 1) for subject in subjects),
        (20, 30, 40),
        ("x", "y", "z"),
        np.arange(n),
        np.arange(n),
        own,
        np.arange(3) != own[:, None],
    )


def logits_of(model: Any, ids: tuple[int, ...], tokens: tuple[int, ...]) -> Any:
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0, -1, list(tokens)].numpy()


@pytest.mark.parametrize("family", MARKED)
def test_parts_of_every_family_sum_to_its_logits(family: str) -> None:
    model = build(family, torch.float64, head="ForCausalLM")
    asked = prompts()
    found = component_logits(model, asked, batch_size=3)
    assert found.off < 1e-5
    heads = [i for i, one in enumerate(found.components) if one.name == "head"]
    np.testing.assert_allclose(found.by_source.sum(1), found.parts[heads], atol=1e-9)
    cap = getattr(model.config.get_text_config(), "final_logit_softcapping", None)
    for k, ids in enumerate(asked.ids):
        own = logits_of(model, ids, asked.tokens)
        summed = found.parts[:, k].sum(0)
        summed = summed if cap is None else cap * np.tanh(summed / cap)
        np.testing.assert_allclose(summed, own, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", MARKED)
def test_a_models_own_attention_and_outputs_change_nothing(family: str) -> None:
    model = build(family, torch.float64, head="ForCausalLM")
    asked = prompts()
    for row, ids in enumerate(asked.ids):
        own = logits_of(model, ids, asked.tokens)
        captured = capture(model, torch.tensor([ids]))
        each = zip(captured.layer_numbers, captured.layers, strict=True)
        with fixed_attention(model, {number: layer.pattern for number, layer in each}):
            fixed = logits_of(model, ids, asked.tokens)
        np.testing.assert_allclose(fixed, own, rtol=1e-5, atol=1e-6)
        outputs = Outputs(model, asked, [row], 2)
        heads = [(a, h) for a, n in outputs.n_heads.items() for h in range(n)]
        with outputs.context(model, heads, "mean", np.random.default_rng(0))([row], len(ids)):
            written = logits_of(model, ids, asked.tokens)
        np.testing.assert_allclose(written, own, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", MARKED)
def test_mean_attention_of_the_same_prompts_is_their_own(family: str) -> None:
    model = build(family, torch.float64, head="ForCausalLM")
    one = prompts()
    # each half has the same prompt
    rows = [2, 2]
    ids, sources = (tuple(x[i] for i in rows) for x in (one.ids, one.sources))
    twice = Prompts(one.predicate, one.template, one.subjects[:2], ids, sources, one.tokens,
                    one.texts, one.facts[:2], one.prompt[:2], one.own[:2],
                    one.wrong[:2])  # fmt: skip
    patterns = Patterns(model, twice, np.array([0, 1]), 4)
    own = logits_of(model, ids[0], one.tokens)
    with patterns.context(model, patterns.layers)([0], len(ids[0])):
        np.testing.assert_allclose(logits_of(model, ids[0], one.tokens), own, rtol=1e-5, atol=1e-6)


def test_mean_attention_is_that_of_other_prompts_place_by_place() -> None:
    model = build("Phi", torch.float64, head="ForCausalLM")
    asked = prompts()
    # the third prompt, of three tokens, is run with the mean of those of one and two tokens
    patterns = Patterns(model, asked, np.array([0, 0, 1, 1]), 4)
    found = patterns._mean(2, len(asked.ids[2]))
    one, two = (capture(model, torch.tensor([asked.ids[i]])) for i in (0, 1))
    one, two = (torch.cat([layer.pattern[0] for layer in x.layers]) for x in (one, two))
    # rows of tokens before the subject, which all prompts have
    torch.testing.assert_close(found[:, :2, :2], (one[:, :2, :2] + two[:, :2, :2]) / 2)
    # of the last row: to the template's words and to the subject's last token, then to tokens that
    # the second prompt alone has, and that the third has twice
    wanted = torch.stack([
        (one[:, 3, 0] + two[:, 4, 0]) / 2,
        (one[:, 3, 1] + two[:, 4, 1]) / 2,
        two[:, 4, 2],
        two[:, 4, 2],
        (one[:, 3, 2] + two[:, 4, 3]) / 2,
        (one[:, 3, 3] + two[:, 4, 4]) / 2,
    ], dim=-1)  # fmt: skip
    torch.testing.assert_close(found[:, 5], wanted / wanted.sum(-1, keepdim=True))
