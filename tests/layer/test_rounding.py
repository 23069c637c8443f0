"""Weights rounded to formats, against torch's own dtypes and against all numbers of a format."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer import AttentionLayer, LayerConfig, round_weights
from tests.tiers import examples

FLOATS = ["float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]
INTEGERS = {"int8": 127, "int4": 7}
CONFIG = LayerConfig(2, 1, 1, 1)


def layer_with(numbers: np.ndarray, dtype: torch.dtype = torch.float64) -> AttentionLayer:
    """A layer whose W_E holds some numbers, and which is zero elsewhere."""
    n = -(-len(numbers) // 2)
    W_E = np.zeros(2 * n)
    W_E[: len(numbers)] = numbers
    weights = {name: torch.zeros(shape, dtype=dtype) for name, shape in CONFIG.shapes(n).items()}
    weights["W_E"] = torch.tensor(W_E.reshape(n, 2), dtype=dtype)
    return AttentionLayer.of_weights(CONFIG, weights)


def rounded(numbers: np.ndarray, format: str) -> np.ndarray:
    layer = round_weights(layer_with(numbers), format)  # type: ignore[arg-type]
    return layer.W_E.detach().numpy().ravel()[: len(numbers)]


def of_torch(format: str) -> torch.dtype:
    return getattr(torch, format)


def all_numbers(format: str) -> np.ndarray:
    """All finite numbers of a format of at most 16 bits, ascending."""
    bits = torch.finfo(of_torch(format)).bits
    patterns = np.arange(2**bits, dtype=np.uint16 if bits == 16 else np.uint8)
    signed = torch.from_numpy(patterns.view(np.int16 if bits == 16 else np.int8))
    x = signed.view(of_torch(format)).double().numpy()
    return np.unique(x[np.isfinite(x)])


@pytest.mark.parametrize("format", FLOATS)
@given(
    hnp.arrays(np.float32, st.integers(1, 20), elements=st.floats(width=32, allow_nan=False,
               allow_infinity=False).map(lambda x: x * 2.0**-20 if abs(x) > 2.0**100 else x))
)  # fmt: skip
@settings(max_examples=examples(100))
def test_a_float32_is_rounded_as_torch_rounds_it(format: str, x: np.ndarray) -> None:
    expected = torch.from_numpy(x).to(of_torch(format)).double().numpy()
    # halfway from the largest number to the next, 480, which would be NaN; torch cuts off there
    if np.isfinite(expected).all() and (format != "float8_e4m3fn" or (np.abs(x) <= 464).all()):
        assert (rounded(x.astype(np.float64), format) == expected).all()
    else:
        with pytest.raises(InvalidArgumentError, match=f"{format}; W_E has"):
            rounded(x.astype(np.float64), format)


@pytest.mark.parametrize("format", FLOATS[1:])
def test_every_number_of_a_format_is_kept_and_all_others_go_to_the_nearest(format: str) -> None:
    numbers = all_numbers(format)
    assert (rounded(numbers, format) == numbers).all()
    rng = np.random.default_rng(0)
    at = rng.integers(len(numbers) - 1, size=2000)
    low, high = numbers[at], numbers[at + 1]
    x = low + (high - low) * rng.random(2000)
    y = rounded(x, format)
    assert (np.abs(y - x) <= np.minimum(x - low, high - x)).all()


@pytest.mark.parametrize("format", FLOATS[1:])
def test_halves_go_to_the_even_neighbour(format: str) -> None:
    numbers = all_numbers(format)
    numbers = numbers[numbers > 0][:200]
    middles = (numbers[:-1] + numbers[1:]) / 2
    expected = torch.from_numpy(middles.astype(np.float32)).to(of_torch(format)).double().numpy()
    assert (rounded(middles, format) == expected).all()


def test_a_float64_is_rounded_once() -> None:
    # just above the middle of 1 and 1 + 2^-7; its float32 is the middle, which goes to even
    x = 1 + 2.0**-8 + 2.0**-40
    assert rounded(np.array([x]), "bfloat16").tolist() == [1 + 2.0**-7]
    assert torch.tensor([np.float32(x)]).bfloat16().item() == 1


@pytest.mark.parametrize("format", FLOATS)
def test_the_largest_number_is_kept_and_what_goes_beyond_is_refused(format: str) -> None:
    largest = torch.finfo(of_torch(format)).max
    assert rounded(np.array([largest, -largest]), format).tolist() == [largest, -largest]
    for x in (1.2 * largest, -1.2 * largest):
        with pytest.raises(InvalidArgumentError, match="W_E has"):
            rounded(np.array([x]), format)


@pytest.mark.parametrize("format", INTEGERS)
@given(hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(-1e6, 1e6)))
@settings(max_examples=examples(100))
def test_integers_times_one_scale_are_half_a_step_away(format: str, x: np.ndarray) -> None:
    y, most = rounded(x, format), INTEGERS[format]
    if not x.any():
        assert not y.any()
        return
    scale = float(np.float32(np.abs(x).max() / most))
    if scale == 0:
        return
    steps = [Fraction(value) / Fraction(scale) for value in y]
    assert all(n.denominator == 1 and abs(n) <= most for n in steps)
    # the scale itself is a float32, of 24 bits (or fewer, where it is subnormal)
    slack = 0.5 + most * (2.0**-23 if scale > 2.0**-126 else 2.0**-149 / scale)
    assert (np.abs(x - y) <= slack * scale).all()


def test_each_head_has_a_scale_of_its_own() -> None:
    layer = AttentionLayer(LayerConfig(4, 2, 2, 2), 5, seed=0)
    with torch.no_grad():
        layer.W_V[1] *= 1000
    y = round_weights(layer, "int8").W_V.detach()
    for head in range(2):
        largest = layer.W_V[head].abs().max().item()
        assert y[head].abs().max().item() == pytest.approx(largest, rel=1e-6)
        assert len(y[head].unique()) > 4


@pytest.mark.parametrize("format", [*FLOATS, *INTEGERS])
def test_a_rounded_layer_is_a_copy_in_float64_that_rounds_to_itself(format: str) -> None:
    config = LayerConfig(4, 2, 2, 2, bias=True, layer_norm=True, n_positions=3)
    layer = AttentionLayer(config, 5, seed=0)
    before = {name: p.clone() for name, p in layer.named_parameters()}
    once = round_weights(layer, format)  # type: ignore[arg-type]
    twice = round_weights(once, format)  # type: ignore[arg-type]
    assert once.config == config
    assert once.W_E.dtype == torch.float64
    for name, p in layer.named_parameters():
        assert torch.equal(p, before[name])
        a, b = once.get_parameter(name), twice.get_parameter(name)
        assert torch.equal(a, b) if format in FLOATS else torch.allclose(a, b, rtol=1e-6)


def test_what_cannot_be_rounded_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="must be an AttentionLayer"):
        round_weights(CONFIG, "int8")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="Did you mean `float16`"):
        round_weights(layer_with(np.ones(2)), "flot16")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="W_E has NaN"):
        round_weights(layer_with(np.array([np.nan])), "int8")
