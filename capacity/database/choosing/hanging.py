"""Facts that hang on schema alone: cells of lists, restrictions and shapes whose owner is schema.

In OWL and SHACL a statement such as ``:A owl:unionOf (:B :C)`` reaches over blank nodes: the cells
of the list have the predicates ``rdf:first`` and ``rdf:rest``, which are no schema by themselves.
Without the statement they have no meaning. So a blank node *hangs on schema* if

* it is the object of a fact that is schema and no annotation, or a subject that is declared an
  expression of OWL, RDFS or SHACL, as ``[] a owl:Axiom``, or one that such a node refers to; and
* no fact that is neither schema nor an annotation leads to it, from a subject that doesn't hang on
  schema itself; and
* it is no individual: its ``rdf:type`` is no class of another vocabulary, and ``owl:sameAs`` or
  ``owl:differentFrom`` don't name it.

What an annotation alone leads to counts as not led to, so that annotations and schema can be
dropped in either order. Of a node with a name nothing hangs on schema, except that it may be the
cell of a list, as in Brick's shapes: its ``rdf:first`` and ``rdf:rest`` go unless such a fact leads
to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.database.terms.columns import CODES, TermColumns
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import (
    LISTS,
    OWL,
    RDF,
    RDF_TYPE,
    RDFS,
    SCHEMA_NAMESPACES,
    annotation_predicates,
    of_predicate,
    schema_predicates,
)

if TYPE_CHECKING:
    from capacity.database.facts import Database

# classes of these vocabularies that individuals have
_OF_INDIVIDUALS = frozenset({f"{OWL}Thing", f"{OWL}NamedIndividual", f"{RDFS}Resource"})
# predicates of OWL between individuals, which no node hangs on
_BETWEEN_INDIVIDUALS = frozenset({f"{OWL}sameAs", f"{OWL}differentFrom"})


def schema_facts(db: Database) -> NDArray[np.bool_]:
    """Mark the facts that are schema, or hang on schema alone, shape (n_facts,)."""
    of_schema = schema_predicates(db)[db.triples[:, 1]]
    blank, of_lists = blank_tokens(db), _of_lists(db)
    if not of_schema.any() or not (blank.any() or of_lists.any()):
        return of_schema
    hanging = _hanging(db, of_schema, blank, of_lists)[db.token_triples[:, 0]]
    return of_schema | (hanging & (blank[db.token_triples[:, 0]] | of_lists))


def _hanging(
    db: Database,
    of_schema: NDArray[np.bool_],
    blank: NDArray[np.bool_],
    of_lists: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Mark the tokens that hang on schema, shape (n_tokens,).

    Parameters
    ----------
    db : Database
        Facts of arity 3.
    of_schema, of_lists : ndarray of bool, shape (n_facts,)
        Facts whose predicate is schema, and is one of lists.
    blank : ndarray of bool, shape (n_tokens,)
        Tokens that are blank nodes.
    """
    subject, _, object_ = db.token_triples.T
    of_owl, of_others, individuals = _declared(db)
    of_annotations = annotation_predicates(db)[db.triples[:, 1]]
    predicates = np.array([term.text for term in db.predicates], object)
    between = np.isin(predicates, list(_BETWEEN_INDIVIDUALS))[db.triples[:, 1]]
    owned, named_cell = np.zeros((2, db.n_tokens), bool)
    owned[object_[of_schema & ~of_annotations & ~between]] = True
    named_cell[subject[of_lists]] = True
    named_cell &= ~blank
    among = (blank & ~of_others & ~individuals) | named_cell
    is_data = ~of_schema & ~of_annotations
    links = subject[is_data], object_[is_data]
    suspected = _reached(among & (owned | of_owl | named_cell), *links, among=among)
    # what a subject beyond suspicion leads to stays, and what that leads to
    return suspected & ~_reached(~suspected, *links, among=suspected)


def _of_lists(db: Database) -> NDArray[np.bool_]:
    """Mark the facts whose predicate is one of lists, shape (n_facts,)."""
    of_lists = np.array([term.kind == "iri" and term.text in LISTS for term in db.predicates], bool)
    return of_lists[db.triples[:, 1]]


def blank_tokens(db: Database) -> NDArray[np.bool_]:
    """Mark the tokens that are blank nodes, shape (n_tokens,)."""
    if isinstance(db.tokens, TermColumns):
        return db.tokens.kinds == CODES["blank"]
    return np.array([term.kind == "blank" for term in db.tokens], bool)


def _declared(db: Database) -> tuple[NDArray[np.bool_], ...]:
    """Mark tokens that have a class of OWL, RDFS or SHACL, another one, and named individuals."""
    of_owl, of_others, same = (np.zeros(db.n_tokens, bool) for _ in range(3))
    for iri in _BETWEEN_INDIVIDUALS:
        rows = of_predicate(db, iri)
        same[db.subject_ids[rows[:, 0]]] = same[db.object_ids[rows[:, 2]]] = True
    types = of_predicate(db, RDF_TYPE)
    for at in np.unique(types[:, 2]).tolist():
        term = db.tokens[int(db.object_ids[at])]
        subjects = db.subject_ids[types[types[:, 2] == at, 0]]
        if _is_expression(term):
            of_owl[subjects] = True
        elif term.kind in ("iri", "label") and not term.text.startswith(RDF):
            of_others[subjects] = True
    return of_owl, of_others, same


def _is_expression(term: Term) -> bool:
    """Return whether a class is one of expressions and axioms, not of individuals."""
    return (
        term.kind == "iri"
        and term.text.startswith(SCHEMA_NAMESPACES)
        and term.text not in _OF_INDIVIDUALS
    )


def _reached(
    begins: NDArray[np.bool_],
    sources: NDArray[np.integer],
    targets: NDArray[np.integer],
    among: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Mark what links lead to from some tokens, over those of a kind, and these tokens."""
    reached = begins.copy()
    inside = among[targets]
    sources, targets = sources[inside], targets[inside]
    order = np.argsort(sources, kind="stable")
    targets = targets[order]
    starts = np.searchsorted(sources[order], np.arange(len(begins) + 1))
    waiting = np.flatnonzero(begins & (np.diff(starts) > 0)).tolist()
    while waiting:
        at = waiting.pop()
        for target in targets[starts[at] : starts[at + 1]].tolist():
            if not reached[target]:
                reached[target] = True
                waiting.append(target)
    return reached
