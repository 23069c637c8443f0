"""Every engine computes what `reference` does, up to the order of its sums."""

import json
import math
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity.database import Database, random_database
from capacity.layer import (
    AttentionLayer,
    Compute,
    LayerConfig,
    Recipe,
    Snapshots,
    train,
    train_many,
)
from capacity.layer.engines.blocked import engine as blocked
from capacity.layer.engines.blocked.backend import GPU
from capacity.layer.engines.blocked.cpu import CPU
from capacity.layer.engines.engine import Workload, loaded
from capacity.layer.engines.fused import FUSED, kernels, packing
from capacity.layer.engines.fused.kernels import Kernel
from capacity.layer.engines.registry import engine_for
from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd import compile as jit
from tests.engines import able
from tests.oracles import figure_1
from tests.tiers import examples

BATCHES = Recipe(batch_size=3)
NAMES = ["W_E", "W_Q", "W_K", "W_V", "W_O", "W_U"]
# gradients, and losses after so many epochs
TOLERANCE = {"float32": (1e-5, 1e-6, 30), "float64": (1e-12, 1e-10, 100)}


@st.composite
def layers(draw: st.DrawFn) -> LayerConfig:
    # the fused engine knows no more than 8
    d = draw(st.sampled_from([1, 4, 7, 8, 9, 17]))
    sizes = [draw(st.integers(1, d)) for _ in range(2)]
    return LayerConfig(d, draw(st.integers(1, 4)), *sizes, scale=draw(st.booleans()))


@st.composite
def databases(draw: st.DrawFn) -> Database:
    """Of drawn shapes; tokens may be subject, predicate and object, even of one fact."""
    if draw(st.booleans()):
        return random_database(draw(st.integers(0, 99)), triples=(4, 120))
    n = draw(st.integers(1, 40))
    names = st.integers(0, n).map(str)
    pairs = draw(st.lists(st.tuples(names, names), min_size=1, max_size=60, unique=True))
    return Database.from_triples([(k, q, draw(names)) for k, q in pairs])


recipes = st.builds(
    Recipe,
    optimizer=st.sampled_from(["adam", "adamw"]),
    learning_rate=st.sampled_from([1e-3, 1e-2]),
    beta2=st.sampled_from([0.9, 0.999]),
    weight_decay=st.sampled_from([0.0, 0.1]),
    schedule=st.sampled_from(["constant", "cosine"]),
    positions=st.sampled_from(["both", "object"]),
    stop_tau=st.sampled_from([0.0, 0.99]),
)
dtypes = st.sampled_from(["float32", "float64"])


def layer_for(config: LayerConfig, db: Database, dtype: str, seed: int = 0) -> AttentionLayer:
    return AttentionLayer(config, db.n_tokens, seed=seed, dtype=getattr(torch, dtype))


def autograd(layer: AttentionLayer, db: Database, positions: str) -> dict[str, np.ndarray]:
    sentences = torch.as_tensor(db.token_triples.astype(np.int64))
    logits, targets = layer(sentences[:, :2]), sentences[:, 1:]
    if positions == "object":
        logits, targets = logits[:, 1:], targets[:, 1:]
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    return {name: p.grad.numpy() for name, p in layer.named_parameters() if p.grad is not None}


# what it sets is the same for all examples
SAME_FIXTURE = [HealthCheck.function_scoped_fixture]


@pytest.fixture(params=[3, 64], ids=["blocks of 3 rows", "one block"])
def rows_a_block(request: pytest.FixtureRequest) -> Iterator[None]:
    """The same whatever the blocks that large databases are cut into."""
    with (
        patch.multiple(
            blocked,
            CPU=replace(CPU, block_bytes=1),
            GPU=replace(GPU, block_bytes=1),
            LEAST_ROWS=request.param,
        ),
        patch.object(packing, "LOSS_ENTRIES", request.param * 50),
    ):
        yield


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=SAME_FIXTURE)
@given(layers(), databases(), recipes, dtypes, st.integers(0, 9), st.sampled_from([1, 2000]))
def test_gradients_are_those_of_autograd(
    rows_a_block: None,
    config: LayerConfig,
    db: Database,
    recipe: Recipe,
    dtype: str,
    seed: int,
    factor: int,
) -> None:
    layer = layer_for(config, db, dtype, seed)
    if dtype == "float64":
        # logits far apart, whose exponentials overflow without a shift
        with torch.no_grad():
            layer.W_U *= factor
    expected = autograd(layer, db, recipe.positions)
    layer.zero_grad()
    found: list[dict[str, np.ndarray]] = []
    # what GPUs do, on a CPU
    for backend in (blocked.CPU, blocked.GPU):
        blocked.Model(layer, db, recipe, backend).look(None, backward=True)
        found.append(
            {name: p.grad.numpy() for name, p in layer.named_parameters() if p.grad is not None}
        )
        layer.zero_grad()
    if config.d_model <= ROW:
        weights = {name: p.detach().numpy() for name, p in layer.named_parameters()}
        found.append(packing.PackedRun(config, weights, db, recipe).gradients())
    # one scale for all: a matrix whose gradients cancel has nothing but rounding
    scale = max(float(np.abs(g).max()) for g in expected.values())
    for got in found:
        for name, gradient in expected.items():
            assert np.abs(got[name] - gradient).max() <= TOLERANCE[dtype][0] * scale, name


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None, suppress_health_check=SAME_FIXTURE)
@given(layers(), databases(), recipes, dtypes, st.integers(0, 9), st.sampled_from([0, 1, 5, 17]))
def test_short_trajectories_are_those_of_the_reference(
    rows_a_block: None,
    config: LayerConfig,
    db: Database,
    recipe: Recipe,
    dtype: Any,
    seed: int,
    batch_size: int,
) -> None:
    _, tolerance, epochs = TOLERANCE[dtype]
    n_steps = -(-db.n_triples // batch_size) if batch_size else 1
    # in steps: many batches are a long trajectory
    epochs = max(1, epochs // n_steps)
    trainings, layers_ = {}, {}
    short = replace(recipe, epochs=epochs, batch_size=batch_size)
    sizes = {"n_triples": db.n_triples, "n_tokens": db.n_tokens}
    for engine in able(config, short, dtype=dtype, **sizes):
        layer = layers_[engine] = layer_for(config, db, dtype, seed)
        trainings[engine] = train(layer, db, short, Compute(engine, dtype), seed=seed)
    theirs = trainings.pop("reference")
    for engine, ours in trainings.items():
        if dtype == "float64":
            pairs = zip(
                layers_[engine].parameters(), layers_["reference"].parameters(), strict=True
            )
            assert all(torch.allclose(a, b, rtol=0, atol=1e-6) for a, b in pairs)
        assert (ours.status, ours.epochs) == (theirs.status, theirs.epochs)
        # a loss near 0 is the difference of logits, with their precision
        assert ours.loss == pytest.approx(theirs.loss, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_a_frozen_part_between_others_stays(optimizer: Any) -> None:
    # three rows of W_E in float32 end within a vector
    db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    config = LayerConfig(4, 2, 2, 3)
    start, layer = (layer_for(config, db, "float32") for _ in range(2))
    layer.W_U.requires_grad_(False)
    recipe = Recipe(epochs=9, optimizer=optimizer, weight_decay=0.1)
    assert train(layer, db, recipe).engine == "fused"
    for name, weights in layer.named_parameters():
        assert torch.equal(weights, start.get_parameter(name)) == (name == "W_U"), name


# a kernel is compiled for each d_model and dtype, with batches and without
@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    layers().filter(lambda config: config.d_model <= ROW),
    databases(),
    recipes,
    st.sets(st.sampled_from(NAMES), min_size=1, max_size=len(NAMES) - 1),
    dtypes,
    st.sampled_from([0, 17]),
)
def test_frozen_weights_stay_and_others_move_as_in_the_reference(
    config: LayerConfig, db: Database, recipe: Recipe, frozen: set[str], dtype: Any, batch_size: int
) -> None:
    recipe = replace(recipe, epochs=6, batch_size=batch_size)
    start = layer_for(config, db, dtype)
    trained = {}
    for engine in able(config, recipe, dtype=dtype, has_frozen_weights=True):
        layer = trained[engine] = layer_for(config, db, dtype)
        for name in frozen:
            layer.get_parameter(name).requires_grad_(False)
        train(layer, db, recipe, Compute(engine, dtype))  # type: ignore[arg-type]
    reference = trained.pop("reference")
    for engine, layer in trained.items():
        for name, found in layer.named_parameters():
            if name in frozen:
                # parts of float32 may end within a vector
                assert torch.equal(found, start.get_parameter(name)), (engine, name)
            elif dtype == "float64":
                expected = reference.get_parameter(name)
                torch.testing.assert_close(found, expected, rtol=0, atol=1e-7)


def test_what_was_computed_of_frozen_weights_keeps_its_gradient() -> None:
    db = figure_1()
    layer = layer_for(LayerConfig(4, 2, 2, 3), db, "float32")
    scale = torch.ones((), requires_grad=True)
    layer.W_U.requires_grad_(False)
    held, moved = (scale * layer.W_U).sum(), (scale * layer.W_E).sum()
    train(layer, db, Recipe(epochs=2), Compute("fused"))
    held.backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        moved.backward()


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [0, 5])
def test_weights_are_trained_as_a_layer_of_them(batch_size: int) -> None:
    db, recipe = figure_1(), Recipe(epochs=40, stop_tau=0.0, batch_size=batch_size)
    layer = AttentionLayer(LayerConfig(4, 2, 2, 3), db.n_tokens, seed=1)
    weights = {name: p.detach().numpy().copy() for name, p in layer.named_parameters()}
    engine = engine_for("fused", Workload(layer.config, recipe, db.n_triples, db.n_tokens))
    assert engine.run_weights is not None
    order, snapshots = np.random.default_rng(3), Snapshots(None, "")
    alone = loaded(engine.run_weights)(layer.config, weights, db, recipe, order, snapshots)
    embedded = layer.W_EU.sum()
    assert train(layer, db, recipe, Compute("fused"), seed=3) == alone
    for name, p in layer.named_parameters():
        assert np.array_equal(weights[name], p.detach().numpy()), name
    # what was computed of the weights as they were has no gradient any more
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        embedded.backward()


@pytest.mark.parametrize("engine", able(recipe=BATCHES))
def test_what_stops_being_finite_is_seen_wherever_it_is(engine: Any) -> None:
    db = figure_1()
    layer = layer_for(LayerConfig(4, 2, 2, 3), db, "float32")
    # a batch whose loss is infinite; the weights are lost with it
    batches = Recipe(batch_size=1, learning_rate=1e30, epochs=9)
    lost = train(layer, db, batches, Compute(engine))
    assert (lost.status, lost.epochs) == ("diverged", 1)
    # squares of gradients that overflow: weights and loss stay finite, and nothing moves
    two = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    layer = layer_for(LayerConfig(2, 1, 1, 2), two, "float32")
    with torch.no_grad():
        layer.W_U *= 1e30
        layer.W_E *= 1e-12
    frozen = train(layer, two, Recipe(epochs=3), Compute(engine))
    assert frozen.status == "diverged"
    assert np.isfinite(frozen.loss)
    assert all(bool(p.isfinite().all()) for p in layer.parameters())


@pytest.mark.slow
@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("engine", [*able(recipe=BATCHES), "together"])
@pytest.mark.parametrize("batch_size", [0, 9])
def test_many_layers_are_trained_as_each_alone_on_any_number_of_threads(
    engine: Any, batch_size: int
) -> None:
    dbs = [random_database(i) for i in range(6)]
    config, recipe = LayerConfig(4, 2, 2, 3), Recipe(epochs=5, batch_size=batch_size)
    compute = Compute(engine)

    def tasks() -> list[tuple[AttentionLayer, Database]]:
        return [(layer_for(config, db, "float32", i), db) for i, db in enumerate(dbs)]

    alone = tasks()
    trainings = [train(layer, db, recipe, compute, seed=i) for i, (layer, db) in enumerate(alone)]
    for threads in (1, 3):
        many = tasks()
        got = train_many(many, recipe, compute, seeds=range(6), threads=threads)
        assert got == trainings
        for (ours, _), (theirs, _) in zip(many, alone, strict=True):
            assert all(map(torch.equal, ours.parameters(), theirs.parameters()))


@pytest.mark.slow
@pytest.mark.usefixtures("together")
@pytest.mark.parametrize("engine", [*able(), "together"])
def test_a_run_that_diverges_is_flagged_and_leaves_its_neighbours_alone(engine: Any) -> None:
    dbs = [random_database(7)] * 3
    config, recipe = LayerConfig(4, 2, 2, 3), Recipe(epochs=50)

    def tasks() -> list[tuple[AttentionLayer, Database]]:
        return [(layer_for(config, db, "float32", i), db) for i, db in enumerate(dbs)]

    whole, broken = tasks(), tasks()
    with torch.no_grad():
        broken[1][0].W_U[0, 0] = np.inf
    expected, got = (
        train_many(some, recipe, Compute(engine), threads=2) for some in (whole, broken)
    )
    assert got[1].status == "diverged"
    assert not np.isfinite(got[1].loss)
    assert [got[0], got[2]] == [expected[0], expected[2]]
    for i in (0, 2):
        assert all(map(torch.equal, whole[i][0].parameters(), broken[i][0].parameters()))


@pytest.mark.parametrize(
    ("config", "device", "why"),
    [
        (LayerConfig(9, 1, 1, 1), "cpu", "d_model must be at most 8"),
        (LayerConfig(4, 1, 1, 1, bias=True), "cpu", "the paper's layer alone"),
        (LayerConfig(4, 1, 1, 1), "cuda", "it runs on CPUs only"),
    ],
)
def test_an_engine_that_cannot_train_a_layer_says_why(
    config: LayerConfig, device: str, why: str
) -> None:
    work = Workload(config, Recipe(), 9, 9, device=device)
    with pytest.raises(ValueError, match=why):
        engine_for("fused", work)
    auto = engine_for("auto", work)
    assert auto.name == ("blocked" if device == "cuda" else "tape")


def test_auto_writes_its_choice() -> None:
    db = random_database(0)
    for d_model, engine in ((8, "fused"), (9, "tape"), (65, "blocked")):
        layer = AttentionLayer(LayerConfig(d_model, 1, 1, 1), db.n_tokens)
        assert train(layer, db, Recipe(epochs=1)).engine == engine


@pytest.mark.parametrize("engine", able(recipe=BATCHES))
def test_what_training_leaves_behind(engine: Any) -> None:
    db, config = figure_1(), LayerConfig(4, 2, 2, 3)
    layer = layer_for(config, db, "float32")
    before = [p.detach().clone() for p in layer.parameters()]
    for parameter in layer.parameters():
        parameter.grad = torch.ones_like(parameter)
    none = train(layer, db, Recipe(epochs=0), Compute(engine))
    assert (none.status, none.epochs) == ("completed", 0)
    assert all(map(torch.equal, layer.parameters(), before))
    # gradients are neither used nor left
    assert all(p.grad is None for p in layer.parameters())
    # a generator is taken from as often, however many epochs were planned
    rng, recipe = np.random.default_rng(3), Recipe(epochs=500, batch_size=3, learning_rate=0.05)
    done = train(layer, db, replace(recipe, stop_tau=0.51), Compute(engine), seed=rng)
    assert 0 < done.epochs < 500
    alone = np.random.default_rng(3)
    for _ in range(done.epochs):
        alone.permutation(db.n_triples)
    assert rng.integers(1 << 30) == alone.integers(1 << 30)


@pytest.mark.parametrize(("d_model", "engine"), [(4, "fused"), (9, "tape"), (65, "blocked")])
def test_frozen_weights_are_for_engines_that_can(d_model: int, engine: str) -> None:
    db, config = random_database(7), LayerConfig(d_model, 2, 2, 3)
    layer = layer_for(config, db, "float32")
    layer.W_E.requires_grad_(False)
    before, moved = layer.W_E.clone(), layer.W_Q.clone()
    assert train(layer, db, Recipe(epochs=3, weight_decay=0.1)).engine == engine
    assert torch.equal(layer.W_E, before)
    assert layer.W_E.grad is None
    assert not torch.equal(layer.W_Q, moved)
    with pytest.raises(ValueError, match="some are frozen"):
        train(layer, db, Recipe(epochs=3), Compute("triton"))
    with pytest.raises(ValueError, match="must have a weight to train"):
        train(layer.requires_grad_(False), db)


def announced(kept: bool, caplog: pytest.LogCaptureFixture) -> str:
    with (
        patch.object(Kernel, "is_kept", kept),
        kernels._announced(Kernel("batches", ROW, "float64"), after=0.01),
    ):
        time.sleep(0.2)
    return caplog.text


def test_a_kernel_that_is_there_is_not_announced(caplog: pytest.LogCaptureFixture) -> None:
    assert not announced(True, caplog)


def test_the_first_compilation_is_announced(caplog: pytest.LogCaptureFixture) -> None:
    said = announced(False, caplog)
    assert "compiling the fused engine for any d_model in float64, in batches" in said


@pytest.mark.parametrize("batch_size", [0, 7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("d", "rate"), [(1, 1e-2), (4, 1e-2), (7, 1e-2), (4, 1e4)])
def test_the_widest_kernel_gives_the_bits_of_the_layers_own(
    d: int, rate: float, dtype: Any, batch_size: int
) -> None:
    if d == 7 and dtype == "float64" and batch_size:
        pytest.skip("one kernel fewer to compile")
    # a rate of 10^4 diverges
    db = random_database(3, triples=(20, 30))
    recipe = Recipe(learning_rate=rate, epochs=40, batch_size=batch_size, optimizer="adamw",
                    weight_decay=0.1)  # fmt: skip
    found = []
    for dims in (d, ROW):

        def kernel(kind: str, _: Workload, dims: int = dims) -> Kernel:
            return Kernel(kind, dims, dtype)

        layer = AttentionLayer(LayerConfig(d, 2, 1, 1), db.n_tokens, dtype=getattr(torch, dtype))
        with patch.object(packing, "kernel_for", kernel):
            training = train(layer, db, recipe, Compute("fused", dtype), seed=0)
        weights = [w.numpy().tobytes() for w in layer.state_dict().values()]
        found.append((repr(training), training.history.to_pandas().to_numpy().tobytes(), weights))
    assert found[0] == found[1]
    assert ("diverged" in found[0][0]) == (rate > 1)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The kernels that a process would load or compile, with nothing on disk at first."""
    loaded: list[Kernel] = []
    monkeypatch.setattr(kernels, "_seconds_lost", defaultdict(float))
    monkeypatch.setattr(kernels, "_load", loaded.append)
    monkeypatch.setattr(Kernel, "is_kept", False)
    monkeypatch.setattr(Kernel, "is_loaded", property(lambda kernel: kernel in loaded))
    return loaded


def training_of(d: int, epochs: int) -> Workload:
    return Workload(LayerConfig(d, 2, 1, 1), Recipe(epochs=epochs), n_triples=50, n_tokens=40)


def test_short_trainings_of_all_sizes_take_one_kernel(compiled: list[Kernel]) -> None:
    widest = Kernel("full", ROW, "float32")
    for d in (3, 5, 8, 3):
        assert kernels.kernel_for("full", training_of(d, 1000)) == widest
    assert compiled == [widest]


def test_a_kernel_is_compiled_once_as_much_is_lost_without_it(compiled: list[Kernel]) -> None:
    work, own = training_of(2, 10**5), Kernel("full", 2, "float32")
    a_run = kernels._lost(work)
    assert a_run > 0
    before = math.ceil(kernels.COMPILE["full"] / a_run) - 1
    for _ in range(before):
        assert kernels.kernel_for("full", work).dims == ROW
    assert kernels.kernel_for("full", work) == own
    # from now on at once; a long training needs no others before it
    assert kernels.kernel_for("full", training_of(2, 1)) == own
    assert kernels.kernel_for("full", training_of(5, 10**7)).dims == 5
    assert [kernel.dims for kernel in compiled] == [ROW, 2, 5]
    assert kernels.start_seconds([work] * before) == pytest.approx(
        kernels.IMPORT + kernels.COMPILE["full"]
    )


def test_a_kernel_on_disk_is_taken_at_once(
    compiled: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kernel, "is_kept", property(lambda kernel: kernel.dims == 3))
    assert [kernels.kernel_for("full", training_of(d, 1)).dims for d in (3, 4)] == [3, ROW]
    works = [training_of(d, 1) for d in (3, 4)]
    assert kernels.start_seconds(works) == pytest.approx(
        kernels.IMPORT + kernels.LOAD + kernels.COMPILE["full"]
    )


@pytest.fixture
def _locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder where kernels that another process loads or compiles are locked."""
    pytest.importorskip("fcntl")
    stats = SimpleNamespace(cache_path=str(tmp_path))
    monkeypatch.setattr(Kernel, "function", SimpleNamespace(stats=stats))


@pytest.mark.usefixtures("_locks")
def test_a_kernel_on_disk_is_taken_while_another_process_loads_it(
    compiled: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kernel, "is_kept", property(lambda kernel: kernel.dims in (2, ROW)))
    for dims in (2, ROW):
        own = Kernel("full", dims, "float32")
        with jit.claimed(own.function, f"full-{dims}-float32", wait=False) as mine:
            assert mine
            assert kernels.kernel_for("full", training_of(dims, 1)) == own
    assert [kernel.dims for kernel in compiled] == [2, ROW]


@pytest.mark.usefixtures("_locks")
def test_what_another_process_compiles_is_waited_for_only_if_nothing_else_can_train(
    compiled: list[Kernel],
) -> None:
    work = training_of(2, 10**7)
    with jit.claimed(Kernel("full", 2, "float32").function, "full-2-float32", wait=False) as mine:
        assert mine
        assert kernels.kernel_for("full", work).dims == ROW
    assert kernels.kernel_for("full", work).dims == 2
    assert [kernel.dims for kernel in compiled] == [ROW, 2]
    order: list[str] = []
    with jit.claimed(Kernel("full", 2, "float32").function, "full-8-float32", wait=True):
        compiled.clear()
        other = threading.Thread(
            target=lambda: order.append(str(kernels.kernel_for("full", training_of(8, 1)).dims))
        )
        other.start()
        other.join(0.2)
        order.append("done")
    other.join()
    assert order == ["done", "8"]


_IN_ANOTHER_PROCESS = """
from capacity import *
from capacity.database import random_database
from capacity.layer import Compute, Workload
from capacity.layer.engines.fused import FUSED, epochs
from capacity.layer.engines.blocked import BLOCKED
db, config = random_database(0), LayerConfig(1, 1, 1, 1)
works = [Workload(config, Recipe(), db.n_triples, db.n_tokens, d) for d in ("float32", "float64")]
print([round(engine.start([work]), 2) for engine in (FUSED, BLOCKED) for work in works])
for engine in ("fused", "blocked"):
    train(AttentionLayer(config, db.n_tokens), db, Recipe(epochs=2), Compute(engine))
stats = epochs.train_epochs.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_another_process_finds_the_compiled_code_and_knows_so_beforehand(tmp_path: Path) -> None:
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", _IN_ANOTHER_PROCESS], env=env, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    (first, misses), (second, hits) = (done.stdout.splitlines() for done in said)
    assert (misses, hits) == ("0 1", "1 0"), said
    cold, warm = (json.loads(line) for line in (first, second))
    # what was compiled, both engines' code in float32, isn't compiled again, and nothing else is
    # there: the fused kernel takes nearly two seconds, the blocked ones one
    assert [round(a - b) for a, b in zip(cold, warm, strict=True)] == [2, 0, 1, 0]
    assert warm[0] < 1
    assert "compiling the fused engine for any d_model in float32" in said[0].stderr
    assert not said[1].stderr


@pytest.mark.slow
def test_what_is_compiled_ahead_is_what_workers_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    work = Workload(LayerConfig(1, 1, 1, 1), Recipe(), n_triples=3, n_tokens=4)
    arguments = FUSED.ahead(work)
    assert arguments is not None
    command = [sys.executable, "-m", "capacity.layer.engines.ahead"]
    # no line, no code
    subprocess.run(command, input="", check=True, text=True)
    assert FUSED.ahead(work) == arguments
    subprocess.run(command, input=" ".join(arguments) + "\n", check=True, text=True)
    assert FUSED.ahead(work) is None
    # the other kernel is another file
    assert FUSED.ahead(replace(work, recipe=Recipe(batch_size=2))) is not None
    done = subprocess.run(
        [sys.executable, "-c", _IN_ANOTHER_PROCESS], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[1] == "1 0"


def test_many_tasks_are_checked_before_anything_is_trained() -> None:
    db = random_database(0)
    layer, other = (layer_for(LayerConfig(2, 1, 1, 1), db, t) for t in ("float32", "float64"))
    before = layer.W_E.clone()
    with pytest.raises(ValueError, match="dtype that `compute` asks for"):
        train_many([(layer, db), (other, db)], compute=Compute())
    with pytest.raises(ValueError, match="`seeds` must have one for each of 1 tasks; got 2"):
        train_many([(layer, db)], seeds=[1, 2])
    with pytest.raises(ValueError, match="must each have a layer of their own"):
        train_many([(layer, db), (layer, db)])
    with pytest.raises(ValueError, match="`threads` must be at least 1"):
        train_many([(layer, db)], threads=0)
    twice = [np.random.default_rng(0)] * 2
    with pytest.raises(ValueError, match="`seeds` must be generators of their own"):
        train_many([(layer, db), (layer_for(LayerConfig(2, 1, 1, 1), db, "float32"), db)],
                   seeds=twice)  # fmt: skip
    assert torch.equal(layer.W_E, before)
