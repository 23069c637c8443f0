"""Do the runs of a plan, in this process or in several, and store them shard by shard.

A run's row depends on the run alone: its generator is seeded from its key, and every run computes
on one thread, so that the table is the same on any number of workers.
"""

from __future__ import annotations

import json
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError, SweepError
from capacity.evaluator.accuracy import TAUS, evaluate
from capacity.layer.config import layer_rank_bound, layer_rank_upper
from capacity.rank.bounds import database_bounds
from capacity.rank.interval import rank_interval
from capacity.sweep.plan import Plan, Run
from capacity.sweep.store import Store

if TYPE_CHECKING:
    from capacity.layer.attention import AttentionLayer

Device: TypeAlias = Literal["auto", "cpu", "cuda"]
# (runs done, runs in all)
Progress: TypeAlias = Callable[[int, int], None]


def run_sweep(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    device: Device = "auto",
    shard: tuple[int, int] | None = None,
    progress: Progress | None = None,
) -> Path | None:
    """Do what is left of a sweep.

    Parameters
    ----------
    plan : Plan
    folder : path
        Where its shards are; those that are done are not done again.
    workers : int
        Processes; 1: this one.
    device : {'auto', 'cpu', 'cuda'}
    shard : (i, n), optional
        Do the i-th of n equal parts only, counted from 0: every n-th shard.
    progress : callable, optional
        Is told the number of runs done, and of all runs, whenever it changes.

    Returns
    -------
    Path or None
        ``runs.parquet``, or None while other parts are not done.

    Raises
    ------
    SweepError
        If the folder holds another sweep or can't be written, or a worker process died.
    ValueError
        For a number of workers below 1, or a part that doesn't exist.
    """
    if workers < 1:
        raise InvalidArgumentError(f"`workers` must be at least 1; got {workers}.")
    part, parts = shard or (0, 1)
    if not 0 <= part < parts:
        raise InvalidArgumentError(f"`shard` i/N must have 0 <= i < N; got {part}/{parts}.")
    chosen = resolve_device(device)
    store = Store(folder, plan)
    mine = range(part, len(plan.shards), parts)
    todo = [i for i in mine if not store.is_done(i)]
    total = sum(len(plan.shards[i]) for i in mine)
    done = total - sum(len(plan.shards[i]) for i in todo)
    report = progress or (lambda _done, _total: None)
    report(done, total)
    if workers == 1:
        for i in todo:
            rows = []
            for run in plan.shards[i]:
                rows.append(do_run(run, chosen)[0])
                report(done + len(rows), total)
            store.write(i, rows)
            done += len(rows)
    elif todo:
        tasks = [(i, plan.shards[i]) for i in todo]
        for i, rows in _in_processes(tasks, min(workers, len(todo)), chosen):
            store.write(i, rows)
            done += len(rows)
            report(done, total)
    return store.finish()


def _in_processes(
    tasks: Sequence[tuple[int, Sequence[Run]]], workers: int, device: str
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Rows of shards as they are done, from processes that don't outlive this one."""
    others = set(active_children())
    # spawned, not forked: torch's threads don't survive a fork
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_follow_parent)
    futures = {pool.submit(_rows, runs, device): i for i, runs in tasks}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise SweepError(
            "A worker process died, killed or out of memory. What was done is kept; the same "
            "command goes on, and fewer --workers need less memory. A script must call run_sweep "
            'under `if __name__ == "__main__":`, for each worker reads it anew.'
        ) from None
    finally:
        # on an interrupt there is no waiting for shards that will be dropped
        for process in set(active_children()) - others:
            process.terminate()
        pool.shutdown(cancel_futures=True)


def _follow_parent() -> None:
    """In a worker: leave interrupts to the parent, and end when it does, however it ends."""
    parent = parent_process()
    assert parent is not None
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _rows(runs: Sequence[Run], device: str) -> list[dict[str, Any]]:
    return [do_run(run, device)[0] for run in runs]


def do_run(run: Run, device: str = "cpu") -> tuple[dict[str, Any], AttentionLayer]:
    """Train and score one layer.

    Parameters
    ----------
    run : Run
        Of a functional database.
    device : str

    Returns
    -------
    row : dict
        One row of the runs table.
    layer : AttentionLayer
        Trained.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    """
    import torch

    from capacity.layer.attention import AttentionLayer
    from capacity.layer.training import train

    db, recipe = run.database, run.recipe
    db.require_functional("Training")
    weights, order = np.random.default_rng(int(run.key, 16)).spawn(2)
    with _one_thread():
        layer = AttentionLayer(
            run.layer,
            db.n_tokens,
            seed=weights,
            dtype=getattr(torch, recipe.dtype),
            device=device,
        )
        training = train(layer, db, recipe, seed=order)
        scores = evaluate(layer, db)
    diverged = training.status == "diverged"
    k, q, v = db.shape
    lower, upper, paper = _database_ranks(db)
    row: dict[str, Any] = {
        "run_key": run.key,
        "database_id": run.database_id,
        "layer_id": run.layer.name,
        "seed": run.seed,
        "n_subjects": k,
        "n_predicates": q,
        "n_objects": v,
        "n_tokens": db.n_tokens,
        "n_triples": db.n_triples,
        "database_rank_bound": paper,
        "database_rank_lower": lower,
        "database_rank_upper": upper,
        "d_model": run.layer.d_model,
        "n_heads": run.layer.n_heads,
        "d_head_qk": run.layer.d_head_qk,
        "d_head_vo": run.layer.d_head_vo,
        "n_parameters": run.layer.n_parameters,
        "n_embedding_parameters": run.layer.n_embedding_parameters(db.n_tokens),
        "layer_rank_bound": layer_rank_bound(run.layer),
        "layer_rank_upper": layer_rank_upper(run.layer, k, q, v),
        "recipe": json.dumps(recipe.to_dict(), sort_keys=True),
        "engine": training.engine,
        "dtype": recipe.dtype,
        "epochs": training.epochs,
        "loss": training.loss,
        "status": training.status,
        "tied": scores.tied,
        "accuracy_argmax": scores.argmax,
        "accuracy_argmax_paper": scores.argmax_paper,
        "accuracy_0.50": scores.majority,
        **{f"accuracy_{tau:.2f}": scores.softmax[tau] for tau in TAUS},
    }
    if diverged:
        row |= dict.fromkeys((n for n in row if n == "tied" or n.startswith("acc")), math.nan)
    return row, layer


@cache
def _database_ranks(db: Database) -> tuple[int, int, int]:
    b = database_bounds(db)
    interval = rank_interval(db, effort="quick", computed=b)
    return interval.lower.value, interval.upper.value, b.paper


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def resolve_device(device: Device) -> str:
    """The device that 'auto' stands for: a GPU if there is one.

    Raises
    ------
    ValueError
        For another name, or a GPU that isn't there.
    """
    import torch

    if device not in ("auto", "cpu", "cuda"):
        raise InvalidArgumentError(f"`device` must be auto, cpu or cuda; got {device!r}.")
    there = torch.cuda.is_available()
    if device == "cuda" and not there:
        raise InvalidArgumentError(
            "`device` is cuda, and this machine has no usable GPU. Say cpu or auto."
        )
    return "cuda" if device != "cpu" and there else "cpu"
