"""What a sweep costs a run beside its training, and what reading its shards costs.

    python benchmarks/sweep_overhead.py [--runs 1000,100000]

The bare loop makes each layer, trains and scores it, and keeps nothing: it is the peer. Both train
for one epoch, so that nothing but the overhead is to be seen.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import pandas as pd
import torch
from record import write

from capacity import AttentionLayer, evaluate, train
from capacity.layer import Compute
from capacity.sweep import Plan, compact, load, make_plan, run_sweep, train_run
from capacity.sweep.storage.manifest import environment
from capacity.sweep.storage.store import Store


def planned(n_runs: int) -> Plan:
    """So many runs of one epoch, on tiny databases."""
    layers = {"d_model": [2, 3, 4, 5], "n_heads": [1, 2], "d_head_qk": [1, 2], "d_head_vo": [1, 2]}
    n_layers = 4 * 2 * 2 * 2
    return make_plan(
        {
            # equal ones are drawn once only
            "databases": {
                "synthetic": {"count": 2 * n_runs // n_layers + 20, "seed": 0, "max_triples": 24}
            },
            "layers": layers,
            "runs": {"pairs": n_runs},
            "recipe": {"epochs": 1, "stop_tau": 0},
        }
    )


def bare(plan: Plan) -> None:
    """The training loop that somebody writes who wants no more than the numbers."""
    torch.set_num_threads(1)
    for n, run in enumerate(plan.runs):
        layer = AttentionLayer(run.layer, run.database.n_tokens, seed=n)
        train(layer, run.database, run.recipe)
        evaluate(layer, run.database)


def seconds(run: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    run()
    return time.process_time() - start


def overhead(n_runs: int, repeats: int) -> dict[str, Any]:
    """CPU seconds of a sweep in one process beside those of the bare loop, and of its parts."""
    ours: list[float] = []
    theirs: list[float] = []
    again: list[float] = []
    planning: list[float] = []
    size = 0
    plan = planned(n_runs)
    for _ in range(repeats):
        planning.append(seconds(lambda: planned(n_runs).key))
        with tempfile.TemporaryDirectory() as folder:
            ours.append(seconds(partial(run_sweep, plan, folder)))
            again.append(seconds(partial(run_sweep, plan, folder)))
            size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
        theirs.append(seconds(lambda: bare(plan)))
    a_run = 1e3 / n_runs
    return {
        "what": f"{n_runs:,} runs of one epoch",
        "repeats": repeats,
        "databases": len(plan.databases),
        "shards": len(plan.shards),
        "sweep_ms_a_run": round(median(ours) * a_run, 3),
        "bare_ms_a_run": round(median(theirs) * a_run, 3),
        "ratio": round(median(ours) / median(theirs), 3),
        "overhead_ms_a_run": round((median(ours) - median(theirs)) * a_run, 3),
        "planning_ms_a_run": round(median(planning) * a_run, 3),
        "again_when_done_ms_a_run": round(median(again) * a_run, 3),
        "megabytes": round(size / 1e6, 2),
    }


def reading(n_shards: int, rows_a_shard: int, repeats: int) -> dict[str, Any]:
    """Seconds to read a folder of many shards, by ours, DuckDB and pandas, and one compact file.

    Rows are those of one run under the keys of all: what is read is what is measured.
    """
    plan = planned(n_shards * rows_a_shard)
    # runs so long that each shard holds a few only
    long = replace(plan.runs[0].recipe, epochs=1_600)
    plan = replace(
        plan,
        runs=tuple(
            replace(run, recipe=long, compute=Compute(engine="reference")) for run in plan.runs
        ),
    )
    row, _ = train_run(plan.runs[0])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(folder, plan, environment())
        for number in range(len(plan.shards)):
            store.write(number, [{**row, "run_key": run.key} for run in plan.shards[number]])
        pattern = str(folder / "shards" / "*.parquet")
        files = sorted((folder / "shards").glob("*.parquet"))
        ways: dict[str, Callable[[], Any]] = {
            "load": lambda: load(folder),
            "duckdb": lambda: duckdb.connect().execute(f"select * from '{pattern}'").df(),
            "pandas": lambda: pd.concat([pd.read_parquet(file) for file in files]),
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way, run in ways.items():
                start = time.perf_counter()
                assert len(run()) == len(plan.runs)
                times[way].append(time.perf_counter() - start)
        start = time.perf_counter()
        compact(folder)
        compacting = time.perf_counter() - start
        start = time.perf_counter()
        load(folder)
        one = time.perf_counter() - start
    result = {f"{way}_s": round(median(taken), 3) for way, taken in times.items()}
    return {
        "what": f"reading {len(files):,} shards of {len(plan.runs):,} rows",
        "repeats": repeats,
        **result,
        "ratio": round(median(times["load"]) / median(times["duckdb"]), 3),
        "compact_s": round(compacting, 3),
        "compacted_s": round(one, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", default="1000,100000")
    options = parser.parse_args()
    rows = [overhead(n, 3 if n <= 1000 else 1) for n in map(int, options.runs.split(","))]
    rows.append(reading(4000, 5, 3))
    write(
        "sweep_overhead",
        what="CPU time of a sweep in one process, a run; reading a folder of shards",
        peer="the bare training loop; DuckDB and pandas",
        rows=rows,
        packages=["torch", "pyarrow", "duckdb", "pandas"],
    )


if __name__ == "__main__":
    main()
