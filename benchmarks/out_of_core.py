"""Counts out of core: CPU seconds, peak memory and disk, beside loading and bounding in memory.

python benchmarks/out_of_core.py [--memory-limit 1GB] [--without-peer] N_TRIPLES...

The facts are synthetic, and written in a stream: of n facts, n/6 subjects, 40 predicates, and n/4
objects each as an IRI and as a literal, drawn at random. A run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from record import write

BASE = "http://example.org/some/vocabulary/"
AT_ONCE = 100_000
# facts from which loading in memory isn't tried
MOST_LOADED = 10**6


def rows(n: int) -> Iterator[list[tuple[str, str, str]]]:
    """Facts as N-Triples terms, some at a time."""
    rng = np.random.default_rng(0)
    for start in range(0, n, AT_ONCE):
        m = min(AT_ONCE, n - start)
        numbers = (rng.integers(0, most, m).tolist() for most in (n // 6, 40, n // 4))
        yield [
            (
                f"<{BASE}subject{k}>",
                f"<{BASE}p{q}>",
                f"<{BASE}object{v}>" if q % 2 else f'"a literal of number {v}"',
            )
            for k, q, v in zip(*numbers, strict=True)
        ]


def make(n: int, path: Path) -> None:
    """Write n facts as N-Triples, or as Parquet with terms in the cells."""
    if path.suffix == ".nt":
        with path.open("w") as file:
            for some in rows(n):
                file.writelines(f"{k} {q} {v} .\n" for k, q, v in some)
        return
    schema = pa.schema([(name, pa.string()) for name in ("subject", "predicate", "object")])
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        for some in rows(n):
            columns = [list(column) for column in zip(*some, strict=True)]
            file.write_batch(pa.record_batch(columns, schema=schema))


def count(path: str, limit: str, folder: str) -> tuple[int, int]:
    from capacity.stores import count_duckdb

    found = count_duckdb(path, memory_limit=limit, temp_folder=folder)
    return found.lower, found.upper


def load_and_bound(path: str) -> tuple[int, int]:
    from capacity import database_bounds, load

    bounds = database_bounds(load(path, multi="keep"))
    return max(bounds.unfoldings), min(bounds.slices)


def child(arguments: list[str]) -> None:
    """Run one of both, and print what it took."""
    run = count if arguments[0] == "count" else load_and_bound
    ends = run(*arguments[1:])
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF,
                                                      resource.RUSAGE_CHILDREN))  # fmt: skip
    print(json.dumps({
        "cpu_seconds": round(own.ru_utime + own.ru_stime, 1),
        "peak_mb": max(own.ru_maxrss, others.ru_maxrss) // 1024,
        "ends": ends,
    }))  # fmt: skip


def measured(*arguments: str, folder: Path) -> dict[str, Any]:
    """What a child took, with the most that it had on the disk."""
    command = [sys.executable, __file__, "--child", *arguments]
    start, disk = time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            disk = max(disk, size_of(folder))
            time.sleep(0.2)
        assert process.stdout is not None
        said = process.stdout.read()
    if process.returncode:
        return {"failed": process.returncode}
    wall = round(time.monotonic() - start, 1)
    return {**json.loads(said), "wall_seconds": wall, "disk_mb": disk // 2**20}


def size_of(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_blocks * 512
        except OSError:
            # it is gone meanwhile
            continue
    return total


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("triples", type=int, nargs="+")
    parser.add_argument("--memory-limit", default="1GB")
    parser.add_argument("--without-peer", action="store_true")
    options = parser.parse_args()
    found = []
    for n in options.triples:
        for suffix in ("nt", "parquet"):
            with tempfile.TemporaryDirectory() as folder:
                path, scratch = Path(folder, f"facts.{suffix}"), Path(folder, "scratch")
                scratch.mkdir()
                make(n, path)
                row: dict[str, Any] = {
                    "format": suffix,
                    "triples": n,
                    "file_mb": path.stat().st_size // 2**20,
                    "memory_limit": options.memory_limit,
                    "ours": measured("count", str(path), options.memory_limit, str(scratch),
                                     folder=scratch),
                }  # fmt: skip
                if n <= MOST_LOADED and not options.without_peer:
                    row["peer"] = measured("load", str(path), folder=scratch)
                    row["ratio"] = row["peer"]["cpu_seconds"] / row["ours"]["cpu_seconds"]
                print(json.dumps(row), flush=True)
                found.append(row)
    write(
        "out_of_core",
        what="counts of facts and the bounds of the rank that they prove, in limited memory: CPU "
        "seconds, peak memory and disk of one process",
        peer="capacity.load and database_bounds in memory, up to 10^6 facts",
        rows=found,
        packages=["duckdb", "pyarrow", "pyoxigraph", "numpy"],
    )


if __name__ == "__main__":
    main()
