"""Lower ends of the rank with and without slices that are removed several at once.

    python benchmarks/block_substitution.py     (some minutes)

Databases with two dense parts, in one of which few subjects have many objects, and in the other
many subjects have few, with facts that join them; and generated graphs of `real_graphs`. Each is
searched by `standard` as it is, and without blocks in the orders of sparse substitution.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from real_graphs import generated
from record import run_all, write

from capacity.rank import rank_interval, verify
from capacity.rank.lower.substitution.sparse import methods as sparse
from capacity.tensor import SparseTensor

# subjects of the first part, and objects of the second
SIDES = (4, 8, 16, 32)
GENERATED = ("many objects, 1,500", "few objects, 33,000", "vocabulary, 1,700")
SEEDS = 3


def dense_parts(seed: int, side: int) -> SparseTensor:
    """Facts of five dense predicates on two parts, and of a sixth on all subjects and objects."""
    rng = np.random.default_rng(seed)
    n = 6 * side
    tensor = np.zeros((n, 6, n), np.int64)
    tensor[:side, :5, : 5 * side] = rng.random((side, 5, 5 * side)) < 0.5
    tensor[side:, :5, 5 * side :] = rng.random((5 * side, 5, side)) < 0.5
    tensor[:, 5] = rng.random((n, n)) < 1.5 / n
    places = np.argwhere(tensor)
    return SparseTensor(places, np.ones(len(places), np.int64), tensor.shape)


def measure(task: tuple[str, int]) -> dict[str, Any]:
    """Lower ends of the rank at `standard` with and without blocks, each verified."""
    name, seed = task
    side = int(name.rpartition(" ")[2]) if name.startswith("dense parts") else 0
    tensor = dense_parts(seed, side) if side else generated(name, seed)
    row: dict[str, Any] = {"graph": name, "seed": seed, "facts": tensor.n_entries}
    trials = sparse.TRIALS
    for key, share in (("without", 0.0), ("with", trials)):
        sparse.TRIALS = share
        start = time.process_time()
        interval = rank_interval(tensor, effort="standard")
        seconds = time.process_time() - start
        assert verify(interval, tensor)
        lower, upper = interval.certificates
        row[key] = {
            "rank": [lower.value, upper.value],
            "by": lower.by,
            "kinds": [argument.kind for argument in lower.arguments],
            "seconds": round(seconds, 1),
        }
    sparse.TRIALS = trials
    return row


def main() -> None:
    """Measure all, with the mean widths of each family."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/block_substitution.jsonl"))
    options = parser.parse_args()
    names = [*(f"dense parts, {side}" for side in SIDES), *GENERATED]
    tasks = [(name, seed) for name in names for seed in range(SEEDS)]
    rows = run_all(measure, tasks, kept=options.out, workers=options.workers)
    means: list[dict[str, Any]] = []
    for name in names:
        mean: dict[str, Any] = {"graph": name, "n": SEEDS}
        for key in ("without", "with"):
            ends = [row[key]["rank"] for row in rows if row["graph"] == name]
            mean[f"mean_width_{key}"] = round(float(np.mean([1 - a / b for a, b in ends])), 4)
        means.append(mean)
    write(
        "block_substitution",
        what="certified intervals of the rank with slices removed several at once; CPU seconds",
        peer="the same search at `standard`, each slice by itself",
        rows=[*means, *rows],
        packages=["numpy", "scipy", "python-flint", "numba"],
    )


if __name__ == "__main__":
    main()
