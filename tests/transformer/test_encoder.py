import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache, Normed, Written
from capacity.transformer.activations.records.validation import check
from capacity.transformer.encoder.config import EncoderConfig, initial_weights
from capacity.transformer.encoder.model import EncoderClassifier
from tests.tiers import examples

CONFIG = EncoderConfig(20, 3, 7, 6, 3, 2, 5, "concatenate")
ADD = replace(CONFIG, combine="add")
BOTH = pytest.mark.parametrize("config", [CONFIG, ADD], ids=["concatenate", "add"])
# double: a few roundings of numbers of size 10 or less; single: the same, 5e8 times larger
DTYPES = pytest.mark.parametrize(("dtype", "off"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
few = settings(deadline=None, max_examples=examples(25))


# d_model is 2 at least: a norm of one number is constant
configs = st.builds(
    lambda heads, times, qk, ff, combine: EncoderConfig(
        20, 3, 7, 2 * heads * times, heads, qk, ff, combine
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from(["concatenate", "add"]),
)
lengths_of_sentences = st.lists(st.integers(1, 7), min_size=1, max_size=4)


def sentences(lengths: list[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randint(0, 20, mask.shape, generator=generator), mask


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def normed(x: np.ndarray, norm: nn.LayerNorm) -> np.ndarray:
    gain, bias = norm.weight.detach().double().numpy(), norm.bias.detach().double().numpy()
    return gain * (x - x.mean()) / math.sqrt(x.var() + norm.eps) + bias


def encoded(model: EncoderClassifier, sentence: list[int]) -> np.ndarray:
    """y of one sentence, token by token and head by head, as the module's docstring defines it."""
    c = model.config
    w = {name: weight.detach().double().numpy() for name, weight in model.named_parameters()}
    x = np.stack([w["W_E"][token] + w["W_pos"][i] for i, token in enumerate(sentence)])
    y = []
    for i in range(len(sentence)):
        z = []
        for h in range(c.n_heads):
            q = x[i] @ w["W_Q"][h] + w["b_Q"][h]
            keys = [token @ w["W_K"][h] + w["b_K"][h] for token in x]
            attention = softmax(np.array([q @ k for k in keys]) / math.sqrt(c.d_head_qk))
            values = [token @ w["W_V"][h] + w["b_V"][h] for token in x]
            z.append(sum(a * v for a, v in zip(attention, values, strict=True)))
        together = np.concatenate(z) if c.combine == "concatenate" else np.sum(z, axis=0)
        stream = normed(x[i] + together @ w["W_O"] + w["b_O"], model.norm_1)
        fed = np.maximum(stream @ w["W_1"] + w["b_1"], 0) @ w["W_2"] + w["b_2"]
        y.append(normed(stream + fed, model.norm_2))
    return np.stack(y)


def with_norms(model: EncoderClassifier) -> EncoderClassifier:
    """Norms with gains and biases, which begin as 1 and 0."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for norm in (model.norm_1, model.norm_2):
            for weight in (norm.weight, norm.bias):
                weight.add_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype) / 3)
    return model


def replayed(captured: ActivationCache) -> Tensor:
    """The stream after all steps, as `captured` defines them."""
    stream = captured.start
    for step in captured.steps:
        if isinstance(step, Written):
            assert step.bias is not None
            stream = stream + step.output + step.bias
        else:
            assert isinstance(step, Normed)
            assert step.mean is not None
            assert step.bias is not None
            stream = step.gain * (stream - step.mean) / step.scale + step.bias
    return stream


@DTYPES
@given(config=configs, lengths=lengths_of_sentences, seed=st.integers(0, 99))
@few
def test_steps_lead_from_the_start_to_the_formulas_y_and_its_logits(
    config: EncoderConfig, lengths: list[int], seed: int, dtype: torch.dtype, off: float
) -> None:
    model = with_norms(EncoderClassifier(config, seed=seed, dtype=dtype))
    tokens, mask = sentences(lengths, seed)
    y = replayed(model.capture(tokens, mask))
    logits = model(tokens, mask)
    assert y.dtype == logits.dtype == dtype
    W_C, b_C = (weight.detach().double().numpy() for weight in (model.W_C, model.b_C))
    for i, length in enumerate(lengths):
        expected = encoded(model, tokens[i, :length].tolist())
        for ours, formula in ((y[i, :length], expected), (logits[i], expected[0] @ W_C + b_C)):
            ours = ours.detach().double().numpy()
            np.testing.assert_allclose(ours, formula, rtol=off, atol=off)


@DTYPES
def test_concatenation_with_the_usual_head_is_torchs_encoder_layer(
    dtype: torch.dtype, off: float
) -> None:
    model = with_norms(EncoderClassifier(CONFIG, seed=3, dtype=dtype))
    peer = nn.TransformerEncoderLayer(6, 3, 5, dropout=0.0, batch_first=True, dtype=dtype)
    # torch's rows act from the right, and its heads are blocks of one matrix
    stacked = [w.permute(0, 2, 1).flatten(0, 1) for w in (model.W_Q, model.W_K, model.W_V)]
    weights = {
        "self_attn.in_proj_weight": torch.cat(stacked),
        "self_attn.in_proj_bias": torch.cat([model.b_Q, model.b_K, model.b_V]).flatten(),
        "self_attn.out_proj.weight": model.W_O.T,
        "self_attn.out_proj.bias": model.b_O,
        "linear1.weight": model.W_1.T,
        "linear1.bias": model.b_1,
        "linear2.weight": model.W_2.T,
        "linear2.bias": model.b_2,
        "norm1.weight": model.norm_1.weight,
        "norm1.bias": model.norm_1.bias,
        "norm2.weight": model.norm_2.weight,
        "norm2.bias": model.norm_2.bias,
    }
    peer.load_state_dict(weights)
    tokens, mask = sentences([7, 1, 4])
    captured = model.capture(tokens, mask)
    expected = peer(captured.start, src_key_padding_mask=~mask)
    torch.testing.assert_close(replayed(captured)[mask], expected[mask], rtol=off, atol=off)
    torch.testing.assert_close(
        model(tokens, mask), expected[:, 0] @ model.W_C + model.b_C, rtol=off, atol=off
    )


@BOTH
@DTYPES
def test_captured_heads_are_attention_and_padding_has_none(
    config: EncoderConfig, dtype: torch.dtype, off: float
) -> None:
    model = EncoderClassifier(config, seed=1, dtype=dtype)
    tokens, mask = sentences([7, 2, 5])
    captured = check(model.capture(tokens, mask))
    (layer,) = captured.layers
    assert captured.n_tokens == (7, 2, 5)
    assert not captured.causal
    assert (layer.pattern.movedim(3, 1)[~mask] == 0).all()
    logits = (layer.scale * layer.q @ layer.k.mT).masked_fill(~mask[:, None, None], -torch.inf)
    pattern = logits.softmax(-1) * mask[:, None, :, None]
    torch.testing.assert_close(layer.pattern, pattern, rtol=off, atol=off)
    # what heads write is A V W_O, summed over heads, of the values without bias; the rest is bias
    heads = captured.steps[0]
    assert isinstance(heads, Written)
    assert heads.bias is not None
    assert layer.b_O is not None
    unbiased = (layer.pattern @ layer.v_unbiased @ layer.W_O).sum(dim=1)
    biased = (layer.z @ layer.W_O).sum(dim=1) + layer.b_O
    torch.testing.assert_close(heads.output[mask], unbiased[mask], rtol=off, atol=off)
    torch.testing.assert_close((heads.output + heads.bias)[mask], biased[mask], rtol=off, atol=off)
    assert layer.W_O.shape == (3, config.d_head_vo, 6)


@BOTH
def test_what_was_captured_outlives_training(config: EncoderConfig) -> None:
    model = EncoderClassifier(config, dtype=torch.float64)
    captured = model.capture(*sentences([3, 2]))
    layer = captured.layers[0]
    assert layer.b_O is not None
    before = [replayed(captured), layer.T, layer.v_unbiased, layer.b_O.clone()]
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(1.0)
    after = [replayed(captured), layer.T, layer.v_unbiased, layer.b_O]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert not captured.start.requires_grad
    assert not layer.W_O.requires_grad


@DTYPES
def test_one_added_head_is_one_concatenated_head(dtype: torch.dtype, off: float) -> None:
    one = EncoderClassifier(replace(CONFIG, n_heads=1), seed=5, dtype=dtype)
    other = EncoderClassifier(replace(ADD, n_heads=1), seed=6, dtype=dtype)
    tokens, mask = sentences([7, 3])
    assert not torch.allclose(one(tokens, mask), other(tokens, mask), rtol=off, atol=off)
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(one(tokens, mask), other(tokens, mask), rtol=off, atol=off)


@pytest.mark.parametrize("head", [0, 1, 2])
def test_add_sums_a_feature_over_heads_and_not_its_neighbours(head: int) -> None:
    # One head reads the embedding's coordinate 2 into feature 4 and all else is silent. A sum over
    # heads has it in feature 4 whichever head it was; sums over H = 3 neighbouring features, as in
    # the published code, would have it in feature (6 head + 4) // 3 = 1, 3 or 5.
    model = EncoderClassifier(ADD, seed=2, dtype=torch.float64)
    with torch.no_grad():
        model.W_V.zero_()
        model.W_V[head, 2, 4] = 1
        model.W_O.copy_(torch.eye(6))
    captured = model.capture(*sentences([5]))
    heads = captured.steps[0]
    assert isinstance(heads, Written)
    expected = torch.zeros(1, 5, 6, dtype=torch.float64)
    expected[..., 4] = captured.layers[0].pattern[0, head] @ captured.start[0, :, 2]
    torch.testing.assert_close(heads.output, expected, rtol=1e-14, atol=1e-14)


@DTYPES
@given(config=configs, lengths=lengths_of_sentences, seed=st.integers(0, 99))
@few
def test_padding_changes_no_logits(
    config: EncoderConfig, lengths: list[int], seed: int, dtype: torch.dtype, off: float
) -> None:
    model = EncoderClassifier(config, seed=seed, dtype=dtype)
    tokens, mask = sentences(lengths, seed)
    together = model(tokens, mask)
    for i, length in enumerate(lengths):
        alone = model(tokens[i : i + 1, :length])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=off, atol=off)


@BOTH
@DTYPES
def test_order_of_heads_changes_nothing(
    config: EncoderConfig, dtype: torch.dtype, off: float
) -> None:
    model = EncoderClassifier(config, seed=4, dtype=dtype)
    tokens, mask = sentences([6, 4])
    before = model(tokens, mask)
    order = [2, 0, 1]
    with torch.no_grad():
        for name in ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"):
            weight = getattr(model, name)
            weight.copy_(weight[order].clone())
        if config.combine == "concatenate":
            model.W_O.copy_(model.W_O_of_heads[order].flatten(0, 1))
    torch.testing.assert_close(model(tokens, mask), before, rtol=off, atol=off)


@given(config=configs)
@few
def test_counts_of_parameters_are_those_of_the_weights(config: EncoderConfig) -> None:
    sizes = {name: weight.numel() for name, weight in EncoderClassifier(config).named_parameters()}
    embeddings = sizes.pop("W_E") + sizes.pop("W_pos")
    assert config.n_embedding_parameters == embeddings
    assert config.n_parameters == sum(sizes.values())


def test_initial_weights_have_their_laws_and_are_the_same_for_every_dtype() -> None:
    weights = initial_weights(replace(CONFIG, d_vocab=5000), 0)
    # 30,000 normal numbers: mean and deviation within five standard errors
    assert abs(weights["W_E"].mean()) < 5 / math.sqrt(30_000)
    assert abs(weights["W_E"].std() - 1) < 5 / math.sqrt(60_000)
    # fan-ins: d_model = 6, but d_feed_forward = 5 for the second of the feed-forward matrices
    for name in ("Q", "K", "V", "O", "1", "2", "C"):
        drawn = np.concatenate([weights[f"W_{name}"].ravel(), weights[f"b_{name}"].ravel()])
        bound = 1 / math.sqrt(5 if name == "2" else 6)
        # the largest of 20 or more uniform numbers is below 0.7 of the end once in 1000 times
        assert 0.7 * bound < np.abs(drawn).max() <= bound
    single = EncoderClassifier(CONFIG, seed=3)
    double = EncoderClassifier(CONFIG, seed=3, dtype=torch.float64)
    for a, b in zip(single.parameters(), double.parameters(), strict=True):
        assert torch.equal(a, b.float())


def test_attention_cannot_see_the_bias_of_keys() -> None:
    model = EncoderClassifier(CONFIG, seed=1, dtype=torch.float64)
    before = model.capture(*sentences([5])).layers[0]
    with torch.no_grad():
        model.b_K.add_(1.0)
    after = model.capture(*sentences([5])).layers[0]
    assert not torch.allclose(before.k, after.k)
    torch.testing.assert_close(before.pattern, after.pattern, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_heads": 4}, "`n_heads` must divide d_model = 6"),
        ({"combine": "mean"}, "`combine` must be 'concatenate' or 'add'; got 'mean'"),
        ({"d_head_qk": 0}, "`d_head_qk` must be an integer of at least 1; got 0"),
        ({"d_model": 6.0}, "`d_model` must be an integer of at least 1; got 6.0"),
        ({"n_positions": True}, "`n_positions` must be an integer of at least 1; got True"),
        ({"n_classes": 1}, "`n_classes` must be an integer of at least 2; got 1"),
    ],
)
def test_sizes_that_make_no_encoder_are_refused(change: dict, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        replace(CONFIG, **change)


def test_heads_to_be_added_need_not_divide_d_model() -> None:
    assert replace(ADD, n_heads=4).d_head_vo == 6


@pytest.mark.parametrize(
    ("tokens", "mask", "message"),
    [
        ([[1] * 8], None, "at most 7 tokens, n_positions; got 8"),
        ([[1, 20]], None, "between 0 and d_vocab - 1 = 19; got 20"),
        ([[1, -1]], None, "between 0 and d_vocab - 1 = 19; got -1"),
        ([1, 2], None, r"of shape \(batch, n\), not empty; got \(2,\)"),
        ([[]], None, r"not empty; got \(1, 0\)"),
        ([[1.0]], None, "must be int32 or int64"),
        ([[1, 2], [3, 4]], [[1, 0], [0, 0]], "number 1 .* is padding alone"),
        ([[1, 2, 3]], [[1, 0, 1]], "Padding must come after a sentence's tokens"),
        ([[1, 2]], [[0, 1]], "Padding must come after a sentence's tokens"),
        ([[1, 2]], [[1, 1, 1]], r"of the tokens' shape, \(1, 2\); got \(1, 3\)"),
    ],
)
def test_sentences_that_the_model_cannot_read_are_refused(
    tokens: list, mask: list | None, message: str
) -> None:
    model = EncoderClassifier(CONFIG)
    given_mask = None if mask is None else torch.tensor(mask)
    with pytest.raises(InvalidArgumentError, match=message):
        model(torch.tensor(tokens), given_mask)
    with pytest.raises(InvalidArgumentError, match=message):
        model.capture(torch.tensor(tokens), given_mask)
