"""What the bounds of a dimension cost, beside loading the file; and a witness for 10^4 facts.

    python benchmarks/dimension.py [--triples 1000000] [--repeats 3] [--file kinships.tsv ...]

Seconds of processor time and of the clock, after each step has run once on a small graph. Entities
of the large graph are subjects and objects at random, so that every relation has paths and the
joint rank is nearly full. The graph of 10,000 facts is random, too, which is the hardest for a
witness: real graphs of that size need fewer dimensions. Kinships, all splits of the benchmark in
one file, has 10,686.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from record import write

from capacity import Database, dimension, load
from capacity.embedding import (
    QueryGraph,
    joint_rank,
    one_way_cycles,
    one_way_paths,
    verify_dimension,
)

T = TypeVar("T")
# entities and relations of the graph of 10,000 facts
SMALL = (10_000, 400, 20)
FAMILIES = ("linear", "CP", "ComplEx", "TuckER")
# of the random graph
FEW = ("linear", "CP")


def random_facts(n: int, n_entities: int, n_relations: int) -> list[tuple[str, str, str]]:
    """Distinct facts at random."""
    rng = np.random.default_rng(0)
    cells = rng.choice(n_entities**2 * n_relations, n, replace=False)
    s, q, o = np.unravel_index(cells, (n_entities, n_relations, n_entities))
    return [
        (f"e{a}", f"r{b}", f"e{c}")
        for a, b, c in zip(s.tolist(), q.tolist(), o.tolist(), strict=True)
    ]


def written(folder: Path, n: int) -> Path:
    """A TSV file of n facts of n / 6 entities."""
    file = folder / f"{n}.tsv"
    with file.open("w", encoding="utf-8") as out:
        out.writelines("\t".join(fact) + "\n" for fact in random_facts(n, n // 6, 40))
    return file


def timed(of: Callable[[], T]) -> tuple[T, float, float]:
    """What a function returns, and its seconds of processor time and of the clock."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = of()
    return found, time.process_time() - cpu, time.perf_counter() - wall


def bounds_of(file: Path) -> dict[str, tuple[float, float]]:
    """Seconds of each step for a file."""
    graph: QueryGraph | None = None
    db: Database | None = None
    seconds: dict[str, tuple[float, float]] = {}

    def step(name: str, of: Callable[[], object]) -> Any:
        found, *took = timed(of)
        seconds[name] = took[0], took[1]
        return found

    db = step("load", lambda: load(file, multi="keep"))
    assert db is not None
    graph = step("queries and degrees", lambda: _degrees(db))
    assert graph is not None
    step("joint rank", lambda: joint_rank(graph))
    step("cycles and paths", lambda: (one_way_cycles(graph), one_way_paths(graph)))
    for model in ("linear", "RESCAL", "DistMult"):
        step(f"all bounds of {model}", lambda model=model: dimension(db, model, witness=False))
    return seconds


def _degrees(db: Database) -> QueryGraph:
    graph = QueryGraph.of(db)
    assert graph.answers.max()
    return graph


def large(n: int, repeats: int) -> list[dict[str, Any]]:
    """A row for each step."""
    with tempfile.TemporaryDirectory() as scratch:
        bounds_of(written(Path(scratch), 10_000))
        file = written(Path(scratch), n)
        runs = [bounds_of(file) for _ in range(repeats)]
    rows = []
    for step in runs[0]:
        cpu, wall = (statistics.median(run[step][i] for run in runs) for i in (0, 1))
        load_cpu = statistics.median(run["load"][0] for run in runs)
        rows.append({"step": step, "facts": n, "repeats": repeats, "cpu_s": round(cpu, 2),
                     "wall_s": round(wall, 2), "of_loading": round(cpu / load_cpu, 2)})  # fmt: skip
    return rows


def witnesses(name: str, db: Database, families: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each family."""
    rows = []
    for model in families:
        found, cpu, wall = timed(lambda model=model: dimension(db, model))
        proved, _, checked = timed(lambda found=found: bool(verify_dimension(found, db)))
        assert proved
        rows.append({
            "step": f"a witness of {model}", "graph": name, "facts": db.n_facts,
            "necessary": found.necessary, "sufficient": found.sufficient,
            "witness": found.witness and found.witness.dimension,
            "cpu_s": round(cpu, 1), "wall_s": round(wall, 1), "check_wall_s": round(checked, 1),
        })  # fmt: skip
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, and write the record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--file", type=Path, action="append", default=[])
    options = parser.parse_args()
    rows = large(options.triples, options.repeats)
    dimension(Database.from_triples(random_facts(40, 8, 2), multi="keep"), "CP")
    rows += witnesses("random", Database.from_triples(random_facts(*SMALL), multi="keep"), FEW)
    for file in options.file:
        rows += witnesses(file.stem, load(file, multi="keep"), FAMILIES)
    write(
        "dimension",
        what="seconds of the bounds of a dimension, and of a witness; "
        f"{os.environ.get('OMP_NUM_THREADS', 'all')} threads",
        peer="loading the same file, in the same run",
        rows=rows,
        packages=["numpy", "torch"],
    )


if __name__ == "__main__":
    main()
