"""RDF files of installed packages are read as rdflib reads them, or it is explained why not.

`make test-full` installs the packages (CORPUS in the Makefile) beside the environment, for their
files alone. The page of conformance has the differences.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
import rdflib

from capacity.database import Term, load
from capacity.database.terms.nodes import as_term
from capacity.errors import CapacityError
from tests.oracles import EXAMPLES, ROOT

FOLDERS = (Path(sys.prefix) / "corpus", Path(sys.prefix) / "lib", EXAMPLES, ROOT / "tests")
FORMATS = {".ttl": "turtle", ".rdf": "xml", ".owl": "xml", ".nt": "nt", ".nq": "nquads",
           ".trig": "trig", ".jsonld": "json-ld", ".n3": "n3"}  # fmt: skip
Facts: TypeAlias = set[tuple[Term, ...]]
EMPTY = "it holds no triples, which only `allow_empty` reads here"
# by the end of a file's path, why it is read in another way
WHY = {
    "linkml_model/jsonld/*.context.jsonld": (
        "its @vocab is @null, a word that looks like a keyword, and no IRI: refused here"
    ),
    "linkml_model/jsonld/context.jsonld": (
        "its @vocab is @null, a word that looks like a keyword, and no IRI: refused here"
    ),
    "cwltool/tests/wf/empty*.ttl": "the file is empty, which only `allow_empty` reads here",
    "schema_salad/tests/EDAM.owl": "rdflib drops the ? of an empty query at the end of an IRI",
    "linkml_model/jsonld/meta.context.jsonld": EMPTY,
    "serializers/prov-jsonld-context.jsonld": EMPTY,
}


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted(path for path in folder.rglob("*") if path.suffix in FORMATS)


def facts_here(path: Path, base: str) -> Facts | None:
    try:
        db = load(path, base=base, multi="keep")
    except CapacityError:
        return None
    return {tuple(db.tokens[i] for i in row) for row in db.token_triples.tolist()}


def facts_of_rdflib(path: Path, base: str) -> Facts | None:
    dataset = rdflib.Dataset()
    try:
        dataset.parse(data=path.read_bytes(), format=FORMATS[path.suffix], publicID=base)
    # it raises what its parsers happen to
    except Exception:
        return None
    # "a" and "a"^^xsd:string are two literals to rdflib, and one in RDF 1.1
    return {tuple(map(as_term, quad[:3])) for quad in dataset.quads()}


def without_blanks(facts: Facts) -> Facts:
    return {fact for fact in facts if not any(term.kind == "blank" for term in fact)}


def explained(path: Path) -> bool:
    return any(path.match(f"*/{pattern}") for pattern in WHY)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fetch_nothing(*_: object, **__: object) -> object:
        raise OSError("nothing is fetched")

    monkeypatch.setattr("urllib.request.urlopen", fetch_nothing)
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", False)
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.full
def test_rdf_files_of_packages_are_read_as_by_rdflib_or_it_is_explained() -> None:
    read, differing, refused = 0, list[str](), 0
    for path in files():
        base = f"http://base.example/{path.name}"
        here, there = facts_here(path, base), facts_of_rdflib(path, base)
        if here is None and there is None:
            refused += 1
        elif here is None or there is None:
            if not explained(path):
                differing.append(f"{path}: {len(here or ())} beside {len(there or ())} facts")
        elif len(here) != len(there) or without_blanks(here) != without_blanks(there):
            if explained(path):
                continue
            differing.append(f"{path}: {len(here)} beside {len(there)} facts, or others")
        else:
            read += 1
    assert not differing, "\n".join(differing)
    # those of the Makefile's packages
    assert read > 500
    assert refused < 20


def test_each_difference_is_explained_on_the_page() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    for pattern, why in WHY.items():
        assert f"| `{pattern}` | {why} |" in page
