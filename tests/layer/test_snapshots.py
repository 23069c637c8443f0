"""Training goes on from a snapshot to the result of a run left alone, to the last bit."""

import hashlib
import io
import json
import math
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
import torch

from capacity.database import Database, random_database
from capacity.layer import AttentionLayer, Compute, LayerConfig, Recipe, train
from capacity.layer.engines.fused.packing import PackedRun
from capacity.layer.engines.tape.recorded_run import RecordedRun
from capacity.layer.run import snapshots as module
from capacity.layer.run.recipe import Training
from capacity.layer.run.snapshots import Arrays, Snapshots
from tests.engines import able_alone, compute_by

CONFIG = LayerConfig(4, 2, 2, 2)
DATABASE = random_database(3, triples=(20, 30))
RECIPE = Recipe(learning_rate=1e-2, epochs=12, stop_tau=0)
BATCHES = replace(RECIPE, batch_size=7)
# what is computed, and how
Way: TypeAlias = tuple[Recipe, Compute]


class InterruptedRunError(Exception):
    """Stands for a kill."""


class Cut(Snapshots):
    """Interrupts a run when it offers its n-th snapshot, after that is written."""

    def __init__(self, path: Path, of: str, n: int) -> None:
        super().__init__(path, of)
        self.left = n

    def offer(
        self,
        epoch: int,
        generator: np.random.Generator,
        arrays: Callable[[], Arrays],
        *,
        loss: float = math.nan,
    ) -> None:
        super().offer(epoch, generator, arrays, loss=loss)
        self.left -= 1
        if not self.left:
            raise InterruptedRunError


class Counting(Snapshots):
    """Notes the epochs that a run goes on with."""

    def recall(
        self, generator: np.random.Generator, like: Callable[[], Arrays], epochs: int
    ) -> Any:
        self.begun, arrays = super().recall(generator, like, epochs)
        return self.begun, arrays


# engines that train several epochs in a call
IN_CHUNKS = ("fused", "tape")


@pytest.fixture(autouse=True)
def at_every_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 0.0)
    monkeypatch.setattr(module, "WRITINGS", 0)
    for run in (PackedRun, RecordedRun):
        monkeypatch.setattr(run, "_epochs_a_call", lambda *_: 3)


def trained(
    way: Way, snapshots: Snapshots = module.NO_SNAPSHOTS, db: Database = DATABASE
) -> tuple[Training, dict[str, torch.Tensor]]:
    """A fresh layer, from one start, trained."""
    layer = AttentionLayer(CONFIG, db.n_tokens, seed=0, dtype=getattr(torch, way[1].dtype))
    result = train(layer, db, *way, seed=5, snapshots=snapshots)
    return result, layer.state_dict()


def require_equal(left: tuple[Training, dict], right: tuple[Training, dict]) -> None:
    # NaN is equal to itself here
    assert repr(left[0]) == repr(right[0])
    pd.testing.assert_frame_equal(
        left[0].history.to_pandas(), right[0].history.to_pandas(), check_exact=True
    )
    for name, weights in left[1].items():
        assert weights.numpy().tobytes() == right[1][name].numpy().tobytes(), name


def interrupt(way: Way, path: Path, n: int) -> None:
    with pytest.raises(InterruptedRunError):
        trained(way, Cut(path, "run", n))


@pytest.mark.slow
@pytest.mark.parametrize("engine", able_alone(CONFIG, BATCHES))
@pytest.mark.parametrize("batch_size", [0, 7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_run_goes_on_to_the_last_bit(
    engine: Any, batch_size: int, dtype: Any, tmp_path: Path
) -> None:
    compute = compute_by(engine, BATCHES, dtype)
    kinds = product(("constant", "cosine"), (("adam", 0.0), ("adam", 0.1), ("adamw", 0.1)))
    for i, (schedule, (optimizer, decay)) in enumerate(kinds):
        recipe = replace(
            RECIPE, batch_size=batch_size, schedule=schedule, optimizer=optimizer,
            weight_decay=decay, epochs=40 if engine in IN_CHUNKS else 12,
        )  # fmt: skip
        way = recipe, compute
        alone = trained(way)
        path = tmp_path / str(i)
        # cut three times, each further on: the fused engine's chunks are of three epochs
        for n in (2, 4, 5):
            interrupt(way, path, n)
        snapshots = Counting(path, "run")
        require_equal(trained(way, snapshots), alone)
        # the first that is offered after a cut is of where that was
        assert snapshots.begun == (1 + 3 + 4) * (3 if engine in IN_CHUNKS else 1)


@pytest.mark.slow
@pytest.mark.parametrize("engine", able_alone(CONFIG, BATCHES))
@pytest.mark.parametrize("batch_size", [0, 2])
def test_a_run_that_goes_on_stops_where_it_would_have(
    engine: Any, batch_size: int, tmp_path: Path
) -> None:
    db = random_database(1, triples=(4, 6))
    recipe = replace(RECIPE, batch_size=batch_size, learning_rate=0.01, epochs=900, stop_tau=0.9)
    way = recipe, Compute(engine)
    alone = trained(way, db=db)
    assert alone[0].status == "memorised"
    with pytest.raises(InterruptedRunError):
        trained(way, Cut(tmp_path / "cut", "run", 5), db=db)
    snapshots = Counting(tmp_path / "cut", "run")
    require_equal(trained(way, snapshots, db=db), alone)
    assert 0 < snapshots.begun < alone[0].epochs


@pytest.mark.parametrize("engine", able_alone(CONFIG))
def test_a_run_that_goes_on_diverges_where_it_would_have(engine: Any, tmp_path: Path) -> None:
    recipe = replace(RECIPE, epochs=200, learning_rate=1, optimizer="adamw", weight_decay=10)
    way = recipe, Compute(engine)
    alone = trained(way)
    # weights grow ninefold each epoch
    assert alone[0].status == "diverged"
    assert alone[0].epochs > 6
    interrupt(way, tmp_path / "cut", 2)
    require_equal(trained(way, Snapshots(tmp_path / "cut", "run")), alone)


@pytest.mark.parametrize("engine", able_alone(CONFIG, has_frozen_weights=True))
def test_frozen_weights_stay_as_they_are(engine: Any, tmp_path: Path) -> None:
    def frozen(snapshots: Snapshots) -> dict[str, torch.Tensor]:
        layer = AttentionLayer(CONFIG, DATABASE.n_tokens, seed=0)
        layer.W_E.requires_grad_(False)
        train(layer, DATABASE, RECIPE, Compute(engine), snapshots=snapshots)
        return layer.state_dict()

    alone = frozen(module.NO_SNAPSHOTS)
    with pytest.raises(InterruptedRunError):
        frozen(Cut(tmp_path / "cut", "run", 3))
    again = frozen(Snapshots(tmp_path / "cut", "run"))
    assert all(alone[name].equal(again[name]) for name in alone)
    assert alone["W_E"].equal(AttentionLayer(CONFIG, DATABASE.n_tokens, seed=0).W_E)


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "cut off":
        path.write_bytes(data[: len(data) // 2])
    elif how == "longer":
        path.write_bytes(data + bytes(2**21))
    elif how == "one bit":
        at = len(data) // 2
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    elif how == "a pipe":
        path.unlink()
        os.mkfifo(path)


@pytest.mark.parametrize("engine", able_alone(CONFIG, BATCHES))
@pytest.mark.parametrize("how", ["cut off", "longer", "one bit", "a pipe"])
def test_a_damaged_snapshot_is_ignored(engine: Any, how: str, tmp_path: Path) -> None:
    way, path = (BATCHES, Compute(engine)), tmp_path / "cut"
    interrupt(way, path, 3)
    damage(path, how)
    snapshots = Counting(path, "run")
    require_equal(trained(way, snapshots), trained(way))
    assert snapshots.begun == 0


@pytest.mark.parametrize("engine", able_alone(CONFIG, BATCHES))
def test_a_snapshot_of_another_run_is_ignored(engine: Any, tmp_path: Path) -> None:
    way, path = (BATCHES, Compute(engine)), tmp_path / "cut"
    alone = trained(way)
    interrupt(way, path, 3)
    another = Counting(path, "another")
    require_equal(trained(way, another), alone)
    path.unlink()
    with pytest.raises(InterruptedRunError):
        trained(way, Cut(path, "run", 3), random_database(4, triples=(31, 40)))
    # under the same name, of other sizes
    larger = Counting(path, "run")
    require_equal(trained(way, larger), alone)
    assert another.begun == larger.begun == 0


def signed(path: Path, members: dict[str, Any], write: Any = np.savez) -> None:
    """A snapshot of the run "run" by hand: whoever writes to the folder can sign it."""
    body = io.BytesIO()
    write(body, **members)
    digest = hashlib.sha256(b"run\n" + body.getvalue()).digest()
    path.write_bytes(digest + body.getvalue())


def recalled(path: Path, like: dict[str, Any], epochs: int = 9) -> int:
    return Snapshots(path, "run").recall(np.random.default_rng(0), lambda: like, epochs)[0]


def rest(epoch: object) -> np.ndarray:
    state = np.random.default_rng(0).bit_generator.state
    return np.frombuffer(json.dumps({"epoch": epoch, "generator": state}).encode(), np.uint8)


def test_an_epoch_that_the_run_does_not_have_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    for epoch in (0, 9, 10, 10**9, -1, True, "3", 2.5, None, [1]):
        signed(path, {"rest": rest(epoch)})
        assert recalled(path, {}) == (9 if epoch == 9 else 0)


@pytest.mark.slow
def test_a_compressed_member_of_a_snapshot_is_not_unpacked(tmp_path: Path) -> None:
    path, held = tmp_path / "cut", {"a": np.zeros(4)}
    signed(path, {**held, "rest": rest(3)})
    assert recalled(path, held) == 3
    signed(path, {**held, "rest": rest(3)}, np.savez_compressed)
    assert recalled(path, held) == 0
    # a gigabyte in a megabyte, which the limit on the file itself lets pass
    signed(path, {"a": np.zeros(2**27), "rest": rest(3)}, np.savez_compressed)
    tracemalloc.start()
    assert recalled(path, {"a": np.zeros(2**18)}) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_a_generator_of_any_kind_goes_on(kind: str, tmp_path: Path) -> None:
    before, after = (np.random.Generator(getattr(np.random, kind)(seed)) for seed in (1, 2))
    before.permutation(7)
    Snapshots(tmp_path / "cut", "run").offer(4, before, dict)
    assert Snapshots(tmp_path / "cut", "run").recall(after, dict, 9)[0] == 4
    assert before.permutation(99).tolist() == after.permutation(99).tolist()


def test_what_cannot_be_written_does_not_end_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    way = RECIPE, Compute("reference")
    require_equal(trained(way, Snapshots(tmp_path / "file" / "cut", "run")), trained(way))


def test_a_short_run_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", 5.0)
    trained((RECIPE, Compute("reference")), Snapshots(tmp_path / "cut", "run"))
    assert not list(tmp_path.iterdir())


def test_writing_takes_a_small_share_of_a_large_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    written: list[float] = []

    def slow(_path: Path, _data: bytes) -> None:
        written.append(clock[0])
        clock[0] += 2

    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(module, "write_whole", slow)
    monkeypatch.setattr(module, "SECONDS", 5.0)
    monkeypatch.setattr(module, "WRITINGS", 10)
    snapshots = Snapshots(tmp_path / "cut", "run")
    for _ in range(100):
        snapshots.offer(0, np.random.default_rng(0), dict)
        clock[0] += 1
    assert written == [5, 27, 49, 71, 93]
