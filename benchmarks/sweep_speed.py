"""How fast layers are trained: the loop that a researcher writes, batches in torch, and ours.

    python benchmarks/sweep_speed.py [--before CHECKOUT]

The same 48 random runs of the paper's experiment for all, interleaved, from random weights, without
early stop. The naive loop and the batches are written here, as they would be without this library;
in a batch all layers are padded to d_model = 6 and 4 heads, the largest there are. A run-epoch is
one step of one layer on all its facts.

The whole command, `capacity sweep` with 200 runs of 2,000 epochs on 60 databases, is measured too:
its wall time, from its start to its end and with all that it does beside training, against the time
that the naive loop's epochs of the same runs take. With `--before`, the command of another checkout
takes turns with it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import environment, write
from torch import nn

from capacity import AttentionLayer, Database, LayerConfig, Recipe
from capacity.database import random_database
from capacity.layer import Compute, train_many
from capacity.sweep import read_plan

HERE = Path(__file__).parents[1]
EPOCHS = 2000
# of the paper's experiment, in small
PLAN = """
[databases]
synthetic = {{ count = 60, seed = 0, max_triples = 200 }}

[layers]
d_model   = [1, 2, 3, 4, 5, 6]
n_heads   = [1, 2, 3, 4]
d_head_qk = [1, 2, 3, 4, 5, 6]
d_head_vo = [1, 2, 3, 4, 5, 6]

[runs]
pairs = 200

[recipe]
epochs = {epochs}
stop_tau = 0
"""
# epochs of the naive loop that are measured, of the same 200 runs
NAIVE_EPOCHS = 10

# runs in a padded batch
GROUP = 16


def drawn(n_runs: int) -> list[tuple[Database, LayerConfig]]:
    """Random runs of the paper's experiment."""
    layers = [
        LayerConfig(d, heads, qk, vo)
        for d, heads in itertools.product(range(1, 7), range(1, 5))
        for qk, vo in itertools.product(range(1, d + 1), repeat=2)
    ]
    rng = np.random.default_rng(0)
    databases = [random_database(np.random.default_rng([0, i]), triples=(4, 200))
                 for i in range(n_runs)]  # fmt: skip
    return [(db, layers[int(rng.integers(len(layers)))]) for db in databases]


class Naive(nn.Module):
    """The layer as a researcher writes it."""

    def __init__(self, n_tokens: int, d: int, heads: int, qk: int, vo: int) -> None:
        super().__init__()
        self.W_E = nn.Parameter(torch.randn(n_tokens, d))
        self.W_U = nn.Parameter(torch.randn(d, n_tokens) / d**0.5)
        self.W_Q = nn.Parameter(torch.randn(heads, d, qk) / d**0.5)
        self.W_K = nn.Parameter(torch.randn(heads, d, qk) / d**0.5)
        self.W_V = nn.Parameter(torch.randn(heads, d, vo) / d**0.5)
        self.W_O = nn.Parameter(torch.randn(heads, vo, d) / vo**0.5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of sentences of two tokens."""
        r = self.W_E[tokens]
        q = torch.einsum("bnd,hde->bhne", r, self.W_Q)
        k = torch.einsum("bnd,hde->bhne", r, self.W_K)
        v = torch.einsum("bnd,hde->bhne", r, self.W_V)
        mask = torch.triu(torch.ones(2, 2, dtype=torch.bool), 1)
        a = (q @ k.transpose(-1, -2)).masked_fill(mask, -torch.inf).softmax(-1)
        return (r + torch.einsum("bhne,hed->bnd", a @ v, self.W_O)) @ self.W_U


def naive(runs: list[tuple[Database, LayerConfig]], epochs: int) -> None:
    """One module and one Adam a run."""
    for db, c in runs:
        tokens = torch.as_tensor(db.token_triples.astype(np.int64))
        layer = Naive(db.n_tokens, c.d_model, c.n_heads, c.d_head_qk, c.d_head_vo)
        optimizer = torch.optim.Adam(layer.parameters(), lr=1e-3)
        for _ in range(epochs):
            optimizer.zero_grad()
            logits = layer(tokens[:, :2])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            optimizer.step()


def batched(runs: list[tuple[Database, LayerConfig]], epochs: int) -> None:
    """Padded batches of runs of about a size, by autograd."""
    ordered = sorted(runs, key=lambda run: run[0].n_triples * run[0].n_tokens)
    for start in range(0, len(ordered), GROUP):
        one_batch(ordered[start : start + GROUP], epochs)


def one_batch(runs: list[tuple[Database, LayerConfig]], epochs: int) -> None:
    n_tokens, n = max(db.n_tokens for db, _ in runs), max(db.n_triples for db, _ in runs)
    b, d, heads = len(runs), 6, 4
    rng = torch.Generator().manual_seed(0)
    alive = torch.zeros(b, heads, d)
    tokens, real = torch.zeros(b, n, 3, dtype=torch.int64), torch.zeros(b, n)
    column = torch.full((b, 1, n_tokens), -1e9)
    for i, (db, c) in enumerate(runs):
        tokens[i, : db.n_triples] = torch.as_tensor(db.token_triples.astype(np.int64))
        real[i, : db.n_triples] = 1 / db.n_triples
        column[i, :, : db.n_tokens] = 0
        alive[i, : c.n_heads, : c.d_model] = 1
    shapes = [(n_tokens, d), (d, n_tokens), *[(heads, d, d)] * 4]
    parameters = [torch.randn(b, *shape, generator=rng).requires_grad_() for shape in shapes]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for _ in range(epochs):
        optimizer.zero_grad()
        e, u, q, k, v, o = parameters
        rows = torch.arange(b)[:, None, None]
        r = e[rows, tokens[:, :, :2]]
        queries, keys, values = (
            torch.einsum("bnpd,bhde->bhnpe", r, w * alive[..., None]) for w in (q, k, v)
        )
        scores = queries[..., 1:, :] @ keys.transpose(-1, -2)
        a = scores.softmax(-1) @ values
        first = values[..., :1, :]
        mixed = torch.cat([first, a], dim=-2)
        r = r + torch.einsum("bhnpe,bhed->bnpd", mixed, o * alive[..., None])
        logits = torch.einsum("bnpd,bdt->bnpt", r, u) + column[:, None]
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 2), tokens[:, :, 1:].flatten(), reduction="none"
        ).view(b, n, 2)
        (loss.mean(-1) * real).sum().backward()
        optimizer.step()


def ours(
    runs: list[tuple[Database, LayerConfig]],
    epochs: int,
    *,
    threads: int = 1,
    dtype: Any = "float32",
) -> None:
    """As the library is used."""
    recipe = Recipe(learning_rate=1e-3, stop_tau=0.0, epochs=epochs)
    kind = getattr(torch, dtype)
    tasks = [(AttentionLayer(c, db.n_tokens, dtype=kind), db) for db, c in runs]
    train_many(tasks, recipe, Compute("fused", dtype), threads=threads)


def flops(db: Database, c: LayerConfig) -> tuple[float, float]:
    """Of one run-epoch: multiplications and additions, and exponentials."""
    active = len(np.unique(db.token_triples[:, :2]))
    first = len(db.subject_ids)
    rows = first + db.n_triples
    logits = 6 * rows * db.n_tokens * c.d_model
    # forward, gradients of the input and of the weights, for y, q and k of each token and head
    heads = 6 * active * c.n_heads * c.d_model * (c.d_model + 2 * c.d_head_qk)
    facts = 12 * db.n_triples * c.n_heads * (c.d_model + c.d_head_qk)
    return logits + heads + facts, rows * db.n_tokens + db.n_triples * c.n_heads


def peak() -> float:
    """Operations a second of a product of large matrices on one thread."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    times = []
    for _ in range(9):
        start = time.perf_counter()
        torch.mm(a, b)
        times.append(time.perf_counter() - start)
    return 2 * 1024**3 / min(times)


def command(root: Path, epochs: int, workers: int) -> tuple[float, float]:
    """Wall and CPU seconds of the whole command, by the code of a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.toml"
        plan.write_text(PLAN.format(epochs=epochs))
        line = [sys.executable, "-m", "capacity.cli", "sweep", str(plan), "--out", f"{folder}/out",
                "--workers", str(workers)]  # fmt: skip
        variables = environment(OMP_NUM_THREADS="1", PYTHONPATH=str(root))
        start, spent = time.perf_counter(), of_children()
        subprocess.run(line, check=True, stdout=subprocess.DEVNULL, cwd=root, env=variables)
        return time.perf_counter() - start, of_children() - spent


def of_children() -> float:
    """CPU seconds of all processes that have ended below this one."""
    times = os.times()
    return times.children_user + times.children_system


def whole_commands(repeats: int, before: Path | None) -> list[dict[str, Any]]:
    """Times of the whole command on one worker and on two, beside the naive loop's epochs."""
    roots = {"": HERE} | ({" before": before} if before is not None else {})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.toml"
        path.write_text(PLAN.format(epochs=EPOCHS))
        runs = [(run.database, run.layer) for run in read_plan(path).runs]
    for root in roots.values():
        # kernels are compiled, once on a machine
        command(root, 1, 1)
    naive(runs, 1)
    epochs: list[tuple[float, float]] = []
    times: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(repeats):
        start, spent = time.perf_counter(), time.process_time()
        naive(runs, NAIVE_EPOCHS)
        epochs.append((time.perf_counter() - start, time.process_time() - spent))
        for (name, root), workers in itertools.product(roots.items(), (1, 2)):
            times.setdefault((name, workers), []).append(command(root, EPOCHS, workers))
    naively, naive_cpu = (
        EPOCHS / NAIVE_EPOCHS * statistics.median(of) for of in zip(*epochs, strict=True)
    )
    return [
        {
            "what": f"the whole command{name}, {len(runs)} runs of {EPOCHS:,} epochs",
            "workers": workers,
            "repeats": repeats,
            "seconds": round(statistics.median(wall), 2),
            "least": round(min(wall), 2),
            "most": round(max(wall), 2),
            "naive_seconds": round(naively, 1),
            "times_naive": round(naively / statistics.median(wall), 1),
            # of all processes: what else the machine does counts less
            "cpu_seconds": round(statistics.median(cpu), 2),
            "naive_cpu_seconds": round(naive_cpu, 1),
        }
        for (name, workers), (wall, cpu) in (
            (key, tuple(zip(*taken, strict=True))) for key, taken in times.items()
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--before", type=Path, help="another checkout, whose command is measured")
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = drawn(options.runs)
    ways: dict[str, tuple[int, Callable[[int], None]]] = {
        "naive torch loop": (50, lambda epochs: naive(runs, epochs)),
        "torch, padded batches of 16, autograd": (50, lambda epochs: batched(runs, epochs)),
        "fused, float32": (2000, lambda epochs: ours(runs, epochs)),
        "fused, float32, two threads": (2000, lambda epochs: ours(runs, epochs, threads=2)),
        "fused, float64": (2000, lambda epochs: ours(runs, epochs, dtype="float64")),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    peaks = []
    for _, run in ways.values():
        # compiled, and in the caches
        run(2)
    for _ in range(options.repeats):
        peaks.append(peak())
        for name, (epochs, run) in ways.items():
            start = time.perf_counter()
            run(epochs)
            times[name].append((time.perf_counter() - start) / epochs / len(runs))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    work = [flops(db, c) for db, c in runs]
    operations, exponentials = (statistics.mean(column) for column in zip(*work, strict=True))
    top = statistics.median(peaks)
    fused = medians["fused, float32"]
    rows: list[dict[str, Any]] = [
        {
            "engine": name,
            "microseconds_a_run_epoch": round(1e6 * seconds, 2),
            "times_naive": round(medians["naive torch loop"] / seconds, 1),
            "least": round(1e6 * min(times[name]), 2),
            "most": round(1e6 * max(times[name]), 2),
        }
        for name, seconds in medians.items()
    ]
    rows.append(
        {
            "what": "roofline of fused, float32, one thread",
            "kiloflop_a_run_epoch": round(operations / 1e3, 1),
            "exponentials_a_run_epoch": round(exponentials),
            "gemm_peak_gigaflops": round(top / 1e9, 1),
            "fraction": round(operations / fused / top, 3),
            "fraction_with_16_flop_an_exponential": round(
                (operations + 16 * exponentials) / fused / top, 3
            ),
            "mean_facts": statistics.mean(db.n_triples for db, _ in runs),
            "mean_tokens": statistics.mean(db.n_tokens for db, _ in runs),
        }
    )
    rows += whole_commands(options.repeats, options.before and options.before.resolve())
    write(
        "sweep_speed",
        what=f"wall time of a run-epoch, median of {options.repeats}, {len(runs)} runs; of a sweep",
        peer="a naive torch loop; padded batches in torch",
        rows=rows,
        packages=["torch", "numba", "numpy"],
    )


if __name__ == "__main__":
    main()
