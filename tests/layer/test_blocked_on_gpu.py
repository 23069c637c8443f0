"""What the blocked engine does on a GPU: its arithmetic on a CPU, and its devices on none.

Its gradients are compared in test_engines.py. Tensors of torch's fake mode have a device and no
data: an operation on tensors of two devices is an error, and so is waiting for a number.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from capacity.database import random_database
from capacity.layer import AttentionLayer, Compute, LayerConfig, Recipe, train
from capacity.layer.engines.blocked import cpu, engine, gpu
from capacity.layer.engines.blocked.gpu import GPU
from capacity.layer.engines.proof import prove

RECIPES = [
    Recipe(epochs=30),
    Recipe(epochs=30, positions="object", optimizer="adamw", weight_decay=0.1, stop_tau=0.0),
    Recipe(epochs=6, batch_size=17),
]


@given(
    st.lists(st.integers(0, 9), max_size=60).map(lambda rows: np.array(rows, dtype=np.int64)),
    st.integers(10, 12),
    st.sampled_from([2, 3, 64]),
)
def test_rows_are_summed_whatever_their_pieces(rows: np.ndarray, n: int, piece: int) -> None:
    values = torch.from_numpy(np.random.default_rng(0).integers(-9, 9, (len(rows), 2, 3)) * 1.0)
    out = torch.ones(n, 6, dtype=torch.float64)
    expected = out.numpy().copy()
    np.add.at(expected, rows, values.flatten(1).numpy())
    with patch.object(gpu, "PIECE", piece):
        GPU.rows(rows, n, torch.device("cpu")).add(out, values)
    # whole numbers: in any order
    assert np.array_equal(out.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_its_small_runs_are_those_of_the_reference(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "CPU", GPU)
    # the CPU's own code can't be what runs
    monkeypatch.setattr(cpu, "errors_of", None)
    monkeypatch.setattr(cpu, "scatter_add", None)
    assert prove.__wrapped__("blocked", "cpu", dtype).holds


@pytest.mark.parametrize("recipe", RECIPES, ids=["both", "object", "batches"])
def test_it_trains_as_on_a_cpu(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    # predicates with more facts than a piece, subjects with several predicates
    db = random_database(4, triples=(200, 300))
    trained: list[AttentionLayer] = []
    losses: list[float] = []
    monkeypatch.setattr(gpu, "PIECE", 4)
    for backend in (engine.CPU, GPU):
        monkeypatch.setattr(engine, "CPU", backend)
        layer = AttentionLayer(LayerConfig(12, 3, 4, 5), db.n_tokens, dtype=torch.float64)
        training = train(layer, db, recipe, Compute("blocked", "float64"))
        trained.append(layer)
        losses.append(training.loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)
    for one, other in zip(*(layer.parameters() for layer in trained), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-8)


def test_a_loss_that_is_not_finite_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CPU", GPU)
    db = random_database(0)
    layer = AttentionLayer(LayerConfig(3, 1, 2, 2), db.n_tokens)
    with torch.no_grad():
        layer.W_U[0, 0] = math.inf
    assert train(layer, db, Recipe(epochs=9), Compute("blocked")).status == "diverged"


def on_a_fake_gpu(place: Callable[..., Any], recipe: Recipe) -> tuple[AttentionLayer, torch.Tensor]:
    """The layer after a step, and the losses, by `place` in place of `placed`."""
    db = random_database(2, triples=(60, 90))
    layer = AttentionLayer(LayerConfig(12, 3, 4, 5), db.n_tokens)
    with (
        FakeTensorMode(),
        patch.object(engine, "placed", place),
        patch.object(gpu, "placed", place),
        patch.object(engine, "LEAST_ROWS", 8),
        torch.no_grad(),
    ):
        for name, weights in list(layer.named_parameters()):
            fake = torch.empty(weights.shape, device="cuda")
            setattr(layer, name, nn.Parameter(fake))
        model = engine.Model(layer, db, recipe, replace(GPU, block_bytes=1))
        losses = model.losses(model.whole, backward=True)
        torch.optim.Adam(layer.parameters()).step()
    return layer, losses


@pytest.mark.parametrize("positions", ["both", "object"])
def test_all_of_a_step_is_on_the_gpu_and_never_waits(positions: Any) -> None:
    layer, losses = on_a_fake_gpu(
        lambda numbers, device: torch.tensor(numbers.tolist(), dtype=torch.int64, device=device),
        Recipe(positions=positions),
    )
    assert losses.device.type == "cuda"
    for weights in layer.parameters():
        assert weights.grad is not None
        assert weights.grad.device.type == "cuda"
        assert weights.grad.shape == weights.shape


def test_what_is_left_on_the_cpu_is_found() -> None:
    with pytest.raises(RuntimeError, match="same device"):
        on_a_fake_gpu(lambda numbers, _device: torch.tensor(numbers.tolist()), Recipe())
