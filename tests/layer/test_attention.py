import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.checks import shown
from capacity.errors import CapacityError, MemoryBudgetError
from capacity.layer import AttentionLayer, LayerConfig
from capacity.layer.model.initial import initial_weights
from capacity.testing import layer_configs, layers
from tests.tiers import examples


def equation_2(layer: AttentionLayer, sentence: list[int]) -> np.ndarray:
    """Z(x) of equation (2), with one-hot X and the circuits, term by term."""
    n, tokens = len(sentence), layer.d_vocab
    X = np.eye(tokens)[sentence]
    W_EU, W_QK, W_VO = (c.detach().double().numpy() for c in (layer.W_EU, layer.W_QK, layer.W_VO))
    Z = X @ W_EU
    for h in range(layer.config.n_heads):
        scores = X @ W_QK[h] @ X.T
        A = np.zeros((n, n))
        for i in range(n):  # equation (3)
            weights = np.exp(scores[i, : i + 1])
            A[i, : i + 1] = weights / weights.sum()
        Z += A @ X @ W_VO[h]
    return Z


@given(layers(7), st.lists(st.integers(0, 6), min_size=1, max_size=6))
@settings(max_examples=examples(50))
def test_forward_is_equation_2_for_any_length(layer: AttentionLayer, sentence: list[int]) -> None:
    logits = layer(torch.tensor([sentence]))[0].detach().numpy()
    np.testing.assert_allclose(logits, equation_2(layer, sentence), rtol=1e-9, atol=1e-9)


@given(layers(6))
@settings(max_examples=examples(25))
def test_later_tokens_change_nothing_before_them(layer: AttentionLayer) -> None:
    a, b = layer(torch.tensor([[0, 1, 2], [0, 1, 5]]))
    assert torch.equal(a[:2], b[:2])


@given(layers(8))
@settings(max_examples=examples(25))
def test_circuits_have_at_most_the_ranks_of_their_inner_dimensions(layer: AttentionLayer) -> None:
    c = layer.config
    for circuit, bound in ((layer.W_QK, c.d_head_qk), (layer.W_VO, c.d_head_vo)):
        assert circuit.shape == (c.n_heads, 8, 8)
        assert int(torch.linalg.matrix_rank(circuit).max()) <= bound
    assert int(torch.linalg.matrix_rank(layer.W_EU)) <= c.d_model


def test_initial_weights_have_their_laws_and_are_the_same_for_every_dtype() -> None:
    config = LayerConfig(8, 4, 4, 2)
    weights = initial_weights(config, 5000, 0)
    # 40,000 normal numbers: mean and deviation within five standard errors
    assert abs(weights["W_E"].mean()) < 5 / math.sqrt(40_000)
    assert abs(weights["W_E"].std() - 1) < 5 / math.sqrt(80_000)
    for name, fan_in in {"W_U": 8, "W_Q": 8, "W_K": 8, "W_V": 8, "W_O": 2}.items():
        bound = 1 / math.sqrt(fan_in)
        assert np.abs(weights[name]).max() <= bound
        # the largest of n uniform numbers misses the end by about 1/n of it
        assert np.abs(weights[name]).max() > 0.9 * bound
    single = AttentionLayer(config, 10, seed=3)
    double = AttentionLayer(config, 10, seed=3, dtype=torch.float64)
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        assert torch.equal(a, b.float())


@pytest.mark.parametrize(
    "options", [{}, {"scale": True}, {"bias": True}, {"layer_norm": True}, {"n_positions": 3}]
)
def test_options_are_off_and_change_the_layer_when_on(options: dict, tmp_path: Path) -> None:
    plain = AttentionLayer(LayerConfig(4, 2, 2, 3), 6, seed=0)
    layer = AttentionLayer(LayerConfig(4, 2, 2, 3, **options), 6, seed=0)
    if options:
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                if name not in dict(plain.named_parameters()):
                    parameter += 0.5
    tokens = torch.tensor([[0, 1, 2]])
    assert torch.equal(layer(tokens), plain(tokens)) == (not options)
    layer.save(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.json", "weights.safetensors"]
    again = AttentionLayer.load(tmp_path)
    assert again.config == layer.config
    assert torch.equal(again(tokens), layer(tokens))


def test_scaling_divides_attention_logits_by_the_root_of_d_head_qk() -> None:
    config = LayerConfig(4, 2, 4, 3)
    plain = AttentionLayer(config, 6, seed=0)
    scaled = AttentionLayer(LayerConfig(4, 2, 4, 3, scale=True), 6, seed=0)
    assert torch.allclose(scaled.W_QK * 2, plain.W_QK)


def test_sentences_longer_than_the_positions_are_refused() -> None:
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1, n_positions=2), 4)
    with pytest.raises(ValueError, match="at most n_positions = 2"):
        layer(torch.tensor([[0, 1, 2]]))
    with pytest.raises(ValueError, match="without norm, bias and positions"):
        _ = layer.W_QK


@given(layer_configs())
def test_parameter_counts_are_those_of_the_weights(config: LayerConfig) -> None:
    layer = AttentionLayer(config, 9)
    heads = sum(p.numel() for p in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O))
    assert config.n_parameters == heads
    assert config.n_embedding_parameters(9) == layer.W_E.numel() + layer.W_U.numel()


@given(layer_configs(), st.booleans(), st.booleans(), st.integers(0, 3))
def test_shapes_are_known_before_the_weights_are(
    config: LayerConfig, bias: bool, layer_norm: bool, n_positions: int
) -> None:
    config = replace(config, bias=bias, layer_norm=layer_norm, n_positions=n_positions)
    state = AttentionLayer(config, 9).state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == config.shapes(9)


def test_weights_beyond_the_budget_are_refused_before_any_is_drawn() -> None:
    # W_E and W_U of 2^20 x 2^11 numbers have 2^32 of them, 32 GiB; the heads' come on top
    config = LayerConfig(2**11, 1, 1, 1)
    generator = np.random.default_rng(0)
    with pytest.raises(
        MemoryBudgetError, match=r"at most 8,589,934,592 bytes .* take 34,359,803,904"
    ):
        AttentionLayer(config, 2**20, seed=generator)
    assert generator.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize("seed", [-1, 2**63, 10**400])
def test_seeds_that_no_table_can_hold_are_refused(seed: int) -> None:
    with pytest.raises(CapacityError, match="`seed` must be"):
        AttentionLayer(LayerConfig(2, 1, 1, 1), 4, seed=seed)


@pytest.mark.parametrize("d_vocab", [0, True, 2.0, 2**31, 10**5000], ids=shown)
def test_numbers_of_tokens_out_of_range_are_refused(d_vocab: Any) -> None:
    with pytest.raises(CapacityError, match="`d_vocab` must be"):
        AttentionLayer(LayerConfig(2, 1, 1, 1), d_vocab)
