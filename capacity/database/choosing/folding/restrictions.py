"""Restrictions of OWL, folded to facts between the classes that they relate.

An axiom ``A subClassOf (p some B)`` means that everything that is A has a p that is B. It becomes
the fact ``A p B``. Folded are, where A has a name:

===================================  ===============================================================
``p some B``                         ``A p B``, if B has a name or is a datatype
``p value v``                        ``A p v``; of ``i rdf:type (p value v)`` the fact ``i p v``
``p min n B``, ``p exactly n B``     ``A p B`` if n is 1 or more
``C and (p some B) and ...``         each part as if it were alone, ``A subClassOf C`` among them;
                                     a part that isn't folded is kept, as ``A subClassOf`` this part
``A equivalentClass ...``            what follows from it as from ``subClassOf``; that all of these
                                     are A is lost
===================================  ===============================================================

Kept as they are and counted, since no such fact follows from them, are ``p only B``, ``p max n B``,
complements and unions, restrictions without a class (``p min n``), those on an inverse property,
of a filler without a name, and those that no axiom about a named class reaches. A node goes when
all that names it is folded.

References
----------
OWL 2 Mapping to RDF Graphs, W3C 2012, section 3; sections 8.2 to 8.4 of the OWL 2 Structural
Specification.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from capacity.database.choosing.folding.graph import (
    NONE,
    Graph,
    Lists,
    Row,
    find_lists,
    require_few,
)
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import OWL, RDFS

WHAT = "restrictions"
# what an expression may be declared, beside what it says
_CLASSES = (f"{OWL}Restriction", f"{OWL}Class", f"{RDFS}Class")


@dataclass(frozen=True)
class _Expressions:
    """The class expressions of a graph that may be folded.

    Attributes
    ----------
    graph : Graph
        The facts.
    lists : Lists
        Its lists.
    said : dict of int to list of (int, int)
        Of each node that is a restriction or an intersection, its own facts.
    """

    graph: Graph
    lists: Lists
    said: dict[int, list[tuple[int, int]]]

    @classmethod
    def of(cls, graph: Graph) -> _Expressions:
        on, both = graph.iri(f"{OWL}onProperty"), graph.iri(f"{OWL}intersectionOf")
        nodes = np.unique(graph.rows[graph.with_predicate(on, both), 0])
        said = graph.said_of(nodes[graph.blank[nodes]].tolist())
        return cls(graph, find_lists(graph), {n: said[n] for n in said if n not in graph.nested})

    @cached_property
    def _names(self) -> dict[int, str]:
        names = ("onProperty", "someValuesFrom", "hasValue", "onClass", "intersectionOf",
                 "minQualifiedCardinality", "qualifiedCardinality")  # fmt: skip
        return {self.graph.iri(OWL + name): name for name in names}

    @cached_property
    def _classes(self) -> frozenset[int]:
        return frozenset(self.graph.iri(one) for one in _CLASSES)

    def parts(self, node: int) -> dict[str, int] | None:
        """Return what a node states about itself, by name; None if no expression here has it."""
        found: dict[str, int] = {}
        for q, v in self.said.get(node, ()):
            if q == self.graph.type_ and v in self._classes:
                continue
            name = self._names.get(q)
            # two values of one property are malformed
            if name is None or name in found:
                return None
            found[name] = v
        return found or None

    def intersected(self, node: int) -> list[int] | None:
        """Return the parts of an intersection; None for what isn't one."""
        said = self.parts(node)
        if said is None or said.keys() != {"intersectionOf"}:
            return None
        return self.lists.members.get(said["intersectionOf"])

    def related(self, node: int, individual: bool) -> tuple[int, int] | None:
        """Return the property and the filler of a restriction; None if it isn't folded."""
        said = self.parts(node)
        if said is None or "onProperty" not in said:
            return None
        on = said.pop("onProperty")
        if self.graph.term(on).kind != "iri":
            return None
        if said.keys() == {"hasValue"}:
            return on, said["hasValue"]
        if said.keys() == {"someValuesFrom"}:
            filler = said["someValuesFrom"]
        else:
            filler = said.pop("onClass", NONE)
            if said.keys() not in ({"minQualifiedCardinality"}, {"qualifiedCardinality"}):
                return None
            if filler == NONE or not _is_positive(self.graph.term(*said.values())):
                return None
        # that an individual has some B doesn't say which
        named = not individual and self.graph.term(filler).kind == "iri"
        return (on, filler) if named else None

    def unfolded(self, begin: list[int], individual: bool) -> _Unfolded:
        """Take parts of an intersection apart, and those of intersections among them."""
        found = _Unfolded([], [], set())
        waiting = list(reversed(begin))
        while waiting:
            node = waiting.pop()
            if node in found.nodes:
                continue
            if (edge := self.related(node, individual)) is not None:
                found.edges.append(edge)
            elif (inner := self.intersected(node)) is not None:
                waiting += reversed(inner)
            else:
                found.others.append(node)
                continue
            found.nodes.add(node)
        return found


@dataclass(frozen=True)
class _Unfolded:
    """An expression in parts: properties with fillers, other classes, and the nodes that go."""

    edges: list[tuple[int, int]]
    others: list[int]
    nodes: set[int]


def _is_positive(number: Term) -> bool:
    digits = number.text.removeprefix("+")
    return number.kind == "literal" and digits.isdecimal() and digits.strip("0") != ""


def fold_restrictions(graph: Graph) -> tuple[Graph, dict[str, int]]:
    """Replace axioms about restrictions by facts.

    Returns
    -------
    graph : Graph
        The facts.
    counts : dict of str to int
        Numbers of axioms that were folded, and of restrictions that were kept.

    Raises
    ------
    InvalidArgumentError
        If it would make too many facts.
    """
    within, same, both = (
        graph.iri(name) for name in (f"{RDFS}subClassOf", f"{OWL}equivalentClass",
                                     f"{OWL}intersectionOf")
    )  # fmt: skip
    known = _Expressions.of(graph)
    about = graph.with_predicate(within, same, graph.type_) & np.isin(
        graph.rows[:, 2], list(known.said)
    )
    # OWL 1 also wrote the parts of a class with a name at the class itself
    about |= graph.with_predicate(both) & np.isin(graph.rows[:, 2], list(known.lists.members))
    made: list[Row] = []
    folded: list[int] = []
    nodes: set[int] = set()
    for at in np.flatnonzero(about).tolist():
        subject, predicate, node = graph.rows[at].tolist()
        individual = predicate == graph.type_
        begin = known.lists.members[node] if predicate == both else [node]
        if subject in known.said or not (individual or graph.term(subject).kind == "iri"):
            continue
        found = known.unfolded(begin, individual)
        if predicate != both and not found.nodes:
            continue
        to = graph.type_ if individual else graph.numbered(f"{RDFS}subClassOf")
        made += [(subject, p, v) for p, v in found.edges]
        made += [(subject, to, other) for other in found.others]
        nodes |= found.nodes
        folded.append(at)
        require_few(WHAT, len(made), len(graph.rows))
    kept = _unnamed_removed(graph, folded, made, nodes, known)
    done = graph.rearranged(kept, made)
    left = done.rows[done.with_predicate(graph.iri(f"{OWL}onProperty")), 0]
    return done, {"restrictions": len(folded), "restrictions_kept": len(np.unique(left))}


def _unnamed_removed(
    graph: Graph, folded: list[int], made: list[Row], nodes: set[int], known: _Expressions
) -> NDArray[np.bool_]:
    """Mark the facts that stay: nodes go together with lists once all that names them is folded."""
    heads = known.lists.cells
    said = (known.parts(node) or {} for node in nodes)
    lists = {parts["intersectionOf"] for parts in said if "intersectionOf" in parts}
    lists |= {int(graph.rows[at, 2]) for at in folded} & known.lists.members.keys()
    going = nodes | {cell for cell, head in heads.items() if head in lists}
    places: defaultdict[int, list[int]] = defaultdict(list)
    for at in np.flatnonzero(np.isin(graph.rows[:, 0], list(going))).tolist():
        places[int(graph.rows[at, 0])].append(at)
    names = Counter({node: len(rows) for node, rows in graph.naming(going).items()})
    names.update(v for _, _, v in made if v in going)
    kept = np.ones(len(graph.rows), bool)
    waiting = list(folded)
    while waiting:
        at = waiting.pop()
        kept[at] = False
        node = int(graph.rows[at, 2])
        if node in going:
            names[node] -= 1
            if not names[node]:
                waiting += places[node]
    return kept
