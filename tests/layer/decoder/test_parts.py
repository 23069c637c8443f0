"""A part from outside: a file with its definition and its record, and a line that registers it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from capacity.database import random_database
from capacity.errors import InvalidArgumentError
from capacity.layer import Decoder, DecoderConfig, Part, Recipe, Tape, register_part, train
from capacity.layer.decoder.parts import part as registry
from capacity.layer.engines.tape.recorded_run import RecordedRun

DB = random_database(2)

# a bilinear part: (x A) * (x B) C
BILINEAR = Part(
    "bilinear",
    shapes=lambda config, _: {"A": (config.d_model, 3), "B": (config.d_model, 3),
                              "C": (3, config.d_model)},
    forward=lambda _, w, x: ((x @ w["A"]) * (x @ w["B"])) @ w["C"],
    record=lambda _, tape, x: _recorded(tape, x),
    fan_in=lambda config, name: 3 if name == "C" else config.d_model,
    counted_as="bilinear",
)  # fmt: skip


def _recorded(tape: Tape, x: Any) -> Any:
    both = tape.multiply(tape.product(x, tape["A"]), tape.product(x, tape["B"]))
    return tape.product(both, tape["C"])


@pytest.fixture
def _bilinear() -> Iterator[None]:
    register_part(BILINEAR)
    yield
    del registry._PARTS["bilinear"]


@pytest.mark.usefixtures("_bilinear")
def test_a_part_from_outside_trains_by_the_tape() -> None:
    config = DecoderConfig(4, n_layers=2, extra=("bilinear",))
    assert config.name == "d4-h1-qk4-vo4-l2-bilinear"
    assert config.parameters_by_part(5)["bilinear"] == 2 * 3 * 12
    decoder = Decoder(config, DB.n_tokens, dtype=torch.float64, seed=1)
    arrays = {n: p.detach().numpy().copy() for n, p in decoder.named_parameters()}
    ours = RecordedRun(config, arrays, DB, Recipe()).gradients()
    ids = torch.from_numpy(DB.token_triples.astype(np.int64))
    cross_entropy(decoder(ids[:, :2]).flatten(0, 1), ids[:, 1:].flatten()).backward()
    for name, p in decoder.named_parameters():
        assert p.grad is not None
        np.testing.assert_allclose(ours[name], p.grad, rtol=1e-10, atol=1e-13)
    assert train(decoder, DB, Recipe(epochs=5)).engine == "tape"


@pytest.mark.usefixtures("_bilinear")
def test_a_name_is_taken_once() -> None:
    with pytest.raises(InvalidArgumentError, match="bilinear is taken"):
        register_part(BILINEAR)
