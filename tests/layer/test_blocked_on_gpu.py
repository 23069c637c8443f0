"""The blocked engine on a GPU: its arithmetic on a CPU, and its devices by tensors without data.

Its gradients are compared in test_engines.py. Tensors of torch's fake mode have a device and no
data: an operation on tensors of two devices is an error, and so is waiting for a number.
"""

import math
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
from torch.utils._python_dispatch import TorchDispatchMode

from capacity.database import random_database
from capacity.layer import AttentionLayer, Compute, LayerConfig, Recipe, train
from capacity.layer.engines.blocked import backend, cpu, engine
from capacity.layer.engines.blocked.backend import GPU
from capacity.layer.engines.proof import prove

SHAPES = [(2, 3), (1,), (4,)]
RECIPES = [
    Recipe(epochs=30),
    Recipe(epochs=30, positions="object", optimizer="adamw", weight_decay=0.1, stop_tau=0.0),
    Recipe(epochs=6, batch_size=17),
]


@given(
    st.lists(st.integers(0, 9), max_size=60).map(lambda rows: np.array(rows, dtype=np.int64)),
    st.sampled_from([2, 3, 64]),
)
def test_rows_are_summed_whatever_their_pieces(rows: np.ndarray, piece: int) -> None:
    rng = np.random.default_rng(0)
    values = [torch.from_numpy(rng.integers(-9, 9, (len(rows), *shape)) * 1.0) for shape in SHAPES]
    found = [torch.ones(12, math.prod(shape), dtype=torch.float64) for shape in SHAPES]
    expected = [out.numpy().copy() for out in found]
    for out, part in zip(expected, values, strict=True):
        np.add.at(out, rows, part.flatten(1).numpy())
    with patch.object(backend, "PIECE", piece):
        GPU.rows(rows, torch.device("cpu")).add(*zip(found, values, strict=True))
    for one, other in zip(found, expected, strict=True):
        # whole numbers: in any order
        assert np.array_equal(one.numpy(), other)


@pytest.mark.slow
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
    monkeypatch.setattr(backend, "PIECE", 4)
    for own in (engine.CPU, GPU):
        monkeypatch.setattr(engine, "CPU", own)
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


class Adds(TorchDispatchMode):
    """Operations that may add to one place several times, with the places they add to."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        if any(kind in name for kind in ("index_add", "scatter", "index_put", "bincount")):
            assert name == "aten::index_add_", name
            self.places.append(args[2])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("positions", ["both", "object"])
def test_nothing_is_added_twice_to_one_place(
    positions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "PIECE", 2)
    db = random_database(2, triples=(60, 90))
    layer = AttentionLayer(LayerConfig(12, 3, 4, 5), db.n_tokens)
    model = engine.Model(layer, db, Recipe(positions=positions), GPU)
    with Adds() as watch:
        model.look(None, backward=True)
    # a GPU adds in any order
    assert len(watch.places) > 3
    assert all(len(places.unique()) == len(places) for places in watch.places)


def on_a_fake_gpu(recipe: Recipe) -> tuple[AttentionLayer, list[torch.Tensor]]:
    """The layer after a step, and the losses of all facts and of some."""
    db = random_database(2, triples=(60, 90))
    layer = AttentionLayer(LayerConfig(12, 3, 4, 5), db.n_tokens)
    with (
        FakeTensorMode(allow_non_fake_inputs=True),
        patch.object(engine, "LEAST_ROWS", 8),
        torch.no_grad(),
    ):
        for name, weights in list(layer.named_parameters()):
            fake = torch.empty(weights.shape, device="cuda")
            setattr(layer, name, nn.Parameter(fake))
        own = replace(engine.backend_of(layer.W_E.device), block_bytes=1)
        model = engine.Model(layer, db, recipe, own)
        some = model.chosen(np.arange(5, 25))
        losses = [model.losses(facts, backward=True) for facts in (model.whole, some)]
        torch.optim.Adam(layer.parameters()).step()
    return layer, losses


@pytest.mark.parametrize("positions", ["both", "object"])
def test_all_of_a_step_is_on_the_gpu_and_never_waits(positions: Any) -> None:
    layer, losses = on_a_fake_gpu(Recipe(positions=positions))
    assert {loss.device.type for loss in losses} == {"cuda"}
    for weights in layer.parameters():
        assert weights.grad is not None
        assert weights.grad.device.type == "cuda"
        assert weights.grad.shape == weights.shape


def test_what_is_left_on_the_cpu_is_found() -> None:
    left = patch.multiple(engine, placed=lambda numbers, _: torch.from_numpy(numbers))
    with left, pytest.raises(RuntimeError, match="same device"):
        on_a_fake_gpu(Recipe())
