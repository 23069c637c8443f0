"""Graphs of an RDF dataset: their names, and the choice of one.

A graph is named ``default``, by its IRI, or, if its name is a blank node, by ``_:`` and the label
that it has in the file. Anonymous ones are ``_:anonymous1``, ``_:anonymous2``, ... in the order of
the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pyoxigraph as ox

from capacity.checks import nearest, shown
from capacity.database.terms.prefixes import expanded
from capacity.errors import DatabaseFormatError, InvalidArgumentError

UNION, DEFAULT = "union", "default"
# graphs that a message lists
_LISTED = 5
_LABEL = re.compile(rb"_:[\w.\-\x80-\xff]+")
_NAME = re.compile(r"(?:[^\s<>\"{}|^`\\:]*|_):[^\s<>\"{}|^`\\]*")


def check_graph(graph: object) -> str | None:
    """Return the name of a graph without angle brackets, or None for the union of all graphs.

    Raises
    ------
    InvalidArgumentError
        If it can't be the name of a graph.

    Examples
    --------
    >>> check_graph("<http://example.org/g>"), check_graph("union")
    ('http://example.org/g', None)
    """
    if graph is None or graph == UNION:
        return None
    name = graph if isinstance(graph, str) else ""
    if name.startswith("<") and name.endswith(">"):
        name = name[1:-1]
    if name != DEFAULT and not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            "`graph` must be the IRI of a named graph, its prefixed name, its blank name _:g, "
            f"`default` or `union`; got {shown(graph)}.{nearest(name, (DEFAULT, UNION))}"
        )
    return name


def graph_names(nodes: Iterable[object], data: bytes) -> list[str]:
    """List the names of graphs, in the order of the nodes that name them.

    Parameters
    ----------
    nodes : iterable of pyoxigraph nodes
        Names of the graphs.
    data : bytes
        The text that was parsed, which contains the labels of blank nodes.
    """
    names: list[str] = []
    anonymous = 0
    nodes = list(nodes)
    labels: set[bytes] = set()
    if any(isinstance(node, ox.BlankNode) for node in nodes):
        # which don't end in a dot
        labels = {found.rstrip(b".") for found in _LABEL.findall(data)}
    for node in nodes:
        if isinstance(node, ox.BlankNode):
            # the parser invents labels for anonymous nodes
            if str(node).encode() in labels:
                names.append(str(node))
            else:
                anonymous += 1
                names.append(f"_:anonymous{anonymous}")
        else:
            names.append(node.value if isinstance(node, ox.NamedNode) else DEFAULT)
    return names


def find_graph(
    graph: str, counts: Mapping[str, int], prefixes: Mapping[str, str], source: str, format: str
) -> str | None:
    """Find a graph of a file by its IRI, its prefixed name, or its blank name.

    The default graph is in each file, and may be empty; it is then None.

    Raises
    ------
    DatabaseFormatError
        If the file has no such graph, with those that it has.
    """
    names = (graph, *expanded(graph, prefixes))
    found = next((name for name in names if name in counts), None)
    if found is None and graph != DEFAULT:
        wanted = names[-1]
        name = wanted if wanted.startswith("_:") else f"<{wanted}>"
        some = ", ".join(f"{one:.60} ({n:,})" for one, n in list(counts.items())[:_LISTED])
        more = f" and {len(counts) - _LISTED:,} others" if len(counts) > _LISTED else ""
        raise DatabaseFormatError(
            source,
            f"no triples were found in the graph {name:.200}",
            format=format,
            advice=f"Its graphs are {some}{more}.{nearest(wanted, counts)}"
            if counts
            else "It holds no triples at all.",
        )
    return found
