"""Whether dense methods on parts of a large component prove more than what `standard` proves.

    python benchmarks/dense_blocks.py [FILE ...]     (after real_graphs.py; some minutes)

On graphs of `real_graphs` that are small enough to be dense, beside the lower end at `standard`:

* a Koszul flattening of the whole, of 3 and of 5 random combinations of predicates;
* slices first, a block after: subjects (or objects) are given up one by one, the slices that then
  vanish on the others are counted first, and the others are flattened; of 40 lines that are drawn
  at each step the one is given up whose loss is least;
* groups of 2, 3 and 4 of the widest predicates, each with the certified lower end at `standard`.

And for the upper end, walks in the flip graph over F_2.

The record is of the commit before slices could be removed several at once. It has `order_first`,
a part of an order and a block after it: the prototype of what `block_substitution.py` measures.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from real_graphs import SEEDS, generated
from record import run_all, write

from capacity.database import load
from capacity.exact.modular_rank import PRIME, rank_modulo
from capacity.rank import rank_interval
from capacity.rank.lower.koszul import koszul_matrix
from capacity.tensor import SparseTensor

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]

RECORD = Path(__file__).parent / "results" / "real_graphs.json"
GENERATED = ("many objects, 1,500", "vocabulary, 1,700", "many objects, 20,000")
# entries up to which a tensor is searched for blocks; of larger ones the whole is flattened
MOST_DENSE = 10**7
# lines given up, and lines drawn for each
LINES, DRAWN = 60, 40
# groups are of the widest predicates, of which there are so many
WIDEST, GROUPS = 5, (2, 3, 4)


def flattened(block: Indices, a: int) -> int:
    """Bound by a Koszul flattening of `a` random combinations of the slices of mode 1."""
    projection = np.random.default_rng(a).integers(-99, 100, (a, block.shape[1]))
    slices = np.tensordot(projection, np.moveaxis(block, 1, 0), axes=1) % PRIME
    slices = slices[:, slices.any(axis=(0, 2))][:, :, slices.any(axis=(0, 1))]
    p = a // 2
    return -(-rank_modulo(koszul_matrix(slices, p)) // comb(a - 1, p)) if slices.size else 0


def slices_first(tensor: Indices, kept: Mask, a: int) -> int:
    """Bound by the slices of mode 2 that vanish where slices of mode 0 are kept, and the others."""
    block = tensor[kept]
    vanish = ~block.any(axis=(0, 1))
    rest = flattened(block[:, :, ~vanish], a)
    if not vanish.any():
        return rest
    return rest + rank_modulo(np.unique(tensor[:, :, vanish].reshape(-1, vanish.sum()), axis=0))


def greedily(tensor: Indices) -> list[int]:
    """Give up slices of mode 0 one by one; the largest bounds met by 3 and by 5 combinations."""
    rng = np.random.default_rng(0)
    kept = np.ones(len(tensor), np.bool_)
    sizes = np.count_nonzero(tensor, axis=(1, 2))
    best, at = slices_first(tensor, kept, 3), kept.copy()
    for _ in range(min(LINES, len(tensor) - 1)):
        bounds: list[tuple[int, int, int]] = []
        for line in rng.permutation(np.flatnonzero(kept))[:DRAWN].tolist():
            kept[line] = False
            bounds.append((slices_first(tensor, kept, 3), -int(sizes[line]), line))
            kept[line] = True
        bound, _, line = max(bounds)
        kept[line] = False
        if bound > best:
            best, at = bound, kept.copy()
    return [best, slices_first(tensor, at, 5)]


def of_groups(tensor: SparseTensor) -> dict[str, list[int]]:
    """The largest certified lower end of groups of the widest predicates, by their number."""
    widest = np.argsort(-np.bincount(tensor.indices[:, 1]))[:WIDEST].tolist()
    found: dict[str, list[int]] = {}
    for n in GROUPS:
        lower: list[int] = []
        for group in itertools.combinations(widest, n):
            rows = np.isin(tensor.indices[:, 1], group)
            part = SparseTensor(tensor.indices[rows], tensor.values[rows], tensor.shape)
            lower.append(rank_interval(part, effort="standard").lower)
        found[str(n)] = [max(lower), len(lower)]
    return found


def walked(tensor: SparseTensor) -> int:
    """Upper end by walks in the flip graph over F_2."""
    return rank_interval(tensor, effort="standard", methods=["flip graph over F_2"]).upper


def measure(task: tuple[str, int]) -> dict[str, Any]:
    """Bound the rank of a graph by each of these."""
    name, seed = task
    tensor = load(name, multi="keep").tensor() if seed < 0 else generated(name, seed)
    whole = np.zeros(tensor.shape, np.int64)
    whole[tuple(tensor.indices.T)] = tensor.values
    row: dict[str, Any] = {
        "graph": Path(name).name if seed < 0 else name,
        "seed": seed if seed >= 0 else None,
        "facts": tensor.n_entries,
        "shape": list(tensor.shape),
    }
    if whole.size > MOST_DENSE:
        return row | {"flattenings": [flattened(whole, 3)], "groups": of_groups(tensor)}
    return row | {
        "flattenings": [flattened(whole, a) for a in (3, 5)],
        "slices_first": [greedily(whole), greedily(np.swapaxes(whole, 0, 2))],
        "groups": of_groups(tensor),
        "walk": walked(tensor),
    }


def main() -> None:
    """Measure all graphs, beside the ends of their record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/dense_blocks.jsonl"))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    tasks = [(name, seed) for name in GENERATED for seed in range(SEEDS)]
    tasks += [(file, -1) for file in options.files]
    rows = run_all(measure, tasks, kept=options.out, workers=options.workers)
    held = {
        (row["graph"], row["seed"], row["facts"]): row
        for row in json.loads(RECORD.read_text())["rows"]
        if row["effort"] == "standard" and "graph" in row
    }
    for row in rows:
        at_standard = held[row["graph"], row["seed"], row["facts"]]
        row["standard"], row["by"] = at_standard["rank"], at_standard["by"]
    write(
        "dense_blocks",
        what="lower bounds by dense methods on parts of large components",
        peer="the certified interval at `standard`, by real_graphs",
        rows=rows,
        packages=["numpy", "scipy", "python-flint", "numba"],
    )


if __name__ == "__main__":
    main()
