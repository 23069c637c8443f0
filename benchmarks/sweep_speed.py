"""How fast layers are trained: the loop that a researcher writes, batches in torch, and ours.

    python benchmarks/sweep_speed.py

The same 48 random runs of the paper's experiment for all, interleaved, from random weights, without
early stop. The naive loop and the batches are written here, as they would be without this library;
in a batch all layers are padded to d_model = 6 and 4 heads, the largest there are. A run-epoch is
one step of one layer on all its facts.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from record import write
from torch import nn

from capacity import AttentionLayer, Database, LayerConfig, Recipe
from capacity.database import random_database
from capacity.layer import Compute, train_many

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
    engine: Any = "fused",
) -> None:
    """As the library is used."""
    recipe = Recipe(learning_rate=1e-3, stop_tau=0.0, epochs=epochs)
    kind = getattr(torch, dtype)
    tasks = [(AttentionLayer(c, db.n_tokens, dtype=kind), db) for db, c in runs]
    train_many(tasks, recipe, Compute(engine, dtype), threads=threads)


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = drawn(options.runs)
    ways: dict[str, tuple[int, Callable[[int], None]]] = {
        "naive torch loop": (50, lambda epochs: naive(runs, epochs)),
        "torch, padded batches of 16, autograd": (50, lambda epochs: batched(runs, epochs)),
        "padded, float32": (50, lambda epochs: ours(runs, epochs, engine="padded")),
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
    write(
        "sweep_speed",
        what=f"wall time of a run-epoch, median of {options.repeats}, {len(runs)} runs",
        peer="a naive torch loop; padded batches in torch",
        rows=rows,
        packages=["torch", "numba", "numpy"],
    )


if __name__ == "__main__":
    main()
