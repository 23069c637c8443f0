"""Conversion between networkx graphs and `Database`: an edge is a fact."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.database.policy import MultiPolicy
from capacity.database.terms.nodes import as_term
from capacity.database.terms.term import Term
from capacity.errors import InvalidArgumentError
from capacity.optional import needed_by

if TYPE_CHECKING:
    import networkx as nx


def from_networkx(
    graph: nx.Graph[Any], *, predicate: str = "predicate", multi: MultiPolicy | None = None
) -> Database:
    """Make a database from a directed networkx graph: each edge is a fact.

    Parameters
    ----------
    graph : networkx.DiGraph or MultiDiGraph
        Graph whose nodes are str, `Term` or rdflib nodes.
    predicate : str
        Edge attribute that holds the predicate; where a MultiDiGraph has no such attribute, the
        key of the edge is the predicate.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The facts (node, predicate, node).

    Raises
    ------
    InvalidArgumentError
        For an undirected graph, one without edges, or an edge without a predicate.
    InvalidTypeError
        For a node or predicate of another type.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = nx.DiGraph()
    >>> graph.add_edge("Astrid", "Singapore", predicate="born_in")
    >>> str(from_networkx(graph)("Astrid", "born_in"))
    'Singapore'
    """
    if not graph.is_directed():
        raise InvalidArgumentError(
            "A fact has a direction: pass a DiGraph or MultiDiGraph, not a Graph."
        )
    if graph.number_of_edges() == 0:
        raise InvalidArgumentError(
            "A database must hold at least one fact; the graph has no edges."
        )

    def facts() -> Iterable[tuple[Term, Term, Term]]:
        keyed: Iterable[tuple[Any, Any, Any, dict[str, Any]]]
        if graph.is_multigraph():
            keyed = graph.edges(keys=True, data=True)  # type: ignore[call-overload, assignment]
        else:
            keyed = ((u, v, None, data) for u, v, data in graph.edges(data=True))
        for u, v, key, data in keyed:
            name = data.get(predicate, key)
            # networkx numbers keys that the user didn't choose
            if name is None or isinstance(name, int):
                raise InvalidArgumentError(
                    f"Edge ({u!r:.60}, {v!r:.60}) must have the attribute {predicate!r:.60}, or "
                    "its predicate as key; it has neither."
                )
            yield as_term(u), as_term(name), as_term(v)

    return Database.from_triples(facts(), multi=multi)


def to_networkx(db: DatabaseLike) -> nx.MultiDiGraph[Any]:
    """Write the facts as a MultiDiGraph: nodes are subjects and objects, an edge is a fact.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Facts to write.

    Returns
    -------
    networkx.MultiDiGraph
        Labels are str nodes and other tokens `Term` nodes; the predicate is the edge's key and its
        attribute ``predicate``.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For facts of another arity than 3.

    Examples
    --------
    >>> graph = to_networkx(Database.from_triples([("Astrid", "born_in", "Singapore")]))
    >>> list(graph.edges(keys=True))
    [('Astrid', 'Singapore', 'born_in')]
    """
    db = require_triples(db, "to_networkx(db)")
    with needed_by("to_networkx"):
        import networkx as nx

    nodes = [token.text if token.kind == "label" else token for token in db.tokens]
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    for k, q, v in db.token_triples.tolist():
        graph.add_edge(nodes[k], nodes[v], key=nodes[q], predicate=nodes[q])
    return graph
