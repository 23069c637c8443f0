"""Certified rank intervals at scale: time, memory and growth with the number of facts.

    python benchmarks/rank_scale.py [FILE ...]

Synthetic functional databases with Zipf-like predicates, a third of whose objects are categories,
near half entities and the rest unique literals; stress cases whose matrices don't peel; and any
files given (such as real RDF). The peer is the baseline that needs no search, [largest unfolding
rank, Proposition 2.1], by the same code.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from record import write

from capacity.database import Database, label, load
from capacity.exact.types import Indices
from capacity.rank import database_bounds, rank_interval
from capacity.rank.verifier.checker import verify

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)


def zipf_like(n: int, seed: int = 0) -> Database:
    """A functional database of about `n` facts."""
    rng = np.random.default_rng(seed)
    n_predicates, n_subjects = max(20, int(n**0.4)), n // 6
    weights = 1 / np.arange(1, n_predicates + 1)
    q = rng.choice(n_predicates, n, p=weights / weights.sum())
    k = (n_subjects * rng.random(n) ** 1.5).astype(np.int64)
    k, q = np.divmod(np.unique(k * n_predicates + q), n_predicates)
    kind = rng.choice(3, n_predicates, p=[0.35, 0.45, 0.2])[q]
    entity = np.minimum(rng.zipf(1.4, len(k)), n_subjects) - 1
    size = rng.integers(3, 60, n_predicates)[q]
    category = q * 1000 + (rng.random(len(k)) ** 2 * size).astype(np.int64)
    unique = 2 * 10**7 + np.arange(len(k))
    v = np.choose(kind, [category, 10**7 + entity, unique])
    return database(k, q, v)


def categories(rows: int, columns: int = 10, values: int = 50) -> Database:
    """A table of categories: every column of every row has one of a few values."""
    rng = np.random.default_rng(0)
    k, q = np.divmod(np.arange(rows * columns), columns)
    return database(k, q, q * values + rng.integers(0, values, len(k)))


def answers(rows: int, columns: int = 5, values: int = 2000) -> Database:
    """A table of categories with so many values that its unfolding is neither sparse nor narrow."""
    return categories(rows, columns, values)


def relation(n: int, degree: int = 3) -> Database:
    """A random relation between n subjects and n objects: one predicate, several objects."""
    rng = np.random.default_rng(0)
    k, v = np.divmod(np.unique(rng.integers(0, n * n, n * degree)), n)
    return database(k, np.zeros_like(k), v)


def components(n: int) -> Database:
    """Many small components, all of them different: 3 x 3 x 3 at random."""
    rng = np.random.default_rng(0)
    c, k, q, v = np.argwhere(rng.random((n, 3, 3, 3)) < 0.4).T
    return database(3 * c + k, 3 * c + q, 3 * c + v)


STRESS = {
    "categories": (categories, 100_000),
    "answers": (answers, 20_000),
    "relation": (relation, 30_000),
    "components": (components, 20_000),
}


def database(k: Indices, q: Indices, v: Indices) -> Database:
    columns = [np.unique(column, return_inverse=True)[1].ravel() for column in (k, q, v)]
    counts = [int(column.max()) + 1 for column in columns]
    tokens = [label(f"{c}{i:08d}") for c, m in zip("kqv", counts, strict=True) for i in range(m)]
    offsets = np.cumsum([0, *counts[:2]])
    return Database.from_ids(tokens, np.stack(columns, axis=1) + offsets, multi="keep")


def measure(db: Database, name: str) -> dict[str, object]:
    start = time.process_time()
    interval = rank_interval(db, effort="quick")
    ours = time.process_time() - start
    start = time.process_time()
    b = database_bounds(db)
    baseline = time.process_time() - start
    start = time.process_time()
    proved = all(verify(end, db).proved for end in interval.certificates)
    return {
        "name": name,
        "triples": db.n_triples,
        "shape": db.shape,
        "lower": interval.lower,
        "upper": interval.upper,
        "baseline": [max(b.unfoldings), b.paper],
        "seconds": round(ours, 3),
        "baseline_seconds": round(baseline, 3),
        "ratio": round(ours / baseline, 2),
        "verify_seconds": round(time.process_time() - start, 3),
        "proved": proved,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    import ast

    if sys.argv[1:2] == ["--one"]:
        what = sys.argv[2]
        if what in STRESS:
            make, size = STRESS[what]
            db = make(size)
        else:
            db = zipf_like(int(what)) if what.isdecimal() else load(what, multi="keep")
        print(measure(db, what if what.isdecimal() else Path(what).name))
        return
    rows = []
    # a process each, so that the peak memory is its own
    for what in [*map(str, SIZES), *STRESS, *sys.argv[1:]]:
        command = [sys.executable, __file__, "--one", what]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append(ast.literal_eval(out))
        print(out, end="")
    scaling = [(r["triples"], r["seconds"]) for r in rows[: len(SIZES)]]
    sizes, seconds = np.log(np.array(scaling[1:])).T
    exponent = np.polyfit(sizes, seconds, 1)[0]
    rows.append({"name": "exponent of growth from 30,000 triples", "value": round(exponent, 3)})
    write(
        "rank_scale",
        what="rank_interval at quick, CPU seconds of one run a process; facts already loaded",
        peer="database_bounds: largest unfolding rank and Proposition 2.1",
        rows=rows,
        packages=["numpy", "scipy", "python-flint"],
    )


if __name__ == "__main__":
    main()
