"""What is captured is what the model computed, in every family; bad input is named."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from capacity.errors import InvalidArgumentError, PrecisionWarning
from capacity.layer import AttentionLayer, LayerConfig
from capacity.transformer import Captured, capture
from capacity.transformer.captured import check

Build = Callable[..., Any]
Sentences = dict[str, torch.Tensor]


def test_logits_and_values_give_the_pattern_and_what_heads_put_out(
    build: Build, family: str, sentences: Sentences
) -> None:
    captured = capture(build(family), sentences)
    real = captured.mask
    seen = real[:, None, None, :].expand(-1, 1, 9, -1)
    if captured.causal:
        seen = seen & torch.ones(9, 9).tril().bool()
    for layer in captured.layers:
        logits = (layer.q @ layer.k.mT * layer.scale).masked_fill(~seen, -torch.inf)
        pattern = logits.softmax(-1) * real[:, None, :, None]
        # Llama-like models take the softmax in float32
        assert torch.allclose(layer.pattern, pattern, atol=1e-6)
        assert torch.allclose(layer.pattern @ layer.v, layer.z, atol=1e-6)
        assert (layer.pattern.sum(-1)[:, 0][real] - 1).abs().max() < 1e-6


def test_patterns_are_those_that_the_model_returns(
    build: Build, family: str, sentences: Sentences
) -> None:
    model = build(family)
    captured = capture(model, sentences)
    with torch.no_grad():
        told = model(**sentences, output_attentions=True).attentions
    real = captured.mask[:, None, :, None]
    real = real & real.mT
    assert len(told) == captured.n_layers
    for layer, pattern in zip(captured.layers, told, strict=True):
        assert torch.equal(layer.pattern, pattern * real)


def test_grouped_values_are_repeated_for_their_query_heads(
    build: Build, sentences: Sentences
) -> None:
    v = capture(build("Llama"), sentences).layers[0].v
    # two groups of two heads
    assert torch.equal(v[:, 0], v[:, 1])
    assert torch.equal(v[:, 2], v[:, 3])
    assert not torch.equal(v[:, 0], v[:, 2])


def test_a_value_bias_moves_every_value_by_the_same(build: Build, sentences: Sentences) -> None:
    layer = capture(build("Bert"), sentences).layers[0]
    assert layer.b_V is not None
    moved = layer.v - layer.v_unbiased
    assert torch.allclose(moved, layer.b_V[:, None].expand_as(moved))
    # and what heads put out too, for rows of attention sum to 1
    assert torch.allclose((layer.z - layer.z_unbiased)[0], moved[0])


def test_padding_on_the_left_is_left_out_as_well(build: Build, sentences: Sentences) -> None:
    tokens = sentences["input_ids"][:1, :6]
    inputs = {
        "input_ids": torch.cat([torch.full((1, 3), 7), tokens], dim=1),
        "attention_mask": torch.tensor([[0] * 3 + [1] * 6]),
        "position_ids": torch.tensor([[0] * 3 + list(range(6))]),
    }
    model = build("Llama", torch.float32)
    alone, padded = capture(model, tokens), capture(model, inputs)
    for a, b in zip(alone.layers, padded.layers, strict=True):
        assert torch.allclose(a.pattern, b.pattern[:, :, 3:, 3:], atol=1e-6)
        assert not b.pattern[:, :, :3].any()
        assert not b.pattern[..., :3].any()
    # in float64 the model itself loses such sentences to NaN
    with pytest.raises(InvalidArgumentError, match="pad on the right, or use float32"):
        capture(build("Llama"), inputs)


def test_a_model_is_left_as_it_was(build: Build, sentences: Sentences) -> None:
    model = build("Bert").train()
    model.bert.encoder.layer[1].eval()
    first = capture(model, sentences)
    assert model.training
    assert not model.bert.encoder.layer[1].training
    assert not model.bert.encoder.layer[0].attention.self._forward_hooks
    # without dropout, whatever mode it is in
    assert torch.equal(first.layers[1].z, capture(model, sentences).layers[1].z)


def test_nothing_that_is_captured_asks_for_gradients(
    build: Build, family: str, sentences: Sentences
) -> None:
    captured = capture(build(family), sentences)
    held = [getattr(layer, name) for layer in captured.layers for name in vars(layer)]
    held += [getattr(step, name) for step in captured.steps for name in vars(step)]
    assert not any(isinstance(x, torch.Tensor) and x.requires_grad for x in held)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_copied_to_float32_and_says_so(
    build: Build, dtype: torch.dtype, sentences: Sentences
) -> None:
    model = build("Bert", dtype)
    with pytest.warns(PrecisionWarning, match="a copy in float32 is analysed"):
        captured = capture(model, sentences)
    assert captured.layers[0].pattern.dtype == torch.float32
    assert next(model.parameters()).dtype == dtype


def test_a_layer_of_the_project_is_captured_in_the_same_form() -> None:
    config = LayerConfig(6, 2, 2, 3, bias=True, layer_norm=True, n_positions=4)
    layer = AttentionLayer(config, 10, seed=0, dtype=torch.float64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6]])
    captured = capture(layer, tokens)
    whole = captured.layers[0]
    assert torch.allclose(whole.pattern @ whole.v, whole.z)
    stream = captured.start
    for step in captured.steps:
        stream = step.applied_to(stream)
    assert torch.allclose(stream @ layer.W_U + layer.b_U, layer(tokens))


def test_padding_changes_nothing_for_a_layer_of_the_project() -> None:
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), 10, seed=0)
    padded = layer.capture(torch.tensor([[1, 2, 9]]), torch.tensor([[1, 1, 0]]))
    alone = layer.capture(torch.tensor([[1, 2]]))
    assert torch.allclose(padded.layers[0].z[:, :, :2], alone.layers[0].z)
    with pytest.raises(InvalidArgumentError, match="must come after a sentence"):
        layer.capture(torch.tensor([[9, 1, 2]]), torch.tensor([[0, 1, 1]]))


ERRORS = {
    "no attention": (nn.Linear(2, 2), {}, "must be one of BertModel.*got Linear"),
    "longer than the model": (None, {"input_ids": torch.ones(1, 33, dtype=torch.int64)},
                              "at most 32 tokens, the model's max_position.*got 33"),
    "an unknown token": (None, {"input_ids": torch.tensor([[3, 50]])}, "from 0 to 49"),
    "one sentence, no batch": (None, {"input_ids": torch.tensor([3, 4])}, "shape .batch, n.*"),
    "a list": (None, {"input_ids": [[3, 4]]}, "got list. Call the tokenizer with return_tensors"),
    "no token": (None, {"input_ids": torch.ones(1, 0, dtype=torch.int64)}, "got .1, 0."),
    "padding alone": (None, {"attention_mask": torch.tensor([[1] * 9, [0] * 9, [1] * 9])},
                      "number 1 .counted from 0. is padding alone"),
    "another mask's shape": (None, {"attention_mask": torch.ones(2, 9)}, r"\(3, 9\); got \(2, 9\)"),
    "a mask of weights": (None, {"attention_mask": torch.full((3, 9), 0.5)}, "0 for padding"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_bad_input_is_named(build: Build, sentences: Sentences, case: str) -> None:
    other, more, message = ERRORS[case]
    model = build("Bert") if other is None else other
    inputs = {**sentences, **more}
    if "input_ids" in more:
        del inputs["attention_mask"]
    with pytest.raises(InvalidArgumentError, match=re.compile(message, re.DOTALL)):
        capture(model, inputs)


def test_kernels_that_hide_the_pattern_are_named(build: Build, sentences: Sentences) -> None:
    model = build("Bert", attn_implementation="sdpa")
    with pytest.raises(InvalidArgumentError, match="attn_implementation='eager'; got 'sdpa'"):
        capture(model, sentences)


def test_attention_across_sequences_is_refused(build: Build, sentences: Sentences) -> None:
    model = build("Bert", is_decoder=True, add_cross_attention=True)
    with pytest.raises(InvalidArgumentError, match="attends across sequences"):
        capture(model, sentences)


def test_a_window_shorter_than_the_sentence_is_refused(build: Build, sentences: Sentences) -> None:
    model = build("Mistral", sliding_window=4)
    with pytest.raises(InvalidArgumentError, match="at most 4 tokens, the model's sliding_window"):
        capture(model, sentences)


def test_heads_that_do_something_else_are_refused(build: Build, sentences: Sentences) -> None:
    captured = capture(build("Bert"), sentences)
    layer = captured.layers[0]
    # what an attention sink would leave: rows that sum to less than 1
    sink = type(layer)(**{**vars(layer), "pattern": layer.pattern * 0.9, "z": layer.z * 0.9})
    with pytest.raises(InvalidArgumentError, match=r"layer 1 .* rows are off by 0.1"):
        check(Captured(**{**_fields(captured), "layers": (sink,)}), relative=1e-9)


def _fields(captured: Captured) -> dict[str, Any]:
    return {name: getattr(captured, name) for name in captured.__dataclass_fields__}
