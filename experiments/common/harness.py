"""The harness of all experiments: options, tables and their folders, sweeps.

Each experiment has three functions: `run` makes tables, `numbers` draws conclusions from them, and
`plot` draws both. The tables and the conclusions are committed, in ``results/`` beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from filelock import FileLock
from matplotlib.figure import Figure

from capacity.evaluator import with_current_names
from capacity.layer import LayerConfig, Recipe
from capacity.plots import figure_theme, save_figure
from capacity.progress import bar
from capacity.sweep import Plan, Run, load, make_plan, measure_runs, run_sweep
from capacity.sweep.storage.row_schema import recipe_columns
from capacity.sweep.training.measure import Measure
from capacity.sweep.workers.pool import processes
from experiments import EXPERIMENTS
from experiments.common.conclusions import rounded
from experiments.common.pages import write_pages
from experiments.common.spent import spending

ROOT = Path(__file__).parents[2]
# unfinished sweeps wait here
RUNS = ROOT / "runs" / "experiments"
# seeds of the databases and pairs of whole repetitions
REPLICATES = (0, 1, 2)
LAYER_SIZES = ("d_model", "n_heads", "d_head_qk", "d_head_vo")
# columns that are the same in all runs of a table, or found again by its seeds
DROPPED = {
    "run_key", "variant", "dtype", *recipe_columns(Recipe()),
    *(each.name for each in fields(LayerConfig) if each.name not in LAYER_SIZES),
}  # fmt: skip
# sweeps that were begun before
RESUMED: list[Path] = []
# of a run: seconds by the clock, and processor seconds of all processes, which other work on the
# machine hardly changes
COSTS = ("seconds_of_run", "processor_seconds_of_run")
Tables = dict[str, pd.DataFrame]
Task = TypeVar("Task")
Result = TypeVar("Result")
# the defaults of `Recipe`, and the best recipe that was found
PLAIN: dict[str, Any] = {}
BEST = {"learning_rate": 0.03, "schedule": "cosine", "beta2": 0.9}


def main(
    name: str,
    run: Callable[[bool], Tables],
    numbers: Callable[[Tables], dict[str, Any]],
    plot: Callable[[Tables, dict[str, Any]], Mapping[str, Figure]],
) -> None:
    """Do what the command line says.

    Parameters
    ----------
    name : str
        Its key in `EXPERIMENTS`, with which the names of its results begin.
    run : callable
        Makes the tables; small ones if it is given True.
    numbers, plot : callable
        Of the tables, in seconds. The figures' names are added to the experiment's.
    """
    parser = argparse.ArgumentParser(
        epilog="Without an option the committed conclusions are printed."
    )
    parser.add_argument("--run", action="store_true", help="make the tables, and all below")
    parser.add_argument("--plot", action="store_true", help="conclusions and figures from tables")
    parser.add_argument("--smoke", action="store_true", help="all of it, small, for the tests")
    options = parser.parse_args()
    if not (options.run or options.plot or options.smoke):
        print((results_of(name) / f"{name}.json").read_text(), end="")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if options.smoke else results_of(name)
        spent: dict[str, int | None] | None = None
        if options.run or options.smoke:
            parts = (folder if options.smoke else RUNS) / f"{name}.spent.json"
            is_whole = parts.exists()
            with spending(parts) as took:
                for key, table in run(options.smoke).items():
                    save(table, folder / f"{name}-{key}.parquet")
            parts.unlink()
            # of a run that another version began, what it did before isn't known
            known = is_whole or not RESUMED
            spent = {f"{key}_of_run": round(took[key]) if known else None for key in took}
        tables = {
            path.stem.removeprefix(f"{name}-"): read_table(path)
            for path in sorted(folder.glob(f"{name}-*.parquet"))
        }
        found = numbers(tables)
        record = folder / f"{name}.json"
        before = json.loads(record.read_text()) if record.exists() else {}
        costs = {key: before.get(key) for key in COSTS} if spent is None else spent
        text = json.dumps(rounded({**costs, **found}), indent=1) + "\n"
        record.write_text(text)
        with figure_theme():
            for key, figure in plot(tables, found).items():
                for suffix in ("png", "svg"):
                    save_figure(figure, folder / f"{name}-{key}.{suffix}")
        if not options.smoke:
            RUNS.mkdir(parents=True, exist_ok=True)
            with FileLock(RUNS / "pages.lock"):
                write_pages()
        print(text, end="")


def sweep(name: str, plan: Plan, *, workers: int = 2) -> pd.DataFrame:
    """The table of a sweep, which goes on where it was stopped."""
    folder = RUNS / f"{name}-{plan.key[:12]}"
    if folder.exists():
        RESUMED.append(folder)
    # ranks of databases that other sweeps have bounded; each says what computed it
    shared = RUNS / "ranks"
    shared.mkdir(parents=True, exist_ok=True)
    with FileLock(RUNS / "ranks.lock"):
        shutil.copytree(shared, folder / "ranks", dirs_exist_ok=True)
    with bar() as tell:
        run_sweep(plan, folder, workers=_processes(workers), device="cpu", progress=tell)
    with FileLock(RUNS / "ranks.lock"):
        shutil.copytree(folder / "ranks", shared, dirs_exist_ok=True)
    return load(folder)


def rows_of(
    name: str,
    what: Callable[[Task], dict[str, Any]],
    tasks: Sequence[Task],
    tell: Callable[[str, int, int], None],
    *,
    in_process: bool,
    cost: Callable[[Task], float] | None = None,
) -> list[dict[str, Any]]:
    """Rows of tasks by two processes; they are kept as they come, until all are there.

    Tasks are begun in their order, or in that of falling `cost`, so that no long one is the last.

    Raises
    ------
    RuntimeError
        If a task fails, with its error; rows that are there are kept.
    """
    begun = list(tasks) if cost is None else sorted(tasks, key=cost, reverse=True)
    if in_process:
        done = {str(task): what(task) for task in begun}
        return [done[str(task)] for task in tasks]
    kept = RUNS / f"{name}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    rows = _kept(kept)
    if rows:
        RESUMED.append(kept)
    todo = [task for task in begun if str(task) not in rows]
    with kept.open("a") as file:
        # the last line may have been cut off
        file.write("\n")
        for number, row in by_processes(name, what, todo):
            key = str(todo[number])
            rows[key] = row
            file.write(json.dumps([key, row]) + "\n")
            file.flush()
            tell(name, len(rows), len(tasks))
    kept.unlink()
    return [rows[str(task)] for task in tasks]


def by_processes(
    name: str, what: Callable[[Task], Result], tasks: Sequence[Task], *, in_process: bool = False
) -> Iterator[tuple[int, Result]]:
    """Numbers and results of tasks, as they come from two processes, or in this one.

    Raises
    ------
    RuntimeError
        If a task fails, with the experiment, the task and its error; the others are stopped.
    SweepError
        If no process can begin (`capacity.sweep.workers.pool.processes`).
    """
    if in_process or _processes(2) == 1:
        yield from enumerate(map(what, tasks))
        return
    with processes(2) as executor:
        for done in executor(what, {i: (task,) for i, task in enumerate(tasks)}):
            if done.error is not None:
                raise RuntimeError(f"{name}, {tasks[done.name]}: {done.error}")
            yield done.name, done.value


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    """Rows that are there; a line that was cut off is computed again."""
    rows: dict[str, dict[str, Any]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            task, row = json.loads(line)
        except ValueError:
            continue
        rows[task] = row
    return rows


def measure(runs: Sequence[Run], what: Measure, *, workers: int = 2) -> pd.DataFrame:
    """The rows of runs, with what is measured of their layers."""
    with bar() as tell:
        return measure_runs(runs, what, workers=_processes(workers), progress=tell)


def _processes(workers: int) -> int:
    # to start them takes longer than all of what the tests run
    if "--smoke" in sys.argv:
        return 1
    return min(workers, int(os.environ.get("EXPERIMENT_PROCESSES", os.cpu_count() or 1)))


def paper_plan(
    replicate: int,
    recipe: Mapping[str, Any],
    *,
    pairs: int = 3947,
    databases: int = 548,
    epochs: int | None = None,
    layers: Mapping[str, list[int]] | None = None,
    every: int = 1,
) -> Plan:
    """The runs of the paper's experiment with other seeds, or some of them."""
    config = tomllib.loads((ROOT / "experiments/configs/paper.toml").read_text())
    config["databases"]["synthetic"] |= {"seed": replicate, "count": databases}
    config["layers"] |= layers or {}
    config["runs"] = {"pairs": pairs, "seed": replicate}
    config["recipe"] = {**recipe, **({} if epochs is None else {"epochs": epochs})}
    plan = make_plan(config)
    return replace(plan, runs=plan.runs[::every], config={**config, "every": every})


def results_of(name: str) -> Path:
    """The folder of an experiment's committed results."""
    *folder, _ = EXPERIMENTS[name].split(".")
    return ROOT.joinpath(*folder, "results")


def committed(name: str, table: str) -> pd.DataFrame:
    """A committed table of another experiment."""
    return read_table(results_of(name) / f"{name}-{table}.parquet")


def read_table(path: Path) -> pd.DataFrame:
    """A committed table under today's names, with the layer of each run if it has its sizes."""
    table = with_current_names(pd.read_parquet(path))
    sizes = ["d_model", "n_heads", "d_head_qk", "d_head_vo"]
    if "layer_id" not in table and {*sizes} <= {*table}:
        # these layers differ in nothing else
        of = table[sizes].astype(int).itertuples(index=False)
        table["layer_id"] = [LayerConfig(*each).name for each in of]
    return table


def save(table: pd.DataFrame, path: Path) -> None:
    """Write a table without what seeds give again, in single precision."""
    path.parent.mkdir(parents=True, exist_ok=True)
    slim = table.drop(columns=[name for name in table.columns if name in DROPPED])
    real = slim.select_dtypes("float64").columns
    slim.astype(dict.fromkeys(real, "float32")).to_parquet(path, index=False, compression="zstd")
