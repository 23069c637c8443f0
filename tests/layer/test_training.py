import math
from typing import Any

import numpy as np
import pytest
import torch

from capacity.database import Database, random_database
from capacity.errors import MultiValuedError
from capacity.evaluator import memorises
from capacity.layer import AttentionLayer, Compute, LayerConfig, Recipe, train
from tests.engines import able, able_alone, compute_by
from tests.oracles import figure_1

CONFIG = LayerConfig(4, 2, 2, 2)


@pytest.fixture(params=able(CONFIG))
def engine(request: pytest.FixtureRequest) -> Any:
    """Every engine does the same."""
    return request.param


def layer_for(db: Database, seed: int = 0, dtype: torch.dtype = torch.float32) -> AttentionLayer:
    return AttentionLayer(CONFIG, db.n_tokens, seed=seed, dtype=dtype)


def weights(layer: AttentionLayer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in layer.parameters()])


def cross_entropy(layer: AttentionLayer, db: Database, positions: str) -> float:
    """Mean next-token cross entropy, sentence by sentence."""
    total, n = 0.0, 0
    with torch.no_grad():
        for k, q, v in db.token_triples.tolist():
            p = layer(torch.tensor([[k, q]]))[0].double().softmax(dim=-1)
            terms = [p[0, q], p[1, v]] if positions == "both" else [p[1, v]]
            total -= sum(math.log(x) for x in terms)
            n += len(terms)
    return total / n


@pytest.mark.parametrize("positions", ["both", "object"])
def test_the_loss_is_next_token_cross_entropy(engine: Any, positions: Any) -> None:
    db, recipe = figure_1(), Recipe(epochs=5, positions=positions)
    layer = layer_for(db)
    result = train(layer, db, recipe, Compute(engine))
    assert (result.status, result.epochs, result.engine) == ("completed", 5, engine)
    assert result.loss == pytest.approx(cross_entropy(layer, db, positions), rel=1e-5)


def test_the_first_step_is_adams(engine: Any) -> None:
    db = figure_1()
    compute = compute_by(engine, dtype="float64")
    layer, start = (layer_for(db, dtype=torch.float64) for _ in range(2))
    sentences = torch.as_tensor(db.token_triples.astype(np.int64))
    logits = start(sentences[:, :2])
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), sentences[:, 1:].flatten()).backward()
    train(layer, db, Recipe(epochs=1, learning_rate=0.01), compute)
    for moved, parameter in zip(layer.parameters(), start.parameters(), strict=True):
        # both moments are unbiased by their first step: m = g, sqrt(v) = |g|
        assert parameter.grad is not None
        step = 0.01 * parameter.grad / (parameter.grad.abs() + 1e-8)
        torch.testing.assert_close(moved, parameter - step, rtol=1e-6, atol=1e-9)


def test_training_memorises_and_stops_early(engine: Any) -> None:
    db = figure_1()
    layer = layer_for(db)
    result = train(layer, db, Recipe(learning_rate=0.05), Compute(engine))
    assert result.status == "memorised"
    assert 0 < result.epochs < 2000
    assert memorises(layer, db, 0.99)


def test_a_layer_that_knows_all_is_left_as_it_is(engine: Any) -> None:
    db = figure_1()
    layer = layer_for(db)
    train(layer, db, Recipe(learning_rate=0.05), Compute(engine))
    before = weights(layer)
    again = train(layer, db, Recipe(), Compute(engine))
    assert (again.status, again.epochs) == ("memorised", 0)
    assert torch.equal(weights(layer), before)


@pytest.mark.slow
def test_stop_tau_zero_never_stops(engine: Any) -> None:
    db = figure_1()
    result = train(
        layer_for(db), db, Recipe(learning_rate=0.05, epochs=400, stop_tau=0), Compute(engine)
    )
    assert (result.status, result.epochs) == ("completed", 400)


@pytest.mark.slow
def test_training_twice_gives_the_same_bits(engine: Any) -> None:
    db = random_database(3)
    recipe = Recipe(epochs=20, batch_size=7)
    compute = compute_by(engine, recipe)
    first, second, other = layer_for(db), layer_for(db), layer_for(db)
    train(first, db, recipe, compute, seed=1)
    train(second, db, recipe, compute, seed=1)
    train(other, db, recipe, compute, seed=2)
    assert torch.equal(weights(first), weights(second))
    assert not torch.equal(weights(first), weights(other))


def test_a_batch_of_all_facts_is_a_full_batch(engine: Any) -> None:
    db = figure_1()
    full, batch = layer_for(db), layer_for(db)
    batches = Recipe(epochs=10, batch_size=8)
    compute = compute_by(engine, batches)
    train(full, db, Recipe(epochs=10), compute)
    train(batch, db, batches, compute)
    assert torch.equal(weights(full), weights(batch))


def test_a_cosine_schedule_ends_at_rest(engine: Any) -> None:
    db = figure_1()
    constant, cosine = layer_for(db), layer_for(db)
    train(constant, db, Recipe(epochs=2, stop_tau=0), Compute(engine))
    train(cosine, db, Recipe(epochs=2, schedule="cosine", stop_tau=0), Compute(engine))
    start = weights(layer_for(db))
    # rates 1 and 1 against 1 and 1/2: the first steps agree, the second is half as long
    gap = (weights(cosine) - start).abs() / (weights(constant) - start).abs().clamp_min(1e-12)
    assert float(gap.median()) == pytest.approx(0.75, abs=0.01)


def test_decoupled_weight_decay_shrinks_weights_that_have_no_gradient(engine: Any) -> None:
    db = figure_1()
    plain, decayed = layer_for(db), layer_for(db)
    row = int(db.object_ids[np.isin(db.object_ids, db.subject_ids, invert=True)][0])
    train(plain, db, Recipe(epochs=3, learning_rate=0.1), Compute(engine))
    train(
        decayed,
        db,
        Recipe(epochs=3, learning_rate=0.1, optimizer="adamw", weight_decay=0.5),
        Compute(engine),
    )
    # an object that is no subject is never embedded
    start = layer_for(db).W_E[row]
    assert torch.equal(plain.W_E[row], start)
    torch.testing.assert_close(decayed.W_E[row], start * (1 - 0.1 * 0.5) ** 3)


def test_divergence_is_a_status_and_not_an_accuracy(engine: Any) -> None:
    db = figure_1()
    result = train(layer_for(db), db, Recipe(learning_rate=1e30, epochs=50), Compute(engine))
    assert result.status == "diverged"
    assert result.epochs < 50
    assert not math.isfinite(result.loss)


def test_gradients_agree_with_finite_differences() -> None:
    db = figure_1()
    layer = layer_for(db, dtype=torch.float64)
    sentences = torch.as_tensor(db.token_triples.astype(np.int64))

    def loss(*parameters: torch.Tensor) -> torch.Tensor:
        names = [name for name, _ in layer.named_parameters()]
        logits = torch.func.functional_call(
            layer, dict(zip(names, parameters, strict=True)), (sentences[:, :2],)
        )
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), sentences[:, 1:].flatten())

    assert torch.autograd.gradcheck(loss, tuple(layer.parameters()), fast_mode=True)


def test_what_does_not_fit_is_refused() -> None:
    db = figure_1()
    multi = Database.from_triples([("a", "p", "x"), ("a", "p", "y")], multi="keep")
    with pytest.raises(MultiValuedError, match="Training needs one object"):
        train(AttentionLayer(CONFIG, multi.n_tokens), multi)
    with pytest.raises(ValueError, match="must have the database's 10 tokens"):
        train(AttentionLayer(CONFIG, 11), db)
    with pytest.raises(ValueError, match="dtype that `compute` asks for, float64; it has float32"):
        train(layer_for(db), db, compute=Compute(dtype="float64"))
    with pytest.raises(ValueError, match="device that `compute` asks for, cuda; it has cpu"):
        train(layer_for(db), db, compute=Compute(device="cuda"))


@pytest.mark.parametrize("engine", able_alone(CONFIG))
def test_training_tells_its_epochs(engine: str) -> None:
    db = random_database(0)
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    told: list[tuple[str, int, int]] = []
    train(
        layer,
        db,
        Recipe(epochs=30),
        Compute(engine),
        progress=lambda what, done, total, _left: told.append((what, done, total)),
    )
    assert {(what, total) for what, _, total in told} == {("epochs", 30)}
    done = [epoch for _, epoch, _ in told]
    assert done == sorted(done)
    assert done[0] == 0


def test_progress_begins_at_0_and_ends_with_the_epochs_that_were_done(engine: str) -> None:
    db = random_database(0)
    layer = AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens)
    told: list[tuple[int, int]] = []
    training = train(
        layer,
        db,
        Recipe(epochs=7),
        Compute(engine),
        progress=lambda _what, done, total, _left: told.append((done, total)),
    )
    assert told[0] == (0, 7)
    assert told[-1] == (training.epochs, training.epochs)
