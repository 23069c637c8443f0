"""Loading files of facts, warm: CPU time beside pyoxigraph's loop in the same run, and memory.

    python benchmarks/headlines/loading.py

The peer's loop over the triples of the file keeps nothing; `capacity.load` returns sorted tokens
and facts. For TSV, which the peer doesn't read, it reads the same facts as N-Triples. Each file is
loaded once before that is timed, and then both take turns.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyoxigraph as ox

BASE = "http://example.org/some/vocabulary/"
XSD = "http://www.w3.org/2001/XMLSchema#"
# facts of a timed file, and of the one that memory is counted on
TIMED, COUNTED = 200_000, 500_000
REPEATS = 5
# objects that are literals, as people write them: each in turn
LITERALS = (
    '"a label of number {v}"',
    '"die Größe von {v}"@de',
    '"東京 {v}"@ja',
    f'"{{v}}"^^<{XSD}integer>',
    f'"{{v}}.25"^^<{XSD}double>',
    '"the {v}th \\"quoted\\" word"@en-GB',
    '"line {v}\\nand the next\\tone"',
    f'"1999-12-{{v}}"^^<{XSD}date>',
    '"caf\\u00E9 {v}"@zh-Hant',
    '"a longer description in words, of which no other has the number {v}"@en',
)
Facts = Iterator[tuple[str, str, str]]


def iris(n: int) -> Facts:
    """Facts of n / 6 subjects, 40 predicates and n / 4 objects, drawn at random."""
    rng = np.random.default_rng(0)
    for k, q, v in zip(
        *(rng.integers(0, m, n).tolist() for m in (n // 6, 40, n // 4)), strict=True
    ):
        yield f"subject{k}", f"p{q}", f"object{v}"


def literals(n: int) -> Facts:
    """The same, with a literal as every second object."""
    for i, (k, q, v) in enumerate(iris(n)):
        text = LITERALS[i // 2 % len(LITERALS)].format(v=v.removeprefix("object"))
        yield k, q, text if i % 2 else v


def write_ntriples(path: Path, facts: Facts) -> None:
    """Write facts as N-Triples."""
    with path.open("w", encoding="utf-8") as file:
        for k, q, v in facts:
            node = v if v.startswith('"') else f"<{BASE}{v}>"
            file.write(f"<{BASE}{k}> <{BASE}{q}> {node} .\n")


def write_turtle(path: Path, facts: Facts) -> None:
    """Write facts as Turtle with one prefix."""
    with path.open("w", encoding="utf-8") as file:
        file.write(f"@prefix e: <{BASE}> .\n")
        for k, q, v in facts:
            node = v if v.startswith('"') else f"e:{v}"
            file.write(f"e:{k} e:{q} {node} .\n")


def write_tsv(path: Path, facts: Facts) -> None:
    """Write facts of IRIs as labels."""
    with path.open("w", encoding="utf-8") as file:
        for k, q, v in facts:
            file.write(f"{BASE}{k}\t{BASE}{q}\t{BASE}{v}\n")


def load(path: Path) -> None:
    """Read a file with this library."""
    import capacity

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        capacity.load(path, multi="keep")


def loop(path: Path) -> None:
    """Loop over the triples of a file with the peer."""
    for _ in ox.parse(path=path):
        pass


def seconds(task: Callable[[Path], None], path: Path) -> float:
    """CPU seconds of a task in this process."""
    start = time.process_time()
    task(path)
    return time.process_time() - start


def ratio(ours: Path, theirs: Path) -> float:
    """Median of the CPU time of loading, by that of the peer's loop, in turns."""
    load(ours)
    pairs = [(seconds(load, ours), seconds(loop, theirs)) for _ in range(REPEATS)]
    mine, peers = zip(*pairs, strict=True)
    return statistics.median(mine) / statistics.median(peers)


def ntriples_of_iris() -> float:
    """Loading N-Triples of IRIs alone, by the peer's loop."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "facts.nt")
        write_ntriples(path, iris(TIMED))
        return ratio(path, path)


def ntriples_with_literals() -> float:
    """Loading N-Triples of which half the objects are literals, by the peer's loop."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "facts.nt")
        write_ntriples(path, literals(TIMED))
        return ratio(path, path)


def turtle() -> float:
    """Loading the same facts as Turtle, by the peer's loop."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "facts.ttl")
        write_turtle(path, literals(TIMED))
        return ratio(path, path)


def tsv() -> float:
    """Loading TSV, by the peer's loop over the same facts as N-Triples."""
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "facts.tsv"), Path(folder, "facts.nt")
        write_tsv(ours, iris(TIMED))
        write_ntriples(theirs, iris(TIMED))
        return ratio(ours, theirs)


# the largest resident set, over what it was when a smaller file was read; ru_maxrss would begin
# with that of the process that starts this one
_MEMORY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from loading import load
peaks = []
for path in sys.argv[2:]:
    load(Path(path))
    status = Path("/proc/self/status").read_text()
    peaks.append(int(status.partition("VmHWM:")[2].split()[0]))
print(peaks[1] - peaks[0])
"""


def bytes_a_triple() -> float:
    """Peak memory of loading N-Triples with literals in a process of its own, by their number."""
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder, "small.nt"), Path(folder, "facts.nt")
        write_ntriples(small, literals(COUNTED // 10))
        write_ntriples(path, literals(COUNTED))
        command = [sys.executable, "-c", _MEMORY, str(Path(__file__).parent), small, path]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout) * 1024 / COUNTED


# name, function, and whether it is a ratio of times to the peer's or a count
FIGURES: dict[str, tuple[Callable[[], float], str]] = {
    "loading.ntriples": (ntriples_of_iris, "ratio"),
    "loading.ntriples_with_literals": (ntriples_with_literals, "ratio"),
    "loading.turtle": (turtle, "ratio"),
    "loading.tsv": (tsv, "ratio"),
    "loading.bytes_a_triple": (bytes_a_triple, "count"),
}


def main() -> None:
    for name, (figure, kind) in FIGURES.items():
        start = time.monotonic()
        value = figure()
        print(f"{name}: {value:.3g} ({kind}; {time.monotonic() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
