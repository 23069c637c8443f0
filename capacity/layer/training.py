"""`train` and `train_many`: fit attention layers to the facts of databases.

Sentences (k, q, v) are learnt by next-token cross entropy, at both positions or at the object's
alone (Wong 2025, section 4 and its footnote 5). The engine decides how the arithmetic is done, not
what is computed; sums in another order round otherwise, and long training magnifies that.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.layer.compute import Compute
from capacity.layer.engines.registry import Engine, RunMany, engine_for
from capacity.layer.engines.workload import Workload
from capacity.layer.model import AttentionLayer
from capacity.layer.recipe import Recipe, Training
from capacity.layer.snapshots import NO_SNAPSHOTS, Snapshots
from capacity.layer.tensor import require_same_vocabulary
from capacity.limits import Seed, generator


def train(
    layer: AttentionLayer,
    db: Database,
    recipe: Recipe | None = None,
    compute: Compute | None = None,
    *,
    seed: Seed = 0,
    snapshots: Snapshots = NO_SNAPSHOTS,
) -> Training:
    """Train a layer in place, on the device and from the weights that it has.

    Parameters
    ----------
    layer : AttentionLayer
        With ``d_vocab == db.n_tokens``.
    db : Database
        Functional.
    recipe : Recipe, optional
        What is computed; the paper's if omitted.
    compute : Compute, optional
        How it is computed. The fastest engine, in the layer's dtype and on its device if omitted;
        what is given must agree with the layer.
    seed : int or numpy.random.Generator
        Of the order of the facts, where `Recipe.batch_size` asks for batches.
    snapshots : Snapshots, optional
        Of the same training, from which it goes on, to the same result to the last bit, and where
        it is kept every few seconds between two epochs. Engines that train many layers together,
        as the padded one does, neither go on nor keep any.

    Returns
    -------
    Training

    Raises
    ------
    MultiValuedError
        If the database is multi-valued: a layer can't learn two answers to one question.
    ValueError
        If the layer's vocabulary, dtype or device isn't the one asked for, or the engine that was
        asked for can't train it.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layer = AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens)
    >>> train(layer, db, Recipe(learning_rate=0.1)).status
    'memorised'
    """
    recipe = recipe or Recipe()
    engine = _engine(layer, db, recipe, compute)
    # no engine uses them, or leaves any
    layer.zero_grad(set_to_none=True)
    return engine.run(layer, db, recipe, generator(seed), snapshots)


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
    recipe : Recipe, optional
    compute : Compute, optional
    seeds : sequence of int or numpy.random.Generator, optional
        Of each task, for `train`; 0 for all if left out.
    threads : int
        That work at a time, on the largest tasks first. The result doesn't depend on it. Only the
        fused engine gains by more than one on small layers: the padded engine trains all together,
        and the others mostly hold Python's lock.

    Returns
    -------
    list of Training
        In the order of the tasks.

    Raises
    ------
    ValueError, MultiValuedError
        As `train` does, before anything is trained.
    """
    recipe = recipe or Recipe()
    seeds = [0] * len(tasks) if seeds is None else seeds
    _require_apart(tasks, seeds, threads)
    engines = [_engine(layer, db, recipe, compute) for layer, db in tasks]
    for layer, _ in tasks:
        layer.zero_grad(set_to_none=True)
    rngs = [generator(seed) for seed in seeds]
    results: dict[int, Training] = {}
    together: dict[tuple[RunMany, torch.device], list[int]] = {}
    for i, engine in enumerate(engines):
        if engine.run_many is not None:
            together.setdefault((engine.run_many, tasks[i][0].W_E.device), []).append(i)
    for (run_many, _), members in together.items():
        some = run_many([tasks[i] for i in members], recipe, [rngs[i] for i in members])
        results.update(zip(members, some, strict=True))
    alone = [i for i in range(len(tasks)) if i not in results]
    alone.sort(key=lambda i: -tasks[i][1].n_triples * tasks[i][1].n_tokens)

    def trained(i: int) -> Training:
        return engines[i].run(*tasks[i], recipe, rngs[i], NO_SNAPSHOTS)

    if threads == 1:
        # here, where an interrupt is heard
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
    """Refuse tasks of which one would change what another comes to."""
    if len(seeds) != len(tasks):
        raise InvalidArgumentError(
            f"`seeds` must have one for each of {len(tasks)} tasks; got {len(seeds)}."
        )
    if threads < 1:
        raise InvalidArgumentError(f"`threads` must be at least 1; got {threads}.")
    if len({id(layer) for layer, _ in tasks}) < len(tasks):
        raise InvalidArgumentError("`tasks` must each have a layer of their own; one comes twice.")
    given = [id(seed) for seed in seeds if isinstance(seed, np.random.Generator)]
    if len(set(given)) < len(given):
        raise InvalidArgumentError(
            "`seeds` must be generators of their own, or the order of the tasks would matter; one "
            "comes twice. Say generator.spawn(n)."
        )


def _engine(layer: AttentionLayer, db: Database, recipe: Recipe, compute: Compute | None) -> Engine:
    """Find the engine that trains the layer, if it can be trained."""
    db.require_functional("Training")
    require_same_vocabulary(layer, db)
    if compute is not None:
        _require_agreement(layer, compute)
    trained = [parameter.requires_grad for parameter in layer.parameters()]
    if not any(trained):
        raise InvalidArgumentError(
            "`layer` must have a weight to train; all are frozen. Say layer.requires_grad_()."
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
    return engine_for("auto" if compute is None else compute.engine, work)


def _dtype(layer: AttentionLayer) -> str:
    return str(layer.W_E.dtype).removeprefix("torch.")


def _require_agreement(layer: AttentionLayer, compute: Compute) -> None:
    """Refuse a layer that isn't as `compute` says."""
    has = {"dtype": _dtype(layer), "device": layer.W_E.device.type}
    for name, value in has.items():
        asked = getattr(compute, name)
        if asked not in ("auto", value):
            raise InvalidArgumentError(
                f"`layer` must have the {name} that `compute` asks for, {asked}; it has {value}. "
                f"Convert it with layer.to(...), or say Compute({name}={value!r})."
            )
