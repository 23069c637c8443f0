"""The part of the facts that one means, by kinds of terms, predicates, namespaces and types.

In an ontology most facts can be labels and comments, and in a building model most are types. A
`Selection` chooses the facts to keep. Its criteria are independent: a fact stays if each of them
lets it. They look at the facts as they were given, so that ``types`` still sees the types that
``schema="drop"`` omits; in a second selection it doesn't. That a predicate is an annotation, and
the labels of predicates and classes, outlive a selection in its `Selected`, so that kinds can be
dropped in one call or in several, and `describe` knows them. A policy for multi-valued pairs is
applied after the selection.

================  ==================================================================================
``schema``        ``drop``: no ``rdf:type``, no predicate of RDFS, OWL or SHACL, and no fact of a
                  blank node that hangs on these alone, such as the cells of their lists
                  (`capacity.database.choosing.hanging`)
``literals``      ``drop``: no fact whose object is a literal
``annotations``   ``drop``: no labels, comments and other annotation properties
                  (`capacity.database.terms.vocabularies`)
``blank_nodes``   ``drop``: no fact with a blank node in any place
``predicates``    only facts with one of these predicates
``exclude``       no fact with one of these predicates
``namespaces``    only facts whose predicate is an IRI in one of these namespaces
``types``         only facts whose subject has one of these classes as its ``rdf:type``
================  ==================================================================================

All but literals and blank nodes name predicates, and need facts of arity 3. Before any of them,
``fold`` replaces syntax by the facts that it encodes: lists, restrictions of OWL, and statement
nodes (`capacity.database.choosing.folding.fold`). The criteria look at the facts that it makes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, TypedDict

from capacity.checks import require_choice, shown, with_known_options
from capacity.database.choosing.folding.fold import Folded, folds_of
from capacity.database.terms.nodes import as_term
from capacity.database.terms.term import Term
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError, InvalidTypeError

KeepOrDrop: TypeAlias = Literal["keep", "drop"]


class SelectionOptions(TypedDict, total=False):
    """Keywords of `Selection`, as `load` and `Database.select` take them."""

    schema: KeepOrDrop
    literals: KeepOrDrop
    annotations: KeepOrDrop
    blank_nodes: KeepOrDrop
    predicates: Sequence[Any] | str
    exclude: Sequence[Any] | str
    namespaces: Sequence[str]
    types: Sequence[Any] | str
    fold: Sequence[str] | str


@with_known_options
@briefly_shown
@dataclass(frozen=True)
class Selection:
    """A choice of facts; by default of all.

    Parameters
    ----------
    schema, literals, annotations, blank_nodes : {'keep', 'drop'}
        What becomes of facts of that kind: see the table of
        `capacity.database.choosing.selection`.
    predicates, exclude : sequence of Term, rdflib node or str
        The only predicates to keep, all if there are none; and those to omit. A str is an IRI, a
        prefixed name, a local name, or a label. One alone needs no list.
    namespaces : sequence of str
        The only namespaces of predicates to keep: beginnings of IRIs, or prefixes of the file.
    types : sequence of Term, rdflib node or str
        The only classes to keep, named as predicates are. Subclasses aren't inferred.
    fold : sequence of str
        What to fold before facts are chosen: ``lists``, ``restrictions``, ``statements``.

    Raises
    ------
    InvalidArgumentError
        For another choice than ``keep`` and ``drop``, an empty name, or an unknown fold.
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
    predicates: Sequence[Any] | str = ()
    exclude: Sequence[Any] | str = ()
    namespaces: Sequence[str] = ()
    types: Sequence[Any] | str = ()
    fold: Sequence[str] | str = ()

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.default == "keep":
                require_choice(f"`{each.name}`", value, ("keep", "drop"))
            elif each.name == "fold":
                object.__setattr__(self, each.name, folds_of(value))
            else:
                object.__setattr__(self, each.name, _names(each.name, value))

    def criteria(self) -> dict[str, Any]:
        """Return the options that choose facts, which are all but `fold`."""
        return {name: value for name, value in self.options().items() if name != "fold"}

    def options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults, which keep all facts."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value not in ("keep", ())}


def _names(option: str, value: Any) -> tuple[Any, ...]:
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
        Number of facts before the selection, those that a fold makes.
    kept : int
        Number of facts that all criteria let stay; a policy for multi-valued pairs comes later.
    omitted : mapping of str to int
        Number of facts that each criterion omits, by itself, so that a fact can count several
        times.
    folded : Folded or None
        What was folded before, in numbers, if anything was.
    annotations : frozenset of Term
        Predicates of the facts that stay which are annotations by all facts together.
    labels : mapping of Term to tuple of str
        Labels, from all facts together, of predicates and classes of the facts that stay.
    """

    selection: Selection
    of: int
    kept: int
    omitted: Mapping[str, int] = field(default_factory=dict)
    folded: Folded | None = None
    annotations: frozenset[Term] = field(default=frozenset(), repr=False, compare=False)
    labels: Mapping[Term, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        folded = "" if self.folded is None else f"{self.folded}; of these "
        if not self.omitted:
            return f"{folded}all {self.of:,} facts are selected"
        each = (f"by {name.replace('_', ' ')} {n:,}" for name, n in self.omitted.items())
        return f"{folded}{self.kept:,} of {self.of:,} facts are selected; omitted {', '.join(each)}"

    def to_dict(self) -> dict[str, Any]:
        """Return options and numbers, for JSON."""
        options = {
            name: value if isinstance(value, str) else [_as_text(one) for one in value]
            for name, value in self.selection.options().items()
        }
        folded = {} if self.folded is None else {"folded": self.folded.to_dict()}
        omitted = {"of": self.of, "kept": self.kept, "omitted": {**self.omitted}}
        return {"options": options, **folded, **omitted}


def _as_text(name: Any) -> str:
    return str(name) if isinstance(name, str) else str(as_term(name))
