"""Train runs of one recipe: as arrays, in one tensor of many layers, or as layers of torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from threadpoolctl import ThreadpoolController

from capacity.errors import SweepError
from capacity.layer.decoder.config import DecoderConfig
from capacity.layer.engines.engine import loaded
from capacity.layer.engines.registry import engine_named, trains_weights
from capacity.layer.model.config import LayerConfig
from capacity.layer.model.devices import lost_device
from capacity.layer.model.forward import Weights
from capacity.layer.model.initial import initial_weights
from capacity.layer.run.recipe import Training
from capacity.layer.run.snapshots import NO_SNAPSHOTS, Snapshots, followed
from capacity.progress import Progress
from capacity.sweep.plan import Run
from capacity.sweep.storage.layout import snapshot_name

if TYPE_CHECKING:
    from capacity.layer.engines.engine import RunMany, RunWeights
    from capacity.layer.model.decoder import AnyLayer

# a trained layer, or the weights of one, if no layer was made
Trained: TypeAlias = "AnyLayer | Weights"
# told the number of epochs done, and the loss
Watch: TypeAlias = Callable[[int, float], object]
# of each run: for its initial weights, and for the order of its facts
Generators: TypeAlias = "Sequence[tuple[np.random.Generator, np.random.Generator]]"


def trained_runs(
    runs: Sequence[Run],
    start: int,
    snapshots: Path | None,
    progress: Progress | None,
    watch: Watch | None = None,
) -> Iterator[tuple[Run, Trained, Training]]:
    """Train runs of one engine, recipe and `Compute`, each from the initial weights of one start.

    Parameters
    ----------
    runs : sequence of Run
        Runs to do; several if their engine trains them together.
    start : int
        Number of the start, from 0.
    snapshots : Path, optional
        Folder of snapshots, for engines that keep any.
    progress, watch : callable, optional
        As `capacity.layer.train` takes them, for engines that call them.

    Yields
    ------
    run, trained, training
        The run, its layer or the weights of it, and the outcome.

    Raises
    ------
    MultiValuedError
        If a database is multi-valued.
    """
    generators: list[tuple[np.random.Generator, np.random.Generator]] = []
    for run in runs:
        run.database.require_functional("Training")
        generators.append(_generators(run, start))
    engine = engine_named(runs[0].engine)
    if engine.run_weights and all(trains_weights(r.engine, r.workload) for r in runs):
        for run, pair in zip(runs, generators, strict=True):
            kept = _snapshots(run, start, snapshots)
            yield _as_arrays(loaded(engine.run_weights), run, pair, kept, progress, watch)
    elif engine.run_many and all(r.layer.is_plain and r.workload.trains_all for r in runs):
        yield from _together(loaded(engine.run_many), runs, generators)
    else:
        with one_thread(), lost_device(runs[0].device):
            kept = None if snapshots is None else [_snapshots(r, start, snapshots) for r in runs]
            layers, trainings = _as_layers(runs, generators, kept, progress, watch)
        yield from zip(runs, layers, trainings, strict=True)


def layer_of(run: Run, trained: Trained | None) -> Any:
    """Return the trained layer of a run, on its device; it may be there as weights on the host.

    Raises
    ------
    SweepError
        If an earlier process trained it, of which a sweep keeps no weights.
    """
    import torch

    from capacity.layer.model.attention_layer import AttentionLayer
    from capacity.layer.model.decoder import AnyLayer, Decoder

    if isinstance(trained, AnyLayer):
        return trained
    if trained is None:
        raise SweepError(
            f"The layer of run {run.key[:12]} was trained by an earlier process, and its weights "
            "weren't kept. Train the run without snapshots."
        )
    tensors = {name: torch.from_numpy(array).to(run.device) for name, array in trained.items()}
    if isinstance(run.layer, DecoderConfig):
        return Decoder.of_weights(run.layer, tensors)
    return AttentionLayer.of_weights(run.layer, tensors)


def _as_arrays(
    run_weights: RunWeights,
    run: Run,
    generators: tuple[np.random.Generator, np.random.Generator],
    snapshots: Snapshots,
    progress: Progress | None,
    watch: Watch | None,
) -> tuple[Run, Weights, Training]:
    """Train a run without torch."""
    drawn, order = generators
    weights = {
        name: array.astype(run.compute.dtype)
        for name, array in initial_weights(run.layer, run.database.n_tokens, drawn).items()
    }
    train = partial(run_weights, run.layer, weights, run.database, run.recipe, order)
    with one_thread():
        training = followed(train, run.recipe, snapshots, progress, watch)
    return run, weights, training


def _together(
    run_many: RunMany, runs: Sequence[Run], generators: Generators
) -> Iterator[tuple[Run, Weights, Training]]:
    """Train runs in one tensor, from which no layer is made."""
    import torch

    from capacity.layer.engines.proof import require_proven
    from capacity.layer.packed import PackedLayers

    compute, device = runs[0].compute, torch.device(runs[0].device)
    databases = [run.database for run in runs]
    with one_thread(), lost_device(runs[0].device):
        require_proven(runs[0].engine, device, compute.dtype)
        packed = PackedLayers.drawn(
            [run.layer for run in runs],
            [db.n_tokens for db in databases],
            [drawn for drawn, _ in generators],
            dtype=getattr(torch, compute.dtype),
            device=device,
        )
        orders = [order for _, order in generators]
        trainings = run_many(packed, databases, runs[0].recipe, orders)
        weights = list(packed.arrays())
    yield from zip(runs, weights, trainings, strict=True)


def _as_layers(
    runs: Sequence[Run],
    generators: Generators,
    snapshots: Sequence[Snapshots] | None,
    progress: Progress | None,
    watch: Watch | None,
) -> tuple[list[AnyLayer], list[Training]]:
    import torch

    from capacity.layer.many import train_many
    from capacity.layer.model.attention_layer import AttentionLayer
    from capacity.layer.model.decoder import Decoder
    from capacity.layer.training import train

    recipe, compute = runs[0].recipe, replace(runs[0].compute, engine=runs[0].engine)
    dtype = getattr(torch, compute.dtype)
    kinds = {LayerConfig: AttentionLayer, DecoderConfig: Decoder}
    tasks = [
        (
            kinds[type(run.layer)](
                run.layer, run.database.n_tokens, seed=drawn, dtype=dtype, device=run.device
            ),
            run.database,
        )
        for run, (drawn, _) in zip(runs, generators, strict=True)
    ]
    orders = [order for _, order in generators]
    if runs[0].is_grouped or (snapshots is None and progress is None and watch is None):
        trainings = train_many(tasks, recipe, compute, seeds=orders)
    else:
        trainings = [
            train(
                *task,
                recipe,
                compute,
                seed=order,
                snapshots=kept,
                progress=progress,
                watch=watch,
            )
            for task, order, kept in zip(
                tasks, orders, snapshots or [NO_SNAPSHOTS] * len(tasks), strict=True
            )
        ]
    return [layer for layer, _ in tasks], trainings


def _generators(run: Run, start: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Generators of one start: of the initial weights, and of the order of the facts."""
    # the first two children are those that a run of one start always had
    seed = np.random.SeedSequence(int(run.draw, 16), n_children_spawned=2 * start)
    drawn, order = map(np.random.default_rng, seed.spawn(2))
    return drawn, order


def _snapshots(run: Run, start: int, folder: Path | None) -> Snapshots:
    # of another start none is resumed
    of = run.key if start == 0 else f"{run.key} start {start}"
    return Snapshots(folder and folder / snapshot_name(run.key), of)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit the pools of the libraries that this process has loaded, torch's too if it is there."""
    torch = sys.modules.get("torch")
    threads = torch and torch.get_num_threads()
    with _pools(len(sys.modules)).limit(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(threads)


@lru_cache(maxsize=1)
def _pools(_n_modules: int) -> ThreadpoolController:
    """Pools of the libraries, looked for again when a module has been loaded."""
    return ThreadpoolController()
