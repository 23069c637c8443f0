"""An engine is registered in a line, from outside the library, and taken out again."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

from capacity.database import Database, random_database
from capacity.errors import InvalidArgumentError
from capacity.evaluator import evaluate
from capacity.layer import (
    AttentionLayer,
    Compute,
    Engine,
    LayerConfig,
    Recipe,
    Training,
    Workload,
    register_engine,
    train,
    train_many,
    unregister_engine,
)
from capacity.layer.engines import registry
from capacity.layer.engines.registry import (
    START_SECONDS,
    TORCH_SECONDS,
    engine_for,
    engine_named,
    engine_names,
    start_seconds,
    trains_weights,
)
from capacity.layer.run.snapshots import Snapshots
from capacity.sweep import make_plan, train_run
from capacity.sweep.plan import tasks_of
from tests.engines import able

SWEEP: dict[str, Any] = {
    "databases": {"synthetic": {"count": 2, "max_triples": 8}},
    "layers": {"d_model": [2], "n_heads": [1, 2, 3], "d_head_qk": [1], "d_head_vo": [1]},
    "recipe": {"epochs": 4},
    "compute": {"engine": "toy"},
}


def run(
    layer: AttentionLayer,
    _db: Database,
    recipe: Recipe,
    _rng: np.random.Generator,
    _snapshots: Snapshots,
) -> Training:
    """An engine that learns nothing: it sets the unembedding to 1."""
    with torch.no_grad():
        layer.W_U.fill_(1)
    return Training("completed", recipe.epochs, 0.0, "toy")


def why_not(work: Workload) -> str | None:
    return None if work.layer.n_heads < 3 else "it has two hands"


def cost(work: Workload) -> float:
    return 7.0 * work.recipe.epochs


def start(works: Iterable[Workload]) -> float:
    return 100.0 * len({work.layer.n_heads for work in works})


@pytest.fixture
def toy() -> Iterator[Engine]:
    before = engine_names()
    engine = Engine("toy", why_not=why_not, run=run, cost=cost, start=start)
    register_engine(engine)
    yield engine
    unregister_engine("toy")
    assert engine_names() == before


def layer_and_facts(n_heads: int = 1) -> tuple[AttentionLayer, Database]:
    db = random_database(0)
    return AttentionLayer(LayerConfig(2, n_heads, 1, 1), db.n_tokens), db


@pytest.mark.usefixtures("toy")
def test_a_registered_engine_trains_a_layer() -> None:
    layer, db = layer_and_facts()
    assert train(layer, db, Recipe(epochs=4), Compute("toy")).engine == "toy"
    assert bool((layer.W_U == 1).all())
    (training,) = train_many([layer_and_facts()], compute=Compute("toy"))
    assert training.engine == "toy"


@pytest.mark.usefixtures("toy")
def test_what_an_engine_cannot_train_it_refuses_with_its_reason_and_those_that_can() -> None:
    with pytest.raises(InvalidArgumentError, match="for it has two hands") as refusal:
        train(*layer_and_facts(3), compute=Compute("toy"))
    others = able(LayerConfig(2, 3, 1, 1))
    assert str(refusal.value).endswith(f"Use {' or '.join(['auto', *others])}.")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere", "package.module:function; got 'nowhere'"),
        ("capacity.layer:", "package.module:function; got 'capacity.layer:'"),
        (".engine:run", "package.module:function; got '.engine:run'"),
        ("capacity.layer.engins.fused:run", "there is no module capacity.layer.engins."),
        ("capacity.layer.many:train_mny", "no function train_mny. Did you mean `train_many`?"),
        ("math:pi", "of math:pi, math has no function pi."),
    ],
)
def test_a_function_that_is_named_wrongly_is_refused_when_it_is_first_needed(
    toy: Engine, name: str, says: str
) -> None:
    unregister_engine("toy")
    register_engine(replace(toy, run=name))
    compute = Compute("toy")
    with pytest.raises(InvalidArgumentError, match=re.escape(says)):
        train(*layer_and_facts(), compute=compute)
    with pytest.raises(InvalidArgumentError, match=re.escape(says)):
        train_many([layer_and_facts()], compute=compute)


def test_a_package_that_the_named_module_needs_is_what_is_missing(
    toy: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "its_engine.py").write_text("import a_package_that_is_not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    unregister_engine("toy")
    register_engine(replace(toy, run="its_engine:run"))
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_installed"):
        train(*layer_and_facts(), compute=Compute("toy"))


def test_auto_takes_the_highest_priority_and_never_an_engine_without_one(toy: Engine) -> None:
    layer, db = layer_and_facts()
    assert train(layer, db, Recipe(epochs=0)).engine == "fused"
    unregister_engine("toy")
    register_engine(Engine("toy", why_not=why_not, run=run, cost=cost, priority=9))
    assert train(layer, db).engine == "toy"
    assert train(*layer_and_facts(3), Recipe(epochs=0)).engine == "fused"


def test_a_layer_with_frozen_weights_is_not_trained_as_weights() -> None:
    work = Workload(LayerConfig(4, 2, 2, 2), Recipe(), 20, 30)
    assert engine_for("auto", work).name == "fused"
    assert trains_weights("fused", work)
    frozen = replace(work, has_frozen_weights=True)
    assert engine_for("auto", frozen).name == "fused"
    assert not trains_weights("fused", frozen)


def test_layers_that_arent_plain_are_trained_and_scored_by_torch(toy: Engine) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("a layer with a bias has no weights alone")

    unregister_engine("toy")
    reference = engine_named("reference")
    register_engine(replace(reference, name="toy", run_weights=never))
    layers = {"d_model": [4], "n_heads": [2], "d_head_qk": [2], "d_head_vo": [2], "bias": [True]}
    plan = make_plan({**SWEEP, "layers": layers, "compute": {"engine": "toy"},
                      "recipe": {"epochs": 300, "learning_rate": 0.05}})  # fmt: skip
    row, layer = train_run(plan.runs[0])
    assert row["accuracy_p95"] == evaluate(layer, plan.runs[0].database).softmax[0.95]


@pytest.mark.usefixtures("toy")
def test_a_sweep_plans_and_trains_by_a_registered_engine() -> None:
    able = {**SWEEP, "layers": {**SWEEP["layers"], "n_heads": [1, 2]}}
    plan = make_plan(able)
    assert {run.engine for run in plan.runs} == {"toy"}
    # 7 seconds an epoch, and milliseconds to score the layer
    assert plan.runs[0].seconds == pytest.approx(28, abs=0.01)
    row, layer = train_run(plan.runs[0])
    assert row["engine"] == "toy"
    assert bool((layer.W_U == 1).all())
    works = [(run.engine, run.workload) for run in plan.runs]
    # layers of one head and of two: 200 seconds, once
    assert start_seconds(works) == START_SECONDS + TORCH_SECONDS + 200
    assert start_seconds([]) == 0
    # an engine that trains weights loads no torch
    fused = engine_named("fused")
    work = plan.runs[0].workload
    assert start_seconds([("fused", work)]) == START_SECONDS + fused.start([work])


@pytest.mark.parametrize("name", ["blocked", "reference"])
def test_a_layer_of_many_large_heads_costs_more_than_one_of_a_small_head(name: str) -> None:
    small, large = (
        engine_named(name).cost(Workload(layer, Recipe(), n_triples=177, n_tokens=118))
        for layer in (LayerConfig(64, 1, 8, 8), LayerConfig(64, 16, 64, 64))
    )
    # as measured: 1 ms and 8 ms an epoch, or 2 ms and more than 50
    assert large > 5 * small


def test_runs_of_an_engine_that_trains_many_are_one_task(toy: Engine) -> None:
    unregister_engine("toy")

    def run_many(packed: Any, databases: Any, recipe: Recipe, rngs: Any) -> list[Training]:
        assert len(rngs) == len(databases) == len(packed)
        return [Training("completed", len(packed), 0.0, "toy") for _ in databases]

    register_engine(Engine("toy", why_not=lambda _: None, run=run, cost=cost, run_many=run_many))
    plan = make_plan(SWEEP)
    assert [len(task) for task in tasks_of(plan.runs)] == [len(plan.runs)]
    many = [layer_and_facts(), layer_and_facts(2)]
    assert [training.epochs for training in train_many(many, compute=Compute("toy"))] == [2, 2]


@pytest.mark.parametrize(
    ("fills", "together", "sizes"),
    [(1, True, [2] * 6), (5, True, [5, 5, 2]), (99, True, [12]), (5, False, [2] * 6)],
)
def test_a_shard_holds_as_many_runs_as_fill_a_device(
    toy: Engine, fills: int, together: bool, sizes: list[int]
) -> None:
    unregister_engine("toy")
    # two take as long as a shard should
    slow = replace(toy, why_not=lambda _: None, cost=lambda _: 4.9, fills=fills)
    register_engine(replace(slow, run_many=(lambda *_: []) if together else None))
    plan = make_plan({**SWEEP, "databases": {"synthetic": {"count": 4, "max_triples": 8}}})
    assert [len(shard) for shard in plan.shards] == sizes


def test_a_run_that_is_trained_alone_has_its_own_time(toy: Engine) -> None:
    unregister_engine("toy")
    slow = replace(toy, run_many=lambda *_: [], cost=lambda _: 9.9, priority=9, fills=9)
    register_engine(slow)
    # runs of three heads are trained by another engine, each for longer than a shard
    plan = make_plan({**SWEEP, "compute": {"engine": "auto"}, "recipe": {"epochs": 10**7}})
    engines = [[run.engine for run in shard] for shard in plan.shards]
    assert engines == [["toy", "toy"], ["fused"], ["toy", "toy"], ["fused"]]


def test_what_was_taken_out_is_unknown(toy: Engine) -> None:
    with pytest.raises(InvalidArgumentError, match="`name` of an engine must be new; toy is taken"):
        register_engine(toy)
    with pytest.raises(InvalidArgumentError, match="auto is taken"):
        register_engine(Engine("auto", why_not=why_not, run=run, cost=cost))
    unregister_engine("toy")
    with pytest.raises(InvalidArgumentError, match=f"one of auto, {', '.join(engine_names())}"):
        Compute("toy")
    register_engine(toy)


def test_auto_says_so_if_there_is_no_engine_for_a_layer() -> None:
    with patch.dict(registry._ENGINES):
        for name in ("reference", "tape"):
            unregister_engine(name)
        work = Workload(LayerConfig(2, 1, 1, 1, bias=True), Recipe(), 5, 5)
        known = ", ".join(engine_names())
        with pytest.raises(InvalidArgumentError, match=f"auto finds none among {known}"):
            engine_for("auto", work)
