"""Milliseconds a step of large layers and databases, by the engines that are made for them.

    python benchmarks/large_layers.py [--memory]

One step of Adam on all facts: on random functional data with so many facts and tokens, on one
thread. Peers: torch with autograd (the reference engine), and the same compiled by torch.compile.
With --memory: the most memory that one step of `blocked` takes, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from record import write

from capacity import AttentionLayer, Database, LayerConfig, Recipe, train
from capacity.layer import Compute

SIZES = [(200, 100), (1000, 500), (5000, 1000), (20_000, 5000), (50_000, 10_000),
         (20_000, 50_000)]  # fmt: skip
MODELS = [4, 8, 16, 32, 64]
# torch.compile takes a minute for each
COMPILED = (8, 64)
# entries of the logits, beyond which autograd takes minutes or more memory than there is
AUTOGRAD_LOGITS = 20_000_000


def drawn(n_facts: int, n_tokens: int) -> Database:
    """Random facts: one object for each of so many pairs, half of the tokens are subjects."""
    rng = np.random.default_rng([n_facts, n_tokens])
    n_subjects = min(n_tokens // 2, n_facts)
    n_predicates = max(n_tokens // 50, 2 * n_facts // n_subjects)
    pairs = rng.choice(n_subjects * n_predicates, n_facts, replace=False)
    objects = rng.integers(n_subjects + n_predicates, n_tokens, n_facts)
    return Database.from_triples(
        (f"k{pair // n_predicates}", f"q{pair % n_predicates}", f"v{v}")
        for pair, v in zip(pairs.tolist(), objects.tolist(), strict=True)
    )


def config(d_model: int) -> LayerConfig:
    return LayerConfig(d_model, 4, min(8, d_model), min(8, d_model))


def stepper(db: Database, d_model: int, engine: Any, device: str = "cpu") -> Callable[[int], None]:
    """So many steps by one of our engines."""
    layer = AttentionLayer(config(d_model), db.n_tokens, device=device)

    def steps(n: int) -> None:
        train(layer, db, Recipe(epochs=n, stop_tau=0), Compute(engine))

    return steps


def compiled(db: Database, d_model: int) -> Callable[[int], None]:
    """So many steps of autograd through torch.compile."""
    layer = AttentionLayer(config(d_model), db.n_tokens)
    tokens = torch.as_tensor(db.token_triples.astype(np.int64))
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-3)

    def loss() -> torch.Tensor:
        logits = layer(tokens[:, :2]).flatten(0, 1)
        return torch.nn.functional.cross_entropy(logits, tokens[:, 1:].flatten())

    quick = torch.compile(loss)

    def steps(n: int) -> None:
        for _ in range(n):
            optimizer.zero_grad()
            quick().backward()
            optimizer.step()

    return steps


def seconds_a_step(steps: Callable[[int], None], budget: float) -> float:
    """The difference of a long call and a short one, so that what is done once isn't counted."""
    steps(1)

    def taken(n: int) -> float:
        start = time.perf_counter()
        steps(n)
        return time.perf_counter() - start

    once = taken(1)
    n = max(3, min(200, int(budget / once)))
    return max(taken(n) - taken(1), 1e-9) / (n - 1)


def measured(repeats: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n_facts, n_tokens in SIZES:
        db = drawn(n_facts, n_tokens)
        # do blocks take over from the fused kernel somewhere?
        for d_model in (4, 8) if n_facts * n_tokens > 2e8 else MODELS:
            ways = {"blocked": stepper(db, d_model, "blocked")}
            if d_model <= 8:
                ways["fused"] = stepper(db, d_model, "fused")
            if db.n_triples * db.n_tokens <= AUTOGRAD_LOGITS:
                ways["autograd"] = stepper(db, d_model, "reference")
                if d_model in COMPILED:
                    ways["torch.compile"] = compiled(db, d_model)
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(repeats):
                for name, steps in ways.items():
                    times[name].append(seconds_a_step(steps, 0.3))
            milliseconds = {
                name: round(1e3 * statistics.median(taken), 4) for name, taken in times.items()
            }
            rows.append(
                {"facts": db.n_triples, "tokens": db.n_tokens, "d_model": d_model, **milliseconds}
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def one_large_step() -> None:
    """In a process of its own: 10^5 facts, 49,182 tokens, d_model 64; prints what it took."""
    torch.set_num_threads(1)
    db = drawn(100_000, 50_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    result = train(
        AttentionLayer(config(64), db.n_tokens), db,
        Recipe(epochs=1, stop_tau=0), Compute("blocked"),
    )  # fmt: skip
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        json.dumps(
            {
                "what": "one step and the final loss, in a process of its own",
                "facts": db.n_triples,
                "tokens": db.n_tokens,
                "d_model": 64,
                "engine": result.engine,
                "seconds": round(seconds, 1),
                "peak_gigabytes": round(peak / 1e6, 2),
                "before_gigabytes": round(before / 1e6, 2),
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    options = parser.parse_args()
    if options.memory:
        one_large_step()
        return
    torch.set_num_threads(1)
    rows = measured(options.repeats)
    command = [sys.executable, __file__, "--memory"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows.append(json.loads(done.stdout))
    write(
        "large_layers",
        what=f"milliseconds a step on one thread, median of {options.repeats}",
        peer="autograd in torch, and torch.compile of it",
        rows=rows,
        packages=["torch", "numba", "numpy"],
    )


if __name__ == "__main__":
    main()
