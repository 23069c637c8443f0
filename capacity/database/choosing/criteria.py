"""Facts that each criterion of a `Selection` omits, as masks of the facts of a database.

`capacity.database.choosing.selection` explains the criteria.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.checks import nearest, shown
from capacity.database.arity import not_triples
from capacity.database.choosing.hanging import schema_facts
from capacity.database.choosing.lookup import labels_of, position
from capacity.database.choosing.selection import Selected, Selection
from capacity.database.terms.prefixes import namespaces_of, prefix_hint
from capacity.database.terms.term import LITERAL_OR_IRI, Term, unchecked
from capacity.database.terms.vocabularies import (
    OWL,
    RDF_TYPE,
    annotation_predicates,
    declared_as,
    known_prefixes,
    of_predicate,
)
from capacity.errors import InvalidArgumentError, UnknownTokenError

if TYPE_CHECKING:
    from capacity.database.facts import Database

Mask: TypeAlias = NDArray[np.bool_]


def rows_of(db: Database, selection: Selection) -> tuple[Mask, Selected]:
    """Mark the facts that a selection keeps, and count what each criterion omits.

    Parameters
    ----------
    db : Database
        Facts to select from.
    selection : Selection
        The criteria.

    Returns
    -------
    rows : ndarray of bool, shape (n_facts,)
        True for the facts of ``db.tuples`` that stay.
    selected : Selected
        The numbers.

    Raises
    ------
    InvalidArgumentError
        If no fact stays; for a namespace without predicates; for criteria that name predicates, and
        facts of another arity than 3.
    UnknownTokenError
        If no predicate or class has a name, or several do.
    """
    omitted: dict[str, Mask] = {}
    for name, value in selection.criteria().items():
        if name in _OF_TRIPLES and db.arity != 3:
            raise not_triples(f"`{name}`", db.arity)
        omitted[name] = _CRITERIA[name](db, value)
    kept = np.ones(db.n_facts, bool)
    for mask in omitted.values():
        kept &= ~mask
    counts = {name: int(mask.sum()) for name, mask in omitted.items()}
    found = Selected(selection, db.n_facts, int(kept.sum()), counts)
    if omitted and db.n_facts and not found.kept:
        hint = ""
        if counts.get("schema") == db.n_facts and len(of_predicate(db, f"{OWL}onProperty")):
            hint = " Of an ontology, `fold` makes facts of restrictions, which stay."
        raise InvalidArgumentError(
            f"A selection must keep at least one fact; {found}. Omit one of the criteria.{hint}"
        )
    return kept, found


def with_kinds(selected: Selected, whole: Database, part: Database) -> Selected:
    """Add what all facts state about the predicates and classes of those that stay.

    Parameters
    ----------
    selected : Selected
        The numbers of the selection.
    whole, part : Database
        All facts, and those that stay.
    """
    if part.arity != 3:
        return selected
    predicates = set(part.predicates)
    marked = zip(whole.predicates, annotation_predicates(whole).tolist(), strict=True)
    classes = {part.objects[v] for v in np.unique(of_predicate(part, RDF_TYPE)[:, 2]).tolist()}
    return replace(
        selected,
        annotations=frozenset(term for term, is_one in marked if is_one and term in predicates),
        labels=labels_of(whole, predicates | classes),
    )


def _schema(db: Database, _: str) -> Mask:
    return schema_facts(db)


def _annotations(db: Database, _: str) -> Mask:
    return annotation_predicates(db)[db.triples[:, 1]]


def _literals(db: Database, _: str) -> Mask:
    return literal_objects(db)[db.tuples[:, -1]]


def literal_objects(db: Database) -> Mask:
    """Mark the objects that are literals, shape (n_objects,)."""
    return np.array([term.kind == "literal" for term in db.objects], bool)


def _blank_nodes(db: Database, _: str) -> Mask:
    return blank_rows(db)


def blank_rows(db: Database) -> Mask:
    """Mark the facts with a blank node in any place, shape (n_facts,)."""
    blank = np.array([has_blank(term) for term in db.tokens], bool)
    return np.asarray(blank[db.token_tuples].any(axis=1))


def has_blank(term: Term) -> bool:
    """Return whether a term is a blank node, or a triple term with one."""
    nested = term.kind == "triple" and "_:" in LITERAL_OR_IRI.sub("", term.text)
    return nested or term.kind == "blank"


def _predicates(db: Database, names: tuple[Any, ...]) -> Mask:
    return ~_exclude(db, names)


def _exclude(db: Database, names: tuple[Any, ...]) -> Mask:
    at = [position_of(db, name, db.predicates, "predicate") for name in names]
    return np.isin(db.triples[:, 1], at)


def position_of(db: Database, name: Any, vocabulary: tuple[Term, ...], what: str) -> int:
    """Find a term by any of its names, labels among them; `what` it is called in messages.

    Raises
    ------
    UnknownTokenError
        If no term has this name, or several do.
    """
    if isinstance(name, str) and name.startswith("<"):
        iri = unchecked("iri", name[1:-1])
        name = iri if iri in vocabulary else name
    return position(name, vocabulary, known_prefixes(db), lambda: db.labels, what)


def _namespaces(db: Database, names: tuple[str, ...]) -> Mask:
    inside = np.zeros(len(db.predicates), bool)
    for name in names:
        known = namespaces_of(name.removesuffix(":"), db.prefixes) or (name.strip("<>"),)
        mine = np.array(
            [term.kind == "iri" and term.text.startswith(known) for term in db.predicates], bool
        )
        if not mine.any():
            there = {
                re.sub(r"[^/#]*$", "", term.text) for term in db.predicates if term.kind == "iri"
            }
            raise UnknownTokenError(
                f"A namespace must hold a predicate of the facts; {shown(name)} holds none. Theirs "
                f"are {', '.join(sorted(there)[:5]) or 'none: no predicate is an IRI'}"
                f"{f' and {len(there) - 5} others' if len(there) > 5 else ''}."
                f"{_nearest_namespace(name, there, db)}"
            )
        inside |= mine
    return ~inside[db.triples[:, 1]]


def _nearest_namespace(name: str, there: Iterable[str], db: Database) -> str:
    if name and not re.search("[/#<>]", name):
        return prefix_hint(f"{name.removesuffix(':')}:", db.prefixes)
    return nearest(name, there)


def _types(db: Database, names: tuple[Any, ...]) -> Mask:
    of_types = of_predicate(db, RDF_TYPE)
    if not len(of_types):
        raise InvalidArgumentError(
            f"`types` needs facts with the predicate <{RDF_TYPE}>; there are none. Omit it."
        )
    classes = tuple(db.objects[v] for v in np.unique(of_types[:, 2]).tolist())
    wanted = [classes[position_of(db, name, classes, "class")] for name in names]
    chosen = declared_as(db, *wanted)
    return ~np.array([term in chosen for term in db.subjects], bool)[db.triples[:, 0]]


_CRITERIA: dict[str, Callable[[Database, Any], Mask]] = {
    "schema": _schema,
    "literals": _literals,
    "annotations": _annotations,
    "blank_nodes": _blank_nodes,
    "predicates": _predicates,
    "exclude": _exclude,
    "namespaces": _namespaces,
    "types": _types,
}
_OF_TRIPLES = tuple(name for name in _CRITERIA if name not in ("literals", "blank_nodes"))
