"""Loading files of facts, warm: CPU time beside pyoxigraph's loop in the same run, and memory.

The peer's loop over the triples of the file keeps nothing; `capacity.load` returns sorted tokens
and facts. For TSV, which the peer doesn't read, it reads the same facts as N-Triples.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pyoxigraph as ox

from headlines.figure import Figure, ratio

BASE = "http://example.org/some/vocabulary/"
XSD = "http://www.w3.org/2001/XMLSchema#"
# facts of a timed file, and of the one that memory is counted on
TIMED, COUNTED = 200_000, 500_000
REPEATS = 3
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


_COMPILING = """
import sys
from pathlib import Path
from capacity.database.terms import columns
from capacity.database.io.files import pieces
pieces.UNKEPT = pieces.KEPT = columns.UNKEPT = columns.KEPT = 0
sys.path.insert(0, sys.argv[1])
from headlines.loading import load
load(Path(sys.argv[2]))
"""


def have_compiled(path: Path) -> None:
    """Have the code kept, though so few facts do not pay for it, and import numba to load it."""
    subprocess.run(
        [sys.executable, "-c", _COMPILING, str(Path(__file__).parents[1]), path], check=True
    )
    import_module("numba")


def beside_peer(
    name: str,
    write: Callable[[Path, Facts], None],
    facts: Callable[[int], Facts],
) -> float:
    """CPU time of loading a file, by that of the peer's loop over the same facts."""
    with tempfile.TemporaryDirectory() as folder:
        ours = Path(folder, name)
        write(ours, facts(TIMED))
        theirs = ours
        if ours.suffix == ".tsv":
            theirs = Path(folder, "facts.nt")
            write_ntriples(theirs, facts(TIMED))
        have_compiled(ours)
        return ratio(lambda: load(ours), lambda: loop(theirs), repeats=REPEATS)


# the largest resident set, over what it was when a smaller file was read by the same code;
# ru_maxrss would begin with that of the process that starts this one
_MEMORY = """
import sys
from pathlib import Path
import numba
sys.path.insert(0, sys.argv[1])
from headlines.loading import load
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
        write_ntriples(small, literals(COUNTED // 5))
        write_ntriples(path, literals(COUNTED))
        have_compiled(small)
        command = [sys.executable, "-c", _MEMORY, str(Path(__file__).parents[1]), small, path]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(done.stdout) * 1024 / COUNTED


LOOP = "pyoxigraph's loop over the triples"
FIGURES = {
    "loading N-Triples": Figure(
        "ratio", LOOP, partial(beside_peer, "facts.nt", write_ntriples, iris)
    ),
    "loading N-Triples with literals": Figure(
        "ratio", LOOP, partial(beside_peer, "facts.nt", write_ntriples, literals)
    ),
    "loading Turtle": Figure(
        "ratio", LOOP, partial(beside_peer, "facts.ttl", write_turtle, literals)
    ),
    "loading TSV": Figure("ratio", LOOP, partial(beside_peer, "facts.tsv", write_tsv, iris)),
    "bytes of loading": Figure("count", "peak bytes, a triple", bytes_a_triple),
}
