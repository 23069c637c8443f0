import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity.layer import AttentionLayer, LayerConfig
from capacity.layer.attention import initial_weights
from capacity.testing import layer_configs, layers


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
@settings(max_examples=50)
def test_forward_is_equation_2_for_any_length(layer: AttentionLayer, sentence: list[int]) -> None:
    logits = layer(torch.tensor([sentence]))[0].detach().numpy()
    np.testing.assert_allclose(logits, equation_2(layer, sentence), rtol=1e-9, atol=1e-9)


@given(layers(6))
@settings(max_examples=25)
def test_later_tokens_change_nothing_before_them(layer: AttentionLayer) -> None:
    a, b = layer(torch.tensor([[0, 1, 2], [0, 1, 5]]))
    assert torch.equal(a[:2], b[:2])


@given(layers(8))
@settings(max_examples=25)
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


def test_folders_without_a_layer_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"must hold config\.json"):
        AttentionLayer.load(tmp_path)
    AttentionLayer(LayerConfig(2, 1, 1, 1), 4).save(tmp_path)
    (tmp_path / "weights.safetensors").write_bytes(b"broken")
    with pytest.raises(ValueError, match="must hold"):
        AttentionLayer.load(tmp_path)
    AttentionLayer(LayerConfig(2, 1, 1, 1), 4).save(tmp_path)
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace('"d_model": 2', '"d_model": 3'))
    with pytest.raises(ValueError, match="size mismatch"):
        AttentionLayer.load(tmp_path)


@given(layer_configs())
def test_parameter_counts_are_those_of_the_weights(config: LayerConfig) -> None:
    layer = AttentionLayer(config, 9)
    heads = sum(p.numel() for p in (layer.W_Q, layer.W_K, layer.W_V, layer.W_O))
    assert config.n_parameters == heads
    assert config.n_embedding_parameters(9) == layer.W_E.numel() + layer.W_U.numel()
