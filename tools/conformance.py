"""Run the W3C's suites for formats of RDF, beside pyoxigraph and rdflib.

    make conformance W3C=FOLDER

prints how many tests each reader passes, and ours that aren't passed, with the reasons that
tests/database/test_conformance.py knows.
"""

from __future__ import annotations

import logging
import sys
import urllib.request
import warnings
from pathlib import Path

import pyoxigraph as ox

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.database.test_conformance import MISSES
from tests.w3c import (
    REFUSAL,
    Case,
    Graphs,
    Reader,
    by_capacity,
    by_graph,
    by_pyoxigraph,
    folder,
    passes,
    suites,
)

NAMES = {"ntriples": "nt11", "nquads": "nquads", "rdfxml": "xml", "jsonld": "json-ld"}


def by_rdflib(case: Case) -> Graphs:
    """Read a test by rdflib, which fetches nothing here."""
    import rdflib

    rdflib.NORMALIZE_LITERALS = False
    dataset = rdflib.Dataset()
    name = NAMES.get(case.format, case.format)
    dataset.parse(data=case.path.read_bytes(), format=name, publicID=case.base)
    text = dataset.serialize(format="nquads")
    # rdflib's name of the default graph
    text = text.replace(" <urn:x-rdflib:default> .", " .").replace(f" <{case.base}> .\n", " .\n")
    return by_graph(ox.parse(text, format=ox.RdfFormat.N_QUADS, lenient=True))


def _fetch_nothing(*_: object, **__: object) -> object:
    raise OSError("nothing is fetched")


def main() -> None:
    """Print the table, and exit with an error if a test is missed that isn't known."""
    only = sys.argv[1:]
    root = folder()
    if root is None:
        sys.exit("name the folder of the suites: make conformance W3C=FOLDER")
    readers: dict[str, tuple[Reader, type[Exception]]] = {
        "capacity": (by_capacity, REFUSAL),
        "pyoxigraph": (by_pyoxigraph, Exception),
    }
    try:
        import rdflib

        readers[f"rdflib {rdflib.__version__}"] = by_rdflib, Exception
        logging.disable(logging.CRITICAL)
        urllib.request.urlopen = _fetch_nothing
    except ModuleNotFoundError:
        pass
    warnings.simplefilter("ignore")
    print(f"{'suite':16}{'tests':>8}" + "".join(f"{name:>16}" for name in readers))
    missed = []
    for suite, cases in suites(root).items():
        if only and suite not in only:
            continue
        row = f"{suite:16}{len(cases):8}"
        for name, (read, refusal) in readers.items():
            wrong = [case.name for case in cases if not passes(case, read, refusal)]
            row += f"{len(cases) - len(wrong):16}"
            if name == "capacity":
                missed += [(suite, one) for one in wrong]
        print(row)
    print()
    for suite, name in missed:
        print(f"{suite} {name}: {MISSES.get(suite, {}).get(name, 'NOT EXPECTED')}")
    if any(name not in MISSES.get(suite, {}) for suite, name in missed):
        sys.exit("tests that passed before are missed")


if __name__ == "__main__":
    main()
