"""Training on a GPU: its differences from a CPU, and its speed beside two CPU cores.

    python benchmarks/gpu.py [--repeats 5] [--paper] [--beside WEIGHTS.npz]

It needs a GPU that torch can use and triton; all but `--paper`, the whole of
experiments/configs/paper.toml, needs neither python-flint nor what reads RDF. Runs are those of
sweep_speed.py. The kernel is compared with itself in triton's interpreter: `TRITON_INTERPRET=1
python benchmarks/gpu.py --interpret WEIGHTS.npz` makes the weights for `--beside`, on any machine
with triton and a numpy that its interpreter knows.
`--rehearse` does all of it on the CPU, where triton interprets its kernel, with little of
everything: it shows that the script works, and writes no record.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from large_layers import drawn as large_database
from large_layers import seconds_a_step, stepper
from record import write
from sweep_speed import drawn, flops
from torch.profiler import ProfilerActivity, profile

from capacity import AttentionLayer, Database, LayerConfig, Recipe
from capacity.layer import Compute, Training, Workload, train_many
from capacity.layer.engines.engine import loaded
from capacity.layer.engines.proof import prove
from capacity.layer.engines.registry import engine_named, engine_names
from capacity.layer.packed import PackedLayers

PAPER = Path(__file__).parents[1] / "experiments" / "configs" / "paper.toml"
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


def parity(device: str, n_runs: int, weights: Path) -> dict[str, Any]:
    """Difference of the compiled kernel from the same one interpreted on a CPU."""
    here = trained_weights(device, n_runs)
    with np.load(weights) as there:
        difference = max(float(np.abs(here[name] - there[name]).max()) for name in here)
    return {
        "what": f"compiled beside interpreted, {n_runs} runs of {COMPARED.epochs} epochs",
        "largest_difference_of_a_weight": difference,
    }


def train_packed(runs: list[tuple[Database, LayerConfig]], recipe: Recipe, device: str) -> None:
    """Draw layers, train them by triton and bring them back, as a sweep does."""
    databases = [db for db, _ in runs]
    packed = PackedLayers.drawn(
        [c for _, c in runs], [db.n_tokens for db in databases], device=device
    )
    trained_together(packed, databases, recipe)
    list(packed.arrays())


def trained_together(
    packed: PackedLayers, databases: list[Database], recipe: Recipe
) -> list[Training]:
    """Train packed layers by triton."""
    run_many = engine_named("triton").run_many
    assert run_many is not None
    return loaded(run_many)(packed, databases, recipe, [np.random.default_rng(0)] * len(packed))


def train_layers(
    runs: list[tuple[Database, LayerConfig]], recipe: Recipe, engine: str, device: str, threads: int
) -> None:
    """Make layers and train them, as the public functions do."""
    tasks = [(AttentionLayer(c, db.n_tokens, device=device), db) for db, c in runs]
    train_many(tasks, recipe, Compute(engine), threads=threads)


def host_row(device: str, sizes: Sizes) -> dict[str, Any]:
    """Seconds that the kernel takes of training many runs for 500 epochs, and copies."""
    runs, recipe = drawn(sizes.runs), Recipe(epochs=min(500, sizes.epochs), stop_tau=0.0)
    databases = [db for db, _ in runs]
    packed = PackedLayers.drawn(
        [c for _, c in runs], [db.n_tokens for db in databases], device=device
    )
    trained_together(packed, databases, recipe)
    taken = [seconds(lambda: trained_together(packed, databases, recipe), device) for _ in range(3)]
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        trained_together(packed, databases, recipe)
        finished(device)
    events = profiled.key_averages()
    # launches of several shapes overlap
    kernel = covered(
        (e.time_range.start, e.time_range.end)
        for e in profiled.events() or ()
        if e.device_type.name == "CUDA" and e.name.startswith("train")
    ) / 1e6  # fmt: skip
    wall = statistics.median(taken)
    return {
        "what": f"{sizes.runs} runs of {recipe.epochs} epochs, packed, where the time goes",
        "seconds": wall,
        "kernel_seconds": kernel,
        "else_beside_the_kernel": (wall - kernel) / kernel if kernel else None,
        "launches": sum(e.count for e in events if e.key.startswith("train")),
        "copies_between_host_and_device": {
            e.key: e.count for e in events if e.key.startswith("Memcpy")
        },
        "calls_of_copy_": sum(e.count for e in events if e.key == "aten::copy_"),
    }


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of some spans of time."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def sweep_rows(device: str, sizes: Sizes, repeats: int) -> list[dict[str, Any]]:
    """Microseconds of a run-epoch on the device and on two CPU cores, and the roofline."""
    recipe = Recipe(epochs=sizes.epochs, stop_tau=0.0)

    many, few = drawn(sizes.runs), drawn(sizes.cpu_runs)
    ways: dict[tuple[str, str], tuple[Callable[[Recipe], None], int]] = {
        ("triton", device): (lambda r: train_packed(many, r, device), sizes.runs),
        ("triton, by train_many", device): (
            lambda r: train_layers(many, r, "triton", device, 1), sizes.runs,
        ),
        ("fused", "two CPU cores"): (
            lambda r: train_layers(few, r, "fused", "cpu", 2), sizes.cpu_runs,
        ),
    }  # fmt: skip
    for run, _ in ways.values():
        # compiled
        run(Recipe(epochs=1, stop_tau=0.0))
    times: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
    products: list[float] = []
    for _ in range(repeats):
        products.append(product_seconds(device, sizes.matrix))
        for way, (run, n) in ways.items():
            # what is done once for each run counts: layers are made, packed and copied back
            taken = seconds(lambda run=run: run(recipe), device)
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
    """Milliseconds a step of larger layers: blocked and autograd, beside blocked on two cores.

    A step of the largest takes two cores a quarter of a minute: there they have one repeat.
    """
    rows: list[dict[str, Any]] = []
    for n_facts, n_tokens in sizes.large:
        db = large_database(n_facts, n_tokens)
        ways = {"blocked": device, "reference": device, "blocked on two CPU cores": "cpu"}
        if db.n_triples * db.n_tokens > 2e8:
            # autograd would hold all logits several times
            del ways["reference"]
        times: dict[str, list[float]] = {name: [] for name in ways}
        for repeat in range(repeats):
            for name, where in ways.items():
                if repeat and where == "cpu" and "reference" not in ways:
                    continue
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


def paper_trained_row(device: str, sizes: Sizes) -> dict[str, Any]:
    """Seconds of drawing and training the layers of the paper's plan, without the rest."""
    from capacity.sweep import read_plan

    runs = read_plan(PAPER).runs[: sizes.runs]
    databases = [run.database for run in runs]
    recipe = replace(runs[0].recipe, epochs=min(sizes.epochs, runs[0].recipe.epochs))
    for db in databases:
        # made once, as a sweep's bounds make them
        assert len(db.token_triples)
    start = time.perf_counter()
    packed = PackedLayers.drawn(
        [run.layer for run in runs],
        [db.n_tokens for db in databases],
        # as a sweep draws them
        [np.random.default_rng(int(run.draw, 16)).spawn(2)[0] for run in runs],
        device=device,
    )
    drawn_in = time.perf_counter() - start
    trainings: list[Training] = []
    taken = seconds(lambda: trainings.extend(trained_together(packed, databases, recipe)), device)
    return {
        "what": "the layers of experiments/configs/paper.toml, drawn and trained in memory",
        "runs": len(runs),
        "epochs": sum(training.epochs for training in trainings),
        "memorised": sum(training.status == "memorised" for training in trainings),
        "seconds_to_draw": drawn_in,
        "seconds_to_train": taken,
    }


def paper_row(device: str) -> dict[str, Any]:
    """Wall seconds of the paper's whole plan by the command line."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "capacity.cli", "sweep", str(PAPER), "--out", folder,
                   "--device", device]  # fmt: skip
        taken = seconds(lambda: subprocess.run(command, check=True), device)
        from capacity.sweep import load

        table = load(folder)
    return {
        "what": f"experiments/configs/paper.toml by capacity sweep --device {device}, one worker",
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
    parser.add_argument("--beside", type=Path, help="compare with weights of the interpreter")
    options = parser.parse_args()
    if options.interpret:
        n_runs = (REHEARSED if options.rehearse else WHOLE).compared
        np.savez(options.interpret, allow_pickle=False, **trained_weights("cpu", n_runs))
        return
    torch.set_num_threads(2)
    device, sizes = ("cpu", REHEARSED) if options.rehearse else ("cuda", WHOLE)
    repeats = options.repeats
    parts: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "proofs": lambda: proofs(device),
        "host": lambda: [host_row(device, sizes)],
        "sweep": lambda: sweep_rows(device, sizes, repeats),
        "paper in memory": lambda: [paper_trained_row(device, sizes)],
    }
    if options.beside:
        parts["parity"] = lambda: [parity(device, sizes.compared, options.beside)]
    if options.paper:
        parts["paper"] = lambda: [paper_row(device)]
    parts["large"] = lambda: large_rows(device, sizes, min(2, repeats))
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    for name, part in parts.items():
        start = time.perf_counter()
        try:
            rows += part()
        # what another part has measured on a lent machine isn't lost
        except Exception:
            traceback.print_exc()
            failed.append(name)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
        if not options.rehearse:
            write(
                "gpu",
                what=f"training on {torch.cuda.get_device_name()}, median of {repeats}",
                peer="the fused and blocked engines on two cores of the same machine's CPU",
                rows=rows,
                packages=["torch", "triton", "numba", "numpy"],
            )
    if options.rehearse:
        print(json.dumps(rows, indent=1))
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
