"""Conversion of stores and data sets of pyoxigraph to `Database`."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyoxigraph as ox

from capacity.database.facts import Database
from capacity.database.io.rdf.graphs import DEFAULT, check_graph
from capacity.database.policy import MultiPolicy
from capacity.database.terms.nodes import term_from_pyoxigraph
from capacity.database.terms.term import Ids, Term, with_stable_names
from capacity.errors import DatabaseFormatError, InvalidTypeError


def from_pyoxigraph(
    source: ox.Store | ox.Dataset, *, graph: str | None = None, multi: MultiPolicy | None = None
) -> Database:
    """Make a database from a ``Store`` or a ``Dataset`` of pyoxigraph.

    Parameters
    ----------
    source : pyoxigraph.Store or pyoxigraph.Dataset
        The quads.
    graph : str, optional
        The only graph to read: its IRI, ``_:`` and its blank name, or ``default``; by default all
        graphs are merged.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The triples.

    Raises
    ------
    InvalidTypeError
        If `source` is something else.
    InvalidArgumentError
        If `graph` can't name a graph.
    DatabaseFormatError
        If there are no facts.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> store = ox.Store()
    >>> store.add(ox.Quad(ox.NamedNode("x:/a"), ox.NamedNode("x:/p"), ox.Literal("b")))
    >>> str(from_pyoxigraph(store)("a", "p"))
    '"b"'
    """
    if not isinstance(source, ox.Store | ox.Dataset):
        raise InvalidTypeError(
            f"`source` must be a Store or a Dataset of pyoxigraph; got {type(source).__name__}. "
            "For a file use read_rdf, for text parse_rdf."
        )
    only = _graph(check_graph(graph))
    quads: Any = source
    term_of = cache(term_from_pyoxigraph)
    # two nodes can be one term, such as languages in capitals
    ids = Ids()
    rows = [
        [ids[term_of(node)] for node in (quad.subject, quad.predicate, quad.object)]
        for quad in quads
        if only is None or quad.graph_name == only
    ]
    if not rows:
        raise DatabaseFormatError("the store of pyoxigraph", "no triples were found")
    # JSON-LD names blank nodes as no other format does, and a store has them
    tokens = [Term(*term) for term in with_stable_names(list(ids))]
    return Database.from_ids(tokens, np.array(rows), multi=multi)


def _graph(name: str | None) -> ox.DefaultGraph | ox.BlankNode | ox.NamedNode | None:
    """Return what pyoxigraph calls a graph."""
    if name is None:
        return None
    if name == DEFAULT:
        return ox.DefaultGraph()
    return ox.BlankNode(name[2:]) if name.startswith("_:") else ox.NamedNode(name)
