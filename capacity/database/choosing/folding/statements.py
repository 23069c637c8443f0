"""Statement nodes, folded to the facts that they state, with or without their qualifiers.

A graph that qualifies a fact, such as by the year since when it holds, has a node for it:

* Wikibase, of which Wikidata is one, writes ``wd:Q1 p:P39 wds:x . wds:x ps:P39 wd:Q2 ; pq:P580
  "1990"``. Stated is ``wd:Q1 wdt:P39 wd:Q2``.
* Reification writes ``_:r rdf:subject :a ; rdf:predicate :p ; rdf:object :b ; :since 1990``, and
  OWL does so with ``owl:annotatedSource``, ``owl:annotatedProperty`` and ``owl:annotatedTarget``.
* A singleton property is used once: ``:a :p1 :b . :p1 rdf:singletonPropertyOf :p ; :since 1990``.

A node that has two values in one place, that lacks a part, or that other facts name, is kept as
it is. A reified statement needn't be asserted; folding asserts it, and counts these.
Of Wikibase, statements of deprecated rank are omitted, as ``wdt:`` omits them, and ranks,
references, and the values with their precision are omitted with what only they name.

References
----------
Wikibase, RDF Dump Format; RDF Schema 1.1, section 5.3; Nguyen, Bodenreider and Sheth, Don't like
RDF reification? WWW 2014 (singleton properties).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from capacity.database.choosing.folding.graph import NONE, Graph, Row
from capacity.database.terms.term import Term, local_name
from capacity.database.terms.vocabularies import OWL, RDF

_REIFICATIONS = (
    tuple(RDF + name for name in ("subject", "predicate", "object")),
    tuple(f"{OWL}annotated{name}" for name in ("Source", "Property", "Target")),
)
_STATED = re.compile(r"(?P<base>.*/prop/)statement/(?P<name>[^/]+)")
_REFERENCE = "http://www.w3.org/ns/prov#wasDerivedFrom"
# values with their precision or in other units, which stand beside the plain ones
_BESIDE = re.compile(r".*/prop/(?:statement|qualifier|reference)/value(?:-normalized)?/[^/]+")
_RANK = re.compile(r".*/ontology(?:-beta)?#rank")


# nodes of references and values
_HELPERS = re.compile(r".*/(?:reference|value)/[^/]+")


@dataclass(frozen=True)
class Statement:
    """A node that states a fact.

    Attributes
    ----------
    node : int
        Its number.
    fact : (int, int, int)
        What it states.
    naming : frozenset of int
        Places in the graph's rows of the facts that state it.
    asserted : bool
        True if the graph asserts by these what the node states.
    deprecated : bool
        True if the graph marks it as wrong.
    """

    node: int
    fact: Row
    naming: frozenset[int]
    asserted: bool = True
    deprecated: bool = False


@dataclass(frozen=True)
class Stated:
    """The facts that the statement nodes of a graph state.

    Attributes
    ----------
    facts : list of (int, int, int)
        The fact of each node.
    qualified : list of ((int, int, int), int, int)
        Fact, predicate and value of each other fact of a node.
    gone : ndarray of bool, shape (n_facts,)
        Facts that belong to a node, or to what these alone name.
    counts : dict of str to int
        Numbers of statements folded, kept, of deprecated rank, and of facts not asserted.
    """

    facts: list[Row]
    qualified: list[tuple[Row, int, int]]
    gone: NDArray[np.bool_]
    counts: dict[str, int]


def find_statements(graph: Graph) -> Stated:
    """Find the nodes that state a fact, of each of the three kinds."""
    every: dict[int, Statement] = {}
    n_kept = 0
    wikibase: set[int] = set()
    for kind in (_of_wikibase, _reified, _singletons):
        for node, statement in kind(graph):
            if statement is None or node in graph.nested:
                n_kept += 1
            else:
                every.setdefault(node, statement)
        if kind is _of_wikibase:
            wikibase = set(every)
    gone = np.isin(graph.rows[:, 0], list(every))
    naming = [at for one in every.values() for at in one.naming]
    says_more = gone.copy()
    gone[naming] = True
    says_more[naming] = False
    of_wikibase = _of_helpers(graph, gone, np.isin(graph.rows[:, 0], list(wikibase)))
    facts = {one.node: one.fact for one in every.values() if not one.deprecated}
    qualified = [
        (facts[k], q, v) for k, q, v in graph.rows[says_more & ~of_wikibase].tolist() if k in facts
    ]
    said = {tuple(row) for row in graph.rows[~gone].tolist()}
    claimed = {one.fact for one in every.values() if not (one.asserted or one.deprecated)}
    counts = {
        "statements": len(facts),
        "statements_kept": n_kept,
        "statements_deprecated": len(every) - len(facts),
        "statements_not_asserted": len(claimed - said),
    }
    return Stated(list(facts.values()), qualified, gone, counts)


def _of_helpers(
    graph: Graph, gone: NDArray[np.bool_], of_wikibase: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Mark what statements of Wikibase contain about ranks, references, values and their own type.

    What their references and values alone name is gone as well.
    """
    predicates = graph.predicates()
    aside = [q for q, term in predicates.items() if _is_aside(term)]
    leading = graph.with_predicate(*aside)
    waiting = np.unique(graph.rows[leading & of_wikibase, 2]).tolist()
    while waiting:
        # in rounds, of which there are as many as references name values
        found = {node for node in waiting if _HELPERS.fullmatch(graph.term(node).text)}
        named = graph.naming(found)
        found = {node for node in found if all(gone[at] for at in named[node])}
        fresh = np.isin(graph.rows[:, 0], list(found)) & ~gone
        gone |= fresh
        waiting = np.unique(graph.rows[fresh & leading, 2]).tolist()
    ranks = [q for q, term in predicates.items() if _RANK.fullmatch(term.text)]
    types = graph.with_predicate(graph.type_)
    return of_wikibase & (leading | graph.with_predicate(*ranks) | types)


def _is_aside(predicate: Term) -> bool:
    return predicate.text == _REFERENCE or _BESIDE.fullmatch(predicate.text) is not None


_Kind = Iterator[tuple[int, Statement | None]]


class _Fact(NamedTuple):
    """A fact and its place in the graph's rows."""

    at: int
    subject: int
    predicate: int
    object: int


def _facts(graph: Graph, nodes: NDArray[np.int64], column: int) -> dict[int, list[_Fact]]:
    """Collect, for each of some nodes, the facts that have it in a column."""
    found: defaultdict[int, list[_Fact]] = defaultdict(list)
    places = np.flatnonzero(np.isin(graph.rows[:, column], nodes))
    for at, row in zip(places.tolist(), graph.rows[places].tolist(), strict=True):
        found[row[column]].append(_Fact(at, *row))
    return found


def _of_wikibase(graph: Graph) -> _Kind:
    """Find the statements of Wikibase: named once, by the property that they state."""
    predicates = graph.predicates()
    # of each property that states, the one that names the statement, and that of the fact
    stating: dict[int, tuple[int, int]] = {}
    for q, term in predicates.items():
        if (parts := _STATED.fullmatch(term.text)) is not None:
            base, name = parts["base"], parts["name"]
            stating[q] = graph.iri(base + name), graph.numbered(f"{base}direct/{name}")
    if not stating:
        return
    naming = [by for by, _ in stating.values() if by != NONE]
    nodes = np.union1d(
        graph.rows[graph.with_predicate(*stating), 0],
        graph.rows[graph.with_predicate(*naming), 2],
    )
    said, named = _facts(graph, nodes, 0), _facts(graph, nodes, 2)
    ranks = {q for q, term in predicates.items() if _RANK.fullmatch(term.text)}
    wrong = {v for v in _objects(graph, ranks) if graph.term(v).text.endswith("#DeprecatedRank")}
    for node in nodes.tolist():
        states = [fact for fact in said[node] if fact.predicate in stating]
        if len(states) != 1 or len(named[node]) != 1 or node in predicates:
            yield node, None
            continue
        (states_it,), (names_it,) = states, named[node]
        by, direct = stating[states_it.predicate]
        if names_it.predicate != by:
            yield node, None
            continue
        fact = names_it.subject, direct, states_it.object
        places = frozenset((states_it.at, names_it.at))
        deprecated = any(one.predicate in ranks and one.object in wrong for one in said[node])
        yield node, Statement(node, fact, places, deprecated=deprecated)


def _objects(graph: Graph, predicates: Iterable[int]) -> list[int]:
    return np.unique(graph.rows[graph.with_predicate(*predicates), 2]).tolist()


def _reified(graph: Graph) -> _Kind:
    """Find reified statements and annotated axioms, which no other fact names."""
    classes = {graph.iri(f"{RDF}Statement"), graph.iri(f"{OWL}Axiom")}
    parts = {graph.iri(name): i for names in _REIFICATIONS for i, name in enumerate(names)}
    nodes = np.unique(graph.rows[graph.with_predicate(*parts), 0])
    said, named = _facts(graph, nodes, 0), _facts(graph, nodes, 2)
    used = set(graph.predicates())
    for node in nodes.tolist():
        states = [fact for fact in said[node] if fact.predicate in parts]
        by_part = {parts[fact.predicate]: fact.object for fact in states}
        if len(states) != 3 or len(by_part) != 3 or named[node] or node in used:
            yield node, None
            continue
        fact = by_part[0], by_part[1], by_part[2]
        if graph.term(fact[1]).kind != "iri" or graph.term(fact[0]).kind == "literal":
            yield node, None
            continue
        types = {
            one.at for one in said[node] if one.predicate == graph.type_ and one.object in classes
        }
        places = {one.at for one in states}
        yield node, Statement(node, fact, frozenset(types | places), asserted=False)


def _singletons(graph: Graph) -> _Kind:
    """Find the properties that are used in one fact and denote another property there."""
    predicates = graph.predicates().items()
    of = [q for q, term in predicates if local_name(term) == "singletonPropertyOf"]
    nodes = np.unique(graph.rows[graph.with_predicate(*of), 0])
    said, used, named = (_facts(graph, nodes, column) for column in range(3))
    for node in nodes.tolist():
        states = [fact for fact in said[node] if fact.predicate in of]
        if len(states) != 1 or len(used[node]) != 1 or named[node]:
            yield node, None
            continue
        (stands_for,), (use,) = states, used[node]
        if graph.term(stands_for.object).kind != "iri":
            yield node, None
            continue
        fact = use.subject, stands_for.object, use.object
        yield node, Statement(node, fact, frozenset((stands_for.at, use.at)))
