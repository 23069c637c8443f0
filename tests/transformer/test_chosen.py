"""Some layers and heads alone, and layers one by one: the same numbers, in less memory."""

import gc
import signal
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from pandas.testing import assert_frame_equal

from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.layer import AttentionLayer, LayerConfig
from capacity.transformer import (
    attention_table,
    capture,
    capture_layers,
    decompose,
    effective_attention,
    identifiability_table,
)
from capacity.transformer.activations.capturing import handed_over
from tests.transformer.tiny_models import build, inputs_of

F32 = torch.float32
TOKENS = inputs_of("BERT", F32)["input_ids"]
CASES = [("BERT", None), ("Llama", None), ("GPT-OSS", None), ("BART", "cross"), ("T5", "decoder")]
every = pytest.mark.parametrize(("name", "part"), CASES)


@every
def test_chosen_layers_and_heads_are_those_of_all(name: str, part: Any) -> None:
    model, inputs = build(name, F32), inputs_of(name, F32, part)
    whole = capture(model, inputs, part=part)
    some = capture(model, inputs, part=part, layers=[1], heads=[0, 2])
    assert some.layer_numbers == (1,)
    assert some.head_numbers == (0, 2)
    for field in ("pattern", "q", "k", "v", "z", "sink"):
        one, other = getattr(some.layers[0], field), getattr(whole.layers[1], field)
        assert one is other is None or torch.equal(one, other[:, [0, 2]])
    assert torch.equal(some.layers[0].W_O, whole.layers[1].W_O[[0, 2]])
    # tables name what was chosen; heads that aren't there have no part in joint_nullity
    table, all_ = (attention_table(c, effective_attention(c)) for c in (some, whole))
    rows = all_.query("layer == 1 and head in [0, 2]").drop(columns="joint_nullity")
    # shares are sums, whose order goes by how many heads there are
    assert_frame_equal(table.drop(columns="joint_nullity"), rows.reset_index(drop=True), rtol=1e-5)
    with pytest.raises(InvalidArgumentError, match=r"wasn't recorded|across sequences"):
        decompose(some)


@every
def test_layers_one_by_one_are_those_of_all(name: str, part: Any) -> None:
    model, inputs = build(name, F32), inputs_of(name, F32, part)
    whole = capture(model, inputs, part=part)
    numbers = []
    for one, layer in zip(capture_layers(model, inputs, part=part), whole.layers, strict=True):
        numbers += one.layer_numbers
        assert torch.equal(one.layers[0].pattern, layer.pattern)
        assert one.causal == whole.causal
        at = identifiability_table(whole).query(f"layer == {numbers[-1]}")
        assert identifiability_table(one).equals(at.reset_index(drop=True))
    assert numbers == list(range(whole.n_layers))


@pytest.mark.slow
def test_one_layer_at_a_time_is_in_memory() -> None:
    model = build("BERT", F32)
    before: list[Any] = []
    for one in capture_layers(model, TOKENS):
        gc.collect()
        assert all(ref() is None for ref in before)
        before.append(weakref.ref(one.layers[0].pattern))
        del one
    assert len(before) == 2


def test_an_iteration_that_ends_early_leaves_the_model_as_it_was() -> None:
    model = build("Llama", F32)
    model.config._attn_implementation = "sdpa"
    threads = threading.active_count()
    layers = capture_layers(model, TOKENS)
    next(layers)
    layers.close()  # type: ignore[attr-defined]
    assert threading.active_count() == threads
    assert model.config._attn_implementation == "sdpa"
    assert not any(module._forward_hooks for module in model.modules())


def test_errors_come_out_of_the_iteration() -> None:
    with pytest.raises(InvalidArgumentError, match="d_vocab - 1 = 59; got 99"):
        next(capture_layers(build("BERT", F32), torch.tensor([[99]])))
    model = build("BERT", F32)
    model.encoder.layer[1].register_forward_hook(lambda *_: 1 / 0)
    layers = capture_layers(model, TOKENS)
    assert next(layers).layer_numbers == (0,)
    assert next(layers).layer_numbers == (1,)
    with pytest.raises(InvalidArgumentError, match="raises ZeroDivisionError"):
        next(layers)


def test_models_of_the_project_have_layers_and_heads_as_well() -> None:
    layer = AttentionLayer(LayerConfig(4, 3, 2, 2), 10, seed=0)
    tokens = torch.tensor([[1, 2, 3]])
    one = capture(layer, tokens, heads=[2])
    assert torch.equal(one.layers[0].z, layer.capture(tokens).layers[0].z[:, [2]])
    assert [c.layer_numbers for c in capture_layers(layer, tokens)] == [(0,)]


WRONG = {
    "a layer too far": ({"layers": [2]}, "`layers` must be from 0 to 1; got 2"),
    "a head too far": ({"heads": [0, 4]}, "`heads` must be from 0 to 3; got 4"),
    "twice": ({"heads": [1, 1]}, "ascending and without repetition"),
    "none": ({"layers": []}, "ascending and without repetition"),
    "a negative one": ({"layers": [-1]}, "`layers` must be an integer of at least 0"),
    "another check": ({"check": "half"}, "`check` must be one of"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_choices_are_named(case: str) -> None:
    changes, message = WRONG[case]
    with pytest.raises(InvalidArgumentError, match=message):
        capture(build("BERT", F32), TOKENS, **changes)


def test_the_budget_is_that_of_what_is_kept() -> None:
    model = build("BERT", F32, max_position_embeddings=9_000, hidden_size=4, num_attention_heads=2)
    tokens = torch.zeros(1, 9_000, dtype=torch.int64)
    # 4 bytes x 2 layers x 2 heads x 9,000^2 is 1.3 GB, and that of 8 sentences isn't allowed
    with pytest.raises(MemoryBudgetError, match=r"8 x 9,000 tokens in 1 layers of 1 heads"):
        capture(model, tokens.expand(8, -1), layers=[1], heads=[0])


def test_other_captures_and_runs_may_go_on_between_two_layers() -> None:
    first, second = build("GPT-2", F32), build("BERT", F32)
    alone = capture(second, TOKENS)
    with torch.no_grad():
        told = first(TOKENS).last_hidden_state
    for one in capture_layers(first, TOKENS):
        assert one.n_layers == 1
        assert torch.equal(capture(second, TOKENS).layers[1].z, alone.layers[1].z)
        assert capture(first, TOKENS).n_layers == 2
        with torch.no_grad():
            assert torch.allclose(first(TOKENS).last_hidden_state, told, atol=1e-6)
    assert first.config._attn_implementation == "eager"


def test_threads_may_capture_one_model_at_a_time_each() -> None:
    model = build("BERT", F32).train()
    inputs = [TOKENS.roll(shift, 1)[:, : 9 - shift] for shift in range(4)]
    expected = [decompose(capture(model, x)).terms for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(lambda x: decompose(capture(model, x)).terms, x) for x in inputs * 5]
        for job, terms in zip(jobs, expected * 5, strict=True):
            assert torch.equal(job.result(), terms)
    assert all(module.training for module in model.modules())


def test_ctrl_c_ends_an_iteration_while_a_value_is_computed() -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def run(hand: Any) -> None:
        time.sleep(0.3)
        hand(1)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    threads = threading.active_count()
    try:
        with pytest.raises(KeyboardInterrupt):
            next(handed_over(run))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert threading.active_count() == threads


def test_nothing_of_a_capture_outlives_it() -> None:
    model = build("BERT", F32)
    capture(model, TOKENS)
    gc.collect()
    gc.disable()
    before = {id(x) for x in gc.get_objects() if type(x) is torch.Tensor}
    try:
        capture(model, TOKENS)
        # nor does anything wait for the collector
        left = [x for x in gc.get_objects() if type(x) is torch.Tensor and id(x) not in before]
    finally:
        gc.enable()
    assert not left
