"""Tensors of other programs: the same analyses, and the same checks."""

from typing import Any

import pytest
import torch
from torch import Tensor

from capacity.errors import CapacityError, InvalidArgumentError, InvalidTypeError
from capacity.transformer import (
    ActivationCache,
    capture,
    decompose,
    effective_attention,
    effective_layer,
    from_tensors,
    from_transformer_lens,
    identifiability_table,
    value_ranks,
)
from tests.transformer.conftest import build as model_of
from tests.transformer.tiny_models import build, inputs_of

GROUPS = ["GPT-2", "Llama", "BERT"]


def captured_of(name: str) -> ActivationCache:
    return capture(build(name, torch.float32), inputs_of(name, torch.float32))


def given(captured: ActivationCache, **changes: Any) -> ActivationCache:
    of = {x: [getattr(layer, x) for layer in captured.layers] for x in ("W_O", "z", "q", "k")}
    patterns = [layer.pattern for layer in captured.layers]
    values = [layer.v for layer in captured.layers]
    every: dict[str, Any] = {"patterns": patterns, "values": values, **of, **changes}
    return from_tensors(every.pop("patterns"), every.pop("values"), **every)


@pytest.mark.parametrize("name", GROUPS)
def test_tensors_give_what_the_model_gives(name: str) -> None:
    captured = captured_of(name)
    found = given(captured)
    assert found.causal == captured.causal
    assert identifiability_table(found).equals(identifiability_table(captured))
    for a, b in zip(
        effective_attention(found).layers, effective_attention(captured).layers, strict=True
    ):
        assert torch.equal(a.pattern, b.pattern)
    with pytest.raises(InvalidArgumentError, match="wasn't recorded"):
        decompose(found)
    # without queries and keys, and without weights
    table = identifiability_table(given(captured, q=None, k=None, W_O=None))
    assert table["p4_excess"].isna().all()
    assert (table["nullity"] == identifiability_table(captured)["nullity"]).all()


@pytest.mark.parametrize("name", GROUPS)
def test_plain_arrays_are_first_class(name: str) -> None:
    captured = captured_of(name)
    layer = captured.layers[0]
    mode: Any = "causal" if captured.causal else "plain"
    found = effective_layer(layer.pattern, layer.v, mode=mode)
    expected = effective_attention(captured).layers[0]
    assert torch.allclose(found.pattern, expected.pattern, atol=1e-6)
    table = identifiability_table(captured).query("layer == 0")
    ranks = value_ranks(layer.v, layer.W_O).values.flatten().tolist()
    assert ranks == table["rank_values"].tolist()


def lens_cache(captured: ActivationCache) -> dict[str, Tensor]:
    return {
        f"blocks.{i}.attn.hook_{name}": x if name == "pattern" else x.transpose(1, 2)
        for i, layer in enumerate(captured.layers)
        for name, x in (("pattern", layer.pattern), ("v", layer.v), ("z", layer.z),
                        ("q", layer.q), ("k", layer.k))
    }  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_a_cache_of_transformer_lens_has_its_own_names(name: str) -> None:
    captured = captured_of(name)
    cache = lens_cache(captured)
    W_O = torch.stack([layer.W_O for layer in captured.layers])
    found = from_transformer_lens(cache, W_O=W_O)
    assert identifiability_table(found).equals(identifiability_table(captured))
    # patterns and values are enough
    few = {key: x for key, x in cache.items() if key.endswith(("pattern", "_v"))}
    assert from_transformer_lens(few).n_layers == 2
    del few["blocks.1.attn.hook_v"]
    with pytest.raises(InvalidArgumentError, match=r"blocks\.1\.attn\.hook_v is missing"):
        from_transformer_lens(few)
    with pytest.raises(InvalidArgumentError, match="got those of none"):
        from_transformer_lens({})


def test_a_cache_of_padded_sentences_or_without_its_batch_says_what_to_do() -> None:
    captured = captured_of(GROUPS[0])
    cache = lens_cache(captured)
    one = {key: x[0] for key, x in cache.items()}
    with pytest.raises(InvalidArgumentError, match=r"dimension of the batch, x\[None\]"):
        from_transformer_lens(one)
    whole = from_transformer_lens({key: x[:1] for key, x in cache.items()})
    again = from_transformer_lens({key: x[None] for key, x in one.items()})
    assert torch.equal(again.layers[0].pattern, whole.layers[0].pattern)
    # rows of padding, which attend to nothing
    damaged = {key: x.clone() for key, x in cache.items()}
    for key in (key for key in cache if key.endswith("pattern")):
        damaged[key][:, :, -1] = torch.nan
    with pytest.raises(InvalidArgumentError, match=r"those of padding. Mark by `mask`"):
        from_transformer_lens(damaged)
    mask = torch.ones(captured.layers[0].pattern.shape[::3], dtype=torch.bool)
    mask[:, -1] = False
    assert from_transformer_lens(damaged, mask=mask).n_layers == 2


def test_what_isn_t_attention_is_refused() -> None:
    captured = captured_of("BERT")
    first = captured.layers[0]
    wrong: dict[str, dict[str, Any]] = {
        "heads by 0.": {"z": [layer.z * 2 for layer in captured.layers]},
        "rows are off by 0.5": {"patterns": [layer.pattern / 2 for layer in captured.layers],
                                "z": None},
        "must be tensors of floats": {"patterns": [first.pattern[0], first.pattern]},
        "1 of `values`": {"values": [first.v]},
        "values of layer 0": {"values": [first.v[:, :, 1:]] * 2},
        "W_O must have the shape": {"W_O": [first.W_O[1:]] * 2},
        "got none": {"patterns": [], "values": [], "W_O": None, "z": None, "q": None, "k": None},
        "padding alone": {"mask": torch.tensor([[True] * 9, [False] * 9])},
    }  # fmt: skip
    for message, changes in wrong.items():
        with pytest.raises(InvalidArgumentError, match=message):
            given(captured, **changes)


def test_shapes_of_plain_arrays_are_checked() -> None:
    pattern, v = torch.full((1, 2, 4, 4), 0.25), torch.ones(1, 2, 3, 2)
    with pytest.raises(InvalidArgumentError, match=r"got \(1, 2, 4, 4\), \(1, 2, 3, 2\)"):
        effective_layer(pattern, v)


def test_half_precision_is_too_coarse_for_ranks() -> None:
    pattern, v = torch.full((1, 2, 4, 4), 0.25), torch.ones(1, 2, 4, 2)
    with pytest.raises(InvalidArgumentError, match=r"torch.float32 and torch.bfloat16. Convert"):
        effective_layer(pattern, v.bfloat16())


def test_windows_and_sinks_are_given_with_the_tensors() -> None:
    inputs = inputs_of("GPT-OSS", torch.float32)
    captured = capture(build("GPT-OSS", torch.float32, sliding_window=4), inputs)
    of = {name: [getattr(layer, name) for layer in captured.layers] for name in ("seen", "sink")}
    assert of["seen"][0] is not None
    found = given(captured, **of, q=None, k=None)
    ours, theirs = (identifiability_table(c)["identifiable_rows"] for c in (found, captured))
    assert ours.equals(theirs)
    for a, b in zip(
        effective_attention(found).layers, effective_attention(captured).layers, strict=True
    ):
        assert torch.equal(a.pattern, b.pattern)
    with pytest.raises(InvalidArgumentError, match="rows are off by"):
        given(captured, seen=of["seen"])


def test_layers_must_fit_each_other() -> None:
    captured = captured_of("BERT")
    first = captured.layers[0]
    wrong: dict[str, dict[str, Any]] = {
        "must have the same shape": {
            "patterns": [first.pattern, first.pattern[:, :2]],
            "values": [first.v, first.v[:, :2]],
            **dict.fromkeys(("W_O", "z", "q", "k")),
        },
        "must come together": {"k": None},
        "must have the same width": {"q": [first.q[..., :3]] * 2},
        "`seen` of layer 0": {"seen": [torch.ones(2, 9, 8, dtype=torch.bool)] * 2},
        "of floats; got": {"values": [first.v.int()] * 2},
        "must not be empty": {"patterns": [first.pattern[:0]] * 2, "values": [first.v[:0]] * 2},
    }
    for message, changes in wrong.items():
        with pytest.raises(InvalidArgumentError, match=message):
            given(captured, **changes)
    # another type is that of the attention
    wider = given(captured, values=[layer.v.double() for layer in captured.layers])
    assert wider.layers[0].v.dtype == torch.float32


def test_rows_that_are_dropped_have_no_part_in_ranks_or_effective_attention() -> None:
    g = torch.Generator().manual_seed(0)
    v, W_O = torch.randn(1, 2, 9, 3, generator=g) * 1e-8, torch.randn(2, 3, 6, generator=g)
    v[:, :, 5:] = 1e38
    assert value_ranks(v, W_O, [5]).values.tolist() == [[3, 3]]
    mask = torch.arange(9)[None] < 5
    pattern = torch.rand(1, 2, 9, 9, generator=g)
    pattern = (pattern * mask / (pattern * mask).sum(-1, keepdim=True)).masked_fill(
        ~mask[:, None, :, None], torch.nan
    )
    v[:, :, 5:] = torch.inf
    for mode in ("plain", "simplex"):
        found = effective_layer(pattern, v, mask, mode)
        assert found.square.isfinite().all()
        assert torch.allclose((found.pattern @ v.nan_to_num(posinf=0))[:, :, :5],
                              (pattern[:, :, :5, :5] @ v[:, :, :5]), atol=1e-12)  # fmt: skip


# what `from_tensors` takes, of one layer
GIVEN: dict[str, Tensor] = {
    "patterns": torch.full((1, 2, 4, 4), 0.25), "values": torch.ones(1, 2, 4, 3),
    "W_O": torch.ones(2, 3, 5), "z": torch.ones(1, 2, 4, 3), "q": torch.ones(1, 2, 4, 3),
    "k": torch.ones(1, 2, 4, 3), "seen": torch.ones(1, 4, 4, dtype=torch.bool),
    "sink": torch.zeros(1, 2, 4), "mask": torch.ones(1, 4, dtype=torch.bool),
    "keys": torch.ones(1, 4, dtype=torch.bool),
}  # fmt: skip
ODD: dict[str, Any] = {
    "nothing": lambda x: None, "a number": lambda x: 3, "text": lambda x: "x",
    "an object": lambda x: object(), "a mapping": lambda x: {0: x}, "a set": lambda x: {3},
    "an iterator": lambda x: iter([x]), "nested lists": lambda x: x.tolist(),
    "another shape": lambda x: x[..., :1], "a scalar": lambda x: torch.tensor(1.0),
    "empty": lambda x: x[:0], "sparse": lambda x: x.to_sparse(),
    "rows": lambda x: x.float().flatten(0, -2).to_sparse_csr(), "meta": lambda x: x.to("meta"),
    "nested": lambda x: torch.nested.nested_tensor([x[0], x[0]]),
    "of another library": lambda x: x.float().to_mkldnn(),
    "quantised": lambda x: torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
    "complex": lambda x: x.to(torch.complex64), "8 bits": lambda x: x.to(torch.float8_e4m3fn),
    "integers": lambda x: x.long(), "truths": lambda x: x > 0,
    "unsigned": lambda x: x.to(torch.uint16),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_no_tensor_of_numbers_is_refused_in_words(name: str) -> None:
    every = {each: GIVEN[each] for each in ("patterns", "values", "q", "k")}
    of_layers = name not in ("mask", "keys")
    for odd, make in ODD.items():
        value = make(GIVEN[name])
        # in place of the tensor of a layer, and of all of them
        for one in ([value], value) if of_layers else (value,):
            options: dict[str, Any] = {each: [x] for each, x in every.items()} | {name: one}
            said = ""
            try:
                from_tensors(**options)
            except CapacityError as error:
                said = str(error)
            assert len(said) < 300
            # none of these has values to compute with
            assert said or odd not in ("sparse", "rows", "meta", "nested", "quantised"), name


def test_what_the_message_names_is_what_was_given() -> None:
    pattern, v = GIVEN["patterns"], GIVEN["values"]
    nothing: Any = None
    with pytest.raises(InvalidTypeError, match="`patterns` must be a sequence with a tensor for"):
        from_tensors(nothing, nothing)
    for odd, said in (("sparse", "must be dense; got a tensor of the layout sparse_coo"),
                      ("meta", "must have values, on the device cpu; got a tensor on meta"),
                      ("8 bits", "must be of 16, 32 or 64 bits; got float8_e4m3fn")):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=f"The values of layer 0 of tensors {said}"):
            from_tensors([pattern], [ODD[odd](v)])
    for scale in ("x", []):
        with pytest.raises(InvalidTypeError, match="`scale` must be a number"):
            from_tensors([pattern], [v], q=[v], k=[v], scale=scale)  # type: ignore[arg-type]


@pytest.mark.parametrize("cache", [
    None, 3, [], "x", {"hook_pattern": None, "hook_v": 3}, {"hook_pattern": 3, "hook_v": None},
    {"hook_pattern": GIVEN["patterns"].to_sparse(), "hook_v": GIVEN["values"]},
    {"hook_pattern": GIVEN["patterns"], "hook_v": torch.tensor(1.0)},
])  # fmt: skip
def test_what_is_no_cache_of_transformer_lens_is_refused_in_words(cache: Any) -> None:
    if isinstance(cache, dict):
        cache = {f"blocks.0.attn.{name}": x for name, x in cache.items()}
    with pytest.raises((InvalidArgumentError, InvalidTypeError)):
        from_transformer_lens(cache)


@pytest.mark.parametrize("odd", ["nothing", "sparse", "meta", "nested", "rows"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_inputs_without_values_are_refused_in_words(odd: str) -> None:
    for name in ("input_ids", "attention_mask"):
        inputs = {"input_ids": torch.tensor([[3, 4]]), "attention_mask": torch.ones(1, 2)}
        inputs[name] = ODD[odd](inputs[name])
        if (odd, name) == ("nothing", "attention_mask"):
            # which says that all are tokens
            assert capture(model_of("Bert"), inputs).n_layers
            continue
        with pytest.raises(InvalidArgumentError, match=r"must be dense|must have values|must hold"):
            capture(model_of("Bert"), inputs)
