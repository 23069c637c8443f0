"""The curve of a training: the same from every engine, of the loss that training minimises."""

import math
import pickle
from dataclasses import asdict, replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from capacity.database import random_database
from capacity.errors import InvalidArgumentError
from capacity.evaluator import evaluate
from capacity.layer import AttentionLayer, Compute, History, LayerConfig, Recipe, train, train_many
from capacity.layer.run.history import recorded_epochs
from capacity.layer.run.recipe import Training
from tests.engines import able, able_alone

CONFIG = LayerConfig(4, 2, 2, 2)
DATABASE = random_database(1, triples=(20, 30))
BATCHES = Recipe(batch_size=7)
# those that can do what most of these tests ask for
ENGINES = able(CONFIG, BATCHES, dtype="float64")


def trained(engine: Any, recipe: Recipe) -> Training:
    layer = AttentionLayer(CONFIG, DATABASE.n_tokens, dtype=torch.float64)
    return train(layer, DATABASE, recipe, Compute(engine, "float64"), seed=5)


def by_hand(recipe: Recipe) -> tuple[list[float], list[float]]:
    """Losses and shares of known facts before each epoch of Adam on all facts, and at the end."""
    layer = AttentionLayer(CONFIG, DATABASE.n_tokens, dtype=torch.float64)
    facts = torch.as_tensor(DATABASE.token_triples.astype("int64"))
    adam = torch.optim.Adam(layer.parameters(), lr=recipe.learning_rate)
    losses, shares = [], []
    for _ in range(recipe.epochs + 1):
        logits = layer(facts[:, :2])
        asked = slice(None) if recipe.positions == "both" else slice(1, None)
        loss = cross_entropy(logits[:, asked].flatten(0, 1), facts[:, 1:][:, asked].flatten())
        p = logits[:, 1].softmax(-1)[torch.arange(len(facts)), facts[:, 2]]
        losses.append(loss.item())
        shares.append((p > 0.5).double().mean().item())
        adam.zero_grad()
        loss.backward()
        adam.step()
    return losses, shares


def test_all_epochs_below_32_are_recorded_and_then_16_in_each_doubling() -> None:
    epochs = recorded_epochs(1024)
    assert epochs[:32].tolist() == list(range(32))
    for i in range(5, 10):
        assert ((epochs >= 2**i) & (epochs < 2 ** (i + 1))).sum() == 16
    # 32 and then 16 for each of five doublings
    assert len(epochs) == 32 + 5 * 16
    assert recorded_epochs(0).tolist() == []
    assert len(recorded_epochs(10_000_000)) < 400


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("positions", ["both", "object"])
def test_the_curve_is_that_of_a_loop_by_hand(engine: str, positions: Any) -> None:
    recipe = Recipe(learning_rate=0.03, epochs=70, stop_tau=0, positions=positions)
    history = trained(engine, recipe).history
    losses, shares = by_hand(recipe)
    assert history.epochs == (*recorded_epochs(70).tolist(), 70)
    assert history.loss == pytest.approx([losses[i] for i in history.epochs], rel=1e-9)
    assert history.accuracy_p50 == pytest.approx([shares[i] for i in history.epochs])
    # facts are learnt on the way, so that this isn't a comparison of zeros
    assert len(set(shares)) > 3


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("batch_size", [0, 7])
@pytest.mark.parametrize("stop_tau", [0.0, 0.9])
def test_it_ends_with_the_outcome(engine: str, batch_size: int, stop_tau: float) -> None:
    # batches that nothing stops take the most steps
    epochs = 60 if batch_size and not stop_tau else 300
    recipe = Recipe(learning_rate=0.03, epochs=epochs, batch_size=batch_size, stop_tau=stop_tau)
    layer = AttentionLayer(CONFIG, DATABASE.n_tokens, dtype=torch.float64)
    training = train(layer, DATABASE, recipe, Compute(cast(Any, engine), "float64"), seed=5)
    assert training.status == ("memorised" if stop_tau else "completed")
    history = training.history
    assert (history.epochs[-1], history.loss[-1]) == (training.epochs, training.loss)
    assert history.accuracy_p50[-1] == evaluate(layer, DATABASE).majority
    if stop_tau:
        assert history.accuracy_p50[-1] == 1.0
    assert list(history.epochs) == sorted(set(history.epochs))
    assert history.loss[0] > 2 * history.loss[-1]


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_of_batches_it_has_the_mean_in_every_engine_alike(batch_size: int) -> None:
    recipe = Recipe(learning_rate=0.01, epochs=40, batch_size=batch_size, stop_tau=0)
    curves = {engine: trained(engine, recipe).history for engine in ENGINES}
    for engine in ENGINES:
        assert curves[engine].epochs == curves["reference"].epochs
        assert curves[engine].loss == pytest.approx(curves["reference"].loss, rel=1e-9)
        assert curves[engine].accuracy_p50 == pytest.approx(curves["reference"].accuracy_p50)
    # the first batch of the first epoch meets the initial weights, and the others better ones
    before = by_hand(Recipe(epochs=0))[0][0]
    assert curves["reference"].loss[0] < before


@pytest.mark.parametrize("engine", able(CONFIG))
def test_a_training_that_diverges_keeps_its_curve(engine: str) -> None:
    layer = AttentionLayer(CONFIG, DATABASE.n_tokens)
    recipe = Recipe(epochs=200, learning_rate=1, optimizer="adamw", weight_decay=10)
    training = train(layer, DATABASE, recipe, Compute(engine))
    assert training.status == "diverged"
    assert training.history.epochs[-1] == training.epochs
    assert all(map(math.isfinite, training.history.loss[:5]))


def test_no_epoch_has_the_curve_of_one_point() -> None:
    for engine in ENGINES:
        training = trained(engine, Recipe(epochs=0))
        assert training.history.epochs == (0,)
        assert training.history.loss == (training.loss,)


@pytest.mark.slow
@pytest.mark.usefixtures("together")
def test_layers_that_are_trained_together_have_each_its_own() -> None:
    databases = [random_database(i, triples=(4, 30)) for i in range(5)]
    recipe = Recipe(learning_rate=0.05, epochs=150, stop_tau=0.9)
    for engine in ("together", *able(CONFIG)):
        layers = [AttentionLayer(CONFIG, db.n_tokens) for db in databases]
        many = train_many(list(zip(layers, databases, strict=True)), recipe, Compute(engine))
        for db, one in zip(databases, many, strict=True):
            alone = train(AttentionLayer(CONFIG, db.n_tokens), db, recipe, Compute(engine))
            assert one.history == alone.history
        assert len({one.history.epochs for one in many}) > 1


def test_it_is_plain_data() -> None:
    training = trained("fused", Recipe(epochs=3))
    assert pickle.loads(pickle.dumps(training)) == training
    assert asdict(training)["history"]["epochs"] == (0, 1, 2, 3)
    assert all(type(x) is float for x in training.history.loss + training.history.accuracy_p50)
    table = training.history.to_pandas()
    assert table.dtypes.astype(str).to_dict() == {
        "epoch": "int64", "loss": "float64", "accuracy_p50": "float64",
    }  # fmt: skip
    assert table.loss.tolist() == list(training.history.loss)


def test_an_engine_from_outside_needs_none() -> None:
    training = Training("completed", 5, 0.5, "toy")
    assert training.history == History()
    assert training.history.to_pandas().empty
    assert repr(training.history) == "History(no epoch recorded)"


@pytest.mark.parametrize("engine", able_alone(CONFIG))
def test_who_watches_is_told_the_last_recorded_loss(engine: Any) -> None:
    told: list[tuple[int, float]] = []
    layer = AttentionLayer(CONFIG, DATABASE.n_tokens)
    recipe = Recipe(epochs=40, stop_tau=0)
    training = train(
        layer, DATABASE, recipe, Compute(engine), watch=lambda *said: told.append(said)
    )
    curve = dict(zip(training.history.epochs, training.history.loss, strict=True))
    assert told[0][0] == 0
    assert math.isnan(told[0][1])
    assert told[-1] == (40, training.loss)
    for epoch, loss in told[1:-1]:
        assert loss == curve[max(i for i in curve if i < epoch)]
    assert np.isfinite([loss for _, loss in told[1:]]).all()


@pytest.mark.parametrize("engine", able_alone(CONFIG, BATCHES))
@pytest.mark.parametrize("batch_size", [0, 7])
def test_who_watches_sees_the_weights_of_an_epoch(engine: Any, batch_size: int) -> None:
    # the rate is constant, so that the first nine of twenty epochs are those of a training of nine
    compute, recipe = Compute(engine), Recipe(epochs=20, stop_tau=0, batch_size=batch_size)
    layer, nine, twenty = (AttentionLayer(CONFIG, DATABASE.n_tokens) for _ in range(3))
    train(nine, DATABASE, replace(recipe, epochs=9), compute)
    train(twenty, DATABASE, recipe, compute)
    seen: dict[int, dict[str, torch.Tensor]] = {}

    def watch(epoch: int, _loss: float) -> None:
        seen[epoch] = {name: p.detach().clone() for name, p in layer.named_parameters()}

    train(layer, DATABASE, recipe, compute, watch=watch, watch_at=(9, 21))
    assert {0, 9, 20} <= seen.keys() <= set(range(21))
    for name, weight in nine.named_parameters():
        assert torch.equal(seen[9][name], weight)
    # and to look changes nothing
    for name, weight in twenty.named_parameters():
        assert torch.equal(layer.get_parameter(name), weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"watch_at": (9,)}, "must come with `watch`"),
        ({"watch_at": (-1,), "watch": print}, "integer of at least 0"),
        ({"watch_at": (0.5,), "watch": print}, "integer of at least 0"),
    ],
)
def test_epochs_at_which_nobody_would_be_told_are_refused(options: Any, message: str) -> None:
    layer = AttentionLayer(CONFIG, DATABASE.n_tokens)
    with pytest.raises(InvalidArgumentError, match=message):
        train(layer, DATABASE, Recipe(epochs=2), **options)


def test_an_engine_that_trains_many_together_shows_no_epoch(together: str) -> None:
    layer = AttentionLayer(CONFIG, DATABASE.n_tokens)
    with pytest.raises(InvalidArgumentError, match="must be empty for the engine together"):
        train(layer, DATABASE, compute=Compute(together), watch=print, watch_at=(9,))
