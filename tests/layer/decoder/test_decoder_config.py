"""Sizes and options of decoders: names, counts, refusals, and the layer that converts into one."""

from __future__ import annotations

import math

import pytest
import torch

from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer import AttentionLayer, Decoder, DecoderConfig, LayerConfig


def test_a_configuration_has_one_way_to_be_written() -> None:
    assert DecoderConfig(4, attention=(True,)) == DecoderConfig(4)
    assert DecoderConfig(4, n_layers=2, mlp=3, attention=(False, False)) == DecoderConfig(
        4, n_layers=2, mlp=3, attention=False
    )
    assert DecoderConfig(4, positions="learned").n_positions == 2
    assert DecoderConfig(**DecoderConfig(4, 2, n_layers=2, mlp=8, gated=True).to_dict()) == (
        DecoderConfig(4, 2, n_layers=2, mlp=8, gated=True)
    )


NAMES = {
    "d8-h2-qk4-vo4": DecoderConfig(8, 2),
    "d8-h2-qk2-vo3-l3-mlp5-silu-gated-layer-after-rotary-bias-scale-tied": DecoderConfig(
        8, 2, 2, 3, n_layers=3, mlp=5, activation="silu", gated=True, norm="layer",
        norm_place="after", positions="rotary", bias=True, scale=True, tie_embeddings=True,
    ),
    "d4-mlp8-relu": DecoderConfig(4, mlp=8, activation="relu", attention=False),
    "d4-h1-qk4-vo4-attention10-l2-mlp8-gelu": DecoderConfig(
        4, n_layers=2, mlp=8, attention=(True, False)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_and_counts(name: str) -> None:
    config = NAMES[name]
    assert config.name == name
    counts, shapes = config.parameters_by_part(7), config.shapes(7)
    assert sum(counts.values()) == sum(map(math.prod, shapes.values()))
    assert counts["embeddings"] == config.n_embedding_parameters(7)
    assert config.n_parameters == sum(counts.values()) - counts["embeddings"]
    decoder = Decoder(config, 7)
    assert {n: tuple(p.shape) for n, p in decoder.named_parameters()} == shapes


def test_counts_by_hand() -> None:
    # an unembedding, heads of 4 * 2 * (8 * 4), an MLP with biases, two norms before it and one last
    config = DecoderConfig(8, 2, mlp=32, norm="layer", bias=True)
    assert config.parameters_by_part(10) == {
        "embeddings": 2 * 80 + 10,
        "heads": 4 * 2 * 8 * 4 + 3 * 2 * 4 + 8,
        "mlp": 2 * 8 * 32 + 32 + 8,
        "norms": 3 * 2 * 8,
    }


WRONG = {
    "`d_head_vo` must be at most d_model = 4": {"d_model": 4, "d_head_vo": 5},
    "`n_layers` must be an integer of at least 1": {"d_model": 4, "n_layers": 0},
    "`d_head_qk` must be even with rotary": {"d_model": 4, "d_head_qk": 3, "positions": "rotary"},
    "`positions` must not be 'rotary' without attention": {
        "d_model": 4, "positions": "rotary", "attention": False, "mlp": 4,
    },
    "A layer must have attention or an MLP": {"d_model": 4, "attention": False},
    "one for each of the n_layers = 2 layers": {
        "d_model": 4, "n_layers": 2, "attention": (True,), "mlp": 1,
    },
    "without an MLP": {"d_model": 4, "gated": True},
    "`norm_place` must be omitted without a norm": {"d_model": 4, "norm_place": "after"},
    "`n_positions` must be omitted unless": {"d_model": 4, "n_positions": 3},
    "`norm` must be": {"d_model": 4, "norm": "batch"},
    "`bias` must be a bool": {"d_model": 4, "bias": 1},
    "`d_head_qk` may be omitted only if n_heads divides": {"d_model": 4, "n_heads": 3},
    "registered parts": {"d_model": 4, "extra": ("no such part",)},
}  # fmt: skip


@pytest.mark.parametrize("message", WRONG)
def test_what_has_no_meaning_is_refused(message: str) -> None:
    with pytest.raises(InvalidArgumentError) as error:
        DecoderConfig(**WRONG[message])
    assert message in str(error.value)


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(InvalidTypeError, match="n_layers"):
        DecoderConfig(4, n_layer=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n_positions", [0, 3])
def test_a_layer_converts_into_the_decoder_that_computes_the_same(
    *, scale: bool, layer_norm: bool, bias: bool, n_positions: int
) -> None:
    config = LayerConfig(
        4, 2, 3, 2, scale=scale, layer_norm=layer_norm, bias=bias, n_positions=n_positions
    )
    layer = AttentionLayer(config, 6, seed=1, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for p in layer.parameters():
        # biases that are zeros would hide a mistake
        p.data += torch.randn(p.shape, generator=generator, dtype=p.dtype)
    names = config.names_in_decoder()
    weights = {names[name]: p for name, p in layer.named_parameters()}
    decoder = Decoder.of_weights(config.as_decoder(), weights)
    tokens = torch.tensor([[0, 1, 2], [3, 3, 5]])
    torch.testing.assert_close(decoder(tokens), layer(tokens), rtol=1e-12, atol=1e-12)
    same = Decoder(config.as_decoder(), 6, seed=1)
    assert torch.equal(same.W_E, AttentionLayer(config, 6, seed=1).W_E)
