"""An MLP of one hidden layer, gated or not (Shazeer 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from capacity.layer.decoder.parts.part import Part, Shapes

if TYPE_CHECKING:
    from torch import Tensor

    from capacity.layer.decoder.config import DecoderConfig
    from capacity.layer.engines.tape.tape import Buffer, Tape


def _shapes(config: DecoderConfig, _d_vocab: int) -> Shapes:
    d, hidden = config.d_model, config.mlp
    shapes: Shapes = {"W_in": (d, hidden)}
    if config.gated:
        shapes["W_gate"] = (d, hidden)
    shapes["W_out"] = (hidden, d)
    if config.bias:
        shapes |= {"b_in": (hidden,), "b_out": (d,)}
    return shapes


def _forward(config: DecoderConfig, weights: Mapping[str, Tensor], x: Tensor) -> Tensor:
    from torch.nn import functional

    hidden = x @ weights["W_in"]
    if config.bias:
        hidden = hidden + weights["b_in"]
    if config.activation == "gelu":
        hidden = functional.gelu(hidden, approximate="tanh")
    else:
        hidden = getattr(functional, config.activation)(hidden)
    if config.gated:
        hidden = hidden * (x @ weights["W_gate"])
    y = hidden @ weights["W_out"]
    return y + weights["b_out"] if config.bias else y


def _record(config: DecoderConfig, tape: Tape, x: Buffer) -> Buffer:
    hidden = tape.product(x, tape["W_in"])
    if config.bias:
        tape.add_bias(hidden, tape["b_in"])
    hidden = tape.activate(hidden, config.activation)
    if config.gated:
        hidden = tape.multiply(hidden, tape.product(x, tape["W_gate"]))
    y = tape.product(hidden, tape["W_out"])
    if config.bias:
        tape.add_bias(y, tape["b_out"])
    return y


def _fan_in(config: DecoderConfig, name: str) -> int | None:
    return {"W_in": config.d_model, "W_gate": config.d_model, "W_out": config.mlp}.get(name)


MLP = Part("mlp", _shapes, _forward, _record, _fan_in, "mlp")
