"""Models that are wrapped or changed: right, or one sentence that names the way out."""

from typing import Any

import pytest
import torch
from torch import nn
from transformers.models.gpt2.modeling_gpt2 import GPT2Block

from capacity.errors import InvalidArgumentError
from capacity.transformer import (
    Written,
    capture,
    constant_rank_bound,
    decompose,
    effective_attention,
    head_terms,
)
from capacity.transformer.activations.records.cache import Scaled
from capacity.transformer.residual.additive_decomposition import HEADS
from tests.transformer.tiny_models import build, inputs_of

F32 = torch.float32
TOKENS = inputs_of("GPT-2", F32)["input_ids"]


def relative(model: Any) -> float:
    """How far the terms are from the last embeddings that the model, as it is, computes."""
    found = decompose(capture(model, TOKENS)).embeddings[-1]
    with torch.no_grad():
        last = model(TOKENS).last_hidden_state
    return float((found - last).norm() / last.norm())


def test_a_stream_that_hooks_steer_has_no_decomposition() -> None:
    model = build("GPT-2", F32)
    assert relative(model) < 1e-6

    def plus(_: nn.Module, __: Any, output: Any) -> Any:
        return output + 3.0

    hook = model.h[0].register_forward_hook(plus)
    with pytest.raises(
        InvalidArgumentError, match=r"layer 0 of GPT2Model something is added.*hook"
    ):
        relative(model)
    # patterns and values are those of the model as it is
    assert effective_attention(capture(model, TOKENS)).mode == "causal"
    hook.remove()
    assert relative(model) < 1e-6


@pytest.mark.parametrize("factor", [0.0, 0.5])
def test_heads_that_a_hook_ablates_are_scaled_in_the_sum(factor: float) -> None:
    model = build("GPT-2", F32)
    model.h[1].attn.register_forward_hook(lambda _, __, out: (out[0] * factor, *out[1:]))
    captured = capture(model, TOKENS)
    assert [step.factor for step in captured.outputs_of_heads] == [1.0, factor]
    assert relative(model) < 1e-6


def test_a_feed_forward_that_a_hook_replaces_is_what_it_returned() -> None:
    model = build("Llama", F32)
    g = torch.Generator().manual_seed(0)
    noise = torch.randn(2, 9, 32, generator=g)
    model.layers[0].mlp.register_forward_hook(lambda *_: noise)
    captured = capture(model, TOKENS)
    fed = [s for s in captured.steps if isinstance(s, Written) and s.term == "feed_forward"]
    assert torch.equal(fed[0].output, noise)
    assert relative(model) < 1e-6


def test_a_stream_that_is_written_over_is_noticed() -> None:
    model = build("GPT-2", F32)

    def spoil(_: nn.Module, __: Any, output: Any) -> None:
        output.data[:, 0] = 7.0

    model.h[0].register_forward_hook(spoil)
    with pytest.raises(InvalidArgumentError, match=r"in layer 0 of GPT2Model it is written over"):
        relative(model)


def test_a_stream_that_is_written_over_after_it_was_compared_is_noticed() -> None:
    model, kept = build("GPT-2", F32), []
    model.h[1].register_forward_pre_hook(lambda _, args: kept.append(args[0]))

    def spoil(*_: Any) -> None:
        # the layer's first norm has read it, and torch counts no such write
        kept[-1].data[:, 0] = 7.0

    model.h[1].attn.register_forward_hook(spoil)
    captured = capture(model, TOKENS)
    assert captured.unfollowed is not None
    assert "in layer 1 of GPT2Model it is written over" in captured.unfollowed


@pytest.mark.parametrize("way", ["in place", "elsewhere"])
def test_heads_that_are_patched_have_no_decomposition(way: str) -> None:
    model = build("GPT-2", F32)

    def patch(_: nn.Module, __: Any, out: Any) -> Any:
        if way == "in place":
            out[0][:, 3] = 0
            return out
        return (torch.where(torch.arange(9)[:, None] == 3, 0.0, out[0]), *out[1:])

    model.h[1].attn.register_forward_hook(patch)
    captured = capture(model, TOKENS)
    with pytest.raises(InvalidArgumentError, match=r"in layer 1 of GPT2Model (it is writ|what he)"):
        decompose(captured)


def test_a_stream_steered_by_a_product_is_refused_by_the_decomposition_alone() -> None:
    model, direction = build("GPT-2", F32), torch.ones(32)
    model.h[0].register_forward_hook(lambda _, __, o: o + torch.ones(2, 9, 1) * direction)
    captured = capture(model, TOKENS)
    assert relative(model) < 1e-6 or captured.unfollowed
    model = build("GPT-2", F32)
    model.h[0].register_forward_hook(lambda _, __, o: torch.add(o, other=direction, alpha=2))
    with pytest.raises(InvalidArgumentError, match="residual stream must be a sum"):
        decompose(capture(model, TOKENS))


def test_a_stream_that_hooks_scale_is_followed() -> None:
    model, factors = build("GPT-2", F32), torch.linspace(0.5, 2, 32)
    model.h[0].register_forward_hook(lambda _, __, output: output * 0.5)
    model.h[1].register_forward_hook(lambda _, __, output: output * factors)
    assert relative(model) < 1e-6
    captured = capture(model, TOKENS)
    assert [s.layer for s in captured.steps if isinstance(s, Scaled)] == [0, 1]
    # fixed factors add no vectors to the constants
    assert constant_rank_bound(captured) == [0, 1, 3]
    split = decompose(captured)
    assert torch.allclose(head_terms(captured).sum((0, 1)), split.terms[-1, HEADS], atol=1e-5)
    # numbers of a token aren't fixed
    model.h[0].register_forward_hook(lambda _, __, output: output * torch.rand(2, 9, 1))
    with pytest.raises(InvalidArgumentError, match="layer 0 of GPT2Model each token is multipl"):
        relative(model)


def test_what_is_written_over_in_place_counts_once() -> None:
    model = build("GPT-2", F32)
    noise = torch.randn(2, 9, 32, generator=torch.Generator().manual_seed(0))
    # of a feed-forward, of heads, and of what the first layer reads
    model.h[0].mlp.register_forward_hook(lambda _, __, output: output.add_(noise))
    model.h[1].attn.register_forward_hook(lambda _, __, output: (output[0].mul_(0.5), output[1]))
    model.h[0].register_forward_pre_hook(lambda _, args: (args[0].mul_(2.0), *args[1:]))
    assert relative(model) < 1e-6
    assert decompose(capture(model, TOKENS)).terms[-1].abs().amax((1, 2, 3)).min() > 0.01


def test_outputs_of_heads_that_are_changed_before_w_o_are_refused() -> None:
    changes: list[Any] = [lambda x: x + 1, lambda x: x * x.sigmoid(), lambda x: x.mul_(2)]
    for change in changes:
        model = build("GPT-2", F32)
        model.h[1].attn.c_proj.register_forward_pre_hook(lambda _, args, f=change: (f(args[0]),))
        with pytest.raises(
            InvalidArgumentError, match=r"those of layer 1 of GPT2Model don't, or are ch.* hooks"
        ):
            capture(model, TOKENS)
    model = build("GPT-2", F32)
    model.h[1].attn.c_proj.register_forward_hook(lambda _, __, out: out * 2)
    with pytest.raises(InvalidArgumentError, match=r"in layer 1 of GPT2Model what they added"):
        capture(model, TOKENS)


def test_data_parallel_is_the_model_in_it() -> None:
    model = build("BERT", F32)
    first, second = capture(model, TOKENS), capture(nn.DataParallel(model), TOKENS)
    assert torch.equal(first.layers[1].pattern, second.layers[1].pattern)
    assert second.source == "BertModel"


def test_compiled_models_are_run_as_they_are_written() -> None:
    model = build("Llama", F32)
    plain = capture(model, TOKENS)
    compiled: Any = torch.compile(model, backend="eager")
    model.layers[0].compile(backend="eager")
    for one in (compiled, model):
        found = capture(one, TOKENS)
        assert torch.equal(found.layers[1].z, plain.layers[1].z)
        assert torch.equal(decompose(found).terms, decompose(plain).terms)


def test_weights_that_are_normed_or_pruned_are_those_in_use() -> None:
    from torch.nn.utils import parametrizations, prune

    model = build("BERT", F32)
    layer = model.encoder.layer[0].attention
    parametrizations.weight_norm(layer.output.dense)
    prune.random_unstructured(layer.self.value, "weight", 0.5)
    assert relative(model) < 1e-6
    W_O = capture(model, TOKENS).layers[0].W_O
    assert torch.equal(W_O.flatten(0, 1), layer.output.dense.weight.T)


def test_adapters_are_to_be_merged() -> None:
    class LoraLinear(nn.Linear):
        __module__ = "peft.tuners.lora.layer"

    model = build("BERT", F32)
    model.encoder.layer[0].attention.self.query = LoraLinear(32, 32)
    with pytest.raises(InvalidArgumentError, match=r"PEFT's, LoraLinear.*merge_and_unload"):
        capture(model, TOKENS)


def test_a_model_without_weights_in_memory_is_refused() -> None:
    model = build("BERT", F32).to("meta")
    with pytest.raises(InvalidArgumentError, match=r"on the device 'meta'.*without device_map"):
        capture(model, TOKENS)


@pytest.mark.filterwarnings("ignore:torch.*deprecated")
def test_a_quantized_model_is_refused() -> None:
    from torch.ao.quantization import quantize_dynamic

    model: Any = quantize_dynamic(build("BERT", F32), {nn.Linear}, dtype=torch.qint8)
    with pytest.raises(InvalidArgumentError, match=r"quantized.*without quantization"):
        capture(model, TOKENS)


def test_two_towers_are_captured_one_by_one() -> None:
    from transformers import CLIPConfig, CLIPModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 16}  # fmt: skip
    config = CLIPConfig(
        text_config={**sizes, "vocab_size": 60, "eos_token_id": 2},
        vision_config={**sizes, "image_size": 8, "patch_size": 4},
        projection_dim=8,
    )
    model: Any = CLIPModel(config).eval()
    with pytest.raises(InvalidArgumentError, match=r"model\.text_model or model\.vision_model"):
        capture(model, TOKENS)
    assert capture(model.text_model, TOKENS).causal
    assert not capture(model.vision_model, {"pixel_values": torch.zeros(1, 3, 8, 8)}).causal


@pytest.mark.parametrize("inputs", [{"attention_mask": torch.ones(1, 3)}, {}])
def test_inputs_without_tokens_name_what_they_lack(inputs: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="must hold input_ids, pixel_values, input_fea"):
        capture(build("BERT", F32), inputs)


def test_messages_name_hooks_only_where_there_are_some() -> None:
    def spoil(_: nn.Module, __: Any, output: Any) -> None:
        output.data[:, 0] = 7.0

    class Spoiling(GPT2Block):
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            output: Any = super().forward(*args, **kwargs)
            output.data[:, 0] = 7.0
            return output

    hooked, changed = build("GPT-2", F32), build("GPT-2", F32)
    hooked.h[0].register_forward_hook(spoil)
    changed.h[0].__class__ = Spoiling
    for model, is_hooked in ((hooked, True), (changed, False)):
        why = capture(model, TOKENS).unfollowed
        assert why is not None
        assert ("ooks" in why) == is_hooked
    # those of transformers, which keep hidden states, don't count
    quiet = build("GPT-2", F32)
    with torch.no_grad():
        quiet(TOKENS, output_hidden_states=True)
    assert any(module._forward_hooks for module in quiet.modules())
    assert not capture(quiet, TOKENS).hooked
