"""What is captured is what the model computed, in every family; bad input is named."""

import gc
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.weak import TensorWeakRef

from capacity.errors import InvalidArgumentError, PrecisionWarning
from capacity.layer import AttentionLayer, LayerConfig
from capacity.transformer import (
    ActivationCache,
    capture,
    decompose,
    effective_attention,
    effective_share,
    identifiability_table,
)
from capacity.transformer.activations.following.modules import weight_of
from capacity.transformer.activations.records.cache import Written
from capacity.transformer.activations.records.validation import check, check_written
from capacity.transformer.table import attention_table

Build = Callable[..., Any]
Sentences = dict[str, torch.Tensor]


def replayed(captured: ActivationCache) -> torch.Tensor:
    """The residual stream after all steps."""
    stream = captured.start
    for step in captured.steps:
        stream = step.applied_to(stream)
    return stream


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


def test_layers_and_heads_are_counted_from_0_as_in_the_cache(
    build: Build, family: str, sentences: Sentences
) -> None:
    captured = capture(build(family), sentences)
    effective = effective_attention(captured, "plain")
    real = captured.mask
    heads = {s.layer: s for s in captured.steps if isinstance(s, Written) and s.term == "heads"}
    assert sorted(heads) == list(range(captured.n_layers))
    for index, step in heads.items():
        at = captured.layers[index]
        written = torch.einsum("bhnv,hvd->bnd", at.z_unbiased, at.W_O)
        assert torch.allclose(step.output[real], written[real], atol=1e-6)
    # norms and maps of the embeddings precede the first layer
    indices = [step.layer for step in captured.steps]
    first = indices.index(0)
    numbered = [index for index in indices if index is not None]
    assert indices == [None] * first + sorted(numbered)
    table = attention_table(captured, effective)
    shares = [
        effective_share(before.pattern, after.pattern)
        for before, after in zip(captured.layers, effective.layers, strict=True)
    ]
    named = table[["sentence", "layer", "head", "effective_share"]].to_numpy().tolist()
    for sentence, layer, head, share in named:
        assert share == pytest.approx(float(shares[int(layer)][int(sentence), int(head)]))


def test_a_message_counts_layers_from_0(build: Build, sentences: Sentences) -> None:
    captured = capture(build("Bert"), sentences)
    first, second = captured.layers
    wrong = replace(second, z=second.z * torch.nan)
    with pytest.raises(InvalidArgumentError, match="layer 1 of BertForMaskedLM"):
        check(replace(captured, layers=(first, wrong)))


def test_grouped_values_are_repeated_for_their_query_heads(
    build: Build, sentences: Sentences
) -> None:
    v = capture(build("Llama"), sentences).layers[0].v
    # two groups of two heads
    assert torch.equal(v[:, 0], v[:, 1])
    assert torch.equal(v[:, 2], v[:, 3])
    assert not torch.equal(v[:, 0], v[:, 2])


def weights_of_values(model: Any, family: str) -> tuple[torch.Tensor, Any, Any]:
    """W_V and the input of layer 0's heads, from the model's own modules."""
    if family == "Bert":
        layer = model.bert.encoder.layer[0].attention.self
        return layer.value.weight.T, layer, lambda x: x
    if family == "Albert":
        layer = model.albert.encoder.albert_layer_groups[0].albert_layers[0].attention
        return layer.value.weight.T, layer, lambda x: x
    if family == "GPT2":
        layer = model.transformer.h[0].attn
        return layer.c_attn.weight.chunk(3, dim=1)[2], layer, lambda x: x
    layer = model.model.layers[0].self_attn
    return layer.v_proj.weight.T, layer, lambda x: x.repeat_interleave(2, dim=1)


def test_values_without_bias_are_inputs_times_w_v(
    build: Build, family: str, sentences: Sentences
) -> None:
    model = build(family)
    W_V, heads, repeated = weights_of_values(model, family)
    seen = []
    hook = heads.register_forward_hook(
        lambda _, args, kwargs, __: seen.append((*args, kwargs.get("hidden_states"))[0]),
        with_kwargs=True,
    )
    captured = capture(model, sentences)
    hook.remove()
    layer = captured.layers[0]
    expected = repeated((seen[0] @ W_V).unflatten(-1, (-1, 4)).transpose(1, 2))
    real = captured.mask[:, None, :, None].expand_as(expected)
    assert torch.allclose(layer.v_unbiased[real], expected[real])
    assert (layer.b_V is None) == (family in ("Llama", "Mistral"))


def test_albert_s_groups_and_inner_layers_are_told_apart(
    build: Build, sentences: Sentences
) -> None:
    model = build("Albert", num_hidden_groups=3, inner_group_num=2)
    captured = capture(model, sentences)
    with torch.no_grad():
        told = model(**sentences, output_attentions=True).attentions
    real = captured.mask[:, None, :, None]
    assert captured.n_layers == len(told) == 6
    for layer, pattern in zip(captured.layers, told, strict=True):
        assert torch.equal(layer.pattern, pattern * (real & real.mT))


def test_a_bert_that_decodes_is_causal(build: Build, sentences: Sentences) -> None:
    captured = capture(build("Bert", is_decoder=True), sentences)
    assert captured.causal
    assert not any(layer.pattern.triu(1).any() for layer in captured.layers)
    # and a Llama made an encoder is not
    assert not capture(build("Llama", is_causal=False), sentences).causal


@pytest.mark.parametrize("told", [True, False])
def test_padding_on_the_left_is_left_out_as_well(
    build: Build, family: str, told: bool, sentences: Sentences
) -> None:
    tokens = sentences["input_ids"][:1, :6]
    inputs = {
        "input_ids": torch.cat([torch.full((1, 3), 7), tokens], dim=1),
        "attention_mask": torch.tensor([[0] * 3 + [1] * 6]),
    }
    if told:
        inputs["position_ids"] = torch.tensor([[0] * 3 + list(range(6))])
    model = build(family, torch.float32)
    alone, padded = capture(model, tokens), capture(model, inputs)
    for a, b in zip(alone.layers, padded.layers, strict=True):
        assert torch.allclose(a.pattern, b.pattern[:, :, 3:, 3:], atol=1e-5)
        assert not b.pattern[:, :, :3].any()
        assert not b.pattern[..., :3].any()
        assert not b.v[:, :, :3].any()
        assert not b.z[:, :, :3].any()


def test_float64_holds_the_mask_of_a_softmax_in_float32(build: Build, sentences: Sentences) -> None:
    # the model's own mask is beyond float32, and leaves NaN in rows of padding
    inputs = {**sentences, "attention_mask": sentences["attention_mask"].flip(1)}
    captured = capture(build("Llama"), inputs)
    rows = captured.layers[1].pattern.sum(-1)
    assert torch.allclose(rows, captured.mask[:, None].double().expand_as(rows))


def test_several_sentences_in_a_row_are_refused(build: Build) -> None:
    inputs = {
        "input_ids": torch.tensor([[3, 4, 5, 6]]),
        "position_ids": torch.tensor([[0, 1, 0, 1]]),
    }
    with pytest.raises(InvalidArgumentError, match="several sentences in one row"):
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


def test_a_model_is_left_as_it_was_when_it_fails(build: Build, sentences: Sentences) -> None:
    model = build("Bert").train()

    def fail(*_: Any) -> None:
        raise RuntimeError("on the way")

    hook = model.bert.encoder.layer[1].register_forward_hook(fail)
    with pytest.raises(InvalidArgumentError, match=r"raises RuntimeError, 'on the way'\. Check"):
        capture(model, sentences)
    hook.remove()
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks for module in model.modules())


def test_what_was_captured_outlives_training(
    build: Build, family: str, sentences: Sentences
) -> None:
    model = build(family)
    captured = capture(model, sentences)
    layer = captured.layers[0]
    before = [layer.T.clone(), replayed(captured)]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    assert torch.equal(layer.T, before[0])
    assert torch.equal(replayed(captured), before[1])


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


def test_half_precision_is_not_let_in_by_autocast(build: Build, sentences: Sentences) -> None:
    model = build("Bert", torch.float32)
    plain = capture(model, sentences)
    with torch.autocast("cpu", torch.bfloat16):
        inside = capture(model, sentences)
    assert torch.equal(plain.layers[1].z, inside.layers[1].z)
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), 10).to(torch.bfloat16)
    with pytest.warns(PrecisionWarning, match="bfloat16"):
        assert capture(layer, torch.tensor([[1, 2]])).layers[0].z.dtype == torch.float32


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
    assert torch.allclose(replayed(captured) @ layer.W_U + layer.b_U, layer(tokens))


def test_padding_changes_nothing_for_a_layer_of_the_project() -> None:
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), 10, seed=0)
    padded = layer.capture(torch.tensor([[1, 2, 9]]), torch.tensor([[1, 1, 0]]))
    alone = layer.capture(torch.tensor([[1, 2]]))
    assert torch.allclose(padded.layers[0].z[:, :, :2], alone.layers[0].z)
    assert not padded.layers[0].pattern[:, :, 2].any()
    assert not padded.layers[0].v[:, :, 2].any()
    with pytest.raises(InvalidArgumentError, match="must come after a sentence"):
        layer.capture(torch.tensor([[9, 1, 2]]), torch.tensor([[0, 1, 1]]))
    with pytest.raises(InvalidArgumentError, match="between 0 and d_vocab - 1 = 9; got -1"):
        capture(layer, torch.tensor([[1, -1]]))
    with pytest.raises(InvalidArgumentError, match="among input_ids, attention_mask; got"):
        capture(layer, {"input_ids": torch.tensor([[1]]), "position_ids": torch.tensor([[0]])})


ERRORS = {
    "no attention": (nn.Linear(2, 2), {}, "must be one of transformers.*got Linear"),
    "longer than the model": (None, {"input_ids": torch.ones(1, 33, dtype=torch.int64)},
                              "at most 32 tokens, the model's max_position.*got 33"),
    "an unknown token": (None, {"input_ids": torch.tensor([[3, 50]])}, "d_vocab - 1 = 49; got 50"),
    "tokens in halves": (None, {"input_ids": torch.tensor([[3.5, 5.0]])}, "int32 or int64; got"),
    "a mask as a list": (None, {"attention_mask": [[1] * 9] * 3}, "tokens' shape, .*; got list"),
    "embeddings": (None, {"inputs_embeds": torch.ones(3, 9, 16)}, "got .'inputs_embeds'. too"),
    "segments elsewhere": (None, {"token_type_ids": torch.zeros(3, 8, dtype=torch.int64)},
                           "token_type_ids. must have the shape"),
    "no such segment": (None, {"token_type_ids": torch.full((3, 9), 2)}, "between 0 and 1"),
    "no such position": (None, {"position_ids": torch.full((3, 9), 32)}, "between 0 and 31"),
    "one sentence, no batch": (None, {"input_ids": torch.tensor([3, 4])}, "shape .batch, n.*"),
    "a list": (None, {"input_ids": [[3, 4]]}, "got list. A tokenizer returns one"),
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


def test_any_implementation_of_attention_is_recorded_and_left_as_it_was(
    build: Build, sentences: Sentences
) -> None:
    eager, other = build("Bert"), build("Bert", attn_implementation="sdpa")
    first, second = capture(eager, sentences), capture(other, sentences)
    for a, b in zip(first.layers, second.layers, strict=True):
        assert torch.equal(a.pattern, b.pattern)
    assert other.config._attn_implementation == "sdpa"
    # and after an error as well
    other.bert.encoder.layer[1].register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(InvalidArgumentError, match="raises ZeroDivisionError"):
        capture(other, sentences)
    assert other.config._attn_implementation == "sdpa"


def test_a_window_is_what_tokens_attend_to(build: Build) -> None:
    captured = capture(build("Mistral", sliding_window=4), torch.arange(3, 12)[None])
    window = torch.ones(9, 9).tril().triu(-3).bool()
    for layer in captured.layers:
        assert layer.seen is not None
        assert torch.equal(layer.seen[0], window)
        assert not layer.pattern[:, :, ~window].any()
    for layer, found in zip(captured.layers, effective_attention(captured).layers, strict=True):
        assert not found.pattern[:, :, ~window].any()
        assert torch.allclose(found.pattern @ layer.v, layer.z, atol=1e-6)
        # four tokens and four dimensions of values: rows are unique, and keep their attention
        assert torch.allclose(found.pattern, layer.pattern, atol=1e-6)
    # with a sum of 1, which is one more equation
    assert identifiability_table(captured)["identifiable_rows"].tolist() == [9] * 8


def test_heads_that_do_something_else_are_refused(build: Build, sentences: Sentences) -> None:
    captured = capture(build("Bert"), sentences)
    first, second = captured.layers
    # what an attention sink would leave, rows that sum to less than 1; and another path to z
    wrong = {
        "rows are off by 0.1": replace(first, pattern=first.pattern * 0.9, z=first.z * 0.9),
        "heads by 0.2": replace(first, z=first.z * 1.25),
        "NaN or infinite": replace(first, z=first.z * torch.nan),
        "damaged": replace(first, v=first.v * torch.inf),
        "what they added differs": replace(first, W_O=first.W_O.flip(1)),
    }
    # of padding alone, which no token attends to
    padded = first.z.clone()
    padded.transpose(1, 2)[~captured.mask] = torch.nan
    wrong["positions of padding alone.*nan_to_num"] = replace(first, z=padded)
    for message, layer in wrong.items():
        with pytest.raises(InvalidArgumentError, match=message):
            check_written(ActivationCache(**{**_fields(captured), "layers": (layer, second)}))
    with pytest.raises(InvalidArgumentError, match="must not attend to later tokens"):
        check(ActivationCache(**{**_fields(captured), "causal": True}))


def test_wrapped_projections_are_refused(build: Build, sentences: Sentences) -> None:
    class Wrapped(nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.weight, self.bias = inner, inner.weight, inner.bias

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) + 1

    model = build("Bert")
    attention = model.bert.encoder.layer[0].attention
    attention.output.dense = Wrapped(attention.output.dense)
    captured = capture(model, sentences)
    with pytest.raises(InvalidArgumentError, match="layer 0 of BertForMaskedLM something is added"):
        decompose(captured)


def test_a_stream_that_is_taken_apart_has_no_decomposition_but_patterns(
    build: Build, sentences: Sentences
) -> None:
    # chunks of a sentence are normed one by one, and put together again
    captured = capture(build("Bert", chunk_size_feed_forward=3), sentences)
    plain = capture(build("Bert"), sentences)
    for one, other in zip(captured.layers, plain.layers, strict=True):
        assert torch.allclose(one.pattern, other.pattern)
    with pytest.raises(InvalidArgumentError, match="ends with something else than a sum or a norm"):
        decompose(captured)


def _fields(captured: ActivationCache) -> dict[str, Any]:
    return {name: getattr(captured, name) for name in captured.__dataclass_fields__}


def test_captures_share_weights_until_these_change(build: Build) -> None:
    model = build("Bert", torch.float32)
    ids = torch.randint(5, 50, (1, 6), generator=torch.Generator().manual_seed(0))
    first, second = capture(model, ids), capture(model, ids)
    linear = model.bert.encoder.layer[0].attention.output.dense
    before = linear.weight.detach().clone()
    assert first.layers[0].W_O.data_ptr() == second.layers[0].W_O.data_ptr()
    assert first.layers[0].W_O.data_ptr() != linear.weight.data_ptr()
    # less than a check of outputs would see, and by a way of which torch keeps no count
    linear.weight.data.mul_(1 + 1e-6)
    third = capture(model, ids)
    assert torch.equal(first.layers[0].W_O.flatten(0, 1), before.T)
    assert torch.equal(third.layers[0].W_O.flatten(0, 1), linear.weight.T)
    # what heads write is checked by the new weights, not by what is known of the old ones
    linear.weight.data.mul_(2)
    assert torch.equal(capture(model, ids).layers[0].W_O.flatten(0, 1), linear.weight.T)
    # the other layer's weights are as they were
    assert third.layers[1].W_O.data_ptr() == first.layers[1].W_O.data_ptr()


@pytest.mark.parametrize("place", ["a part of a matrix", "an odd place in a vector"])
def test_copies_are_compared_wherever_weights_lie(place: str) -> None:
    linear, numbers = nn.Linear(4, 6), torch.randn(6, 9)
    lies = numbers[:, :4] if place == "a part of a matrix" else numbers.flatten()[1:25].view(6, 4)
    linear.weight = nn.Parameter(lies)
    first = weight_of(linear)
    assert torch.equal(first, lies.T)
    assert weight_of(linear).data_ptr() == first.data_ptr()
    linear.weight.data[-1, -1] += 1
    assert torch.equal(weight_of(linear), lies.T)
    assert not torch.equal(first, lies.T)


@pytest.mark.parametrize(("size", "kept"), [(4, True), (1025, False)])
def test_large_weights_are_kept_by_caches_alone_and_small_ones_by_their_module(
    size: int, kept: bool
) -> None:
    linear = nn.Linear(size, size)
    weight = weight_of(linear)
    assert weight._base is not None
    held = TensorWeakRef(weight._base)
    del weight
    assert (held() is not None) == kept
    del linear
    gc.collect()
    assert held() is None
