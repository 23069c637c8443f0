"""Find tokens by their names, and the object of a key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from capacity.checks import nearest
from capacity.database.arity import role_names
from capacity.database.terms.nodes import as_term
from capacity.database.terms.prefixes import expanded, prefix_hint
from capacity.database.terms.term import Term, display, local_name, unchecked
from capacity.database.terms.vocabularies import NAMING, of_predicate
from capacity.errors import InvalidTypeError, UnknownTokenError

if TYPE_CHECKING:
    from capacity.database.facts import Database

# languages in the order in which labels are shown; others come last
_LANGUAGES = ("", "en")


def labels_of(db: Database, among: Collection[Term] | None = None) -> dict[Term, tuple[str, ...]]:
    """Collect the labels of tokens, by ``rdfs:label`` and ``skos:prefLabel``.

    Where facts were selected, predicates and classes keep their labels from all facts.

    Parameters
    ----------
    db : Database
        Facts of any arity; only triples have labels.
    among : collection of Term, optional
        The only tokens to look for; by default all.

    Returns
    -------
    dict of Term to tuple of str
        Texts of the labels of each token that has one: plain ones, English ones, then others.
    """
    found: dict[Term, list[Term]] = {}
    if db.arity == 3:
        for iri in NAMING:
            for k, _, v in of_predicate(db, iri).tolist():
                token, label = db.subjects[k], db.objects[v]
                if label.kind in ("literal", "label") and (among is None or token in among):
                    found.setdefault(token, []).append(label)
    said = {
        token: tuple(dict.fromkeys(label.text for label in sorted(labels, key=_order)))
        for token, labels in found.items()
    }
    kept = {} if db.selected is None else db.selected.labels
    return said | {token: kept[token] for token in kept if among is None or token in among}


def _order(label: Term) -> int:
    language = label.language.partition("-")[0]
    return _LANGUAGES.index(language) if language in _LANGUAGES else len(_LANGUAGES)


_MOST_NAMED = 5


def lookup(db: Database, key: tuple[object, ...]) -> Term:
    """Return the object of a key, as `Database.__call__` does, and raise as it does."""
    if len(key) != db.arity - 1:
        names = "a subject and a predicate" if db.arity == 3 else f"{db.arity - 1} tokens"
        raise InvalidTypeError(f"A key of this database is {names}; got {len(key)} tokens.")
    db.require_functional("D(k, q)" if db.arity == 3 else "A lookup")
    at = [
        position(one, of, db.prefixes, lambda: db.labels, role)
        for one, of, role in zip(key, db.roles, role_names(db.arity), strict=False)
    ]
    same = [db.tuples[:, mode] == i for mode, i in enumerate(at)]
    rows = np.flatnonzero(np.logical_and.reduce(same))
    if not len(rows):
        said = ", ".join(f"{one!s:.60}" for one in key)
        there = f" {_predicates_of(db, at[0])}" if db.arity == 3 else ""
        raise UnknownTokenError(f"({said}) lies outside the domain of the database.{there}")
    return db.objects[db.tuples[rows[0], -1]]


def _predicates_of(db: Database, subject: int) -> str:
    """List the predicates of a subject."""
    mine = np.unique(db.triples[db.triples[:, 0] == subject, 1]).tolist()
    names = ", ".join(db.name(db.predicates[q]) for q in mine[:_MOST_NAMED])
    more = f" and {len(mine) - _MOST_NAMED} others" if len(mine) > _MOST_NAMED else ""
    return f"Predicates of the subject: {names:.300}{more}."


def positions(
    value: object,
    vocabulary: tuple[Term, ...],
    prefixes: Mapping[str, str],
    labels: Callable[[], Mapping[Term, Iterable[str]]],
) -> list[int]:
    """Find the indices of the terms that have a name; parameters are those of `position`."""
    term = as_term(value)
    if term in vocabulary:
        return [vocabulary.index(term)]
    for stage, names in enumerate(_names_by_stage(vocabulary, prefixes, labels)):
        if stage == 1:
            # before local names, an IRI by a well-known prefix
            iris = [unchecked("iri", iri) for iri in expanded(value, prefixes)]
            if known := [vocabulary.index(one) for one in iris if one in vocabulary]:
                return known[:1]
        # the empty text is the name of a literal at most, and no local name
        found = [i for i, names_of in enumerate(names) if value in names_of and value != ""]
        if found:
            return found
    return []


def _names_by_stage(
    vocabulary: tuple[Term, ...],
    prefixes: Mapping[str, str],
    labels: Callable[[], Mapping[Term, Iterable[str]]],
) -> Iterator[list[tuple[str, ...]]]:
    """Yield the names of each term: texts and short names, then local names, then labels."""
    yield [(display(t, prefixes), t.text) for t in vocabulary]
    yield [(local_name(t),) for t in vocabulary]
    labelled = labels()
    yield [tuple(labelled.get(t, ())) for t in vocabulary]


def position(
    value: object,
    vocabulary: tuple[Term, ...],
    prefixes: Mapping[str, str],
    labels: Callable[[], Mapping[Term, Iterable[str]]],
    what: str,
) -> int:
    """Find the index of a term in a vocabulary.

    Parameters
    ----------
    value : Term, rdflib node, or str
        A str denotes the label of that text, the only term with that text or short name
        (`display`), the IRI of that name by a well-known prefix, the only IRI with that local
        name, or else the only term with that label.
    vocabulary : tuple of Term
        The subjects, the predicates or the objects of a database.
    prefixes : mapping of str to str
        Namespace of each prefix, for short names.
    labels : callable
        Function that returns the labels of terms; it is called if no other name is found.
    what : str
        Name of such a term, for messages: ``subject``, or another.

    Raises
    ------
    UnknownTokenError
        If no term has this name, or several do.
    """
    found = positions(value, vocabulary, prefixes, labels)
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(str(vocabulary[i]) for i in found[:3])
        raise UnknownTokenError(
            f"{len(found)} {what}s are called {value!r:.60} in the facts, such as {some}. Pass "
            "the IRI, or a Term."
        )
    every = [one for names in _names_by_stage(vocabulary, prefixes, labels) for one in names]
    known_names = dict.fromkeys(name for names_of in every for name in names_of if name)
    hint = prefix_hint(value, prefixes) or nearest(value, known_names, most=3)
    advice = hint or " Use an IRI, a prefixed name, a local name or a label that the facts have."
    raise UnknownTokenError(f"No {what} is called {value!r:.60} in the facts.{advice}")
