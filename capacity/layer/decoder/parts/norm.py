"""LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capacity.layer.decoder.parts.part import Part, Shapes

if TYPE_CHECKING:
    from torch import Tensor

    from capacity.layer.decoder.config import DecoderConfig
    from capacity.layer.engines.tape.tape import Buffer, Tape

# added to the variance, as torch does
EPSILON = 1e-5


def _shapes(config: DecoderConfig, _d_vocab: int) -> Shapes:
    names = ("weight", "bias") if config.norm == "layer" else ("weight",)
    return dict.fromkeys(names, (config.d_model,))


def _forward(config: DecoderConfig, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    centred = x - x.mean(dim=-1, keepdim=True) if config.norm == "layer" else x
    square = centred.square().mean(dim=-1, keepdim=True)
    x = centred * (square + EPSILON).rsqrt() * weights["weight"]
    return x + weights["bias"] if config.norm == "layer" else x


def _record(config: DecoderConfig, tape: Tape, x: Buffer) -> Buffer:
    centred = config.norm == "layer"
    y = tape.scale(tape.normalise(x, centred=centred), tape["weight"])
    if centred:
        tape.add_bias(y, tape["bias"])
    return y


NORM = Part("norm", _shapes, _forward, _record, lambda _config, _name: None, "norms")
