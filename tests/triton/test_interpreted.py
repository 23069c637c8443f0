"""The kernel's arithmetic, run by triton's interpreter on a CPU, is that of `reference`."""

import math
import subprocess
import sys
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from capacity.database import Database
from capacity.errors import InvalidArgumentError
from capacity.layer import AttentionLayer, Compute, LayerConfig, Recipe, Training, train, train_many
from capacity.layer.engines.proof import prove
from capacity.layer.engines.triton import engine, kernel, launches
from capacity.layer.packed import PackedLayers
from capacity.sweep import load, make_plan, run_sweep
from tests.tiers import FULL

# each operation of a program costs the interpreter a tenth of a millisecond; to shrink an example
# takes an hour. `make triton-check PROFILE=full` draws all
SLOW = settings(
    max_examples=40 if settings().max_examples >= FULL else 12,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
TASK = tuple[AttentionLayer, Database]


@st.composite
def databases(draw: st.DrawFn) -> Database:
    """Of 1 to 200 facts, at powers of two and beside them; tokens play any part."""
    n = draw(st.sampled_from([1, 2, 3, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200]))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    pool = draw(st.sampled_from([math.isqrt(n) + 1, n + 1, 2 * n + 1]))
    pairs = rng.permutation(pool * pool)[:n]
    objects = rng.integers(draw(st.integers(1, pool)), size=n)
    shared = draw(st.booleans())
    names = "ttt" if shared else "kqv"
    return Database.from_triples(
        [
            (f"{names[0]}{p // pool}", f"{names[1]}{p % pool}", f"{names[2]}{o}")
            for p, o in zip(pairs.tolist(), objects.tolist(), strict=True)
        ]
    )


@st.composite
def layers(draw: st.DrawFn) -> LayerConfig:
    d = draw(st.sampled_from([1, 2, 3, 6, 8, 9, 16]))
    sizes = [draw(st.integers(1, min(d, 8))) for _ in range(2)]
    return LayerConfig(d, draw(st.integers(1, 5)), *sizes, scale=draw(st.booleans()))


recipes = st.builds(
    Recipe,
    epochs=st.integers(0, 12),
    optimizer=st.sampled_from(["adam", "adamw"]),
    learning_rate=st.sampled_from([1e-3, 1e-2]),
    beta2=st.sampled_from([0.9, 0.999]),
    weight_decay=st.sampled_from([0.0, 0.1]),
    schedule=st.sampled_from(["constant", "cosine"]),
    positions=st.sampled_from(["both", "object"]),
    stop_tau=st.sampled_from([0.0, 0.51, 0.99]),
)


def layer_for(config: LayerConfig, db: Database, seed: int = 0) -> AttentionLayer:
    return AttentionLayer(config, db.n_tokens, seed=seed)


def by_triton(tasks: Sequence[TASK], recipe: Recipe) -> list[Training]:
    return train_many(tasks, recipe, Compute("triton"))


def assert_same_bits(a: AttentionLayer, b: AttentionLayer) -> None:
    for x, y in zip(a.parameters(), b.parameters(), strict=True):
        assert torch.equal(x, y)


@SLOW
@given(layers(), databases(), st.sampled_from(["both", "object"]), st.sampled_from([1, 20]))
def test_gradients_are_those_of_autograd(
    config: LayerConfig, db: Database, positions: str, factor: int
) -> None:
    layer = layer_for(config, db)
    with torch.no_grad():
        # logits far apart, whose exponentials overflow without a shift
        layer.W_U *= factor
    sentences = torch.as_tensor(db.token_triples.astype(np.int64))
    logits, targets = layer(sentences[:, :2]), sentences[:, 1:]
    if positions == "object":
        logits, targets = logits[:, 1:], targets[:, 1:]
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
    recipe = Recipe(positions=positions)  # type: ignore[arg-type]
    (found,) = engine.gradients(PackedLayers.of([layer]), [db], recipe)
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None
        wanted = parameter.grad.numpy()
        most = 1e-5 * max(1.0, float(np.abs(wanted).max()))
        assert found[name].numpy() == pytest.approx(wanted, rel=0, abs=most), name


def assert_trained_as_by_the_reference(config: LayerConfig, db: Database, recipe: Recipe) -> None:
    layer = layer_for(config, db)
    other = deepcopy(layer)
    (found,) = by_triton([(layer, db)], recipe)
    wanted = train(other, db, recipe, Compute("reference"))
    assert (found.status, found.epochs) == (wanted.status, wanted.epochs)
    assert found.engine == "triton"
    assert found.history.epochs == wanted.history.epochs
    assert found.history.loss == pytest.approx(wanted.history.loss, rel=1e-4, abs=1e-5)
    for x, y in zip(layer.parameters(), other.parameters(), strict=True):
        # a gradient of rounding alone moves a weight by the learning rate in each epoch
        near = (x - y).abs() <= 1e-4 * (1 + y.abs())
        assert near.float().mean() > 0.99


@SLOW
@given(layers(), databases(), recipes)
def test_a_short_training_is_the_reference_s(
    config: LayerConfig, db: Database, recipe: Recipe
) -> None:
    assert_trained_as_by_the_reference(config, db, recipe)


@settings(SLOW, max_examples=SLOW.max_examples // 3 + 1)
@given(
    layers().filter(lambda config: config.d_model <= 6),
    databases().filter(lambda db: db.n_triples <= 9),
    recipes,
    st.integers(20, 50),
)
def test_tens_of_steps_are_the_reference_s(
    config: LayerConfig, db: Database, recipe: Recipe, epochs: int
) -> None:
    assert_trained_as_by_the_reference(config, db, replace(recipe, epochs=epochs))


def test_the_proof_holds_here() -> None:
    proof = prove("triton", "cpu")
    assert proof.holds
    assert 0 < proof.difference < 1e-5


@pytest.fixture(scope="module")
def tasks() -> list[TASK]:
    """Of two shapes, five sizes and several lengths."""
    found: list[TASK] = []
    for seed, (n, d, heads) in enumerate(
        [(3, 2, 1), (9, 4, 2), (17, 6, 4), (70, 3, 1), (33, 9, 5)]
    ):
        triples = [(f"k{i // 4}", f"q{i % 4}", f"v{i % 7}") for i in range(n)]
        db = Database.from_triples(triples)
        found.append((layer_for(LayerConfig(d, heads, 2, min(d, 3)), db, seed), db))
    return found


def test_a_run_is_the_same_alone_as_among_others(tasks: list[TASK]) -> None:
    recipe = Recipe(epochs=6, learning_rate=0.05, weight_decay=0.01)
    together, alone = deepcopy(tasks), deepcopy(tasks)
    found = by_triton(together, recipe)
    assert found == [by_triton([task], recipe)[0] for task in alone]
    for (a, _), (b, _) in zip(together, alone, strict=True):
        assert_same_bits(a, b)


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_the_epochs_of_a_launch_make_no_difference(
    tasks: list[TASK], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe(epochs=40, learning_rate=0.1, stop_tau=0.6)
    wanted, found = deepcopy(tasks[:2]), deepcopy(tasks[:2])
    before = by_triton(wanted, recipe)
    assert "memorised" in {training.status for training in before}
    monkeypatch.setattr(launches, "CHUNK", chunk)
    assert by_triton(found, recipe) == before
    for (a, _), (b, _) in zip(found, wanted, strict=True):
        assert_same_bits(a, b)


# the interpreter computes in numpy, which warns of infinities
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_run_that_diverges_says_so_and_leaves_the_others(tasks: list[TASK]) -> None:
    broken, whole = deepcopy(tasks[1]), deepcopy(tasks[1])
    with torch.no_grad():
        broken[0].W_U[0, 0] = math.inf
    recipe = Recipe(epochs=5)
    bad, good = by_triton([broken, whole], recipe)
    other = deepcopy(tasks[1])
    with torch.no_grad():
        other[0].W_U[0, 0] = math.inf
    wanted = train(*other, recipe, Compute("reference"))
    assert (bad.status, bad.epochs) == (wanted.status, wanted.epochs) == ("diverged", 1)
    assert good.status == "completed"


@pytest.mark.parametrize(
    ("recipe", "dtype", "reason"),
    [
        (Recipe(batch_size=2), "float32", "its steps are over all facts"),
        (Recipe(), "float64", "it computes in float32"),
    ],
)
def test_what_it_cannot_do_names_the_engines_that_can(
    tasks: list[TASK], recipe: Recipe, dtype: str, reason: str
) -> None:
    layer, db = deepcopy(tasks[1])
    layer = layer.to(getattr(torch, dtype))
    compute = Compute("triton", dtype=dtype)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=rf"{reason}.*Use auto or reference or fused"):
        train(layer, db, recipe, compute)


def test_a_sweep_has_the_same_table_with_any_number_of_workers(tmp_path: Path) -> None:
    plan = make_plan(
        {
            "databases": {"synthetic": {"count": 3, "max_triples": 8}},
            "layers": {"d_model": [2, 3], "n_heads": [1], "d_head_qk": [1], "d_head_vo": [2]},
            "recipe": {"epochs": 4},
            "compute": {"engine": "triton"},
        }
    )
    for workers in (1, 2):
        run_sweep(plan, tmp_path / str(workers), workers=workers)
    one, two = (load(tmp_path / str(workers)) for workers in (1, 2))
    assert set(one["engine"]) == {"triton"}
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize(("number", "engine"), [(1, "fused"), (4, "tape")])
def test_auto_on_a_cpu_takes_a_faster_engine(tasks: list[TASK], number: int, engine: str) -> None:
    assert train(*deepcopy(tasks[number]), Recipe(epochs=1)).engine == engine


def test_nothing_imports_triton_unless_it_is_asked_for() -> None:
    script = (
        "import sys\n"
        "import capacity\n"
        "from capacity.layer import *\n"
        "db = capacity.Database.from_triples([('a', 'p', 'x'), ('b', 'p', 'y')])\n"
        "layer = AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens)\n"
        "train(layer, db, Recipe(epochs=2))\n"
        "assert 'triton' not in sys.modules\n"
        "train(layer, db, Recipe(epochs=2), Compute('triton'))\n"
        "assert 'triton' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_interpreter_is_what_runs() -> None:
    assert "triton" in sys.modules
    assert type(kernel.train).__name__ == "InterpretedFunction"
