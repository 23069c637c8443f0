"""Ranks of all 0/1 tensors of format 2 x 2 x 2 x 2, a class of equal tensors at a time.

    python benchmarks/order_four.py [--workers N]

Permutations of the modes and of the two indices of each mode keep the rank. Of each class the
tensor with the smallest code is bounded at `standard`, and both ends are verified. It goes on where
it was stopped.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import run_all, write

from capacity.rank import rank_interval, verify
from capacity.tensor import SparseTensor, from_dense

ORDER = 4
CELLS = 2**ORDER


def representatives() -> NDArray[np.int64]:
    """The smallest code of each class but the zero tensor's; bit c is the entry at cell c."""
    codes = np.arange(2**CELLS)
    entries = (codes[:, None] >> np.arange(CELLS)) & 1
    cells = np.array(list(itertools.product((0, 1), repeat=ORDER)))
    smallest = codes
    for modes in itertools.permutations(range(ORDER)):
        for flips in itertools.product((0, 1), repeat=ORDER):
            moved = (cells[:, modes] ^ np.array(flips)) @ (1 << np.arange(ORDER)[::-1])
            smallest = np.minimum(smallest, entries[:, moved] @ (1 << np.arange(CELLS)))
    return np.unique(smallest)[1:]


def tensor_of(code: int) -> SparseTensor:
    """The tensor of a code."""
    return from_dense(((code >> np.arange(CELLS)) & 1).reshape((2,) * ORDER))


def measure(code: int) -> dict[str, Any]:
    """The certified interval of one class."""
    tensor = tensor_of(code)
    start = time.process_time()
    interval = rank_interval(tensor, effort="standard")
    seconds = time.process_time() - start
    return {
        "code": code,
        "interval": [interval.lower, interval.upper],
        "by": [interval.certificates.lower.by, interval.certificates.upper.by],
        "proved": verify(interval, tensor).proved,
        "seconds": round(seconds, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/order_four.jsonl"))
    options = parser.parse_args()
    codes: list[int] = representatives().tolist()
    rows = run_all(measure, codes, kept=options.out, workers=options.workers)
    found = Counter(str(row["interval"]) for row in rows)
    total = {
        "classes": len(rows),
        "closed": sum(row["interval"][0] == row["interval"][1] for row in rows),
        "intervals": dict(sorted(found.items())),
        "all_proved": all(row["proved"] for row in rows),
        "seconds": round(sum(row["seconds"] for row in rows), 1),
    }
    write(
        "order_four",
        what="certified ranks of all classes of 2 x 2 x 2 x 2 tensors of 0 and 1; CPU seconds",
        peer="none: no program that we know certifies ranks over the reals",
        rows=[total, *rows],
        packages=["numpy", "scipy", "python-flint", "numba"],
    )


if __name__ == "__main__":
    main()
