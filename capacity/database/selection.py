"""The part of the facts that one means, by kinds of terms, predicates, namespaces and types.

In an ontology most facts can be labels and comments, and in a building model most are types. A
`Selection` says which facts to keep. Its criteria are independent: a fact stays if each of them
lets it. They look at the facts as they were given, so that ``types`` still sees the types that
``schema="drop"`` omits. A policy for multi-valued pairs is applied after the selection.

================  ==================================================================================
``schema``        ``drop``: no ``rdf:type``, and no predicate of RDFS, OWL or SHACL
``literals``      ``drop``: no fact whose object is a literal
``annotations``   ``drop``: no labels, comments and other annotation properties
                  (`capacity.database.vocabularies`)
``blank_nodes``   ``drop``: no fact with a blank node in any place
``predicates``    only facts with one of these predicates
``exclude``       no fact with one of these predicates
``namespaces``    only facts whose predicate is an IRI in one of these namespaces
``types``         only facts whose subject has one of these classes as its ``rdf:type``
================  ==================================================================================

All but literals and blank nodes name predicates, and need facts of arity 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from capacity.database.arity import not_triples
from capacity.database.terms import LITERAL_OR_IRI, Term, as_term, position
from capacity.database.vocabularies import (
    PREFIXES,
    RDF_TYPE,
    annotation_predicates,
    declared_as,
    of_predicate,
    schema_predicates,
)
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError, InvalidTypeError, UnknownTokenError
from capacity.limits import shown
from capacity.options import nearest, require_choice, with_known_options

if TYPE_CHECKING:
    from capacity.database.facts import Database

KeepOrDrop: TypeAlias = Literal["keep", "drop"]
# a Term, a node of rdflib, or a str that names a term
Name: TypeAlias = Any
Names: TypeAlias = Sequence[Name] | str
Mask: TypeAlias = NDArray[np.bool_]


class SelectionOptions(TypedDict, total=False):
    """Keywords of `Selection`, as `load` and `Database.select` take them."""

    schema: KeepOrDrop
    literals: KeepOrDrop
    annotations: KeepOrDrop
    blank_nodes: KeepOrDrop
    predicates: Names
    exclude: Names
    namespaces: Sequence[str]
    types: Names


@with_known_options
@briefly_shown
@dataclass(frozen=True)
class Selection:
    """A choice of facts; by default of all.

    Parameters
    ----------
    schema, literals, annotations, blank_nodes : {'keep', 'drop'}
        What becomes of facts of that kind, as the table of `capacity.database.selection` says.
    predicates, exclude : sequence of Term, rdflib node or str
        The only predicates to keep, all if there are none; and those to omit. A str is an IRI, a
        prefixed name, a local name, or a label. One alone needs no list.
    namespaces : sequence of str
        The only namespaces of predicates to keep: beginnings of IRIs, or prefixes of the file.
    types : sequence of Term, rdflib node or str
        The only classes to keep, named as predicates are. Subclasses aren't inferred.

    Raises
    ------
    InvalidArgumentError
        For another choice than ``keep`` and ``drop``, or an empty name.
    InvalidTypeError
        For an unknown option, or a name of another type.

    Examples
    --------
    >>> from capacity.database import parse_rdf
    >>> db = parse_rdf("<x:Oslo> a <x:City> ; <x:in> <x:Norway> ; <x:name> 'Oslo' .", "turtle")
    >>> part = db.select(schema="drop", literals="drop")
    >>> part.n_facts
    1
    >>> print(part.selected)
    1 of 3 facts are selected; omitted by schema 1, by literals 1
    """

    schema: KeepOrDrop = "keep"
    literals: KeepOrDrop = "keep"
    annotations: KeepOrDrop = "keep"
    blank_nodes: KeepOrDrop = "keep"
    predicates: Names = ()
    exclude: Names = ()
    namespaces: Sequence[str] = ()
    types: Names = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.default == "keep":
                require_choice(f"`{each.name}`", value, ("keep", "drop"))
            else:
                object.__setattr__(self, each.name, _names(each.name, value))

    def options(self) -> dict[str, Any]:
        """Return the criteria that differ from their defaults, which keep all facts."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value not in ("keep", ())}


def _names(option: str, value: Any) -> tuple[Name, ...]:
    # terms are tuples, and nodes of rdflib are strings
    names = (value,) if isinstance(value, str | Term) else value
    if isinstance(names, Mapping) or not hasattr(names, "__iter__"):
        raise InvalidTypeError(f"`{option}` must be a sequence of names; got {shown(value)}.")
    names = tuple(names)
    for name in names:
        if option == "namespaces" and not isinstance(name, str):
            raise InvalidTypeError(f"`namespaces` must be strings; got {shown(name)}.")
        if not as_term(name).text:
            raise InvalidArgumentError(f"A name in `{option}` must not be empty; got {name!r}.")
    return names


@briefly_shown
@dataclass(frozen=True)
class Selected:
    """The numbers of a selection: how many facts there were, stay, and were omitted by what.

    Attributes
    ----------
    selection : Selection
        The criteria.
    of : int
        Number of facts before the selection.
    kept : int
        Number of facts that all criteria let stay; a policy for multi-valued pairs comes later.
    omitted : mapping of str to int
        Number of facts that each criterion omits, by itself, so that a fact can count several
        times.
    """

    selection: Selection
    of: int
    kept: int
    omitted: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.omitted:
            return f"all {self.of:,} facts are selected"
        each = (f"by {name.replace('_', ' ')} {n:,}" for name, n in self.omitted.items())
        return f"{self.kept:,} of {self.of:,} facts are selected; omitted {', '.join(each)}"

    def to_dict(self) -> dict[str, Any]:
        """Return options and numbers, for JSON."""
        options = {
            name: value if isinstance(value, str) else [_as_text(one) for one in value]
            for name, value in self.selection.options().items()
        }
        return {"options": options, "of": self.of, "kept": self.kept, "omitted": {**self.omitted}}


def _as_text(name: Name) -> str:
    return str(name) if isinstance(name, str) else str(as_term(name))


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
    for name, value in selection.options().items():
        if name in _OF_TRIPLES and db.arity != 3:
            raise not_triples(f"`{name}`", db.arity)
        omitted[name] = _CRITERIA[name](db, value)
    kept = np.ones(db.n_facts, bool)
    for mask in omitted.values():
        kept &= ~mask
    counts = {name: int(mask.sum()) for name, mask in omitted.items()}
    found = Selected(selection, db.n_facts, int(kept.sum()), counts)
    if omitted and db.n_facts and not found.kept:
        raise InvalidArgumentError(
            f"A selection must keep at least one fact; {found}. Omit one of the criteria."
        )
    return kept, found


def _schema(db: Database, _: str) -> Mask:
    return schema_predicates(db)[db.triples[:, 1]]


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
    blank = np.array([_has_blank(term) for term in db.tokens], bool)
    return np.asarray(blank[db.token_tuples].any(axis=1))


def _has_blank(term: Term) -> bool:
    nested = term.kind == "triple" and "_:" in LITERAL_OR_IRI.sub("", term.text)
    return nested or term.kind == "blank"


def _predicates(db: Database, names: tuple[Name, ...]) -> Mask:
    return ~_exclude(db, names)


def _exclude(db: Database, names: tuple[Name, ...]) -> Mask:
    at = [position_of(db, name, db.predicates, "predicate") for name in names]
    return np.isin(db.triples[:, 1], at)


def position_of(db: Database, name: Name, vocabulary: tuple[Term, ...], what: str) -> int:
    """Find a term by any of its names, labels among them; `what` it is stands in messages.

    Raises
    ------
    UnknownTokenError
        If no term has this name, or several do.
    """
    # files that write `a` for rdf:type needn't declare its prefix
    prefixes = {**PREFIXES, **db.prefixes}
    said = what, "in the facts", "its IRI"
    if isinstance(name, str) and name.startswith("<"):
        iri = Term("iri", name[1:-1])
        name = iri if iri in vocabulary else name
    return position(name, vocabulary, prefixes, labels=lambda: db.labels, what=said)


def _namespaces(db: Database, names: tuple[str, ...]) -> Mask:
    inside = np.zeros(len(db.predicates), bool)
    for name in names:
        prefixes = {**PREFIXES, **db.prefixes}
        namespace = prefixes.get(name.removesuffix(":"), name.strip("<>"))
        mine = np.array(
            [term.kind == "iri" and term.text.startswith(namespace) for term in db.predicates], bool
        )
        if not mine.any():
            there = {
                re.sub(r"[^/#]*$", "", term.text) for term in db.predicates if term.kind == "iri"
            }
            raise UnknownTokenError(
                f"A namespace must hold a predicate of the facts; {shown(name)} holds none. Theirs "
                f"are {', '.join(sorted(there)[:5]) or 'none: no predicate is an IRI'}"
                f"{f' and {len(there) - 5} others' if len(there) > 5 else ''}."
                f"{nearest(name, [*there, *db.prefixes])}"
            )
        inside |= mine
    return ~inside[db.triples[:, 1]]


def _types(db: Database, names: tuple[Name, ...]) -> Mask:
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
