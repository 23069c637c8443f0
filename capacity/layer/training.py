"""`train` and `train_many`: fit attention layers to the facts of databases.

Sentences (k, q, v) are learnt by next-token cross entropy, at both positions or at the object's
alone (Wong 2025, section 4 and its footnote 5). Engines differ in the order of the arithmetic, not
in what is computed; sums in another order round differently, and long training magnifies that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer.compute import Compute
from capacity.layer.engines.engine import Engine, RunMany
from capacity.layer.engines.followed import followed
from capacity.layer.engines.proof import require_proven
from capacity.layer.engines.registry import engine_for
from capacity.layer.engines.workload import Workload
from capacity.layer.model import AttentionLayer
from capacity.layer.packed import train_together, weights_of
from capacity.layer.recipe import Recipe, Training
from capacity.layer.snapshots import NO_SNAPSHOTS, Snapshots
from capacity.layer.tensor import require_same_vocabulary
from capacity.limits import Seed, generator, shown
from capacity.progress import Progress


def train(
    layer: AttentionLayer,
    db: Database,
    recipe: Recipe | None = None,
    compute: Compute | None = None,
    *,
    seed: Seed = 0,
    snapshots: Snapshots = NO_SNAPSHOTS,
    progress: Progress | None = None,
    watch: Callable[[int, float], object] | None = None,
) -> Training:
    """Train a layer in place, from its weights and on its device.

    Parameters
    ----------
    layer : AttentionLayer
        Layer with ``d_vocab == db.n_tokens``. Weights that require no gradient, such as W_E after
        ``layer.W_E.requires_grad_(False)``, stay as they are.
    db : Database
        A functional database.
    recipe : Recipe, optional
        Hyperparameters; the defaults of `Recipe` if omitted.
    compute : Compute, optional
        Engine, dtype and device; the last two must agree with the layer. If omitted, the fastest
        engine, with the layer's dtype and device.
    seed : int or numpy.random.Generator
        Seed of the order of the facts, which matters if `Recipe.batch_size` asks for batches.
    snapshots : Snapshots, optional
        Snapshots of this training: it resumes from the last, with a bit-identical result, and
        writes one every few seconds, between two epochs. Engines that train many layers together,
        such as the padded one, neither resume nor write any.
    progress : callable, optional
        Called with the number of epochs done of how many (`capacity.Progress`): before the first,
        after the last, and between them by the same engines that write snapshots.
    watch : callable, optional
        Called with the number of epochs done and the last loss recorded, NaN before the first: at
        the end, and whenever `progress` is called between.

    Returns
    -------
    Training
        Status, epochs, loss and engine, and the history of the loss.

    Raises
    ------
    InvalidTypeError
        If an argument is of another type, such as a layer and a database in the wrong order.
    MultiValuedError
        If the database is multi-valued: a layer can't learn two objects of one pair.
    InvalidArgumentError
        If the layer has another number of tokens than the database, another dtype or device than
        `compute`, or no weight to train; or if the engine asked for can't train it.
    DeviceError
        If the layer is on a GPU on which the engine doesn't compute what 'reference' does on a CPU.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layer = AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens)
    >>> training = train(layer, db, Recipe(learning_rate=0.1))
    >>> training.status
    'memorised'
    >>> training.history.loss[0] > training.history.loss[-1] == training.loss
    True
    """
    recipe = recipe or Recipe()
    engine, _ = _engine(layer, db, recipe, compute)
    _forget_gradients(layer)
    run = partial(engine.run, layer, db, recipe, generator(seed))
    return followed(run, recipe, snapshots, progress, watch)


def train_many(
    tasks: Sequence[tuple[AttentionLayer, Database]],
    recipe: Recipe | None = None,
    compute: Compute | None = None,
    *,
    seeds: Sequence[Seed] | None = None,
    threads: int = 1,
) -> list[Training]:
    """Train many layers, each on its database, as `train` does each of them alone.

    Parameters
    ----------
    tasks : sequence of (AttentionLayer, Database)
        Layers, each with the functional database that it is trained on. No layer may come twice.
    recipe : Recipe, optional
        Hyperparameters of all tasks; the defaults of `Recipe` if omitted.
    compute : Compute, optional
        Engine, dtype and device; the last two must agree with each layer. If omitted, the fastest
        engine for each layer, with the layer's dtype and device.
    seeds : sequence of int or numpy.random.Generator, optional
        Seed of each task's order of facts; 0 for all if omitted.
    threads : int
        Number of threads, which take the largest tasks first. The result doesn't depend on it. Of
        the engines, only the fused one is faster with several threads on small layers: the padded
        one trains all layers together, and the others mostly hold Python's global lock.

    Returns
    -------
    list of Training
        Status, epochs, loss, engine and history of each task, in the order of the tasks.

    Raises
    ------
    InvalidTypeError
        If a task, `recipe` or `compute` is of another type.
    MultiValuedError
        If a database is multi-valued.
    InvalidArgumentError
        If a layer can't be trained on its database as asked, as in `train`; if a layer or a
        generator comes twice; or if there is another number of seeds than of tasks, or no thread.
        All this is checked before anything is trained.
    DeviceError
        As in `train`.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layers = [AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens, seed=i) for i in range(2)]
    >>> tasks = [(layer, db) for layer in layers]
    >>> [run.epochs for run in train_many(tasks, Recipe(epochs=5), Compute("padded"))]
    [5, 5]
    """
    recipe = recipe or Recipe()
    seeds = [0] * len(tasks) if seeds is None else seeds
    _require_apart(tasks, seeds, threads)
    found = [_engine(layer, db, recipe, compute) for layer, db in tasks]
    engines = [engine for engine, _ in found]
    for layer, _ in tasks:
        _forget_gradients(layer)
    rngs = [generator(seed) for seed in seeds]
    results: dict[int, Training] = {}
    together: dict[tuple[RunMany, torch.device, str], list[int]] = {}
    for i, (engine, work) in enumerate(found):
        if engine.run_many is not None and not work.has_frozen_weights:
            of_these = engine.run_many, tasks[i][0].W_E.device, work.dtype
            together.setdefault(of_these, []).append(i)
    for (run_many, *_), members in together.items():
        some = [tasks[i] for i in members]
        trained_ones = train_together(run_many, some, recipe, [rngs[i] for i in members])
        results.update(zip(members, trained_ones, strict=True))
    alone = [i for i in range(len(tasks)) if i not in results]
    alone.sort(key=lambda i: -tasks[i][1].n_triples * tasks[i][1].n_tokens)

    def trained(i: int) -> Training:
        return engines[i].run(*tasks[i], recipe, rngs[i], NO_SNAPSHOTS)

    if threads == 1:
        # in this thread, which an interrupt reaches
        results.update((i, trained(i)) for i in alone)
        return [results[i] for i in range(len(tasks))]
    with ThreadPoolExecutor(threads) as pool:
        begun = {i: pool.submit(trained, i) for i in alone}
        try:
            results.update((i, future.result()) for i, future in begun.items())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [results[i] for i in range(len(tasks))]


def _require_apart(
    tasks: Sequence[tuple[AttentionLayer, Database]],
    seeds: Sequence[Seed],
    threads: int,
) -> None:
    """Refuse tasks that share a layer or a generator: one would change the other's result."""
    if not all(isinstance(task, tuple | list) and len(task) == 2 for task in tasks):
        raise InvalidTypeError(
            f"`tasks` must be pairs of a layer and its database; got {shown(tasks)}."
        )
    if len(seeds) != len(tasks):
        raise InvalidArgumentError(
            f"`seeds` must have one for each of {len(tasks)} tasks; got {len(seeds)}."
        )
    if threads < 1:
        raise InvalidArgumentError(f"`threads` must be at least 1; got {threads}.")
    if len({id(layer) for layer, _ in tasks}) < len(tasks):
        raise InvalidArgumentError(
            "`tasks` must each have a layer of their own; one comes twice. Make another layer."
        )
    given = [id(seed) for seed in seeds if isinstance(seed, np.random.Generator)]
    if len(set(given)) < len(given):
        raise InvalidArgumentError(
            "`seeds` must be generators of their own, or the order of the tasks would matter; one "
            "comes twice. Use generator.spawn(n)."
        )


def _engine(
    layer: AttentionLayer, db: Database, recipe: Recipe, compute: Compute | None
) -> tuple[Engine, Workload]:
    """Find the engine that trains the layer, and refuse a layer that can't be trained."""
    require_same_vocabulary(layer, db)
    db.require_functional("Training")
    for name, value, kind in (("recipe", recipe, Recipe), ("compute", compute, Compute)):
        if value is not None and not isinstance(value, kind):
            raise InvalidTypeError(
                f"`{name}` must be a {kind.__name__}; got {shown(value)}. Say "
                f"{kind.__name__}(...) with the options in it."
            )
    if compute is not None:
        _require_agreement(layer, compute)
    trained = [weight.requires_grad for weight in weights_of(layer)]
    if not any(trained):
        raise InvalidArgumentError(
            "`layer` must have a weight to train; all are frozen. Call layer.requires_grad_()."
        )
    work = Workload(
        layer.config,
        recipe,
        db.n_triples,
        db.n_tokens,
        dtype=_dtype(layer),
        device=layer.W_E.device.type,
        has_frozen_weights=not all(trained),
    )
    engine = engine_for("auto" if compute is None else compute.engine, work)
    require_proven(engine.name, layer.W_E.device, work.dtype)
    return engine, work


def _forget_gradients(layer: AttentionLayer) -> None:
    """Remove gradients, which engines neither use nor leave."""
    for weight in weights_of(layer):
        weight.grad = None


def _dtype(layer: AttentionLayer) -> str:
    return str(layer.W_E.dtype).removeprefix("torch.")


def _require_agreement(layer: AttentionLayer, compute: Compute) -> None:
    """Refuse a layer with another dtype or device than `compute` asks for."""
    has = {"dtype": _dtype(layer), "device": layer.W_E.device.type}
    for name, value in has.items():
        asked = getattr(compute, name)
        if asked not in ("auto", value):
            raise InvalidArgumentError(
                f"`layer` must have the {name} that `compute` asks for, {asked}; it has {value}. "
                f"Convert it with layer.to(...), or use Compute({name}={value!r})."
            )
