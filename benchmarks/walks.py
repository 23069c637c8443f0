"""Upper ends by each walk in the flip graph alone, at `standard`, and by the walks in their order.

    python benchmarks/walks.py [--walks "flip graph over F_2,flip graph over F_3"]

Named tensors, and both ranks of databases of `interval_width.py`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interval_width import FAMILIES
from record import run_all, write

from capacity.rank import RankInterval, effective_rank_interval, rank_interval
from capacity.rank.verifier.checker import verify
from capacity.tensor import named_tensor

NAMES = (
    "symmetric-symmetric:3", "wedge-wedge:3", "wedge-transpose:3", "symmetric-skew:3",
    "upper-lower:3", "upper-symmetric:3", "so:4", "matrices:2x3x3", "matrices:3x3x3",
)  # fmt: skip
DATABASES = (("small and dense", 12), ("small and dense", 16), ("tables", 4), ("tables", 24))
WALKS = "flip graph over F_2,flip graph over F_3"


def measure(task: tuple[str, Any, str, str]) -> dict[str, Any]:
    """The upper end of one tensor, or of both ranks of a database, by some methods."""
    kind, which, quantity, methods = task
    of = named_tensor(which) if kind == "tensor" else FAMILIES[kind](which)
    bound: Callable[..., RankInterval] = (
        effective_rank_interval if quantity == "effective" else rank_interval
    )
    start = time.process_time()
    interval = bound(of, effort="standard", methods=methods.split(","))
    seconds = time.process_time() - start
    assert verify(interval.certificates.upper, of).proved
    return {"of": which if kind == "tensor" else f"{kind} {which}", "quantity": quantity,
            "methods": methods, "upper": interval.upper, "seconds": round(seconds, 1)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--walks", default=WALKS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/walks.jsonl"))
    options = parser.parse_args()
    walks: list[str] = options.walks.split(",")
    of = [("tensor", name, "rank") for name in NAMES]
    of += [(family, seed, what) for family, seed in DATABASES for what in ("rank", "effective")]
    tasks: list[Any] = [(*one, methods) for one in of for methods in walks]
    rows = run_all(measure, tasks, kept=options.out, workers=options.workers)
    table: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        table.setdefault((row["of"], row["quantity"]), {})[row["methods"]] = row["upper"]
    best = {walk: sum(ends[walk] < min(x for w, x in ends.items() if w != walk)
                      for ends in table.values()) for walk in walks}  # fmt: skip
    write(
        "walks",
        what="upper ends at `standard` by walks in the flip graph, and CPU seconds",
        peer="each other",
        rows=[{"tensors": len(table), "lower_than_by_all_others": best},
              *({"of": name, "quantity": what, **ends} for (name, what), ends in table.items())],
        packages=["numpy", "numba"],
    )  # fmt: skip


if __name__ == "__main__":
    main()
