"""Gates between heads and W_O: what heads write with them, and what doesn't depend on them."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer import (
    ablated,
    capture,
    decompose,
    effective_attention,
    from_tensors,
    head_terms,
    identifiability_table,
)
from tests.transformer.tiny_models import REFUSED, build, inputs_of

F32, F64 = torch.float32, torch.float64
TOKENS = torch.randperm(57, generator=torch.Generator().manual_seed(1))[None, :20] + 3
both = pytest.mark.parametrize("dtype", [F32, F64])
# the gate of a layer by its modules, from the embeddings that it reads
GATES: dict[str, Any] = {
    "Qwen3-Next": lambda a, x: a.q_proj(x).unflatten(-1, (4, 16))[..., 8:].flatten(-2).sigmoid(),
    "Qwen3.5": lambda a, x: a.q_proj(x).unflatten(-1, (4, 16))[..., 8:].flatten(-2).sigmoid(),
    "AFMoE": lambda a, x: a.gate_proj(x).sigmoid(),
    "Laguna": lambda a, x: (
        nn.functional.softplus(a.g_proj(x).float())
        .to(x)
        .repeat_interleave(32 // a.g_proj.out_features, -1)
    ),
}
gated = pytest.mark.parametrize("name", GATES)


def read_by(attention: Any, run: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return what an attention reads, and what its W_O reads and writes, as the model runs."""
    found: list[Tensor] = []
    hooks = [
        attention.register_forward_pre_hook(
            lambda _, args, kwargs: found.append(args[0] if args else kwargs["hidden_states"]),
            with_kwargs=True,
        ),
        attention.o_proj.register_forward_hook(lambda _, args, out: found.extend((args[0], out))),
    ]
    with torch.no_grad():
        run()
    for hook in hooks:
        hook.remove()
    x, read, wrote = found
    return x, read, wrote


@gated
@both
def test_heads_write_what_the_gate_leaves_of_them(name: str, dtype: torch.dtype) -> None:
    model = build(name, dtype)
    captured = capture(model, TOKENS, check="full")
    # a function of torch that computes in float32 rounds so in any type
    slack = 100 * torch.finfo(dtype).eps
    for number, layer in zip(captured.layer_numbers, captured.layers, strict=True):
        attention = model.layers[number].self_attn
        x, read, wrote = read_by(attention, lambda: model(TOKENS))
        with torch.no_grad():
            gate = GATES[name](attention, x).unflatten(-1, (4, 8)).transpose(1, 2)
        assert layer.gate is not None
        assert layer.gate.shape == layer.z.shape
        assert (layer.gate - gate).abs().max() <= slack
        assert float(gate.std() / gate.mean()) > 0.1
        # z is before the gate
        assert (layer.pattern @ layer.v - layer.z).abs().max() <= slack * layer.z.abs().max()
        z = (gate * (layer.pattern @ layer.v)).transpose(1, 2).flatten(2)
        assert (z - read).abs().max() <= slack * read.abs().max()
        written = torch.einsum("bhnv,hvd->bnd", layer.gated, layer.W_O)
        assert (written - wrote).abs().max() <= slack * wrote.abs().max()
        assert layer.b_V is None
    h = decompose(captured).terms[-1, 1]
    assert (head_terms(captured).sum((0, 1)) - h).abs().max() <= 1e-5 * h.abs().max()


@gated
@both
def test_what_has_no_effect_has_none_under_any_gate(name: str, dtype: torch.dtype) -> None:
    """A V = 0 directions, written through the gate and W_O, write nothing."""
    captured = capture(build(name, dtype), TOKENS)
    for layer, found in zip(captured.layers, effective_attention(captured).layers, strict=True):
        assert layer.gate is not None
        lost = layer.pattern - found.pattern
        # 20 tokens, 8 values, and windows of 6 tokens, in which nothing is lost
        assert layer.seen is not None or lost.norm() > 0.1 * layer.pattern.norm()
        other = layer.gate.flip(2) + 1
        for gate in (layer.gate, other):
            written = (gate * (lost @ layer.v)) @ layer.W_O
            size = (gate * layer.z) @ layer.W_O
            assert written.abs().max() <= 200 * torch.finfo(dtype).eps * size.abs().max()


@gated
def test_nullities_are_those_of_the_values_and_jointly_those_of_the_last_token(name: str) -> None:
    model = build(name, F64)
    padded = torch.cat([TOKENS, TOKENS.flip(1)])
    mask = torch.ones_like(padded)
    mask[1, 14:] = 0
    captured = capture(model, {"input_ids": padded, "attention_mask": mask})
    table = identifiability_table(captured)
    for number, layer in zip(captured.layer_numbers, captured.layers, strict=True):
        for sentence, n in enumerate((20, 14)):
            assert layer.gate is not None
            of_layer = table[(table["sentence"] == sentence) & (table["layer"] == number)]
            rows = []
            for head in range(4):
                v = layer.v[sentence, head, :n].numpy()
                W_O, gate = layer.W_O[head].numpy(), layer.gate[sentence, head, n - 1].numpy()
                row = of_layer[of_layer["head"] == head].iloc[0]
                # W_O has full row rank, and no gate is 0
                assert row["rank_values"] == np.linalg.matrix_rank(v * gate @ W_O) == 8
                ones = np.zeros((n, 4))
                ones[:, head] = 1
                rows.append(np.concatenate([v * gate @ W_O, ones], axis=1))
            # 4 heads of 20 tokens; 32 features and 4 sums are kept
            joint = 4 * n - np.linalg.matrix_rank(np.concatenate(rows))
            assert (of_layer["joint_nullity"] == joint).all()


def test_joint_nullity_depends_on_the_gate() -> None:
    # two heads with the same values and W_O: without gates what one writes the other takes back
    g = torch.Generator().manual_seed(0)
    v = torch.randn(1, 1, 6, 2, generator=g, dtype=F64).expand(1, 2, 6, 2)
    W_O = torch.randn(1, 2, 8, generator=g, dtype=F64).expand(2, 2, 8)
    pattern = torch.full((1, 2, 6, 6), 1 / 6, dtype=F64).tril()
    pattern = pattern / pattern.sum(-1, keepdim=True)
    plain = from_tensors([pattern], [v], W_O=[W_O])
    gate = torch.ones(1, 2, 6, 2, dtype=F64)
    # 12 weights; sums of two heads, and two directions that they share
    assert nullity_of(plain) == nullity_of(with_gate(plain, gate)) == 12 - 2 - 2
    # another factor of one direction leaves the span as it is; a gate of 0 shuts a head off
    gate[0, 1, -1] = torch.tensor([0.5, 2.0], dtype=F64)
    assert nullity_of(with_gate(plain, gate)) == 12 - 2 - 2
    gate[0, :, -1, 0] = 0.0
    assert nullity_of(with_gate(plain, gate)) == 12 - 2 - 1
    # rows of other tokens have no part in it
    gate[0, :, -1] = 1.0
    gate[0, :, :-1] = 0.0
    assert nullity_of(with_gate(plain, gate)) == 12 - 2 - 2


def with_gate(cache: Any, gate: Tensor) -> Any:
    from dataclasses import replace

    return replace(cache, layers=(replace(cache.layers[0], gate=gate),))


def nullity_of(cache: Any) -> int:
    return int(identifiability_table(cache)["joint_nullity"].iloc[0])


def test_gates_of_chosen_heads_are_theirs() -> None:
    model = build("Laguna", F32)
    whole, some = capture(model, TOKENS), capture(model, TOKENS, layers=[1], heads=[1, 3])
    gate, chosen = whole.layers[1].gate, some.layers[0].gate
    assert gate is not None
    assert chosen is not None
    assert torch.equal(chosen, gate[:, [1, 3]])


def last_of(model: Any, inputs: Any) -> Tensor:
    with torch.no_grad():
        return model(**inputs).last_hidden_state


PADDED = {"input_ids": TOKENS.view(2, 10).clone(), "attention_mask": torch.ones(2, 10).long()}
PADDED["attention_mask"][1, 6:] = 0


@gated
def test_gated_heads_write_the_mean_of_what_their_gates_leave(name: str) -> None:
    model = build(name, F64)
    number = capture(model, TOKENS).layer_numbers[-1]
    project: Any = model.layers[number].self_attn.o_proj
    _, read, _ = read_by(model.layers[number].self_attn, lambda: model(**PADDED))
    mean = read[PADDED["attention_mask"].bool()].mean(0)
    before = last_of(model, {"input_ids": TOKENS})
    # W_O without the columns of heads 1 and 2, and with a bias that writes their mean
    weight, bias = project.weight.data.clone(), project.bias
    constant = mean[8:24] @ weight[:, 8:24].T
    project.weight.data[:, 8:24] = 0
    project.bias = nn.Parameter(constant if bias is None else bias + constant)
    expected = last_of(model, {"input_ids": TOKENS})
    project.weight.data, project.bias = weight, bias
    with ablated(model, [(number, 1), (number, 2)], mean_over=PADDED):
        found = last_of(model, {"input_ids": TOKENS})
    # functions in float32 round so in any type
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found, before, atol=1e-3)
    assert torch.equal(last_of(model, {"input_ids": TOKENS}), before)
    # a mean is that of the model as it is
    with (
        ablated(model, [(number, 1)], mean_over=PADDED),
        pytest.raises(InvalidArgumentError, match="Leave its context first"),
        ablated(model, [(number, 2)], mean_over=PADDED),
    ):
        pass
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@gated
def test_gated_heads_write_what_they_write_elsewhere_with_the_gates_of_there(name: str) -> None:
    model, other = build(name, F64), TOKENS.flip(1)
    number = capture(model, TOKENS).layer_numbers[0]
    attention: Any = model.layers[number].self_attn
    _, elsewhere, _ = read_by(attention, lambda: model(other))
    _, read, _ = read_by(attention, lambda: model(TOKENS))
    read[..., 8:16] = elsewhere[..., 8:16]
    hook = attention.o_proj.register_forward_pre_hook(lambda *_: (read,))
    expected = last_of(model, {"input_ids": TOKENS})
    hook.remove()
    with ablated(model, [(number, 1)], resample_from=other):
        torch.testing.assert_close(last_of(model, {"input_ids": TOKENS}), expected)
        with pytest.raises(InvalidArgumentError, match="as many sentences and tokens"):
            model(TOKENS[:, :3])


def test_gated_and_other_heads_are_ablated_together() -> None:
    model: Any = build("AFMoE", F64)
    attention = model.layers[1].self_attn
    _, read, _ = read_by(attention, lambda: model(TOKENS))
    with ablated(model, [(0, 2)]):
        _, rest, _ = read_by(attention, lambda: model(TOKENS))
    rest[..., :8] = read[..., :8].mean((0, 1))
    hook = attention.o_proj.register_forward_pre_hook(lambda *_: (rest,))
    with ablated(model, [(0, 2)]):
        expected = last_of(model, {"input_ids": TOKENS})
    hook.remove()
    with ablated(model, [(1, 0)], mean_over=TOKENS), ablated(model, [(0, 2)]):
        torch.testing.assert_close(last_of(model, {"input_ids": TOKENS}), expected)


def test_a_fixed_factor_is_a_gate_and_a_function_of_the_outputs_is_none() -> None:
    model: Any = build("Llama", F32)
    factor = torch.linspace(0.5, 2, 32)
    hook = model.layers[0].self_attn.o_proj.register_forward_pre_hook(
        lambda _, args: ((args[0] * 2).float() * factor,)
    )
    captured = capture(model, TOKENS)
    first, second = captured.layers
    assert first.gate is not None
    assert second.gate is None
    assert torch.allclose(first.gate, 2 * factor.view(4, 1, 8).expand(4, 20, 8))
    with torch.no_grad():
        last = model(TOKENS).last_hidden_state
    assert (decompose(captured).embeddings[-1] - last).abs().max() <= 1e-5 * last.abs().max()
    hook.remove()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_gate_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=REFUSED[name][1].split()[1]) as refusal:
        capture(build(name, F32), inputs_of(name, F32))
    # there are no hooks and no adapters
    assert "hooks" not in str(refusal.value)


@both
def test_a_sink_that_is_taken_from_the_outputs_alone_is_a_sink(dtype: torch.dtype) -> None:
    model = build("Granite SWA", dtype)
    captured = capture(model, TOKENS, check="full")
    for number, layer in enumerate(captured.layers):
        attention = model.layers[number].self_attn
        assert layer.sink is not None
        logits = (layer.scale * layer.q @ layer.k.mT).masked_fill(layer.pattern == 0, -torch.inf)
        # a column of exp(sink) in the softmax
        column = attention.sinks.detach().view(1, 4, 1, 1).expand(1, 4, 20, 1)
        weights = torch.cat([logits, column.to(dtype)], -1).softmax(-1)
        assert torch.allclose(layer.pattern, weights[..., :-1], atol=1e-6)
        assert torch.allclose(layer.sink, weights[..., -1], atol=1e-6)
        assert layer.sink.min() > 0.001
