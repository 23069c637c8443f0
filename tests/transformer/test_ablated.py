"""A pretrained model without heads is the model whose output weights lack their rows."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor

from capacity import AttentionLayer, LayerConfig
from capacity.errors import CapacityError, InvalidArgumentError
from capacity.layer import ablate
from capacity.transformer import ablated, capture
from tests.transformer.tiny_models import FAMILIES, OWN_CODE, PADDING, build, inputs_of

DTYPE = torch.float64
TEXTS = [name for name, family in FAMILIES.items()
         if family.inputs == "text" and name not in OWN_CODE]  # fmt: skip


def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    sizes = GPT2Config(n_embd=16, n_layer=2, n_head=4, vocab_size=40, n_positions=32,
                       bos_token_id=0, eos_token_id=0)  # fmt: skip
    return GPT2LMHeadModel(sizes).double().eval()


TOKENS = torch.tensor([[5, 7, 11, 3, 2], [1, 4, 4, 9, 8]])
HEADS = [(0, 1), (1, 0), (1, 3)]


def without_rows(model: Any, heads: Sequence[tuple[int, int]], means: Any = None) -> Any:
    """The model with zeros in W_O, and what the means write in its bias."""
    other = copy.deepcopy(model)
    for layer, head in heads:
        project = other.transformer.h[layer].attn.c_proj
        rows = slice(4 * head, 4 * head + 4)
        with torch.no_grad():
            if means is not None:
                project.bias += means[layer][head] @ project.weight[rows]
            project.weight[rows] = 0
    return other


def test_heads_write_nothing() -> None:
    model = gpt2()
    before = model(TOKENS).logits
    expected = without_rows(model, HEADS)(TOKENS).logits
    with ablated(model, HEADS) as same:
        assert same is model
        torch.testing.assert_close(model(TOKENS).logits, expected)
        # again, and for other sentences
        torch.testing.assert_close(model(TOKENS[:1, :3]).logits, expected[:1, :3])
    assert torch.equal(model(TOKENS).logits, before)
    assert not torch.allclose(expected, before)


def test_heads_write_their_mean() -> None:
    model = gpt2()
    layers = capture(model, TOKENS).layers
    means = [layer.z.mean((0, 2)) for layer in layers]
    expected = without_rows(model, HEADS, means)(TOKENS).logits
    with ablated(model, HEADS, mean_over=TOKENS):
        torch.testing.assert_close(model(TOKENS).logits, expected)


def test_padding_has_no_part_in_the_mean() -> None:
    model = gpt2()
    padded = torch.tensor([[5, 7, 11, 3, 2], [1, 4, 0, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    z = [capture(model, row[None]).layers for row in (padded[0], padded[1, :2])]
    means = [
        torch.cat([one[layer].z[0] for one in z], dim=1).mean(1) for layer in range(2)
    ]  # (n_heads, d_head)
    expected = without_rows(model, HEADS, means)(TOKENS).logits
    with ablated(model, HEADS, mean_over={"input_ids": padded, "attention_mask": mask}):
        torch.testing.assert_close(model(TOKENS).logits, expected)


@pytest.mark.parametrize("name", TEXTS)
def test_the_heads_of_every_family_are_those_that_capture_numbers(name: str) -> None:
    model, inputs = build(name, DTYPE), inputs_of(name, DTYPE)
    # of an encoder whose layers share their weights both lack it
    captured = capture(model, inputs)
    last = captured.layer_numbers[-1]
    heads = [(0, 2), (1, 2)] if name == "ALBERT" else [(last, 2)]
    other = copy.deepcopy(model)
    W_O = captured.layers[-1].W_O
    rows = slice(2 * W_O.shape[1], 3 * W_O.shape[1])
    for module in other.modules():
        weight = getattr(module, "weight", None)
        if not isinstance(weight, Tensor) or weight.ndim != 2:
            continue
        stored = weight if type(module).__name__ == "Conv1D" else weight.T
        if stored.shape == W_O.flatten(0, 1).shape and torch.equal(stored, W_O.flatten(0, 1)):
            with torch.no_grad():
                stored[rows] = 0
    with torch.no_grad():
        expected, before = other(**inputs)[0], model(**inputs)[0]
        with ablated(model, heads):
            found = model(**inputs)[0]
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
        assert torch.equal(model(**inputs)[0], before)
    assert not torch.allclose(expected, before)


def test_an_encoder_lacks_heads_as_the_decoder_reads_it() -> None:
    model = build("BART", DTYPE)
    inputs = inputs_of("BART", DTYPE, "encoder")
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.encoder.layers[0].self_attn.out_proj.weight[:, 8:16] = 0
        expected = other.get_encoder()(**inputs)[0]
        with ablated(model, [(0, 1)], part="encoder"):
            torch.testing.assert_close(model.get_encoder()(**inputs)[0], expected)
    with (
        pytest.raises(InvalidArgumentError, match="decoder"),
        ablated(model, [(0, 1)], part="cross"),
    ):
        pass
    with pytest.raises(InvalidArgumentError, match="`part`"), ablated(model, [(0, 1)]):
        pass


def test_contexts_in_each_other_add_up_and_end_by_an_error() -> None:
    model = gpt2()
    before = model(TOKENS).logits
    expected = without_rows(model, HEADS)(TOKENS).logits
    implementation = model.config._attn_implementation
    with ablated(model, HEADS[:1]), ablated(model, HEADS[1:]):
        torch.testing.assert_close(model(TOKENS).logits, expected)
    with pytest.raises(CapacityError), ablated(model, HEADS), ablated(model, [(0, 9)]):
        model(TOKENS)
    assert torch.equal(model(TOKENS).logits, before)
    assert model.config._attn_implementation == implementation
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_what_is_generated_and_its_gradients_lack_the_heads() -> None:
    model = gpt2()
    other = without_rows(model, HEADS)
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    with ablated(model, HEADS):
        assert torch.equal(model.generate(TOKENS, **options), other.generate(TOKENS, **options))
        model(TOKENS).logits.sum().backward()
    other(TOKENS).logits.sum().backward()
    values = [one.transformer.h[0].attn.c_attn.weight.grad[:, 32:] for one in (model, other)]
    torch.testing.assert_close(*values)
    # nothing depends on the values of head 1
    assert not values[0][:, 4:8].any()


def test_other_threads_run_the_whole_model() -> None:
    model, found = gpt2(), []
    before = model(TOKENS).logits
    with ablated(model, HEADS):
        thread = Thread(target=lambda: found.append(model(TOKENS).logits))
        thread.start()
        thread.join()
    torch.testing.assert_close(found[0], before)


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([(2, 0)], "from 0 to 1; got 2"), ([(0, 4)], "from 0 to 3; got 4"), ([], "got none"),
        ((0, 1), "pairs"), (3, "pairs"), ([(0, 1, 2)], "pairs"), ([(0, -1)], "heads"),
        ([(0, 0.5)], "heads"), ("01", "pairs"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mean", [False, True])
def test_heads_that_there_are_not_are_refused(heads: Any, said: str, mean: bool) -> None:
    model = gpt2()
    over = TOKENS if mean else None
    with pytest.raises(CapacityError, match=said), ablated(model, heads, mean_over=over):
        model(TOKENS)


@pytest.mark.parametrize("name", [*OWN_CODE, "FNet"])
def test_a_model_that_hides_its_attention_is_told(name: str) -> None:
    model, inputs = build(name, torch.float32), inputs_of(name, torch.float32)
    with pytest.raises(InvalidArgumentError, match="AttentionInterface"), ablated(model, [(0, 0)]):
        model(**inputs)


def test_layers_and_models_are_ablated_by_their_own_functions() -> None:
    layer = AttentionLayer(LayerConfig(2, 1), 5)
    with pytest.raises(CapacityError, match="transformers"), ablated(layer, [(0, 0)]):
        pass
    with pytest.raises(CapacityError, match=r"capacity\.transformer\.ablated"):
        ablate(gpt2(), 0)


def test_the_mean_of_padding_alone_is_no_mean() -> None:
    padded = {"input_ids": torch.full((1, 3), PADDING), "attention_mask": torch.zeros(1, 3).long()}
    with pytest.raises(CapacityError), ablated(gpt2(), HEADS, mean_over=padded):
        pass
