"""A description as RDF: VoID for the numbers, DCAT for the file, and terms of our own for ranks.

The dataset is named by the SHA-256 of its facts, as a ``ni:`` IRI (RFC 6920), so that the same
facts have the same name wherever they are. No vocabulary has terms for ranks; ours are in the
namespace ``urn:capacity:rank#``:

=====================  ===========================================================================
``rankAtMost``         of a dataset: an upper bound of the rank of its tensor, an integer
``components``         of a dataset: number of parts that share no token in the same role
``predicateRank``      of a property partition: rank of the matrix of its subjects and objects
``rankShare``          of a property partition: its share of the sum of these ranks, a decimal
``functional``         of a property partition: whether each subject has one object, a boolean
``multiValued``        of a property partition: number of subjects with several objects
``sharesMostWith``     of a property partition: the property that it shares most pairs with
``sharedPairs``        of a property partition: number of these (subject, object) pairs
``sharedInverse``      of a property partition: whether with subjects and objects exchanged
=====================  ===========================================================================

References
----------
Describing Linked Datasets with the VoID Vocabulary, W3C 2011; Data Catalog Vocabulary (DCAT),
version 3, W3C 2024; RFC 6920, Naming Things with Hashes.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from capacity.database.terms.vocabularies import DC_TERMS, RDF
from capacity.visible import STEERING

if TYPE_CHECKING:
    from capacity.database.describing.measured import Measured
    from capacity.database.describing.rows import PredicateRow
    from capacity.database.source import Source

TERMS = "urn:capacity:rank#"
_VOID = "http://rdfs.org/ns/void#"
_DCAT = "http://www.w3.org/ns/dcat#"
_SPDX = "http://spdx.org/rdf/terms#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_PREFIXES = {"rank": TERMS, "void": _VOID, "dcat": _DCAT, "dcterms": DC_TERMS, "spdx": _SPDX,
             "xsd": _XSD}  # fmt: skip
_IANA = "https://www.iana.org/assignments/media-types/"
_MEDIA_TYPES = {
    "turtle": "text/turtle",
    "ntriples": "application/n-triples",
    "nquads": "application/n-quads",
    "trig": "application/trig",
    "n3": "text/n3",
    "rdfxml": "application/rdf+xml",
    "jsonld": "application/ld+json",
    "tsv": "text/tab-separated-values",
    "csv": "text/csv",
}
# what steers a terminal, as Turtle itself escapes it, where it stands in literals and IRIs alone
_ESCAPES = {code: f"\\u{code:04X}" for code in STEERING - set(b"\t\n")}
_Node = ox.NamedNode | ox.BlankNode


def as_turtle(of: Measured) -> str:
    """Write a description as triples of VoID and DCAT, in Turtle."""
    data = ox.serialize(_triples(of), format=ox.RdfFormat.TURTLE, prefixes=_PREFIXES)
    return (data or b"").decode().translate(_ESCAPES).rstrip() + "\n"


def named_by(sha256: str) -> str:
    """Return the ``ni:`` IRI of what has a SHA-256, given in hexadecimal.

    Examples
    --------
    >>> named_by("00" * 32)
    'ni:///sha-256;AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
    """
    return f"ni:///sha-256;{urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip('=')}"


def _triples(of: Measured) -> Iterator[ox.Triple]:
    db, dataset = of.db, ox.NamedNode(named_by(of.db.facts_sha256))
    yield _typed(dataset, f"{_VOID}Dataset")
    yield _typed(dataset, f"{_DCAT}Dataset")
    if db.source is not None:
        yield _said(dataset, f"{DC_TERMS}title", db.source.name)
        file = ox.NamedNode(named_by(db.source.sha256))
        yield ox.Triple(dataset, ox.NamedNode(f"{_DCAT}distribution"), file)
    if db.selected is not None:
        yield _said(dataset, f"{DC_TERMS}description", str(db.selected))
    subjects, predicates, objects = db.shape
    counts = {
        f"{_VOID}triples": db.n_facts,
        f"{_VOID}distinctSubjects": subjects,
        f"{_VOID}properties": predicates,
        f"{_VOID}distinctObjects": objects,
        f"{_VOID}classes": len(of.classes),
        f"{TERMS}rankAtMost": of.bound,
        f"{TERMS}components": len(of.components),
    }
    for name, n in counts.items():
        yield _said(dataset, name, n)
    iris = [term.text for term in db.predicates if term.kind == "iri"]
    for namespace in sorted({re.sub(r"[^/#:]*$", "", iri) for iri in iris}):
        yield _linked(dataset, f"{_VOID}vocabulary", namespace)
    classes = [(term, n) for term, n in of.classes if term.kind == "iri"]
    for kind, several in (("property", of.predicates), ("class", classes)):
        for number in range(len(several)):
            part = ox.BlankNode(f"{kind}{number}")
            yield ox.Triple(dataset, ox.NamedNode(f"{_VOID}{kind}Partition"), part)
    for number, row in enumerate(of.predicates):
        yield from _partition(ox.BlankNode(f"property{number}"), row, of)
    for number, (term, n) in enumerate(classes):
        yield _linked(ox.BlankNode(f"class{number}"), f"{_VOID}class", term.text)
        yield _said(ox.BlankNode(f"class{number}"), f"{_VOID}entities", n)
    if db.source is not None:
        yield from _distribution(ox.NamedNode(named_by(db.source.sha256)), db.source)


def _partition(part: _Node, row: PredicateRow, of: Measured) -> Iterator[ox.Triple]:
    if row.predicate.kind == "iri":
        yield _linked(part, f"{_VOID}property", row.predicate.text)
    yield _said(part, f"{DC_TERMS}title", row.label or row.name)
    values: dict[str, Any] = {
        f"{_VOID}triples": row.facts,
        f"{_VOID}distinctSubjects": row.subjects,
        f"{_VOID}distinctObjects": row.objects,
        f"{TERMS}predicateRank": row.rank,
        f"{TERMS}rankShare": row.rank_share,
        f"{TERMS}functional": row.functional,
        f"{TERMS}multiValued": row.multi_valued_pairs,
    }
    other = None if row.repeats is None else of.db.predicates[row.repeats.predicate]
    if row.repeats is not None and other is not None and other.kind == "iri":
        yield _linked(part, f"{TERMS}sharesMostWith", other.text)
        values[f"{TERMS}sharedPairs"] = row.repeats.facts
        values[f"{TERMS}sharedInverse"] = row.repeats.inverse
    for name, value in values.items():
        yield _said(part, name, value)


def _distribution(file: _Node, source: Source) -> Iterator[ox.Triple]:
    checksum = ox.BlankNode("checksum")
    yield _typed(file, f"{_DCAT}Distribution")
    yield _said(file, f"{DC_TERMS}title", source.name)
    if source.format in _MEDIA_TYPES:
        yield _linked(file, f"{_DCAT}mediaType", _IANA + _MEDIA_TYPES[source.format])
    yield ox.Triple(file, ox.NamedNode(f"{_SPDX}checksum"), checksum)
    yield _typed(checksum, f"{_SPDX}Checksum")
    yield _linked(checksum, f"{_SPDX}algorithm", f"{_SPDX}checksumAlgorithm_sha256")
    value = ox.Literal(source.sha256, datatype=ox.NamedNode(f"{_XSD}hexBinary"))
    yield ox.Triple(checksum, ox.NamedNode(f"{_SPDX}checksumValue"), value)


def _typed(subject: _Node, kind: str) -> ox.Triple:
    return _linked(subject, f"{RDF}type", kind)


def _linked(subject: _Node, predicate: str, iri: str) -> ox.Triple:
    return ox.Triple(subject, ox.NamedNode(predicate), ox.NamedNode(iri))


def _said(subject: _Node, predicate: str, value: str | int | float | bool) -> ox.Triple:
    if isinstance(value, float):
        # a decimal, which VoID's numbers would be, has no exponent
        literal = ox.Literal(f"{value:.6f}", datatype=ox.NamedNode(f"{_XSD}decimal"))
    else:
        literal = ox.Literal(value)
    return ox.Triple(subject, ox.NamedNode(predicate), literal)
