"""Lists of RDF, folded to their members.

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

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from capacity.database.choosing.folding.graph import Graph, Row, require_few
from capacity.database.terms.vocabularies import RDF

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
