"""Loading files of facts, beside pyoxigraph, rdflib and PyKEEN: CPU time, and peak memory.

    python benchmarks/load_rdf.py [--triples 100000,1000000] [--repeats 3] [--pykeen PYTHON]

Each load is in a process of its own, which has read a small file before; the readers take turns.
`capacity` loads the file twice: what it takes the first time has the import of numba in it, and
loading what is compiled; the second time is warm. What is compared:

* capacity: `capacity.load`, to sorted tokens and facts, by compiled code that is kept on disk;
  `facts_sha256` is measured apart;
* capacity, unkept: the same in a new environment, where a file of this size is read without
  compiled code, or compiles it;
* pyoxigraph: the loop over the triples of the file, which keeps nothing;
* rdflib: `Graph().parse`, up to 1,000,000 triples;
* PyKEEN: `TriplesFactory.from_path` of TSV, by the Python given with ``--pykeen``.

Memory is the largest resident set over what it was before the load.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# triples of the file that is read before, enough for the code that reads large files
SMALL = 120_000
# rdflib takes a minute and 1.4 GB for as many
MOST_RDFLIB = 1_000_000
READERS: dict[str, tuple[str, ...]] = {
    "ntriples": ("capacity", "capacity_unkept", "pyoxigraph", "rdflib"),
    "turtle": ("capacity", "capacity_unkept", "pyoxigraph", "rdflib"),
    "tsv": ("capacity", "capacity_unkept", "pykeen"),
}
NAMESPACE = "http://example.org/some/vocabulary/"


def facts(n: int) -> Iterator[tuple[str, str, str]]:
    """Subjects with a handful of predicates, IRIs and literals as objects, in pieces."""
    import numpy as np

    rng = np.random.default_rng(0)
    for start in range(0, n, 10**6):
        size = min(10**6, n - start)
        sides = (n // 6, 40, n // 4)
        for k, q, v in zip(*(rng.integers(0, side, size).tolist() for side in sides), strict=True):
            yield f"subject{k}", f"p{q}", f"object{v}" if q % 2 else f'"a literal of number {v}"'


def write_facts(path: Path, format: str, n: int) -> None:
    """Write synthetic facts; the same in all formats."""
    with path.open("w", encoding="utf-8") as file:
        if format == "turtle":
            file.write(f"@prefix e: <{NAMESPACE}> .\n")
        for s, p, o in facts(n):
            plain = o.startswith('"')
            if format == "turtle":
                file.write(f"e:{s} e:{p} {o if plain else 'e:' + o} .\n")
            elif format == "ntriples":
                o = o if plain else f"<{NAMESPACE}{o}>"
                file.write(f"<{NAMESPACE}{s}> <{NAMESPACE}{p}> {o} .\n")
            else:
                cells = [f"{NAMESPACE}{s}", f"{NAMESPACE}{p}", o.strip('"')]
                file.write("\t".join(cells) + "\n")


def with_capacity(path: Path, format: str) -> dict[str, Any]:
    from capacity import load

    db = load(path, format=format, multi="keep")
    start = time.process_time()
    digest = db.facts_sha256
    return {"digest_seconds": time.process_time() - start, "facts_sha256": digest}


def with_pyoxigraph(path: Path, format: str) -> dict[str, Any]:
    import pyoxigraph as ox

    syntax = {"ntriples": ox.RdfFormat.N_TRIPLES, "turtle": ox.RdfFormat.TURTLE}[format]
    for _ in ox.parse(path=path, format=syntax):
        pass
    return {}


def with_rdflib(path: Path, format: str) -> dict[str, Any]:
    import rdflib

    rdflib.Graph().parse(path, format={"ntriples": "nt", "turtle": "turtle"}[format])
    return {}


def with_pykeen(path: Path, _: str) -> dict[str, Any]:
    from pykeen.triples import TriplesFactory  # pyright: ignore[reportMissingImports]

    TriplesFactory.from_path(path)
    return {}


LOADS: dict[str, Callable[[Path, str], dict[str, Any]]] = {
    "capacity": with_capacity,
    "capacity_unkept": with_capacity,
    "pyoxigraph": with_pyoxigraph,
    "rdflib": with_rdflib,
    "pykeen": with_pykeen,
}


def one(reader: str, format: str, small: Path, path: Path) -> dict[str, Any]:
    """Load a small file and then another, in this process; return what the latter took."""
    import resource

    LOADS[reader](small, format)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first, found = timed(reader, format, path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    warm = timed(reader, format, path)[0] if reader == "capacity" else first
    return {"seconds": warm, "first_seconds": first, "bytes": (peak - before) * 1024, **found}


def timed(reader: str, format: str, path: Path) -> tuple[float, dict[str, Any]]:
    """Load a file, and return the CPU seconds that it took without its digest."""
    start = time.process_time()
    found = LOADS[reader](path, format)
    return time.process_time() - start - found.get("digest_seconds", 0.0), found


def in_a_process(python: str, reader: str, *arguments: object) -> dict[str, Any]:
    """Run `one` in another process, which finds no compiled code if the reader is to keep none."""
    command = [python, __file__, "--one", reader, *map(str, arguments)]
    with tempfile.TemporaryDirectory() as nothing:
        env = {**os.environ, "NUMBA_CACHE_DIR": nothing} if reader.endswith("unkept") else None
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return json.loads(done.stdout.splitlines()[-1])


def measured(format: str, n: int, folder: Path, pythons: dict[str, str], repeats: int) -> Any:
    """Measure all readers of a format on the same file, in turns."""
    from headlines.loading import have_compiled

    path, small = folder / f"{n}.{format}", folder / f"small.{format}"
    write_facts(path, format, n)
    write_facts(small, format, SMALL)
    have_compiled(small)
    runs: dict[str, list[dict[str, Any]]] = {}
    for _ in range(repeats if n < 10**7 else 1):
        for reader in READERS[format]:
            if reader in pythons and (reader != "rdflib" or n <= MOST_RDFLIB):
                print(f"{format}, {n:,} triples: {reader}", file=sys.stderr)
                run = in_a_process(pythons[reader], reader, format, small, path)
                runs.setdefault(reader, []).append(run)
    row: dict[str, Any] = {"format": format, "triples": n, "file_bytes": path.stat().st_size}
    path.unlink()
    for reader, all_ in runs.items():
        row[f"{reader}_seconds"] = round(statistics.median(run["seconds"] for run in all_), 3)
        row[f"{reader}_bytes_a_triple"] = round(
            statistics.median(run["bytes"] for run in all_) / n, 1
        )
    first = [run["first_seconds"] for run in runs["capacity"]]
    row["capacity_first_seconds"] = round(statistics.median(first), 3)
    ours = row["capacity_seconds"]
    digests = [run["digest_seconds"] for run in runs["capacity"]]
    row["digest_seconds"] = round(statistics.median(digests), 3)
    row["repeats"] = len(digests)
    if "pyoxigraph" in runs:
        row["times_pyoxigraph"] = round(ours / row["pyoxigraph_seconds"], 2)
    for reader in {"rdflib", "pykeen"} & runs.keys():
        row[f"faster_than_{reader}"] = round(row[f"{reader}_seconds"] / ours, 2)
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--triples", default="100000,1000000")
    parser.add_argument("--formats", default=",".join(READERS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pykeen", help="a Python that has PyKEEN")
    parser.add_argument("--one", nargs=4)
    options = parser.parse_args()
    if options.one:
        reader, format, small, path = options.one
        print(json.dumps(one(reader, format, Path(small), Path(path))))
        return
    from record import write

    pythons: dict[str, str] = dict.fromkeys(LOADS, sys.executable)
    del pythons["pykeen"]
    if options.pykeen:
        pythons["pykeen"] = options.pykeen
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            measured(format, n, Path(folder), pythons, options.repeats)
            for n in map(int, options.triples.split(","))
            for format in options.formats.split(",")
        ]
    write(
        "load_rdf",
        what="file to tokens and facts; CPU seconds, warm and first, and peak bytes; medians",
        peer="pyoxigraph's loop over triples, rdflib.Graph().parse, PyKEEN's TriplesFactory",
        rows=rows,
        packages=["pyoxigraph", "pyarrow", "numba", "numpy", "rdflib"],
    )


if __name__ == "__main__":
    main()
