"""Run the W3C's suites for formats of RDF, beside pyoxigraph and rdflib.

    make conformance W3C=FOLDER

writes docs/conformance.md: how many tests each reader passes, and ours that aren't passed, with the
reasons that tests/database/test_conformance.py knows.
"""

from __future__ import annotations

import logging
import sys
import urllib.request
import warnings
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path

import pyoxigraph as ox

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.database.test_conformance import FEATURES as FEATURES_READ
from tests.database.test_conformance import MISSES, OTHER
from tests.test_corpus import WHY
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

DOCUMENT = Path(__file__).parents[1] / "docs" / "conformance.md"
HEAD = """# Conformance to the W3C's suites for RDF

How many tests of each suite are passed, beside pyoxigraph, which parses all formats but RDF/XML
here, and rdflib. The page is written by `make conformance W3C=FOLDER`, where `FOLDER/rdf` is a copy
of [rdf-tests](https://github.com/w3c/rdf-tests) and `FOLDER/json-ld` the tests of
[json-ld-api](https://github.com/w3c/json-ld-api). `make test` runs the suites where they are,
and fails if a test is missed that isn't listed below.

A test is passed if the file is read as the same graphs as the W3C's, or is read, or is refused,
whichever the test demands. Nothing is fetched. The library is given the contexts that tests of
JSON-LD refer to, by [`contexts=`](how-to/rdf.md#json-ld-with-a-context-elsewhere); the others
have no such option here. rdflib doesn't claim RDF 1.2. Omitted are 12 tests of JSON-LD: those of
its version 1.0, and those whose predicates are blank nodes, which are no RDF.

"""
MISSED = """
## Tests that are not passed

pyoxigraph passes none of these either.

| suite | tests | why |
|---|---|---|
"""
FEATURES = """
## JSON-LD by features

Of {n} documents of one feature each (`tests/database/jsonld_features.json`: containers, contexts,
languages, numbers, keywords, type maps) {same} are read as
[pyld](https://github.com/digitalbazaar/pyld) 3.3 reads them.

| feature | why it differs |
|---|---|
"""
CORPUS = """
## Files of packages

Of the RDF files in the packages that the Makefile names (CORPUS: Brick, LinkML, PROV, pySHACL, EDAM
and others), and in `examples/`, all are read as the facts that rdflib reads, or refused by both,
but these (`tests/test_corpus.py`).

| files | why |
|---|---|
"""
# rdflib's names of formats
NAMES = {"ntriples": "nt11", "nquads": "nquads", "rdfxml": "xml", "jsonld": "json-ld"}
TITLES = {
    "ntriples": "N-Triples",
    "nquads": "N-Quads",
    "turtle": "Turtle",
    "trig": "TriG",
    "rdfxml": "RDF/XML",
    "jsonld": "JSON-LD",
}


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


def title(suite: str) -> str:
    """Write the name of a suite.

    >>> title("rdfxml 1.2")
    'RDF/XML 1.2'
    """
    format, _, edition = suite.partition(" ")
    return f"{TITLES[format]} {edition}"


def table(heads: Iterable[str], rows: Iterable[tuple[str, int, list[int]]]) -> str:
    """Write the numbers of tests passed, of all in bold."""
    heads = list(heads)
    lines = [f"| suite | tests | {' | '.join(heads)} |", f"|---|{'---:|' * (1 + len(heads))}"]
    for suite, tests, passed in rows:
        cells = [f"**{n}**" if n == tests else str(n) for n in passed]
        lines.append(f"| {title(suite)} | {tests} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def missed_table(misses: Mapping[str, Mapping[str, str]]) -> str:
    """Write the tests that are missed, those of one reason in one row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for suite, reasons in misses.items():
        for name, why in reasons.items():
            rows.setdefault((suite, why), []).append(f"`{name.rpartition('/')[2]}`")
    return MISSED + "".join(
        f"| {title(suite)} | {', '.join(names)} | {why} |\n" for (suite, why), names in rows.items()
    )


def features() -> str:
    """Write the features of JSON-LD that are read in another way than by pyld."""
    n = len(FEATURES_READ)
    head = FEATURES.format(n=n, same=n - len(OTHER))
    return head + "".join(f"| {feature} | {why} |\n" for feature, (_, why) in OTHER.items())


def corpus() -> str:
    """Write the files of packages that are read in another way than by rdflib."""
    return CORPUS + "".join(f"| `{files}` | {why} |\n" for files, why in WHY.items())


def main() -> None:
    """Write and print the page, and exit with an error if a test is missed that isn't known."""
    root = folder()
    if root is None:
        sys.exit("name the folder of the suites: make conformance W3C=FOLDER")
    readers: dict[str, tuple[Reader, type[Exception]]] = {
        "capacity": (by_capacity, REFUSAL),
        f"pyoxigraph {version('pyoxigraph')}": (by_pyoxigraph, Exception),
        f"rdflib {version('rdflib')}": (by_rdflib, Exception),
    }
    logging.disable(logging.CRITICAL)
    urllib.request.urlopen = _fetch_nothing
    warnings.simplefilter("ignore")
    rows, unknown = [], []
    for suite, cases in suites(root).items():
        passed = []
        for name, (read, refusal) in readers.items():
            missed = [case.name for case in cases if not passes(case, read, refusal)]
            passed.append(len(cases) - len(missed))
            if name == "capacity":
                unknown += [(suite, one) for one in missed if one not in MISSES.get(suite, {})]
        rows.append((suite, len(cases), passed))
    text = table(readers, rows)
    print(text)
    if unknown:
        sys.exit(f"tests are missed that were passed before: {unknown}")
    DOCUMENT.write_text(
        HEAD + text + missed_table(MISSES) + features() + corpus(), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
