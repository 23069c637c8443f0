"""`train_many`: train many layers, each on its database, from one random start or from several."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from capacity.checks import Seed, generator, shown
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_database
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer.engines.engine import Engine, RunMany, Workload, loaded
from capacity.layer.engines.registry import Compute
from capacity.layer.model.decoder import AnyLayer
from capacity.layer.model.initial import initial_weights
from capacity.layer.packed import train_together, weights_of
from capacity.layer.recall import Threshold, pair_logits, recalled
from capacity.layer.run.recipe import NOT_TRIED, Recipe, Starts, Training, Until
from capacity.layer.run.snapshots import NO_SNAPSHOTS
from capacity.layer.training import engine_of, forget_gradients, held_still, with_fact_weights


def train_many(
    tasks: Sequence[tuple[AnyLayer, DatabaseLike]],
    recipe: Recipe | None = None,
    compute: Compute | None = None,
    *,
    seeds: Sequence[Seed] | None = None,
    weights: Sequence[ArrayLike | None] | None = None,
    threads: int = 1,
    starts: int = 1,
    until: Until = "all",
    held_at: Threshold = 0.95,
) -> list[Training]:
    """Train many layers, each on its database, as `train` does each of them alone.

    With several starts each layer is trained again from other weights, and keeps those of the first
    start that holds its database, or else of the first that recalls most facts.

    Parameters
    ----------
    tasks : sequence of (AttentionLayer or Decoder, Database)
        Layers, each with the database that it is trained on, which is functional unless its facts
        have weights. No layer may come twice.
    recipe : Recipe, optional
        Hyperparameters of all tasks; the defaults of `Recipe` if omitted.
    compute : Compute, optional
        Engine, dtype and device; the last two must agree with each layer. If omitted, the fastest
        engine for each layer, with the layer's dtype and device.
    seeds : sequence of int or numpy.random.Generator, optional
        Seed of each task's order of facts, and of its further starts. If omitted, 0 for all orders,
        and for the further starts of each task a child of it, so that no two draw the same.
    weights : sequence of array_like or None, optional
        Weights of the facts of each task, as `train` takes them; None for a task without any.
    threads : int
        Number of threads, which take the largest tasks first. The result doesn't depend on it. Of
        the engines, only the fused one is faster with several threads on small layers: triton
        trains all layers together, and the others mostly hold Python's global lock.
    starts : int
        Largest number of starts of each layer. The first has the layer's weights. Each further one
        draws all weights again from the task's seed, but those that require no gradient, such as an
        embedding that is given; what the recipe freezes is part of the draw.
    until : {'all', 'held'}
        'held': no further start of a layer after the first that holds its database.
    held_at : float, 'argmax' or 'argmax_paper'
        Threshold at which a start must recall every fact to hold the database.

    Returns
    -------
    list of Training
        Status, epochs, loss, engine and history of each task, in the order of the tasks; those of
        the start that is kept, and with several starts the outcome of all (`Training.starts`).

    Raises
    ------
    InvalidTypeError
        If a task, `recipe` or `compute` is of another type.
    MultiValuedError
        If a database is multi-valued, and its facts have no weights.
    InvalidArgumentError
        If a layer can't be trained on its database as asked, as in `train`; if a layer or a
        generator comes twice; or if there is another number of seeds or weights than of tasks, or
        no thread.
        All this is checked before anything is trained.
    DeviceError
        As in `train`.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layers = [AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens, seed=i) for i in range(2)]
    >>> tasks = [(layer, db) for layer in layers]
    >>> [run.epochs for run in train_many(tasks, Recipe(epochs=5), Compute("blocked"))]
    [5, 5]

    Training fails from some starts, and not from others:

    >>> tasks = [(AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens), db)]
    >>> recipe = Recipe(learning_rate=0.1, epochs=100)
    >>> (run,) = train_many(tasks, recipe, starts=4, held_at="argmax")
    >>> run.starts.tried, 0 <= run.starts.held <= 4
    (4, True)
    """
    recipe = recipe or Recipe()
    asked = Starts(starts, until, held_at)
    apart = seeds is None
    seeds = [0] * len(tasks) if seeds is None else seeds
    weights = [None] * len(tasks) if weights is None else weights
    _require_apart(tasks, seeds, weights, threads)
    # facts that several tasks share are made a database once, for they may be read only once
    facts = {id(db): db for _, db in tasks}
    made = {
        key: require_database(db, "train_many(tasks) with a layer and its facts in each task")
        for key, db in facts.items()
    }
    pairs = [(layer, made[id(db)]) for layer, db in tasks]
    found = [
        engine_of(layer, db, recipe, compute, has_fact_weights=given is not None)
        for (layer, db), given in zip(pairs, weights, strict=True)
    ]
    for layer, _ in pairs:
        forget_gradients(layer)
    rngs = [generator(seed) for seed in seeds]
    jobs = [
        Job(layer, db, engine, work, rng, with_fact_weights(work, db, given))
        for (layer, db), (engine, work), rng, given in zip(pairs, found, rngs, weights, strict=True)
    ]
    if asked.most == 1:
        return _trained(jobs, recipe, threads)
    further = generator(0).spawn(len(tasks)) if apart else rngs
    return _of_starts(jobs, further, recipe, threads, asked)


@dataclass(frozen=True)
class Job:
    """A layer to train, whose arguments have been checked."""

    layer: AnyLayer
    db: Database
    engine: Engine
    work: Workload
    rng: np.random.Generator
    # the argument `weights` of the engine, if there is one
    weighed: Mapping[str, NDArray[np.float64]]


def _of_starts(
    jobs: Sequence[Job],
    further: Sequence[np.random.Generator],
    recipe: Recipe,
    threads: int,
    asked: Starts,
) -> list[Training]:
    """Train layers from several starts: the first of all, then the second of those left, ...

    The first takes the generators of the jobs, and the others those that are given.
    """
    # not what the user froze
    drawn = [
        [name for name, weight in _named_weights(job.layer) if weight.requires_grad] for job in jobs
    ]
    tried = [NOT_TRIED] * len(jobs)
    kept: dict[int, tuple[Training, list[Tensor]]] = {}
    left = list(range(len(jobs)))
    for start in count():
        if start == 1:
            jobs = [replace(job, rng=rng) for job, rng in zip(jobs, further, strict=True)]
        if start:
            for i in left:
                _draw(jobs[i], drawn[i])
        trainings = _trained([jobs[i] for i in left], recipe, threads)
        for i, training in zip(left, trainings, strict=True):
            tried[i] = tried[i].then(_share_recalled(jobs[i], training, asked.held_at))
            if tried[i].start == start:
                kept[i] = training, [w.detach().clone() for w in weights_of(jobs[i].layer)]
        left = [i for i in left if not asked.is_over(tried[i])]
        if not left:
            break
    for i, (_, weights) in kept.items():
        for weight, value in zip(weights_of(jobs[i].layer), weights, strict=True):
            weight.detach().copy_(value)
    return [replace(kept[i][0], starts=tried[i]) for i in range(len(jobs))]


def _draw(job: Job, names: Sequence[str]) -> None:
    """Draw the weights of a further start."""
    (rng,) = job.rng.spawn(1)
    drawn = initial_weights(job.layer.config, job.layer.d_vocab, rng)
    for name, weight in _named_weights(job.layer):
        if name in names:
            weight.detach().copy_(torch.as_tensor(drawn[name]))


def _share_recalled(job: Job, training: Training, held_at: Threshold) -> float:
    """Share of the facts that a trained layer recalls; NaN if its training diverged."""
    facts = job.db.token_tuples
    logits = pair_logits(job.layer, facts[:, :-1])
    if training.status == "diverged" or not np.isfinite(logits).all():
        return math.nan
    taus = () if isinstance(held_at, str) or held_at == 0.5 else (held_at,)
    return float(recalled(logits, facts[:, -1], taus)[held_at].mean())


def _trained(jobs: Sequence[Job], recipe: Recipe, threads: int) -> list[Training]:
    """Train layers from the weights that they have."""
    results: dict[int, Training] = {}
    together: dict[tuple[RunMany, torch.device, str], list[int]] = {}
    for i, job in enumerate(jobs):
        if job.engine.run_many is not None and job.work.trains_all:
            of_these = loaded(job.engine.run_many), job.layer.W_E.device, job.work.dtype
            together.setdefault(of_these, []).append(i)
    for (run_many, *_), members in together.items():
        some = [(jobs[i].layer, jobs[i].db) for i in members]
        trained_ones = train_together(run_many, some, recipe, [jobs[i].rng for i in members])
        results.update(zip(members, trained_ones, strict=True))
    alone = [i for i in range(len(jobs)) if i not in results]
    alone.sort(key=lambda i: -jobs[i].db.n_facts * jobs[i].db.n_tokens)

    def trained(i: int) -> Training:
        job = jobs[i]
        run = loaded(job.engine.run)
        return run(job.layer, job.db, recipe, job.rng, NO_SNAPSHOTS, **job.weighed)

    with held_still([jobs[i].layer for i in alone], recipe):
        if threads == 1:
            # in this thread, which an interrupt reaches
            results.update((i, trained(i)) for i in alone)
            return [results[i] for i in range(len(jobs))]
        with ThreadPoolExecutor(threads) as pool:
            begun = {i: pool.submit(trained, i) for i in alone}
            try:
                results.update((i, future.result()) for i, future in begun.items())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return [results[i] for i in range(len(jobs))]


def _require_apart(
    tasks: Sequence[tuple[AnyLayer, DatabaseLike]],
    seeds: Sequence[Seed],
    weights: Sequence[ArrayLike | None],
    threads: int,
) -> None:
    """Refuse tasks that share a layer or a generator: one would change the other's result."""
    if not all(isinstance(task, tuple | list) and len(task) == 2 for task in tasks):
        raise InvalidTypeError(
            f"`tasks` must be pairs of a layer and its database; got {shown(tasks)}."
        )
    for name, given in (("seeds", seeds), ("weights", weights)):
        if len(given) != len(tasks):
            raise InvalidArgumentError(
                f"`{name}` must have one for each of {len(tasks)} tasks; got {len(given)}."
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


def _named_weights(layer: AnyLayer) -> Iterator[tuple[str, nn.Parameter]]:
    """Weights of a layer, in the order of ``config.shapes(d_vocab)``."""
    return zip(layer.config.shapes(layer.d_vocab), weights_of(layer), strict=True)
