"""Layers of hybrids: numbered as the model numbers them, and what isn't attention named as such."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer import (
    ablated,
    capture,
    capture_layers,
    constant_rank_bound,
    decompose,
    feed_forward_moments,
    head_terms,
    identifiability_table,
    partial_sum_accuracy,
)
from capacity.transformer.residual.additive_decomposition import MIXERS, TERMS
from capacity.transformer.table import attention_table
from tests.transformer.tiny_models import build, inputs_of

F32 = torch.float32
TOKENS = inputs_of("Jamba", F32)["input_ids"]
# layers with attention, and the names of the modules that mix tokens otherwise
HYBRIDS = {
    "Jamba": ((2,), "mamba"),
    "LFM2": ((1,), "conv"),
    "MiniMax": ((1,), "self_attn"),
    "Nemotron-H": ((2,), "mixer"),
    "Granite 4": ((1,), "mamba"),
    "Falcon-H1": ((0, 1), "mamba"),
    "OLMo hybrid": ((1,), "linear_attn"),
}
each = pytest.mark.parametrize("name", HYBRIDS)


def outputs_of(model: nn.Module, name: str) -> list[Tensor]:
    """Return the outputs of the modules with a name, as the model runs."""
    found: list[Tensor] = []
    # those of other layers are experts, attention and feed-forwards
    classes = {"mixer": "Mamba", "self_attn": "Lightning"}
    hooks = [
        module.register_forward_hook(
            lambda _, __, out: found.append(out[0] if isinstance(out, tuple) else out)
        )
        for key, module in model.named_modules()
        if key.split(".")[-1] == name and classes.get(name, "") in type(module).__name__
    ]
    with torch.no_grad():
        model(TOKENS)
    for hook in hooks:
        hook.remove()
    return found


@each
def test_layers_are_numbered_as_the_model_numbers_them(name: str) -> None:
    model, (numbers, _) = build(name, F32), HYBRIDS[name]
    captured = capture(model, TOKENS)
    assert captured.layer_numbers == numbers
    assert identifiability_table(captured)["layer"].unique().tolist() == list(numbers)
    assert [one.layer_numbers for one in capture_layers(model, TOKENS)] == [(n,) for n in numbers]
    last = numbers[-1]
    some = capture(model, TOKENS, layers=[last], heads=[1, 3])
    assert some.layer_numbers == (last,)
    assert torch.equal(some.layers[0].z, captured.layers[-1].z[:, [1, 3]])
    # stages are the model's layers, whichever attend
    with torch.no_grad():
        states = model(TOKENS, output_hidden_states=True).hidden_states
    split = decompose(captured)
    assert len(split.embeddings) == model.config.num_hidden_layers + 1 == len(states)
    for ours, theirs in zip(split.embeddings, states, strict=True):
        assert (ours - theirs).abs().max() <= 1e-6 * theirs.abs().max()
    assert len(constant_rank_bound(captured)) == len(states)


@each
def test_what_mixes_tokens_without_attention_is_a_term_of_its_own(name: str) -> None:
    model, (_, module) = build(name, F32), HYBRIDS[name][:2]
    captured = capture(model, TOKENS)
    split, written = decompose(captured), outputs_of(model, module)
    assert split.names == (*TERMS, "mixers")
    steps = [step for step in captured.steps if getattr(step, "term", "") == "mixers"]
    assert len(steps) == len(written) > 0
    for step, output in zip(steps, written, strict=True):
        assert torch.allclose(step.whole, output, atol=1e-5)  # type: ignore[union-attr]
    assert split.terms[-1, MIXERS].abs().max() > 0.01 * split.embeddings[-1].abs().max()
    assert torch.allclose(split.importance().sum(1), torch.ones(1), atol=1e-5)
    # the linearity of feed-forwards is that of feed-forwards alone
    inputs = [step for step in captured.steps if getattr(step, "input", None) is not None]
    assert {step.term for step in inputs} <= {"feed_forward"}  # type: ignore[union-attr]
    assert len(feed_forward_moments([captured])) == len(inputs)


def test_a_layer_without_attention_is_refused_by_its_number() -> None:
    model = build("Jamba", F32)
    for layer in (0, 3, 4):
        with pytest.raises(InvalidArgumentError, match=rf"those that attend, 2; got {layer}"):
            capture(model, TOKENS, layers=[layer])
        with (
            pytest.raises(InvalidArgumentError, match=rf"JambaModel .* attend, 2; got {layer}"),
            ablated(model, [(layer, 0)]),
        ):
            model(TOKENS)


@pytest.mark.parametrize("mean", [False, True])
def test_heads_of_hybrids_are_ablated_by_their_layers_number(mean: bool) -> None:
    model: Any = build("Jamba", F32)
    with torch.no_grad(), ablated(model, [(2, 1)], mean_over=TOKENS if mean else None):
        without = model(TOKENS).last_hidden_state
    z = capture(model, TOKENS).layers[0].z[:, 1]
    written = z.mean((0, 1)).expand_as(z) if mean else torch.zeros_like(z)

    def edit(_: nn.Module, args: Any) -> Any:
        x = args[0].unflatten(-1, (4, -1)).clone()
        x[:, :, 1] = written
        return (x.flatten(-2), *args[1:])

    with torch.no_grad():
        model.layers[2].self_attn.o_proj.register_forward_pre_hook(edit)
        assert torch.allclose(model(TOKENS).last_hidden_state, without, atol=1e-5)


def test_tables_and_partial_sums_have_the_layers_and_terms_that_there_are() -> None:
    from capacity.transformer import effective_attention

    model: Any = build("Jamba", F32)
    captured = capture(model, TOKENS)
    table = attention_table(captured, effective_attention(captured))
    assert table["layer"].unique().tolist() == [2]
    split = decompose(captured)
    assert torch.allclose(head_terms(captured).sum((0, 1)), split.terms[-1, 1], atol=1e-5)
    head = model.embed_tokens.weight.T
    said = (split.embeddings[-1] @ head).argmax(-1)
    sums = partial_sum_accuracy(lambda e: e @ head, [(split, said, said >= 0)])
    assert len(sums) == 2**5 - 1
    assert sums[sums[list(split.names)].all(axis=1)]["accuracy"].tolist() == [1.0]


def test_the_shell_names_the_layers_that_have_heads() -> None:
    from capacity.cli.commands.attention import _chosen
    from capacity.transformer import effective_attention

    captured = capture(build("Jamba", F32), TOKENS[:1])
    table = attention_table(captured, effective_attention(captured))
    assert _chosen(table, 2, 1)["head"] == 1
    with pytest.raises(InvalidArgumentError, match="--layer must be among 2 and --head from 0"):
        _chosen(table, 0, 1)


def test_two_attentions_of_a_layer_are_two_layers() -> None:
    captured = capture(build("LongCat-Flash", F32), TOKENS)
    assert captured.layer_numbers == (0, 1, 2, 3)
    assert decompose(captured).names == TERMS
