"""How wide certified intervals are: seeded random databases of three families, and real ones.

    python benchmarks/interval_width.py [--efforts quick,standard] [FILE ...]

It goes on where it was stopped: rows are kept in `--out`, which must go when the code changes.

Beside each stands the baseline that needs no search, [largest unfolding rank, Proposition 2.1]; for
the effective rank, [number of objects, Proposition 2.1].
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from traceback import format_exc
from typing import Any

import numpy as np
from record import run_all, write

from capacity.database import Database, load, random_database
from capacity.rank import (
    RankAnalysis,
)
from capacity.rank.verifier.checker import verify

COUNT = 40


def small_and_dense(seed: int) -> Database:
    """One table, like the paper's: nine of ten cells filled, from few objects."""
    rng = np.random.default_rng(seed)
    k, q = int(rng.integers(2, 13)), int(rng.integers(1, 9))
    v = int(rng.integers(2, max(3, k * q * 3 // 10 + 1)))
    cells = [(i, j, rng.integers(v)) for i in range(k) for j in range(q) if rng.random() < 0.9]
    return Database.from_triples([(f"k{a}", f"q{b}", f"v{c}") for a, b, c in cells])


def tables(seed: int) -> Database:
    """A few tables, some of them chained."""
    return random_database(
        seed,
        tables=(1, 3),
        subjects=(2, 10),
        predicates=(1, 6),
        pool=(0.3, 0.8),
        triples=(4, 100),
    )


def sparse_uniform(seed: int) -> Database:
    """Pairs and objects at random; the sizes over a decade."""
    rng = np.random.default_rng(seed)
    k, q, v = (_log_uniform(rng, 3, 40) for _ in range(3))
    pairs = rng.permutation(k * q)[: _log_uniform(rng, 10, 200)]
    return Database.from_triples(
        [(f"k{p // q}", f"q{p % q}", f"v{rng.integers(v)}") for p in pairs.tolist()]
    )


def _log_uniform(rng: np.random.Generator, low: int, high: int) -> int:
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))


FAMILIES = {"small and dense": small_and_dense, "tables": tables, "sparse uniform": sparse_uniform}


def functional(db: Database) -> Database:
    """One object a pair, any; the first by name would be the same few objects time and again."""
    rows = np.random.default_rng(0).permutation(db.triples)
    _, first = np.unique(rows[:, :2], axis=0, return_index=True)
    return Database.from_triples([(f"k{k}", f"q{q}", f"v{v}") for k, q, v in rows[first]])


def measure(task: tuple[str, int | str, str]) -> dict[str, Any]:
    """Both intervals of one database at one effort; what failed instead, so that no row is lost."""
    family, which, effort = task
    try:
        return measured(family, which, effort)
    except Exception:
        return {"family": family, "database": which, "effort": effort, "failed": format_exc()}


def measured(family: str, which: int | str, effort: str) -> dict[str, Any]:
    if isinstance(which, str):
        db = load(which, multi="keep")
        db = functional(db) if family == "functional" else db
    else:
        db = FAMILIES[family](which)
    analysis = RankAnalysis(db, effort=effort)  # type: ignore[arg-type]
    b = analysis.bounds
    start = time.process_time()
    rank = analysis.rank
    middle = time.process_time()
    effective = analysis.effective_rank
    end = time.process_time()
    ends = (*rank.certificates, *effective.certificates)
    assert all(verify(one, db).proved for one in ends)
    return {
        "family": family,
        "database": Path(which).name if isinstance(which, str) else which,
        "effort": effort,
        "triples": b.triples,
        "paper": b.paper,
        "baseline": max(b.unfoldings),
        "objects": b.unfoldings[2],
        "rank": [rank.lower, rank.upper],
        "effective_rank": [effective.lower, effective.upper],
        "by": [
            rank.certificates.lower.by,
            rank.certificates.upper.by,
            effective.certificates.lower.by,
            effective.certificates.upper.by,
        ],
        "seconds": [round(middle - start, 2), round(end - middle, 2)],
    }


def summaries(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Means of each family at each effort, by size."""
    keys = sorted({(r["family"], r["effort"]) for r in rows})
    for family, effort in keys:
        mine = [r for r in rows if (r["family"], r["effort"]) == (family, effort)]
        for what, below in (("rank", "baseline"), ("effective_rank", "objects")):
            yield {
                "family": family,
                "effort": effort,
                "of": what,
                "n": len(mine),
                "mean_triples": mean(r["triples"] for r in mine),
                "baseline": [mean(r[below] for r in mine), mean(r["paper"] for r in mine)],
                "interval": [mean(r[what][0] for r in mine), mean(r[what][1] for r in mine)],
                "closed_baseline": mean(r[below] == r["paper"] for r in mine),
                "closed": mean(r[what][0] == r[what][1] for r in mine),
                "closed_by_size": {
                    name: [mean(r[what][0] == r[what][1] for r in some), len(some)]
                    for name, some in by_size(mine).items()
                },
                "mean_seconds": mean(r["seconds"][what != "rank"] for r in mine),
            }


def by_size(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    parts = {
        "up to 30": [r for r in rows if r["triples"] <= 30],
        "31 to 60": [r for r in rows if 30 < r["triples"] <= 60],
        "over 60": [r for r in rows if r["triples"] > 60],
    }
    return {name: some for name, some in parts.items() if some}


def mean(values: Any) -> float:
    return round(float(np.mean(list(values))), 3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--efforts", default="quick,standard")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/interval_width.jsonl"))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    tasks: list[tuple[str, int | str, str]] = []
    for effort in options.efforts.split(","):
        tasks += [
            (family, seed, effort)
            for family in options.families.split(",")
            for seed in range(options.count)
        ]
        tasks += [(kind, file, effort) for file in options.files for kind in ("raw", "functional")]
    rows = run_all(measure, tasks, kept=options.out, workers=options.workers)
    rows.sort(key=lambda r: (r["family"], r["effort"], str(r["database"]).zfill(9)))
    means = list(summaries([r for r in rows if r["family"] in FAMILIES and "failed" not in r]))
    write(
        "interval_width",
        what="certified intervals of the rank and the effective rank; CPU seconds of each",
        peer="[largest unfolding rank, or number of objects; Proposition 2.1]",
        rows=[*means, *rows],
        packages=["numpy", "scipy", "python-flint", "numba"],
    )


if __name__ == "__main__":
    main()
