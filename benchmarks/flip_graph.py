"""Steps a second of walks in the flip graph, compiled and interpreted.

    python benchmarks/flip_graph.py

The peer is the same walk without the compiler: what a loop over terms costs in Python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from record import medians, write

sys.path.insert(0, str(Path(__file__).parent.parent))

from capacity.exact.types import IntegerFactors
from capacity.rank.upper.flip_graph import flip_walk
from capacity.rank.upper.flip_search import first_decompositions
from tests.oracles import KNOWN_RANKS, matrix_product

COMPILED, INTERPRETED = 3_000_000, 6_000
REPEATS = 5


def instances() -> dict[str, tuple[IntegerFactors, np.ndarray | None]]:
    """Decompositions to start from, and the fibers that are observed, of ranks below 40."""
    rng = np.random.default_rng(0)
    table = np.zeros((7, 5, 6), np.int64)
    filled = rng.random((7, 5)) < 0.8
    table[(*np.nonzero(filled), rng.integers(0, 6, filled.sum()))] = 1
    tensors = {
        "matrices 2 x 2 x 2": (matrix_product(2, 2, 2).to_numpy(), None),
        "matrices 3 x 3 x 3": (matrix_product(3, 3, 3).to_numpy(), None),
        "Example 2.2": (KNOWN_RANKS["Example 2.2"][0]().to_numpy(), None),
        "a table of 7 x 5 x 6": (table, None),
        "the same, effective": (table, filled),
    }
    rng = np.random.default_rng(0)
    return {
        name: (
            min(
                first_decompositions(tensor.astype(np.int64), rng, work=10**9),
                key=lambda f: len(f[0]),
            ),
            observed,
        )
        for name, (tensor, observed) in tensors.items()
    }


def seconds(steps: int) -> dict[str, float]:
    """Medians of all instances, in this process."""
    runs = {}
    for name, (factors, observed) in instances().items():
        runs[name] = lambda f=factors, o=observed: flip_walk(
            f, steps=steps, seed=1, target=0, observed=o
        )
        runs[name]()
    return medians(runs, repeats=REPEATS)


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(seconds(INTERPRETED)))
        return
    ours = seconds(COMPILED)
    peer = json.loads(
        subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "interpreted"],
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    )
    rows = [
        {
            "instance": name,
            "terms": len(factors[0]),
            "million_steps_a_second": round(COMPILED / ours[name] / 1e6, 2),
            "ratio_to_interpreted": round(COMPILED / ours[name] / (INTERPRETED / peer[name])),
        }
        for name, (factors, _) in instances().items()
    ]
    write(
        "flip_graph",
        what="steps of a walk in the flip graph; medians of CPU seconds",
        peer="the same walk, interpreted",
        rows=rows,
        packages=["numpy", "numba"],
    )


if __name__ == "__main__":
    main()
