"""How wide certified intervals are on graphs like those that are loaded, with hubs and literals.

    python benchmarks/real_graphs.py [--before JSONL] [FILE ...]

Graphs of three families, by seeds, and RDF files. Rows are kept in `--out`, and the run goes on
where it was stopped; `--before` names the rows of another commit, to stand beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import run_all, write

from capacity.database import load
from capacity.rank import RankAnalysis, verify
from capacity.tensor import SparseTensor

Facts = NDArray[np.int64]
EFFORTS = ("quick", "standard")
SEEDS = 2


def shares(rng: np.random.Generator, n: int, exponent: float) -> NDArray[np.float64]:
    """Shares that fall as a power of their number, in random order."""
    weights = np.arange(1, n + 1) ** -exponent
    order = rng.permutation(n)
    return (weights / weights.sum())[order]


def graph(
    seed: int, *, entities: int, predicates: int, facts: int, types: int, hubs: float
) -> Facts:
    """Entities of a few types; each predicate joins those of two types, with many or few objects.

    Popular entities are in many facts; one of seven predicates repeats a part of another, or of its
    inverse. `hubs` is the largest share of a type's entities that a predicate has as objects.
    """
    rng = np.random.default_rng(seed)
    sizes = np.maximum(3, (shares(rng, types, 0.9) * entities).astype(int))
    first = np.cumsum(sizes) - sizes
    counts = np.arange(1, predicates + 1) ** -0.9
    found: list[Facts] = []
    for q, share in enumerate(counts / counts.sum()):
        n = max(5, int(1.25 * facts * share))
        if q and rng.random() < 0.15:
            other = found[int(rng.integers(len(found)))]
            some = other[rng.random(len(other)) < rng.uniform(0.3, 0.95)][:n]
            some = some[:, [2, 1, 0]] if rng.random() < 0.5 else some.copy()
            some[:, 1] = q
            found.append(some)
            continue
        a, b = rng.choice(types, 2, p=sizes / sizes.sum())
        few = int(np.exp(rng.uniform(np.log(2), np.log(max(3, hubs * sizes[b])))))
        few = min(max(few, int(1.5 * n / sizes[a]) + 1), sizes[b])
        left, right = rng.permutation(sizes[a]), rng.permutation(sizes[b])[:few]
        k = left[(len(left) * rng.random(n) ** rng.uniform(1, 1.8)).astype(int)] + first[a]
        v = right[(few * rng.random(n) ** rng.uniform(1, 2.5)).astype(int)] + first[b]
        some = np.stack([k, np.full(n, q), v], axis=1)
        found.append(some[:, [2, 1, 0]] if rng.random() < 0.4 else some)
    return np.concatenate(found)


def vocabulary(seed: int, *, terms: int) -> Facts:
    """Classes and properties with labels, comments and other literals, and axioms among them."""
    rng = np.random.default_rng(seed)
    classes = terms // 3
    popular = shares(rng, classes, 1.0)
    predicates: dict[str, int] = {}
    found: list[tuple[int, int, int]] = []

    def add(term: int, predicate: str, value: int | None = None) -> None:
        """Add a fact; a value that is omitted is a literal of its own."""
        q = predicates.setdefault(predicate, len(predicates))
        found.append((term, q, 10**7 + len(found) if value is None else value))

    def some_class() -> int:
        return int(rng.choice(classes, p=popular))

    # values that many terms share, by predicate: the share of terms that have one, and how many
    shared = {
        "type": (1.0, 4), "type, again": (0.2, 4), "isDefinedBy": (1.0, 3), "status": (0.6, 3),
        "category": (0.4, 4), "component": (0.5, 8), "seeAlso": (0.2, 20), "created": (0.3, 12),
    }  # fmt: skip
    own = {"label": 1.0, "comment": 0.85, "definition": 0.5, "example": 0.2}
    for term in range(terms):
        for number, (predicate, (share, n)) in enumerate(shared.items()):
            if rng.random() < share:
                value = 10**6 + 100 * number + int(rng.integers(n))
                add(term, predicate.removesuffix(", again"), value)
        for predicate, share in own.items():
            if rng.random() < share:
                add(term, predicate)
        for _ in range(rng.poisson(0.3)):
            add(term, "altLabel")
        if term < classes:
            for _ in range(1 + rng.poisson(0.4)):
                add(term, "subClassOf", some_class())
            if rng.random() < 0.2:
                add(term, "disjointWith", some_class())
            continue
        for predicate in ("domain", "range"):
            for _ in range(rng.poisson(0.9)):
                add(term, predicate, some_class())
        for predicate, share in (("inverseOf", 0.3), ("subPropertyOf", 0.4)):
            if rng.random() < share:
                add(term, predicate, int(rng.integers(classes, terms)))
    return np.array(found)


# of few types with many popular entities, facts have many objects a pair; the largest is as wide as
# benchmark graphs of its size
MANY, FEW = {"types": 4, "hubs": 1.0}, {"types": 12, "hubs": 1.0}
GRAPHS = {
    "many objects, 1,500": (graph, {"entities": 300, "predicates": 30, "facts": 1_500, **MANY}),
    "many objects, 20,000": (graph, {"entities": 2_000, "predicates": 60, "facts": 20_000, **MANY}),
    "many objects, 300,000": (
        graph,
        {"entities": 14_500, "predicates": 237, "facts": 272_000, "types": 8, "hubs": 0.6},
    ),
    "few objects, 33,000": (
        graph,
        {"entities": 2_700, "predicates": 42, "facts": 33_000, "types": 12, "hubs": 0.5},
    ),
    "few objects, 87,000": (graph, {"entities": 60_000, "predicates": 11, "facts": 87_000, **FEW}),
    "few objects, 300,000": (
        graph,
        {"entities": 80_000, "predicates": 13, "facts": 316_000, **FEW},
    ),
    "vocabulary, 1,700": (vocabulary, {"terms": 180}),
    "vocabulary, 9,000": (vocabulary, {"terms": 1_000}),
    "vocabulary, 33,000": (vocabulary, {"terms": 3_500}),
}


def generated(name: str, seed: int) -> SparseTensor:
    """Make a graph of `GRAPHS`, as a tensor."""
    make, options = GRAPHS[name]
    triples = np.unique(make(seed, **options), axis=0)  # type: ignore[operator]
    at = np.stack([np.unique(of, return_inverse=True)[1].ravel() for of in triples.T], axis=1)
    return SparseTensor(at, np.ones(len(at), np.int64), (at.max(axis=0) + 1).tolist())


def measure(task: tuple[str, int, str]) -> dict[str, Any]:
    """Measure the interval of the rank of a graph at an effort, and prove it."""
    name, seed, effort = task
    tensor = load(name, multi="keep").tensor() if seed < 0 else generated(name, seed)
    start = time.process_time()
    interval = RankAnalysis(tensor, effort=effort).rank  # type: ignore[arg-type]
    seconds = time.process_time() - start
    assert verify(interval, tensor)
    lower, upper = interval.certificates
    return {
        "graph": Path(name).name if seed < 0 else name,
        "seed": seed if seed >= 0 else None,
        "effort": effort,
        "facts": tensor.n_entries,
        "shape": list(tensor.shape),
        "rank": [lower.value, upper.value],
        "width": round(1 - lower.value / upper.value, 4),
        "by": [lower.by, upper.by],
        "seconds": round(seconds, 1),
    }


def summaries(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean relative widths of each family, and of the files, at each effort."""
    found: list[dict[str, Any]] = []
    for family in ("many objects", "few objects", "vocabulary", "files", "all"):
        for effort in EFFORTS:
            mine = [r for r in rows if r["effort"] == effort and family in (family_of(r), "all")]
            if not mine:
                continue
            row = {"family": family, "effort": effort, "n": len(mine)}
            for key in ("width", "before_width", "seconds"):
                if all(key in r for r in mine):
                    row[f"mean_{key}"] = round(float(np.mean([r[key] for r in mine])), 4)
            found.append(row)
    return found


def family_of(row: dict[str, Any]) -> str:
    """Name the family of a graph."""
    return "files" if row["seed"] is None else row["graph"].split(",")[0]


def main() -> None:
    """Measure all graphs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=Path)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/real_graphs.jsonl"))
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    tasks: list[tuple[str, int, str]] = []
    for effort in EFFORTS:
        tasks += [(name, seed, effort) for name in GRAPHS for seed in range(SEEDS)]
        tasks += [(file, -1, effort) for file in options.files]
    rows = run_all(measure, tasks, kept=options.out, workers=options.workers)
    if options.before:
        lines = options.before.read_text().splitlines()
        kept = dict(map(json.loads, filter(None, lines)))
        for task, row in zip(tasks, rows, strict=True):
            before = kept.get(str(task))
            if before is not None:
                row |= {f"before_{key}": before[key] for key in ("rank", "width", "seconds")}
    write(
        "real_graphs",
        what="certified intervals of the rank of graphs of 1,000 to 300,000 facts; CPU seconds",
        peer="the same of an earlier commit, where given",
        rows=[*summaries(rows), *rows],
        packages=["numpy", "scipy", "python-flint", "numba"],
    )


if __name__ == "__main__":
    main()
