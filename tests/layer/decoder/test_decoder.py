"""Decoders compute what the definition says; the tape has their gradients, and trains the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError
from capacity.evaluator import evaluate, fact_table
from capacity.layer import (
    AttentionLayer,
    Compute,
    Decoder,
    DecoderConfig,
    LayerConfig,
    Recipe,
    round_weights,
    train,
    train_many,
)
from capacity.layer.engines.engine import Workload
from capacity.layer.engines.registry import engine_for
from capacity.layer.engines.tape.engine import logits_of_facts
from capacity.layer.engines.tape.execute import compile_for as compile_tape
from capacity.layer.engines.tape.execute import train as tape_train
from capacity.layer.engines.tape.recorded_run import RecordedRun
from capacity.layer.run.snapshots import Snapshots
from tests.layer.decoder import plain_models
from tests.tiers import examples

DB = random_database(5)
EIGHT = {"d_model": 8, "n_heads": 2}
COMBINATIONS: dict[str, dict[str, Any]] = {
    "plain": EIGHT,
    "scale, heads of odd sizes": {"d_model": 5, "n_heads": 3, "d_head_qk": 3, "d_head_vo": 1,
                                  "scale": True},
    "mlp": {**EIGHT, "mlp": 32},
    "rms, mlp": {**EIGHT, "mlp": 32, "norm": "rms"},
    "layer norm, bias, relu": {"d_model": 5, "mlp": 7, "norm": "layer", "bias": True,
                               "activation": "relu"},
    "gated silu": {**EIGHT, "mlp": 6, "gated": True, "activation": "silu", "norm": "rms"},
    "learned positions": {**EIGHT, "positions": "learned", "n_positions": 4},
    "rotary": {**EIGHT, "positions": "rotary", "n_layers": 2},
    "after": {**EIGHT, "norm": "layer", "norm_place": "after", "mlp": 9, "n_layers": 2},
    "tied": {**EIGHT, "tie_embeddings": True, "norm": "rms"},
    "mlp alone": {"d_model": 4, "mlp": 8, "attention": False, "n_layers": 2},
    "attention in the first layer": {**EIGHT, "n_layers": 2, "attention": (True, False), "mlp": 3,
                                     "bias": True},
    "all": {"d_model": 6, "n_heads": 3, "d_head_qk": 4, "d_head_vo": 3, "n_layers": 3, "mlp": 9,
            "gated": True, "activation": "silu", "positions": "rotary", "tie_embeddings": True,
            "norm": "rms", "norm_place": "after", "bias": True, "scale": True},
}  # fmt: skip
each = pytest.mark.parametrize("name", COMBINATIONS)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    for dtype in ("float32", "float64"):
        compile_tape(dtype)


def drawn(config: DecoderConfig, d_vocab: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Weights in which no bias is zero, and no gain one."""
    generator = torch.Generator().manual_seed(seed)
    shapes = config.shapes(d_vocab)
    return {
        name: (torch.randn(shape, generator=generator, dtype=torch.float64) / 2).requires_grad_()
        for name, shape in shapes.items()
    }


@each
def test_the_forward_pass_is_that_of_a_plain_model(name: str) -> None:
    config = DecoderConfig(**COMBINATIONS[name])
    weights = drawn(config, 7)
    tokens = torch.tensor([[0, 1, 2, 6], [3, 3, 5, 0]])
    decoder = Decoder.of_weights(config, {n: w.detach() for n, w in weights.items()})
    expected = plain_models.logits(config, weights, tokens)
    torch.testing.assert_close(decoder(tokens), expected, rtol=1e-11, atol=1e-11)


@each
def test_logits_of_facts_are_those_of_a_plain_model(name: str) -> None:
    config = DecoderConfig(**COMBINATIONS[name])
    weights = drawn(config, DB.n_tokens)
    arrays = {name: w.detach().numpy().copy() for name, w in weights.items()}
    before = {name: array.copy() for name, array in arrays.items()}
    pairs = torch.from_numpy(DB.token_triples[:, :2].astype(np.int64))
    expected = plain_models.logits(config, weights, pairs)[:, -1].detach()
    np.testing.assert_allclose(
        logits_of_facts(config, arrays, DB), expected, rtol=1e-10, atol=1e-12
    )
    assert all(np.array_equal(arrays[name], before[name]) for name in arrays)


def gradients_of(config: DecoderConfig, db: Database, recipe: Recipe, seed: int = 0) -> Any:
    """Gradients by the tape, and by autograd of the plain model."""
    weights = drawn(config, db.n_tokens, seed)
    arrays = {name: w.detach().numpy().copy() for name, w in weights.items()}
    ours = RecordedRun(config, arrays, db, recipe).gradients()
    ids = torch.from_numpy(db.token_triples.astype(np.int64))
    z, targets = plain_models.logits(config, weights, ids[:, :2]), ids[:, 1:]
    if recipe.positions == "object":
        z, targets = z[:, -1:], targets[:, -1:]
    loss = cross_entropy(z.flatten(0, 1), targets.flatten())
    loss.backward()
    zero = torch.zeros(())
    return ours, {n: (zero if w.grad is None else w.grad).numpy() for n, w in weights.items()}


@each
@pytest.mark.parametrize("positions", ["both", "object"])
def test_gradients_are_those_of_autograd(name: str, positions: Any) -> None:
    config = DecoderConfig(**COMBINATIONS[name])
    ours, theirs = gradients_of(config, DB, Recipe(positions=positions))
    for weight, gradient in theirs.items():
        np.testing.assert_allclose(ours[weight], np.broadcast_to(gradient, ours[weight].shape),
                                   rtol=1e-10, atol=1e-12, err_msg=weight)  # fmt: skip


@st.composite
def decoder_configs(draw: Any) -> DecoderConfig:
    """Small decoders with any options that go together."""
    d_model, heads = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    positions = draw(st.sampled_from(["none", "learned", "rotary"]))
    n_layers, mlp = draw(st.integers(1, 3)), draw(st.integers(0, 9))
    if d_model == 1 and positions == "rotary":
        positions = "none"
    qk = (
        draw(st.integers(1, d_model // 2)) * 2
        if positions == "rotary"
        else draw(st.integers(1, d_model))
    )
    norm = draw(st.sampled_from(["none", "layer", "rms"]))
    return DecoderConfig(
        d_model, heads, qk, draw(st.integers(1, d_model)), n_layers=n_layers, mlp=mlp,
        activation=draw(st.sampled_from(["gelu", "relu", "silu"])) if mlp else "gelu",
        gated=bool(mlp) and draw(st.booleans()), norm=norm, positions=positions,
        norm_place=draw(st.sampled_from(["before", "after"])) if norm != "none" else "before",
        bias=draw(st.booleans()), scale=draw(st.booleans()), tie_embeddings=draw(st.booleans()),
    )  # fmt: skip


@given(decoder_configs(), st.integers(0, 200))
@settings(max_examples=examples(200), deadline=None)
def test_gradients_of_any_decoder(config: DecoderConfig, seed: int) -> None:
    db = random_database(seed, triples=(1, 40))
    ours, theirs = gradients_of(config, db, Recipe(), seed)
    for weight, gradient in theirs.items():
        scale = 1 + np.abs(gradient).max()
        assert np.abs(ours[weight] - gradient).max() < 1e-9 * scale, weight


@each
def test_gradients_are_slopes_of_the_loss(name: str) -> None:
    config = DecoderConfig(**COMBINATIONS[name])
    weights = {n: w.detach().numpy().copy() for n, w in drawn(config, DB.n_tokens).items()}
    ours = RecordedRun(config, weights, DB, Recipe()).gradients()
    rng, h = np.random.default_rng(0), 1e-5

    def loss(step: float, along: dict[str, Any]) -> float:
        moved = {n: w + step * along[n] for n, w in weights.items()}
        return RecordedRun(config, moved, DB, Recipe(epochs=0)).train(rng)[2]

    for weight in weights:
        along = {n: np.zeros_like(w) for n, w in weights.items()}
        along[weight] = rng.standard_normal(weights[weight].shape)
        slope = (loss(h, along) - loss(-h, along)) / (2 * h)
        assert slope == pytest.approx(float((ours[weight] * along[weight]).sum()), abs=1e-6), weight


@each
@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_training_is_that_of_the_reference(name: str, optimizer: Any) -> None:
    config = DecoderConfig(**COMBINATIONS[name])
    recipe = Recipe(epochs=20, learning_rate=1e-2, optimizer=optimizer, weight_decay=1e-2,
                    stop_tau=0, schedule="cosine")  # fmt: skip
    ours, theirs = (Decoder(config, DB.n_tokens, seed=3, dtype=torch.float64) for _ in range(2))
    a = train(ours, DB, recipe)
    b = train(theirs, DB, recipe, Compute("reference", dtype="float64"))
    assert (a.engine, b.engine) == ("tape", "reference")
    assert a.status == b.status
    assert a.loss == pytest.approx(b.loss, abs=1e-7)
    np.testing.assert_allclose(a.history.loss, b.history.loss, atol=1e-7)
    assert a.history.accuracy_p50 == b.history.accuracy_p50
    for (n, p), q in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        # Adam divides gradients that are rounding errors alone by their own size
        if not n.endswith("b_K"):
            torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-5, msg=n)


@pytest.mark.parametrize("options", [{"layer_norm": True}, {"bias": True}, {"n_positions": 2}])
def test_a_layer_with_options_trains_by_the_tape(options: dict[str, Any]) -> None:
    config = LayerConfig(4, 2, **options)
    ours, theirs = (AttentionLayer(config, DB.n_tokens, dtype=torch.float64) for _ in range(2))
    recipe = Recipe(epochs=20, learning_rate=1e-2)
    a = train(ours, DB, recipe)
    b = train(theirs, DB, recipe, Compute("reference", dtype="float64"))
    assert a.engine == "tape"
    assert a.loss == pytest.approx(b.loss, abs=1e-8)
    torch.testing.assert_close(ours.W_O, theirs.W_O, rtol=1e-6, atol=1e-6)


def test_it_memorises_stops_early_and_is_scored() -> None:
    decoder = Decoder(DecoderConfig(8, 2, mlp=32, norm="rms"), DB.n_tokens)
    training = train(decoder, DB, Recipe(learning_rate=1e-2, epochs=2000))
    assert training.status == "memorised"
    assert training.epochs < 2000
    assert evaluate(decoder, DB).argmax == 1
    assert fact_table(decoder, DB)["p95"].all()
    rounded = round_weights(decoder, "bfloat16")
    assert isinstance(rounded, Decoder)
    assert evaluate(rounded, DB).argmax > 0.9


def test_frozen_weights_stay() -> None:
    decoder = Decoder(DecoderConfig(4, 2, n_layers=2, mlp=5), DB.n_tokens)
    decoder.W_E.requires_grad_(False)
    before = {n: p.detach().clone() for n, p in decoder.named_parameters()}
    train(decoder, DB, Recipe(epochs=5, frozen=("W_Q", "layers.1.mlp.W_in")), Compute("tape"))
    same = {n for n, p in decoder.named_parameters() if torch.equal(p, before[n])}
    assert same == {"W_E", "layers.0.attention.W_Q", "layers.1.attention.W_Q", "layers.1.mlp.W_in"}


def test_a_training_that_is_interrupted_resumes_with_the_same_bits(tmp_path: Path) -> None:
    config, recipe = DecoderConfig(4, 2, mlp=8), Recipe(epochs=60, learning_rate=1e-2, stop_tau=0)
    whole, parted = (Decoder(config, DB.n_tokens) for _ in range(2))
    first = train(whole, DB, recipe)

    def interrupt(epoch: int, _loss: float) -> None:
        if epoch == 25:
            raise KeyboardInterrupt

    class Often(Snapshots):
        def offer(self, *args: Any, **options: Any) -> None:
            self._due = 0.0
            super().offer(*args, **options)

    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(parted, DB, recipe, snapshots=Often(path, "run", tell=interrupt, at=[20, 25]))
    assert path.exists()
    again = Decoder(config, DB.n_tokens, seed=9)
    second = train(again, DB, recipe, snapshots=Snapshots(path, "run"))
    assert second == first
    assert all(map(torch.equal, whole.parameters(), again.parameters()))


def test_starts_and_many() -> None:
    decoders = [Decoder(DecoderConfig(4, 2, mlp=8), DB.n_tokens, seed=i) for i in range(2)]
    found = train_many([(d, DB) for d in decoders], Recipe(epochs=30), starts=3, threads=2)
    assert [run.starts is not None and run.starts.tried for run in found] == [3, 3]


def test_it_is_saved_and_read(tmp_path: Path) -> None:
    decoder = Decoder(DecoderConfig(4, 2, n_layers=2, mlp=8, attention=(True, False)), 9, seed=2)
    decoder.save(tmp_path)
    read = Decoder.load(tmp_path)
    assert read.config == decoder.config
    assert all(map(torch.equal, decoder.parameters(), read.parameters()))
    with pytest.raises(InvalidArgumentError, match="Read it with Decoder"):
        AttentionLayer.load(tmp_path)
    layer = AttentionLayer(LayerConfig(4, 2, bias=True), 9, seed=2)
    layer.save(tmp_path)
    tokens = torch.tensor([[1, 2]])
    torch.testing.assert_close(Decoder.load(tmp_path)(tokens), layer(tokens))


def test_what_it_cannot_train_names_what_can() -> None:
    decoder = Decoder(DecoderConfig(4, 2), DB.n_tokens)
    assert train(decoder, DB, Recipe(epochs=2, batch_size=8)).engine == "reference"
    with pytest.raises(InvalidArgumentError, match="asks for batches"):
        train(decoder, DB, Recipe(epochs=2, batch_size=8), Compute("tape"))
    with pytest.raises(InvalidArgumentError, match=r"paper's layer alone.*Use auto or.* tape"):
        train(decoder, DB, Recipe(epochs=2), Compute("fused"))


def test_large_plain_layers_are_for_another_engine() -> None:
    work = Workload(LayerConfig(12, 2), Recipe(), n_triples=1000, n_tokens=600)
    assert engine_for("auto", work).name == "blocked"
    with pytest.raises(InvalidArgumentError, match="1,200,000 logits must be at most 1,048,576"):
        engine_for("tape", work)
    decoder = replace(work, layer=DecoderConfig(12, 2))
    assert engine_for("auto", decoder).name == "tape"


def test_weights_that_overflow_diverge() -> None:
    decoder = Decoder(DecoderConfig(4, 2, mlp=8), DB.n_tokens)
    training = train(decoder, DB, Recipe(epochs=50, learning_rate=1e30))
    assert training.status == "diverged"


def test_what_is_compiled_ahead_is_what_training_and_gradients_call() -> None:
    for dtype in ("float32", "float64"):
        decoder = Decoder(DecoderConfig(4, 2, mlp=8), DB.n_tokens).to(getattr(torch, dtype))
        weights = {name: x.detach().numpy() for name, x in decoder.named_parameters()}
        RecordedRun(decoder.config, weights, DB, Recipe()).gradients()
        train(decoder, DB, Recipe(epochs=2), Compute("tape", dtype))
    assert len(tape_train.signatures) == 2
