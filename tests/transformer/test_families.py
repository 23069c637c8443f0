"""Laws of what is captured, for a tiny model of every family, in both types."""

from typing import Any

import pytest
import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer import (
    ActivationCache,
    capture,
    constant_rank_bound,
    decompose,
    effective_attention,
    effective_share,
    head_importance,
    head_terms,
    identifiability_table,
    output_head,
)
from capacity.transformer.residual.additive_decomposition import HEADS
from tests.transformer.tiny_models import FAMILIES, HIDDEN, PADDING, build, inputs_of

CASES = [(name, part) for name, family in FAMILIES.items() for part in family.parts]
TEXTS = [name for name, family in FAMILIES.items() if family.inputs == "text"]
DTYPES = [torch.float32, pytest.param(torch.float64, marks=[pytest.mark.slow, pytest.mark.full])]
# norms, rotations and softmax of most families are in float32, whatever their model is in
SLACK = 2e-6
# biases of positions, scores of positions, and caps
NOT_SOFT = ("T5", "Gemma 2", "Doge", "BLOOM", "MPT", "Falcon, alibi", "DeBERTa", "DeBERTa-v2",
            "MPNet")  # fmt: skip
# these compute logits in float32, whatever they are in
FLOAT32 = ("GPT-Neo", "GPT-J", "CodeGen")
every = pytest.mark.parametrize(("name", "part"), CASES, ids=[f"{n} {p or ''}" for n, p in CASES])
both = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])
texts = pytest.mark.parametrize("name", TEXTS)


def captured_of(
    name: str, part: Any, dtype: torch.dtype
) -> tuple[Any, dict[str, Tensor], ActivationCache]:
    model, inputs = build(name, dtype), inputs_of(name, dtype, part)
    return model, inputs, capture(model, inputs, part=part, check="full")


def told_by(model: Any, inputs: dict[str, Tensor], part: str | None) -> Any:
    running = model.get_encoder() if part == "encoder" else model
    with torch.no_grad():
        return running(**inputs, output_attentions=True, output_hidden_states=True)


@every
@both
def test_patterns_are_those_that_the_model_returns(
    name: str, part: Any, dtype: torch.dtype
) -> None:
    model, inputs = build(name, dtype), inputs_of(name, dtype, part)
    before = told_by(model, inputs, part)
    captured = capture(model, inputs, part=part, check="full")
    after = told_by(model, inputs, part)
    # the model isn't changed by it
    assert torch.equal(before[0], after[0])
    names = {"decoder": "decoder_attentions", "cross": "cross_attentions"}
    told = getattr(before, names.get(part, "attentions"))
    if name == "MiniMax":
        # lightning attention has no pattern, and returns something else in its place
        told = [told[number] for number in captured.layer_numbers]
    assert len(told) == captured.n_layers
    for layer, pattern in zip(captured.layers, told, strict=True):
        assert layer.pattern.dtype == dtype
        if name == "Granite SWA":
            # it multiplies the outputs, and not the pattern, by what a sink leaves
            assert layer.sink is not None
            pattern = pattern * (1 - layer.sink[..., None])
            assert torch.allclose(layer.pattern, pattern, rtol=0, atol=1e-6)
            continue
        # a cache of keys, which isn't used here, changes the order of sums
        eps = torch.finfo(torch.float32 if name in FLOAT32 else dtype).eps
        assert torch.allclose(layer.pattern, pattern, rtol=0, atol=4 * eps)
        assert (layer.pattern @ layer.v - layer.z).abs().max() <= SLACK * layer.z.abs().max()
        if layer.soft:
            logits = (layer.scale * layer.q @ layer.k.mT).masked_fill(pattern == 0, -torch.inf)
            weights = logits.softmax(-1)
            if layer.sink is not None:
                weights = weights * (1 - layer.sink[..., None])
            assert torch.allclose(weights, pattern, atol=1e-5)
        assert layer.soft == (name not in NOT_SOFT or part == "cross")


@every
@both
def test_the_values_bias_is_told_apart(name: str, part: Any, dtype: torch.dtype) -> None:
    model, inputs, captured = captured_of(name, part, dtype)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            module, _, kind = key.rpartition(".")
            module = module.rpartition(".")[2]
            marked = any(mark in module for mark in ("v_", "value", "qkv", "attn"))
            # MPNet's linear module is named v, and DeBERTa adds a bias of its own
            if (kind == "bias" and (marked or module == "v")) or kind == "v_bias":
                parameter.add_(0.0 if "norm" in module or "ln_" in module else 1.0)
    again = capture(model, inputs, part=part)
    first, second = captured.layers[0], again.layers[0]
    assert (first.b_V is None) == (second.b_V is None)
    if first.b_V is not None and second.b_V is not None:
        # inputs of the first layer's values are as before but for norms and embeddings
        assert torch.allclose(second.b_V, first.b_V + 1)
        if part != "cross":
            assert torch.allclose(second.v_unbiased, first.v_unbiased, atol=1e-4)


@every
@both
def test_effective_attention_and_identifiability(name: str, part: Any, dtype: torch.dtype) -> None:
    _, _, captured = captured_of(name, part, dtype)
    modes: list[Any] = ["plain", "simplex", *(["causal"] if captured.causal else [])]
    for mode in modes:
        effective = effective_attention(captured, mode)
        for layer, found in zip(captured.layers, effective.layers, strict=True):
            size = layer.z.abs().max()
            assert (found.pattern @ layer.v - layer.z).abs().max() <= 2e-5 * size
            share = effective_share(layer.pattern, found)
            assert torch.allclose(share, effective_share(layer.pattern, found.pattern), atol=1e-4)
            if mode == "causal" and layer.seen is not None:
                assert not found.pattern.masked_fill(layer.seen[:, None], 0.0).any()
    table = identifiability_table(captured)
    # nine tokens and eight values a head: [T, 1] has nine columns; images have 17 tokens, sounds 16
    n = captured.layers[0].v.shape[2] + (captured.layers[0].sink is not None)
    assert (table["nullity"] == max(n - 8, 0)).all()
    assert (table["nullity_simplex"] == max(n - 9, 0)).all()
    uncounted = captured.causal or part == "cross" or name in NOT_SOFT
    assert table["p4_excess"].isna().all() == uncounted


@every
@both
def test_the_terms_sum_to_the_models_embeddings(name: str, part: Any, dtype: torch.dtype) -> None:
    model, inputs, captured = captured_of(name, part, dtype)
    if part in ("decoder", "cross"):
        with pytest.raises(InvalidArgumentError, match="attention across sequences"):
            decompose(captured)
        return
    told = told_by(model, inputs, part)
    split, last = decompose(captured), told[0]
    assert (split.embeddings[-1] - last).abs().max() <= SLACK * last.abs().max()
    # hybrids have layers without attention, and two attentions of LongCat-Flash are two layers
    stages = split.embeddings[:: 2 if name == "LongCat-Flash" else 1]
    assert len(stages) == len(told.hidden_states)
    # hidden states of these lack the norm after the last layer
    compared = stages[: -1 if name in ("ViT", "CLIP, text", "DINOv3", "AST") else None]
    for ours, theirs in zip(compared, told.hidden_states, strict=False):
        assert (ours - theirs).abs().max() <= SLACK * theirs.abs().max()
    h = split.terms[-1, HEADS]
    assert torch.allclose(head_terms(captured).sum((0, 1)), h, atol=1e-5 * float(last.abs().max()))
    importance = head_importance(captured).sum((0, 1))
    assert torch.allclose(importance, split.importance()[-1, HEADS], atol=1e-4)
    bounds = constant_rank_bound(captured)
    assert all(r <= b for r, b in zip(split.constant_rank(relative=1e-5), bounds, strict=True))


@texts
@both
@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_padding_changes_nothing(name: str, dtype: torch.dtype, left: bool) -> None:
    model, tokens = build(name, dtype), inputs_of(name, dtype)["input_ids"]
    lengths = (9, 5)
    padded, mask = torch.full((2, 9), PADDING), torch.zeros(2, 9, dtype=torch.int64)
    at = [slice(9 - n, 9) if left else slice(0, n) for n in lengths]
    for row, (n, where) in enumerate(zip(lengths, at, strict=True)):
        padded[row, where], mask[row, where] = tokens[row, :n], 1
    given = {"input_ids": padded, "attention_mask": mask}
    if left and dtype == torch.float64 and name in ("BLOOM", "MPT"):
        # their softmax is in float32, which lacks the number that they mask rows of padding by
        with pytest.raises(InvalidArgumentError, match="NaN"):
            capture(model, given)
        return
    together = capture(model, given, check="full")
    for row, (n, where) in enumerate(zip(lengths, at, strict=True)):
        alone = capture(model, tokens[row : row + 1, :n])
        for a, b in zip(alone.layers, together.layers, strict=True):
            assert torch.allclose(a.pattern[0], b.pattern[row, :, where, where], atol=2e-5)
            assert torch.allclose(a.v[0], b.v[row, :, where], atol=2e-4)
            assert not b.pattern[row].masked_fill(mask[row].bool(), 0.0).any()
        one, all_ = (decompose(c).terms[-1] for c in (alone, together))
        assert torch.allclose(one[:, 0], all_[:, row, where], atol=1e-4 * float(one.abs().max()))


@pytest.mark.parametrize("name", HIDDEN)
def test_a_family_that_hides_its_attention_is_refused(name: str) -> None:
    model = build(name, torch.float32)
    with pytest.raises(InvalidArgumentError, match=r"none of \w+ does, .*from_tensors"):
        capture(model, inputs_of(name, torch.float32))


def test_the_part_of_an_encoder_decoder_is_named() -> None:
    model, inputs = build("T5", torch.float32), inputs_of("T5", torch.float32, "cross")
    with pytest.raises(InvalidArgumentError, match="'encoder', 'decoder', 'cross'"):
        capture(model, inputs)
    with pytest.raises(InvalidArgumentError, match="decoder_input_ids"):
        capture(model, {"input_ids": inputs["input_ids"]}, part="cross")
    with pytest.raises(InvalidArgumentError, match="must be omitted for a model of one stack"):
        capture(build("BERT", torch.float32), inputs["input_ids"], part="encoder")


def test_attention_across_sequences_has_masks_of_both() -> None:
    model, inputs = build("BART", torch.float64), inputs_of("BART", torch.float64, "cross")
    inputs["attention_mask"] = torch.tensor([[1] * 9, [1] * 5 + [0] * 4])
    inputs["decoder_attention_mask"] = torch.tensor([[1] * 7, [1] * 3 + [0] * 4])
    captured = capture(model, inputs, part="cross")
    assert captured.n_tokens == (9, 5)
    assert captured.n_rows == (7, 3)
    for mode in ("plain", "simplex"):
        for layer, found in zip(
            captured.layers, effective_attention(captured, mode).layers, strict=True
        ):
            assert found.pattern.shape == (2, 4, 7, 9)
            assert not found.pattern[1, :, 3:].any()
            assert not found.pattern[1, :, :, 5:].any()
            assert torch.allclose(found.pattern @ layer.v, layer.z, atol=1e-7)
            if mode == "simplex":
                assert torch.allclose(found.pattern.sum(-1)[0], torch.ones(()).double())


HEADS_OF_MODELS = {
    "BERT": "BertForMaskedLM", "RoBERTa": "RobertaForMaskedLM", "GPT-2": "GPT2LMHeadModel",
    "DistilBERT": "DistilBertForMaskedLM", "ELECTRA": "ElectraForMaskedLM", "OPT": "OPTForCausalLM",
    "ModernBERT": "ModernBertForMaskedLM", "ALBERT": "AlbertForMaskedLM", "Phi": "PhiForCausalLM",
    "Llama": "LlamaForCausalLM", "Gemma 2": "Gemma2ForCausalLM", "Granite": "GraniteForCausalLM",
    "Mixtral": "MixtralForCausalLM", "GPT-NeoX (Pythia)": "GPTNeoXForCausalLM",
}  # fmt: skip


@pytest.mark.parametrize("name", HEADS_OF_MODELS)
def test_a_head_maps_the_sum_of_the_terms_to_the_models_logits(name: str) -> None:
    import transformers

    kind: Any = getattr(transformers, HEADS_OF_MODELS[name])
    torch.manual_seed(0)
    # the default of older versions omits the softcap of Gemma 2
    config = kind.config_class(**FAMILIES[name].sizes, attn_implementation="eager")
    model = kind(config).eval()
    tokens = inputs_of(name, torch.float32)["input_ids"]
    last = decompose(capture(model, tokens)).embeddings[-1]
    with torch.no_grad():
        logits = model(tokens).logits
        found = output_head(model)(last)
    assert (found - logits).abs().max() <= 1e-5 * logits.abs().max()
    assert found.abs().max() > 0


def test_a_model_of_two_stacks_has_no_head_for_one() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    model = T5ForConditionalGeneration(T5Config(**FAMILIES["T5"].sizes))
    with pytest.raises(InvalidArgumentError, match="T5ForConditionalGeneration, which has no"):
        output_head(model)
