"""Do the runs of a plan, here, in several processes or on a cluster, and store them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from capacity.checks import require_integer, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.layer.engines.registry import Device, resolve_device
from capacity.progress import Progress
from capacity.sweep.plan import Plan
from capacity.sweep.storage.manifest import environment
from capacity.sweep.workers.cluster import on_dask
from capacity.sweep.workers.compiler import compiling
from capacity.sweep.workers.pool import Executor, in_this_process, processes

# what the table of a sweep imports: pyarrow looks for pandas
_LOADED_HERE = ("capacity.sweep.driver", "capacity.sweep.storage.store", "pandas")


def sweep(
    plan: Plan | str | os.PathLike[str], out: str | os.PathLike[str], **options: Any
) -> Path | None:
    """Do the remaining runs of a sweep, as ``capacity sweep PLAN --out FOLDER`` does.

    Parameters
    ----------
    plan : Plan or path
        Runs to do, or a TOML file that describes them.
    out : path
        Folder of the sweep.
    **options
        Those of `run_sweep`, which has what is returned and raised.
    """
    return run_sweep(plan, out, **options)


def run_sweep(
    plan: Plan | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    device: Device = "auto",
    shard: tuple[int, int] | None = None,
    dask: str | None = None,
    allow_other_engine: bool = False,
    progress: Progress | None = None,
) -> Path | None:
    """Do the remaining runs of a sweep, and store them in its folder.

    Parameters
    ----------
    plan : Plan or path
        Runs to do, or a TOML file that describes them, which is read while the workers begin.
    folder : path
        Folder of the sweep, created if needed. Runs that it holds are not done again, also if they
        were done for a smaller plan, all of whose runs are in this one; damaged files in it are,
        with a warning that names them.
    workers : int
        Number of processes; 1: this one only.
    device : {'auto', 'cpu', 'cuda'}
        Device that trains; 'auto' is the CPU. Of several GPUs each worker takes one, in turn.
    shard : (i, n), optional
        Do only the i-th of n equal parts, counted from 0.
    dask : str, optional
        Address of a Dask scheduler whose workers compute instead; they must have the same versions
        as this process, and compute on CPUs. They keep no snapshots of runs.
    allow_other_engine : bool
        Do all runs again if another engine, dtype or version has done them in the folder.
    progress : callable, optional
        Called with ("ranks", n, total, None) for each database that is bounded before a run is
        done, then with ("runs", n, total, seconds left), where the seconds are None before the
        first run is done. Several workers train while others bound databases, so that "ranks" may
        end before their total.

    Returns
    -------
    Path or None
        Path of ``runs.parquet``, or None while other parts are not done.

    Raises
    ------
    SweepError
        If the folder holds runs that aren't in the plan, or foreign files, or can't be written; if
        another process does the same part; or if some runs fail, after all others are done.
    InvalidArgumentError
        If `workers` is below 1, the part doesn't exist, the device isn't available, or `dask` is
        given with 'cuda'.
    MissingExtraError
        If `dask` is given and Dask isn't installed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from capacity.sweep import load, make_plan
    >>> databases = {"synthetic": {"count": 1, "max_triples": 6}}
    >>> layers = {"d_model": [2], "n_heads": [1, 2], "d_head_qk": [1], "d_head_vo": [2]}
    >>> plan = make_plan({"databases": databases, "layers": layers, "recipe": {"epochs": 5}})
    >>> with TemporaryDirectory() as folder:
    ...     run_sweep(plan, folder).name, sorted(load(folder)["n_parameters"])
    ('runs.parquet', [12, 24])
    """
    if not isinstance(plan, Plan | str | os.PathLike):
        raise InvalidTypeError(
            "`plan` must be a Plan or the path of a TOML file, before the folder; got "
            f"{shown(plan)}."
        )
    workers = require_integer("workers", workers)
    part, parts = shard or (0, 1)
    if not 0 <= part < parts:
        raise InvalidArgumentError(f"`shard` i/N must have 0 <= i < N; got {part}/{parts}.")
    if dask is not None and device == "cuda":
        raise InvalidArgumentError(
            "`dask` must compute on CPUs, because GPUs of a cluster aren't compared with this "
            "process's; got device='cuda'. Use 'cpu' or 'auto', or train on GPUs with `shard`."
        )
    chosen = resolve_device("cpu" if dask is not None else device)
    # a sweep that goes on may need no worker at all, a new one needs them all
    early = workers > 1 and dask is None and _is_new(folder)
    with ExitStack() as stack:
        executor = _executor(workers, dask, chosen, early=early)
        compile_for = stack.enter_context(compiling(early=early and chosen == "cpu"))
        execute = stack.enter_context(executor) if early else None
        # workers that have begun load as much meanwhile
        if not isinstance(plan, Plan):
            from capacity.sweep.grammar.plan_file import read_plan

            plan = read_plan(plan)
        if early and plan.runs and chosen == "cpu":
            compile_for(plan.runs[0])
        _load(_LOADED_HERE)
        from capacity.sweep.driver import Driver
        from capacity.sweep.storage.store import Store

        here = environment(chosen)
        store = Store(folder, plan.on(chosen), here, allow_other_engine=allow_other_engine)
        with store.mine(part, parts) as mine:
            driver = Driver(store, mine, f"{part}-of-{parts}", here, progress)
            driver.run(
                executor if execute is None else nullcontext(execute),
                workers=workers,
                snapshots=dask is None,
            )
    return store.finish()


def _executor(
    workers: int, dask: str | None, device: str, *, early: bool
) -> AbstractContextManager[Executor]:
    if dask is not None:
        return on_dask(dask)
    if workers == 1:
        return nullcontext(in_this_process)
    return processes(workers, early=early, prepare=partial(_prepare, device))


def _is_new(folder: str | os.PathLike[str]) -> bool:
    try:
        return not Path(folder).exists()
    except OSError:
        # the store says why it can't be read
        return False


def _prepare(device: str, number: int) -> None:
    """Import in a worker what its tasks need, and assign one of the GPUs to it."""
    if device == "cuda":
        import torch

        torch.cuda.set_device(number % torch.cuda.device_count())
    import_module("capacity.sweep.workers.worker_modules")
    # numba goes on to load, from the first kernel on
    gc.set_threshold(10**5)
    environment(device)


def _load(names: Iterable[str]) -> None:
    """Import modules; they stay, so that a search for garbage among them finds none.

    Such searches take a sixth of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        for name in names:
            import_module(name)
    finally:
        if enabled:
            gc.enable()
