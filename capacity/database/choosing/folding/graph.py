"""Facts as a graph of nodes that others may hang on, and the lists of RDF in it.

A fact whose object is a list becomes a fact for each different member, and so none of the empty
list, which is counted; of a list in a list the members count. The order of a list is lost. A list
is *well-formed* if each of its cells has one ``rdf:first``, one ``rdf:rest`` and nothing else but
its type, the first cell is named by an owner, each other one by the cell before it alone, and the
last ``rdf:rest`` is ``rdf:nil``. Cells that share a tail, form a circle, have two rests or no owner
are kept as they are, as are lists that hold themselves, and lists in lists that are kept.

References
----------
RDF Schema 1.1, section 5.2; RDF 1.1 Semantics, appendix D.3 (what isn't well-formed).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.database.terms.columns import CODES, TermColumns
from capacity.database.terms.term import Term, blank_names, unchecked
from capacity.database.terms.vocabularies import RDF, RDF_TYPE
from capacity.errors import InvalidArgumentError

if TYPE_CHECKING:
    from capacity.database.facts import Database


Rows: TypeAlias = NDArray[np.int64]
Row: TypeAlias = tuple[int, int, int]
# number of a term that there isn't
NONE = -1
# facts that a fold makes at most: this, or this many times the facts if that is more
FREE_MADE, MAX_MADE = 10**6, 16


@dataclass(frozen=True)
class Graph:
    """Facts of arity 3, as numbers of terms.

    Attributes
    ----------
    tokens : sequence of Term
        Terms in ascending order, by number.
    rows : ndarray of int64, shape (n_facts, 3)
        The facts.
    added : dict of Term to int
        Numbers of terms that aren't among the tokens.
    """

    tokens: Sequence[Term]
    rows: Rows
    added: dict[Term, int] = field(default_factory=dict)

    @classmethod
    def of(cls, db: Database) -> Graph:
        """Take the facts of a database."""
        return cls(db.tokens, db.token_triples.astype(np.int64))

    def number(self, term: Term) -> int:
        """Return the number of a term; `NONE` if there is no such term."""
        at = bisect_left(self.tokens, term)
        if at < len(self.tokens) and self.tokens[at] == term:
            return at
        return self.added.get(term, NONE)

    def iri(self, text: str) -> int:
        """Return the number of an IRI; `NONE` if there is no such term."""
        return self.number(Term("iri", text))

    def numbered(self, text: str) -> int:
        """Return the number of an IRI, which is added if there is no such term."""
        if (found := self.iri(text)) == NONE:
            found = self.added[Term("iri", text)] = len(self.tokens) + len(self.added)
        return found

    def term(self, number: int) -> Term:
        """Return the term of a number."""
        if number < len(self.tokens):
            return self.tokens[number]
        return list(self.added)[number - len(self.tokens)]

    @cached_property
    def every_term(self) -> Sequence[Term]:
        """All terms, by their numbers."""
        return [*self.tokens, *self.added] if self.added else self.tokens

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """Mark the terms that are blank nodes; none of those that are added is one."""
        tokens = self.tokens
        if isinstance(tokens, TermColumns):
            of_tokens = tokens.kinds == CODES["blank"]
        else:
            of_tokens = np.array([term.kind == "blank" for term in tokens], bool)
        return np.concatenate([of_tokens, np.zeros(len(self.added), bool)])

    @cached_property
    def nested(self) -> frozenset[int]:
        """Blank nodes within triple terms."""
        triples = [term for term in self.tokens if term.kind == "triple"]
        return frozenset(self.number(unchecked("blank", name)) for name in blank_names(triples))

    def predicates(self) -> dict[int, Term]:
        """Return the predicates by their numbers."""
        return {q: self.term(q) for q in np.unique(self.rows[:, 1]).tolist()}

    def with_predicate(self, *numbers: int) -> NDArray[np.bool_]:
        """Mark the facts that have one of some predicates."""
        return np.isin(self.rows[:, 1], numbers)

    def said_of(self, nodes: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """Collect the predicates and objects of each of some subjects."""
        found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for k, q, v in self.rows[np.isin(self.rows[:, 0], list(nodes))].tolist():
            found[k].append((q, v))
        return found

    def naming(self, nodes: Iterable[int]) -> dict[int, list[int]]:
        """Collect, for each of some objects, the places in `rows` of the facts that name it."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for at in np.flatnonzero(np.isin(self.rows[:, 2], list(nodes))).tolist():
            found[int(self.rows[at, 2])].append(at)
        return found

    @cached_property
    def type_(self) -> int:
        """The number of ``rdf:type``."""
        return self.iri(RDF_TYPE)

    def rearranged(self, kept: NDArray[np.bool_], made: Sequence[Row]) -> Graph:
        """Keep some of the facts, and add others; a fact that there is twice counts once."""
        rows = np.concatenate([self.rows[kept], np.array(made, np.int64).reshape(-1, 3)])
        return replace(self, rows=np.unique(rows, axis=0) if len(rows) else rows)


def require_few(what: str, n_made: int, n_facts: int) -> None:
    """Refuse a fold that would make many times the facts.

    Raises
    ------
    InvalidArgumentError
        If it would, as for lists of lists that are shared.
    """
    if n_made > max(FREE_MADE, MAX_MADE * n_facts):
        raise InvalidArgumentError(
            f"To fold {what} must not make over {MAX_MADE} times as many facts; of {n_facts:,} it "
            f"would make {n_made:,} or more. Omit it from `fold`."
        )


WHAT = "lists"


@dataclass(frozen=True)
class Lists:
    """The lists among facts.

    Attributes
    ----------
    members : dict of int to list of int
        By its first cell, the members of each list that is well-formed; lists that hold others
        come before these.
    cells : dict of int to int
        The first cell of the list that each cell of these lists belongs to.
    malformed : int
        Number of lists that aren't well-formed: cells that hang together count as one.
    nil : int
        Number of the empty list.
    """

    members: dict[int, list[int]]
    cells: dict[int, int]
    malformed: int
    nil: int


def find_lists(graph: Graph) -> Lists:
    """Find the lists that are well-formed, and count the others."""
    first, rest, nil = (graph.iri(RDF + name) for name in ("first", "rest", "nil"))
    is_list = (graph.type_, graph.iri(f"{RDF}List"))
    begun = np.unique(graph.rows[graph.with_predicate(first, rest), 0]).tolist()
    cells = set(begun)
    if not cells:
        return Lists({}, {}, 0, nil)
    said, naming = graph.said_of(cells), graph.naming(cells)
    after: dict[int, int] = {}
    held: dict[int, int] = {}
    # of each cell the one before it, and who else names it
    before: Counter[int] = Counter()
    owners: defaultdict[int, list[int]] = defaultdict(list)
    for cell, places in naming.items():
        for subject, predicate, _ in graph.rows[places].tolist():
            if predicate == rest:
                before[cell] += 1
            else:
                # that a list holds this one is told by the cell that does
                owners[cell].append(subject if predicate == first else -1)
    named_twice = set(np.unique(graph.rows[:, 1]).tolist()) | graph.nested
    broken: set[int] = cells & named_twice
    for cell in begun:
        firsts = [v for q, v in said[cell] if q == first]
        rests = [v for q, v in said[cell] if q == rest]
        others = any(q not in (first, rest) and (q, v) != is_list for q, v in said[cell])
        if len(firsts) == len(rests) == 1:
            held[cell], after[cell] = firsts[0], rests[0]
        ends_well = len(rests) == 1 and (rests[0] == nil or rests[0] in cells)
        named_once = before[cell] == 1 and not owners[cell]
        if not (
            len(firsts) == 1 and ends_well and not others
            and (named_once or (not before[cell] and owners[cell]))
        ):  # fmt: skip
            broken.add(cell)
    whole = _components(begun, [(cell, v) for cell in begun for q, v in said[cell] if q == rest])
    heads: dict[int, int] = {whole[cell]: cell for cell in begun if not before[cell]}
    # a circle has no beginning
    bad = {whole[cell] for cell in broken} | (set(whole.values()) - heads.keys())
    lists = {heads[name]: _walked(heads[name], after, nil) for name in heads.keys() - bad}
    good = _outermost_first(lists, held, owners)
    n_bad = len(set(whole.values())) - len(good)
    return Lists(
        {head: [held[cell] for cell in lists[head]] for head in good},
        {cell: head for head in good for cell in lists[head]},
        n_bad, nil,
    )  # fmt: skip


def _components(cells: Sequence[int], links: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Name the cells that hang together by one of them."""
    name = {cell: cell for cell in cells}

    def root(cell: int) -> int:
        while name[cell] != cell:
            name[cell] = name[name[cell]]
            cell = name[cell]
        return cell

    for one, other in links:
        if other in name:
            name[root(one)] = root(other)
    return {cell: root(cell) for cell in cells}


def _walked(head: int, after: dict[int, int], nil: int) -> list[int]:
    cells = [head]
    while (cell := after[cells[-1]]) != nil:
        cells.append(cell)
    return cells


def _outermost_first(
    lists: dict[int, list[int]], held: dict[int, int], owners: dict[int, list[int]]
) -> list[int]:
    """Order lists before those that they hold; what no such order reaches is omitted.

    A list in a circle of lists, or in one that isn't well-formed, is never reached.
    """
    waits = {head: sum(owner >= 0 for owner in owners[head]) for head in lists}
    order = sorted(head for head, n in waits.items() if not n)
    for head in order:
        for cell in lists[head]:
            inner = held[cell]
            if inner in waits:
                waits[inner] -= 1
                if not waits[inner]:
                    order.append(inner)
    return order


def fold_lists(graph: Graph) -> tuple[Graph, dict[str, int]]:
    """Replace each fact about a list by one about each of its members.

    Returns
    -------
    graph : Graph
        The facts.
    counts : dict of str to int
        Numbers of lists that were folded, of facts about the empty list, and of lists that were
        kept since they aren't well-formed.

    Raises
    ------
    InvalidArgumentError
        If it would make too many facts.
    """
    found = find_lists(graph)
    of_cells = np.isin(graph.rows[:, 0], list(found.cells))
    rest, first = (graph.iri(RDF + name) for name in ("rest", "first"))
    empty = graph.rows[:, 2] == found.nil
    # the end of a list that is kept, and the empty list in it
    empty &= ~graph.with_predicate(rest, first) & ~of_cells
    owned = np.isin(graph.rows[:, 2], list(found.members)) & ~of_cells
    members = _flat(found, len(graph.rows))
    owners = graph.rows[owned].tolist()
    require_few(WHAT, sum(len(members[v]) for _, _, v in owners), len(graph.rows))
    made: list[Row] = [(k, q, member) for k, q, v in owners for member in members[v]]
    counts = {
        "lists": len(found.members), "lists_empty": int(empty.sum()), "lists_kept": found.malformed,
    }  # fmt: skip
    return graph.rearranged(~(of_cells | owned | empty), made), counts


def _flat(found: Lists, n_facts: int) -> dict[int, list[int]]:
    """Return the different members of each list, those of the lists in it among them."""
    flat: dict[int, list[int]] = {}
    n_held = 0
    # those that are held come last
    for head, members in reversed(found.members.items()):
        each = (flat.get(one, [one]) for one in members)
        flat[head] = list(dict.fromkeys(v for part in each for v in part if v != found.nil))
        n_held += len(flat[head])
        require_few(WHAT, n_held, n_facts)
    return flat
