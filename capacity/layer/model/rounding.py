"""Weights rounded to the numbers of a format, as if they had been stored in it.

In a binary floating-point format with p significant bits, exponents from e_min on, and a largest
number, the number x with 2^e <= |x| < 2^(e+1) is rounded to a multiple of 2^(max(e, e_min) - p + 1)
by ties to even; below 2^e_min these are the subnormal numbers. A number that is rounded to one
beyond the largest would be an infinity or NaN, and is refused.

========  ============  ==  =====  ===========================
Format    Bits          p   e_min  largest number
========  ============  ==  =====  ===========================
float32   32            24  -126   2^128 - 2^104
bfloat16  16            8   -126   2^128 - 2^120
float16   16            11  -14    65504
float8    8, e4m3fn     4   -6     448 (no infinities; one NaN)
float8    8, e5m2       3   -14    57344
========  ============  ==  =====  ===========================

These are the formats of torch's dtypes. Torch itself rounds a float64 to float32 on the way to a
shorter format, which can end one step off; here every number is rounded once. Some versions of
torch replace what is too large for e4m3fn by 448; here it is refused.

In int8 and int4 a matrix is s n, with a scale s of its own and integers |n| <= 127 or 7: the
symmetric uniform quantisation of Wu et al. 2020, section 3 (there *scale quantisation*), by the
largest absolute value. Each head has matrices of its own; a vector counts as a matrix.

References
----------
IEEE 754-2019; P. Micikevicius et al., FP8 formats for deep learning, 2022, arXiv 2209.05433; H. Wu
et al., Integer quantization for deep learning inference: principles and empirical evaluation, 2020,
arXiv 2004.09602.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, cast, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from capacity.checks import require_choice, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.model.decoder import AnyLayer, Decoder

Model = TypeVar("Model", bound=AnyLayer)

NumberFormat: TypeAlias = Literal[
    "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int8", "int4"
]


@dataclass(frozen=True)
class _Floats:
    """A binary format: significant bits, least exponent of a normal number, largest number."""

    digits: int
    least_exponent: int
    largest: float


_FLOATS = {
    "float32": _Floats(24, -126, (2 - 2**-23) * 2.0**127),
    "bfloat16": _Floats(8, -126, (2 - 2**-7) * 2.0**127),
    "float16": _Floats(11, -14, 65504.0),
    "float8_e4m3fn": _Floats(4, -6, 448.0),
    "float8_e5m2": _Floats(3, -14, 57344.0),
}
# largest integer
_INTEGERS = {"int8": 127, "int4": 7}


def round_weights(layer: Model, format: NumberFormat) -> Model:
    """Copy a layer, with its weights rounded to the nearest numbers of a format.

    The copy is in float64, which holds the numbers of every one of these formats exactly; only the
    weights are rounded, and nothing that a forward pass computes.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Any layer; it isn't changed.
    format : str
        'float32', 'bfloat16', 'float16', 'float8_e4m3fn' or 'float8_e5m2': each weight to the
        nearest, ties to even. 'int8' or 'int4': multiples n s of one scale s for each matrix, with
        |n| <= 127 or 7, where s is the largest absolute value over 127 or 7, in float32.

    Returns
    -------
    AttentionLayer or Decoder
        A layer of the same sizes, in float64, on the same device.

    Raises
    ------
    InvalidTypeError
        If `layer` is of another type.
    InvalidArgumentError
        For another format; for a weight that isn't finite, or that is too large for the format,
        with its name.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> layer = AttentionLayer(LayerConfig(2, 1, 1, 1), d_vocab=3, seed=0)
    >>> [round(x, 4) for x in layer.W_E[0].tolist()]
    [0.1257, -0.1321]
    >>> round_weights(layer, "float8_e4m3fn").W_E[0].tolist()
    [0.125, -0.125]
    """
    if not isinstance(layer, AnyLayer):
        raise InvalidTypeError(
            f"`layer` must be an AttentionLayer or a Decoder; got {shown(layer)}."
        )
    require_choice("`format`", format, get_args(NumberFormat))
    weights = {
        name: torch.from_numpy(rounded(name, weight.detach().cpu().double().numpy(), format)).to(
            weight.device
        )
        for name, weight in layer.named_parameters()
    }
    made = (
        Decoder.of_weights(layer.config, weights)
        if isinstance(layer, Decoder)
        else AttentionLayer.of_weights(layer.config, weights)
    )
    return cast(Model, made)


def rounded(name: str, x: NDArray[np.float64], format: NumberFormat) -> NDArray[np.float64]:
    """Numbers of a matrix, or of one for each head, rounded to those of a format.

    Raises
    ------
    InvalidArgumentError
        With the matrix's name, for a number that isn't finite, or too large for the format.
    """
    if not np.isfinite(x).all():
        raise InvalidArgumentError(
            f"The weights must be finite to be rounded; {name} has NaN or infinities."
        )
    if format in _INTEGERS:
        return _multiples(x, _INTEGERS[format])
    numbers = _FLOATS[format]
    _, exponent = np.frexp(x)
    # frexp's exponent is e + 1
    unit = np.maximum(exponent - 1, numbers.least_exponent) - (numbers.digits - 1)
    # exact but for rint: the factors are powers of two
    y = np.ldexp(np.rint(np.ldexp(x, -unit)), unit)
    if (np.abs(y) > numbers.largest).any():
        raise InvalidArgumentError(
            f"Every weight must be at most {numbers.largest:.6g} in absolute value to be stored in "
            f"{format}; {name} has {np.abs(x).max():.6g}. Scale the weights, or choose a format "
            "with more exponents."
        )
    return y


def _multiples(x: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Multiples of a scale for each matrix, of which the last two axes are the rows and columns."""
    axes = tuple(range(x.ndim))[-2:]
    scale = np.abs(x).max(axis=axes, keepdims=True) / most
    # a float32 times an integer of 7 bits is exact
    scale = scale.astype(np.float32).astype(np.float64)
    steps = np.divide(x, scale, out=np.zeros_like(x), where=scale > 0)
    return cast(NDArray[np.float64], np.clip(np.rint(steps), -most, most) * scale)
