"""Training on a GPU: its differences from a CPU, and its speed beside two CPU cores.

    python benchmarks/gpu.py [--repeats 5] [--paper]

It needs a GPU that torch can use and triton; all but `--paper`, the whole of
experiments/configs/paper.toml, needs neither python-flint nor what reads RDF. Runs are those of
sweep_speed.py. `--rehearse` does all of it on the CPU, where triton interprets its kernel, with
little of everything: it shows that the script works, and writes no record.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from large_layers import drawn as large_database
from large_layers import seconds_a_step, stepper
from record import write
from sweep_speed import drawn, flops

from capacity import AttentionLayer, Database, LayerConfig, Recipe
from capacity.layer import Compute, Workload, train_many
from capacity.layer.engines.proof import prove
from capacity.layer.engines.registry import engine_named, engine_names

ROOT = Path(__file__).parents[1]
# of the comparison with the interpreter
COMPARED = Recipe(epochs=20, learning_rate=0.01, stop_tau=0.0)


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    compared: int
    runs: int
    cpu_runs: int
    epochs: int
    large: Sequence[tuple[int, int]]
    matrix: int


WHOLE = Sizes(8, 4096, 48, 2000, [(1000, 500), (20_000, 5000), (100_000, 50_000)], 8192)
REHEARSED = Sizes(1, 2, 2, 2, [(200, 100)], 64)


def finished(device: str) -> None:
    """Wait for the device."""
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(run: Callable[[], object], device: str) -> float:
    """Wall seconds of a call, with all that the device does for it."""
    finished(device)
    start = time.perf_counter()
    run()
    finished(device)
    return time.perf_counter() - start


def proofs(device: str) -> list[dict[str, Any]]:
    """Difference of each engine from the reference on the CPU."""
    config, recipe = LayerConfig(4, 2, 1, 2), Recipe()
    rows: list[dict[str, Any]] = []
    for name in engine_names():
        for dtype in ("float32", "float64"):
            work = Workload(config, recipe, 60, 60, dtype, device)
            if engine_named(name).why_not(work) is None:
                rows.append({"what": "proof", **prove(name, device, dtype).to_dict()})
    return rows


def trained_weights(device: str, n_runs: int) -> dict[str, np.ndarray]:
    """Weights of a few runs that the triton engine trains here."""
    tasks = [
        (AttentionLayer(c, db.n_tokens, seed=i, device=device), db)
        for i, (db, c) in enumerate(drawn(n_runs))
    ]
    train_many(tasks, COMPARED, Compute("triton"))
    return {
        f"{i}.{name}": weights.detach().cpu().numpy()
        for i, (layer, _) in enumerate(tasks)
        for name, weights in layer.named_parameters()
    }


def parity(device: str, n_runs: int) -> dict[str, Any]:
    """Difference of the compiled kernel from the same one interpreted on the CPU."""
    here = trained_weights(device, n_runs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.npz"
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        command = [sys.executable, __file__, "--interpret", str(path), "--runs", str(n_runs)]
        subprocess.run(command, check=True, env=environment)
        with np.load(path) as there:
            difference = max(float(np.abs(here[name] - there[name]).max()) for name in here)
    return {
        "what": f"compiled beside interpreted, {n_runs} runs of {COMPARED.epochs} epochs",
        "largest_difference_of_a_weight": difference,
    }


def sweep_rows(device: str, sizes: Sizes, repeats: int) -> list[dict[str, Any]]:
    """Microseconds of a run-epoch on the device and on two CPU cores, and the roofline."""
    recipe = Recipe(epochs=sizes.epochs, stop_tau=0.0)

    def trainer(engine: str, runs: list[tuple[Database, LayerConfig]], where: str, threads: int):
        def run(epochs: int) -> None:
            some = Recipe(epochs=epochs, stop_tau=0.0)
            tasks = [(AttentionLayer(c, db.n_tokens, device=where), db) for db, c in runs]
            train_many(tasks, some, Compute(engine), threads=threads)

        return run

    ways = {
        ("triton", device): (trainer("triton", drawn(sizes.runs), device, 1), sizes.runs),
        ("fused", "two CPU cores"): (
            trainer("fused", drawn(sizes.cpu_runs), "cpu", 2), sizes.cpu_runs,
        ),
    }  # fmt: skip
    for run, _ in ways.values():
        # compiled
        run(1)
    times: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
    products: list[float] = []
    for _ in range(repeats):
        products.append(product_seconds(device, sizes.matrix))
        for way, (run, n) in ways.items():
            # what is done once for each run counts: layers are made, packed and copied back
            taken = seconds(lambda run=run: run(recipe.epochs), device)
            times[way].append(taken / n / recipe.epochs)
    medians = {way: statistics.median(taken) for way, taken in times.items()}
    rows: list[dict[str, Any]] = [
        {
            "what": f"run-epochs of {ways[way][1]} runs of {recipe.epochs:,} epochs",
            "engine": way[0],
            "on": way[1],
            "microseconds_a_run_epoch": 1e6 * medians[way],
            "least": 1e6 * min(times[way]),
            "most": 1e6 * max(times[way]),
            "runs_of_2000_epochs_a_second": 1 / 2000 / medians[way],
            "times_two_cores": medians[("fused", "two CPU cores")] / medians[way],
        }
        for way in ways
    ]
    operations = statistics.mean(flops(db, c)[0] for db, c in drawn(sizes.runs))
    peak = 2 * sizes.matrix**3 / statistics.median(products)
    rows.append(
        {
            "what": f"roofline of triton: a product of matrices of {sizes.matrix} in float32",
            "kiloflop_a_run_epoch": operations / 1e3,
            "gemm_teraflops": peak / 1e12,
            "fraction": operations / medians[("triton", device)] / peak,
        }
    )
    return rows


def product_seconds(device: str, size: int) -> float:
    """Least seconds of a product of large matrices."""
    a, b = (torch.randn(size, size, device=device) for _ in "ab")
    return min(seconds(lambda: torch.mm(a, b), device) for _ in range(5))


def large_rows(device: str, sizes: Sizes, repeats: int) -> list[dict[str, Any]]:
    """Milliseconds a step of larger layers: blocked and autograd, beside blocked on two cores."""
    rows: list[dict[str, Any]] = []
    for n_facts, n_tokens in sizes.large:
        db = large_database(n_facts, n_tokens)
        ways = {"blocked": device, "reference": device, "blocked on two CPU cores": "cpu"}
        if db.n_triples * db.n_tokens > 2e8:
            # autograd would hold all logits several times
            del ways["reference"]
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(repeats):
            for name, where in ways.items():
                steps = stepper(db, 64, name.split()[0], where)
                times[name].append(seconds_a_step(steps, 2.0))
        milliseconds = {name: 1e3 * statistics.median(taken) for name, taken in times.items()}
        rows.append(
            {
                "what": "milliseconds a step, d_model 64",
                "facts": db.n_triples,
                "tokens": db.n_tokens,
                **milliseconds,
            }
        )
    return rows


def paper_row(device: str) -> dict[str, Any]:
    """Wall seconds of the paper's whole plan by the command line."""
    with tempfile.TemporaryDirectory() as folder:
        plan = ROOT / "experiments" / "configs" / "paper.toml"
        command = [sys.executable, "-m", "capacity.cli", "sweep", str(plan), "--out", folder,
                   "--device", device]  # fmt: skip
        taken = seconds(lambda: subprocess.run(command, check=True), device)
        from capacity.sweep import load

        table = load(folder)
    return {
        "what": "experiments/configs/paper.toml by capacity sweep --device cuda, one worker",
        "runs": len(table),
        "engines": sorted(set(table["engine"])),
        "memorised": int((table["status"] == "memorised").sum()),
        "seconds": round(taken, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--paper", action="store_true", help="the paper's whole plan, too")
    parser.add_argument("--rehearse", action="store_true", help="on a CPU, with no record")
    parser.add_argument("--interpret", type=Path, help="write weights of the interpreter to a file")
    parser.add_argument("--runs", type=int, default=1, help="number of runs of --interpret")
    options = parser.parse_args()
    if options.interpret:
        np.savez(options.interpret, allow_pickle=False, **trained_weights("cpu", options.runs))
        return
    torch.set_num_threads(2)
    device, sizes = ("cpu", REHEARSED) if options.rehearse else ("cuda", WHOLE)
    rows = [
        *proofs(device),
        parity(device, sizes.compared),
        *sweep_rows(device, sizes, options.repeats),
        *large_rows(device, sizes, options.repeats),
    ]
    if options.paper:
        rows.append(paper_row(device))
    if options.rehearse:
        print(json.dumps(rows, indent=1))
        return
    write(
        "gpu",
        what=f"training on {torch.cuda.get_device_name()}, median of {options.repeats}",
        peer="the fused and blocked engines on two cores of the same machine's CPU",
        rows=rows,
        packages=["torch", "triton", "numba", "numpy"],
    )


if __name__ == "__main__":
    main()
