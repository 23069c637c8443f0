"""Predicates of well-known RDF vocabularies: schema, and annotations such as labels.

*Schema* is ``rdf:type`` and what the vocabularies of RDFS, OWL and SHACL define, ``rdfs:label`` and
``rdfs:comment`` among it. *Annotations* describe a resource to people: labels, definitions, notes,
and who wrote it when. A predicate is one if it is listed here, or if the facts themselves declare
it an ``owl:AnnotationProperty``. A predicate can be both, as ``rdfs:label`` is.

References
----------
OWL 2 Structural Specification, W3C 2012, section 5.5 (annotation properties); RDF Schema 1.1,
sections 3.6, 3.7 and 5.4; SKOS Reference, sections 5 (labels) and 7 (documentation properties);
SKOS-XL (appendix B of the same); DCMI Metadata Terms, 2020; schema.org (``Thing``); PROV-O, section
3 (its own documentation); VANN; OBO Foundry, Ontology Metadata Ontology.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.database.terms.prefixes import shown_prefixes
from capacity.database.terms.term import Term

if TYPE_CHECKING:
    from capacity.database.facts import Database

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDF_TYPE = f"{RDF}type"
# predicates of the cells of a list
LISTS = (f"{RDF}first", f"{RDF}rest")
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
SHACL = "http://www.w3.org/ns/shacl#"
DC_TERMS = "http://purl.org/dc/terms/"
SCHEMA_NAMESPACES = (RDFS, OWL, SHACL)
# by which IRIs are shown where no file declares any
PREFIXES = shown_prefixes({})
# properties whose values are names of a resource, which it can be asked by
NAMING = (f"{RDFS}label", f"{SKOS}prefLabel")

_DUBLIN_CORE = "title description creator contributor publisher date rights source language"
_ANNOTATIONS = {
    RDFS: "label comment seeAlso isDefinedBy",
    OWL: "deprecated versionInfo priorVersion backwardCompatibleWith incompatibleWith",
    SKOS: "prefLabel altLabel hiddenLabel note changeNote definition editorialNote example "
    "historyNote scopeNote",
    "http://www.w3.org/2008/05/skos-xl#": "prefLabel altLabel hiddenLabel literalForm",
    "http://purl.org/dc/elements/1.1/": _DUBLIN_CORE,
    DC_TERMS: f"{_DUBLIN_CORE} alternative abstract tableOfContents created "
    "modified issued available valid dateAccepted dateCopyrighted dateSubmitted license "
    "rightsHolder accessRights provenance bibliographicCitation",
    "http://schema.org/": "name alternateName description disambiguatingDescription",
    "https://schema.org/": "name alternateName description disambiguatingDescription",
    "http://www.w3.org/ns/prov#": "definition editorialNote editorsDefinition",
    "http://purl.org/vocab/vann/": "preferredNamespacePrefix preferredNamespaceUri usageNote "
    "example changes",
    "http://purl.obolibrary.org/obo/IAO_": "0000111 0000112 0000115 0000116 0000117 0000118 "
    "0000119 0000232",
    "http://www.geneontology.org/formats/oboInOwl#": "hasExactSynonym hasRelatedSynonym "
    "hasNarrowSynonym hasBroadSynonym created_by creation_date",
}
ANNOTATION_PROPERTIES = frozenset(
    namespace + name for namespace, names in _ANNOTATIONS.items() for name in names.split()
)


def is_schema(predicate: Term) -> bool:
    """Return True for ``rdf:type`` and for the predicates of RDFS, OWL and SHACL.

    Examples
    --------
    >>> is_schema(Term("iri", "http://www.w3.org/2000/01/rdf-schema#subClassOf"))
    True
    """
    iri = predicate.text
    return predicate.kind == "iri" and (iri == RDF_TYPE or iri.startswith(SCHEMA_NAMESPACES))


def schema_predicates(db: Database) -> NDArray[np.bool_]:
    """Mark the predicates that are schema, shape (n_predicates,)."""
    return np.array([is_schema(term) for term in db.predicates], bool)


def annotation_predicates(db: Database) -> NDArray[np.bool_]:
    """Mark the predicates that are annotations, listed or declared, shape (n_predicates,)."""
    declared = declared_as(db, Term("iri", f"{OWL}AnnotationProperty"))
    if db.selected is not None:
        # the declarations themselves may have been omitted
        declared |= db.selected.annotations
    return np.array(
        [
            term.kind == "iri" and (term.text in ANNOTATION_PROPERTIES or term in declared)
            for term in db.predicates
        ],
        bool,
    )


def declared_as(db: Database, *classes: Term) -> set[Term]:
    """Collect the subjects that have one of some classes as their ``rdf:type``."""
    types = of_predicate(db, RDF_TYPE)
    wanted = np.array([term in classes for term in db.objects], bool)
    return {db.subjects[k] for k in types[wanted[types[:, 2]], 0].tolist()}


def of_predicate(db: Database, iri: str) -> NDArray[np.int32]:
    """Return the facts whose predicate has an IRI, as rows of `Database.triples`."""
    term = Term("iri", iri)
    at = db.predicates.index(term) if term in db.predicates else -1
    return db.triples[db.triples[:, 1] == at]


def known_prefixes(db: Database) -> Mapping[str, str]:
    """Return the prefixes of a file, and those that files needn't declare, as they write ``a``."""
    if db.arity != 3:
        return shown_prefixes(db.prefixes)
    iris = (term.text for term in (*db.predicates, *_classes(db)) if term.kind == "iri")
    return shown_prefixes(db.prefixes, iris)


def _classes(db: Database) -> list[Term]:
    return [db.objects[v] for v in np.unique(of_predicate(db, RDF_TYPE)[:, 2]).tolist()]
