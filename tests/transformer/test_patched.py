"""A patched run is a run whose activations are those of another, and no more than that."""

from __future__ import annotations

from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from capacity.errors import CapacityError, InvalidArgumentError
from capacity.transformer import ablated, capture, patched
from tests.transformer.test_ablated import HEADS, TOKENS, gpt2, without_rows
from tests.transformer.tiny_models import FAMILIES, OWN_CODE, build, inputs_of

F64 = torch.float64
OTHER = torch.tensor([[5, 7, 2, 3, 2], [1, 9, 4, 9, 8]])
QUICK = {"GPT-2", "ALBERT"}
# families whose residual stream is known and whose attention goes through the interface, but
# LongCat-Flash, half of whose layers are no modules
TEXTS = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name, family in FAMILIES.items()
    if family.inputs == "text" and name not in (*OWN_CODE, "LongCat-Flash")
]


@torch.no_grad()
def run(model: Any, tokens: Tensor) -> Tensor:
    return model(tokens)[0]


@pytest.mark.parametrize("name", TEXTS)
def test_a_layer_that_reads_another_stream_leaves_nothing_of_the_sentence(name: str) -> None:
    model, tokens = build(name, F64), inputs_of(name, F64)["input_ids"]
    other = tokens.roll(2, 1)
    source = capture(model, other)
    expected, before = run(model, other), run(model, tokens)
    n_layers = len(list(source.streams())) - 1
    if name in ("Gemma 4", "MiniMax"):
        # embeddings of each token are added in every layer; decay depends on positions alone
        n_layers = 0 if name == "Gemma 4" else n_layers
    for layer in range(n_layers):
        with patched(model, source, layers=[layer]) as same:
            assert same is model
            found = run(model, tokens)
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    # the model's own activations change nothing
    own = capture(model, tokens)
    numbers = own.layer_numbers
    with patched(model, own, heads=[(numbers[-1], 1)], layers=range(n_layers)):
        torch.testing.assert_close(run(model, tokens), before, atol=1e-5, rtol=1e-5)
    assert torch.equal(run(model, tokens), before)
    assert not torch.allclose(before, expected, atol=1e-3)


def by_hand(model: Any, heads: Any, z: list[Tensor], at: list[int]) -> list[Any]:
    """Hooks that set what W_O of a GPT-2 reads."""

    def edit(layer: int, head: int) -> Any:
        def hook(_: nn.Module, args: Any) -> Any:
            x = args[0].clone()
            x[:, at, 4 * head : 4 * head + 4] = z[layer][:, head][:, at]
            return (x,)

        return model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(hook)

    return [edit(*pair) for pair in heads]


@pytest.mark.parametrize("at", [None, 2, [0, 2, 4]])
def test_heads_write_what_they_write_for_the_other_sentence(at: Any) -> None:
    model = gpt2()
    source = capture(model, OTHER)
    with patched(model, source, heads=HEADS, positions=at):
        found = run(model, TOKENS)
    places = [*range(5)] if at is None else [at] if isinstance(at, int) else at
    hooks = by_hand(model, HEADS, [layer.z for layer in source.layers], places)
    expected = run(model, TOKENS)
    for hook in hooks:
        hook.remove()
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(expected, run(model, TOKENS))
    if at is None:
        with ablated(model, HEADS, resample_from=OTHER):
            torch.testing.assert_close(run(model, TOKENS), expected)


def test_a_patched_token_changes_itself_and_later_ones_alone() -> None:
    model = gpt2()
    source, before, other = capture(model, OTHER), run(model, TOKENS), run(model, OTHER)
    for layer in (0, 1):
        with patched(model, source, layers=[layer], positions=2):
            found = run(model, TOKENS)
        torch.testing.assert_close(found[:, :2], before[:, :2])
        assert not torch.allclose(found[:, 2], before[:, 2])
    # the first sentences differ in that token alone: all that is later depends on it as theirs does
    with patched(model, source, layers=[0], positions=[2]):
        torch.testing.assert_close(run(model, TOKENS)[0], other[0])


def test_all_heads_and_the_first_stream_are_the_other_run() -> None:
    model = gpt2()
    every = [(layer, head) for layer in range(2) for head in range(4)]
    with patched(model, capture(model, OTHER), heads=every, layers=[0]):
        torch.testing.assert_close(run(model, TOKENS), run_alone(model, OTHER))


def run_alone(model: Any, tokens: Tensor) -> Tensor:
    """Run in another thread, where nothing is patched."""
    found: list[Tensor] = []
    thread = Thread(target=lambda: found.append(run(model, tokens)))
    thread.start()
    thread.join()
    return found[0]


def test_contexts_in_each_other_end_by_errors_and_leave_the_model_as_it_was() -> None:
    model = gpt2()
    before, source = run(model, TOKENS), capture(model, OTHER)
    other = without_rows(model, [(1, 0)])
    with patched(other, source, layers=[1]):
        expected = run(other, TOKENS)
    with patched(model, source, layers=[1]), ablated(model, [(1, 0)]):
        torch.testing.assert_close(run(model, TOKENS), expected)
    # the inner one is what counts
    own = capture(model, TOKENS)
    with patched(model, source, layers=[1]), patched(model, own, layers=[1]):
        torch.testing.assert_close(run(model, TOKENS), before)
    with pytest.raises(ZeroDivisionError), patched(model, source, heads=HEADS, layers=[0]):
        raise ZeroDivisionError
    with pytest.raises(CapacityError), patched(model, source, layers=[1]):
        run(model, TOKENS[:, :3])
    assert torch.equal(run(model, TOKENS), before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_source_of_some_layers_and_heads_is_found_by_their_numbers() -> None:
    model, tokens = build("Jamba", F64), inputs_of("Jamba", F64)["input_ids"]
    other = tokens.flip(1)
    whole, some = capture(model, other), capture(model, other, layers=[2], heads=[1, 3])
    with patched(model, whole, heads=[(2, 3)]):
        expected = run(model, tokens)
    with patched(model, some, heads=[(2, 3)]):
        assert torch.equal(run(model, tokens), expected)
    for heads in ([(2, 0)], [(1, 1)]):
        with (
            pytest.raises(InvalidArgumentError, match="isn't among them"),
            patched(model, some, heads=heads),
        ):
            pass
    with pytest.raises(InvalidArgumentError, match="residual"), patched(model, some, layers=[2]):
        pass


@pytest.mark.slow
def test_a_gate_stays_that_of_the_run() -> None:
    model: Any = build("Qwen3-Next", F64)
    tokens = inputs_of("Qwen3-Next", F64)["input_ids"]
    source, own = capture(model, tokens.flip(1)), capture(model, tokens)
    (number,) = source.layer_numbers
    with patched(model, source, heads=[(number, 1)]):
        found = run(model, tokens)
    z, gate = own.layers[0].z.clone(), own.layers[0].gate
    z[:, 1] = source.layers[0].z[:, 1]
    assert gate is not None
    module = model.layers[number].self_attn.o_proj
    reads = (gate * z).transpose(1, 2).flatten(2)
    hook = module.register_forward_pre_hook(lambda *_: (reads,))
    torch.testing.assert_close(found, run(model, tokens), atol=1e-5, rtol=1e-5)
    hook.remove()


def test_an_encoder_is_patched_as_the_decoder_reads_it() -> None:
    model, inputs = build("BART", F64), inputs_of("BART", F64, "encoder")
    other = {"input_ids": inputs["input_ids"].flip(1)}
    source = capture(model, other, part="encoder")
    with torch.no_grad():
        expected = model.get_encoder()(**other)[0]
        with patched(model, source, layers=[1], part="encoder"):
            torch.testing.assert_close(model.get_encoder()(**inputs)[0], expected)
    with (
        pytest.raises(InvalidArgumentError, match="`part`"),
        patched(model, source, layers=[1], part="decoder"),
    ):
        pass


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "name what is replaced; got neither"), ({"layers": [2]}, "its layers are 0, 1, and 2"),
        ({"layers": [-1]}, "`layers`"), ({"heads": [(0, 4)]}, "heads of layer 0 are 0, 1, 2, 3"),
        ({"heads": [(7, 0)]}, "its layers are 0, 1, and 7"), ({"heads": 3}, "pairs"),
        ({"layers": [0], "positions": 5}, "`positions` must be at most 4"),
        ({"layers": [0], "positions": []}, "must name a token"),
        ({"layers": [0], "positions": "0"}, "`positions`"),
    ],
)  # fmt: skip
def test_what_a_source_does_not_have_is_refused(change: Any, said: str) -> None:
    model = gpt2()
    with pytest.raises(CapacityError, match=said), patched(model, capture(model, OTHER), **change):
        pass


def test_a_source_is_the_activations_of_the_same_model() -> None:
    other = capture(build("Llama", F64), TOKENS)
    for source, said in (
        (other, "a GPT2LMHeadModel; got those of a LlamaModel"),
        (TOKENS, "`source` of `patched` must be an ActivationCache"),
    ):
        with pytest.raises(CapacityError, match=said), patched(gpt2(), source, layers=[0]):  # type: ignore[arg-type]
            pass


def test_sentences_of_another_shape_and_generation_are_refused() -> None:
    model = gpt2()
    source = capture(model, OTHER)
    for given in (TOKENS[:, :4], TOKENS[:1]):
        with (
            pytest.raises(InvalidArgumentError, match=r"as many sentences .*\(2, 5\); it reads"),
            patched(model, source, heads=HEADS),
        ):
            run(model, given)
    with (
        pytest.raises(InvalidArgumentError, match="To generate"),
        patched(model, source, heads=HEADS),
    ):
        model.generate(TOKENS, max_new_tokens=2, do_sample=False, pad_token_id=0)
    with (
        pytest.raises(InvalidArgumentError, match="got both"),
        ablated(model, HEADS, mean_over=TOKENS, resample_from=OTHER),
    ):
        pass
