"""Loading RDF: `read_rdf` beside rdflib's parser with ids, on the same files.

python benchmarks/load_rdf.py [N_TRIPLES]
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyoxigraph as ox
import rdflib
from record import medians, write

from capacity.database import read_rdf

FORMATS = {
    "ntriples": (ox.RdfFormat.N_TRIPLES, "nt"),
    "turtle": (ox.RdfFormat.TURTLE, "turtle"),
    "rdfxml": (ox.RdfFormat.RDF_XML, "xml"),
    "jsonld": (ox.RdfFormat.JSON_LD, "json-ld"),
}


def facts(n: int) -> list[ox.Triple]:
    """Subjects with a handful of predicates, IRIs and literals as objects."""
    rng = np.random.default_rng(0)
    k, q, v = rng.integers(0, n // 6, n), rng.integers(0, 40, n), rng.integers(0, n // 4, n)
    base = "http://example.org/some/vocabulary/"
    return [
        ox.Triple(
            ox.NamedNode(f"{base}subject{a}"),
            ox.NamedNode(f"{base}p{b}"),
            ox.NamedNode(f"{base}object{c}") if b % 2 else ox.Literal(f"a literal of number {c}"),
        )
        for a, b, c in zip(k.tolist(), q.tolist(), v.tolist(), strict=True)
    ]


def with_rdflib(path: Path, format: str) -> None:
    """What a user of rdflib writes: parse, then number the terms."""
    ids: dict[object, int] = {}
    graph = rdflib.Graph().parse(path, format=format)
    np.array([[ids.setdefault(term, len(ids)) for term in triple] for triple in graph])


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    triples = facts(n)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (ours, theirs) in FORMATS.items():
            path = Path(folder) / name
            ox.serialize(triples, path, format=ours)
            times = medians(
                {
                    "ours": partial(read_rdf, path, format=name, multi="keep"),
                    "peer": partial(with_rdflib, path, theirs),
                },
                repeats=3,
            )
            rows.append(
                {"format": name, "triples": n, **times, "ratio": times["peer"] / times["ours"]}
            )
    write(
        "load_rdf",
        what="file to ids and sorted vocabularies, median CPU seconds of 3",
        peer="rdflib.Graph().parse and ids in a dict",
        rows=rows,
        packages=["pyoxigraph", "rdflib", "numpy"],
    )


if __name__ == "__main__":
    main()
