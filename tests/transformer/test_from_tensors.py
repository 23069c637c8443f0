"""Tensors of other programs: the same analyses, and the same checks."""

from typing import Any

import pytest
import torch
from torch import Tensor

from capacity.errors import InvalidArgumentError
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
