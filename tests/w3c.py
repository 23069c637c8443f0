"""The W3C's suites for formats of RDF: their tests, and what a reader makes of each.

The suites aren't part of this tree. The variable W3C names their folder: ``rdf`` in it is that of
https://github.com/w3c/rdf-tests, and ``json-ld`` the tests of https://github.com/w3c/json-ld-api.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from capacity.database import list_graphs, load, read_rdf
from capacity.database.terms.nodes import term_to_pyoxigraph
from capacity.errors import CapacityError

FORMATS = {
    "n-triples": "ntriples",
    "n-quads": "nquads",
    "turtle": "turtle",
    "trig": "trig",
    "xml": "rdfxml",
    "json-ld": "jsonld",
}
SYNTAXES = {
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "nquads": ox.RdfFormat.N_QUADS,
    "turtle": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
    "rdfxml": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}
# triples of each graph, without its name unless that is an IRI
Graphs = dict[str, list[set[ox.Triple]]]
Reader = Callable[["Case"], Graphs]


@dataclass(frozen=True)
class Case:
    """A test: what is read, and what must come of it.

    Attributes
    ----------
    name : str
    must : str
        ``be read``, ``be refused``, or ``equal`` the graphs in `expected`, or be the same lines
        (``lines``).
    path : Path
    format : str
    base : str
    expected : Path or None
    contexts : dict of str to Path
        Documents elsewhere, by IRI.
    """

    name: str
    must: str
    path: Path
    format: str
    base: str
    expected: Path | None = None
    contexts: dict[str, Path] = field(default_factory=dict)


def folder() -> Path | None:
    """The folder of the suites, if there is one."""
    named = os.environ.get("W3C", "")
    return Path(named).resolve() if named and (Path(named) / "rdf").is_dir() else None


def suites(root: Path) -> dict[str, list[Case]]:
    """The tests of each suite, such as "Turtle 1.1"."""
    found: dict[str, list[Case]] = defaultdict(list)
    for version in ("1.1", "1.2"):
        for kind, format in FORMATS.items():
            at = root / "rdf" / f"rdf{version.replace('.', '')}" / f"rdf-{kind}"
            for manifest in sorted(at.glob("**/manifest.ttl")):
                found[f"{format} {version}"] += _rdf_cases(manifest, format)
    found["jsonld 1.1"] = _json_ld_cases(root / "json-ld" / "toRdf-manifest.jsonld")
    return {name: cases for name, cases in found.items() if cases}


def _rdf_cases(manifest: Path, format: str) -> list[Case]:
    mf = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
    own = manifest.parent.as_uri() + "/"
    facts: dict[str, dict[str, str]] = defaultdict(dict)
    base = own
    for quad in ox.parse(path=manifest, format=ox.RdfFormat.TURTLE, base_iri=manifest.as_uri()):
        if isinstance(quad.object, ox.NamedNode):
            facts[str(quad.subject)][quad.predicate.value] = quad.object.value
            if quad.predicate.value == mf + "assumedTestBase":
                base = quad.object.value
    cases = []
    for subject, told in facts.items():
        kind = told.get("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "").rpartition("#Test")[
            2
        ]
        if mf + "action" not in told:
            continue
        action = told[mf + "action"].removeprefix(own)
        result = told.get(mf + "result")
        must = "be refused" if "Negative" in kind else "be read"
        if result is not None:
            must = "lines" if "C14N" in kind else "equal"
        cases.append(
            Case(
                f"{manifest.parent.name}/{subject.rpartition('#')[2].rstrip('>')}",
                must,
                manifest.parent / action,
                format,
                base + action,
                None if result is None else manifest.parent / result.removeprefix(own),
            )
        )
    return cases


def _json_ld_cases(manifest: Path) -> list[Case]:
    if not manifest.exists():
        return []
    told = json.loads(manifest.read_text())
    root, site = manifest.parent, told["baseIri"]
    contexts = {
        site + path.relative_to(root).as_posix(): path
        for path in sorted(root.glob("toRdf/**/*context*.jsonld"))
    }
    cases = []
    for one in told["sequence"]:
        option = one.get("option", {})
        # triples of RDF can't have blank nodes as predicates, and 1.0 is another language
        if option.get("specVersion") == "json-ld-1.0" or option.get("produceGeneralizedRdf"):
            continue
        must = "equal" if "expect" in one else "be read"
        if "expectErrorCode" in one:
            must = "be refused"
        cases.append(
            Case(
                one["@id"],
                must,
                root / one["input"],
                "jsonld",
                option.get("base", site + one["input"]),
                root / one["expect"] if must == "equal" else None,
                contexts,
            )
        )
    return cases


def passes(case: Case, read: Reader, refusal: type[Exception] = Exception) -> bool:
    """True if a reader does with a test what it must."""
    try:
        graphs = read(case)
    except refusal:
        return case.must == "be refused"
    if case.must == "be read":
        return True
    if case.expected is None:
        return False
    syntax = ox.RdfFormat.N_QUADS
    if case.must == "lines":
        # at most one blank node a file, whose name is free
        text = re.sub(r"_:\w+", "_:b", case.expected.read_text(encoding="utf-8"))
        lines = [f"{triple} {'' if n == 'default' else f'<{n}> '}." for n, gs in graphs.items()
                 for g in gs for triple in g]  # fmt: skip
        return sorted(re.sub(r"_:\w+", "_:b", one) for one in lines) == sorted(
            text.split("\n")[:-1]
        )
    expected = by_graph(ox.parse(case.expected.read_bytes(), format=syntax))
    return canonical(graphs) == canonical(expected)


def by_graph(quads: Iterable[ox.Quad]) -> Graphs:
    """Sort quads by graph; graphs whose names are blank nodes are listed without their names."""
    found: dict[Any, set[ox.Triple]] = defaultdict(set)
    for quad in quads:
        found[quad.graph_name].add(ox.Triple(quad.subject, quad.predicate, quad.object))
    graphs: Graphs = defaultdict(list)
    for name, triples in found.items():
        graphs[_key(name)].append(triples)
    return graphs


def _key(name: Any) -> str:
    if isinstance(name, ox.NamedNode):
        return name.value
    return "_" if isinstance(name, ox.BlankNode) else "default"


def canonical(graphs: Graphs) -> dict[str, list[list[str]]]:
    """Lines of each graph that are the same for the same graph, whatever its blank nodes' names."""
    return {name: sorted(map(_lines, many)) for name, many in graphs.items() if any(many)}


def _lines(triples: Iterable[ox.Triple]) -> list[str]:
    dataset = ox.Dataset(
        ox.Quad(_lower(one.subject), one.predicate, _lower(one.object)) for one in triples
    )
    dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return sorted(str(quad) for quad in dataset)


def _lower(node: Any) -> Any:
    """Write language tags in lower case, for they are the same in upper case."""
    if isinstance(node, ox.Triple):
        return ox.Triple(_lower(node.subject), node.predicate, _lower(node.object))
    if isinstance(node, ox.Literal) and node.language:
        language = node.language.lower()
        return ox.Literal(node.value, language=language, direction=node.direction)
    return node


def by_capacity(case: Case) -> Graphs:
    """Read a test's graphs one by one, and all of them as one."""
    options: dict[str, Any] = {"base": case.base, "format": case.format}
    if case.format == "jsonld":
        options["contexts"] = case.contexts
    graphs: Graphs = defaultdict(list)
    for name in list_graphs(case.path, **options) or ["default"]:
        db = read_rdf(
            case.path, **options, graph=name, multi="keep", allow_empty=True,
            annotations_of_facts="keep",
        )  # fmt: skip
        nodes = [term_to_pyoxigraph(token) for token in db.tokens]
        triples = {ox.Triple(*(nodes[i] for i in row)) for row in db.token_triples}  # type: ignore
        graphs["_" if name.startswith("_:") else name].append(triples)
    return graphs


def guessed_alike(case: Case) -> bool:
    """True if a file is read the same when its format is guessed."""
    options: dict[str, Any] = {"base": case.base, "multi": "keep", "allow_empty": True,
                               "annotations_of_facts": "keep"}  # fmt: skip
    if case.format == "jsonld":
        options["contexts"] = case.contexts
    return load(case.path, **options) == read_rdf(case.path, format=case.format, **options)


def by_pyoxigraph(case: Case) -> Graphs:
    """Read a test by pyoxigraph alone."""
    data = case.path.read_bytes()
    return by_graph(ox.parse(data, format=SYNTAXES[case.format], base_iri=case.base))


REFUSAL = CapacityError
