"""Open elements of a document of RDF/XML."""

from __future__ import annotations

from collections.abc import Sequence

from capacity.database.io.rdf.rdfxml.literals import XmlLiteral
from capacity.database.io.rdf.rdfxml.scopes import Scope

# what an open element may hold
NODES, NODE, PROPERTY, COLLECTION, TRIPLE, LITERAL, IGNORED = range(7)


class Open:
    """An open element.

    Attributes
    ----------
    kind : int
        What it may hold: nodes (as the document and ``rdf:RDF`` do), properties (a node does), text
        or a node (a property), a list, a triple term, an XML literal, or what counts for nothing.
    scope : Scope
    subject, predicate, object : str
        Of a node, its subject; of a property, its triple, whose object is "" until it is known.
    reifiers : list of tuple of str
        Names of the triple, each with the kind of it.
    texts : list of str
        Pieces of its text.
    datatype : str
        Of its text, or "".
    last : str
        Last cell of its list.
    n_li : int
        Properties ``rdf:li`` so far.
    depth : int
        Open elements within an XML literal, or within what counts for nothing.
    literal : XmlLiteral or None
    """

    __slots__ = (
        "datatype", "depth", "kind", "last", "literal", "n_li", "object", "predicate",
        "reifiers", "scope", "subject", "texts",
    )  # fmt: skip

    def __init__(
        self,
        kind: int,
        scope: Scope,
        subject: str = "",
        predicate: str = "",
        object: str = "",
        reifiers: Sequence[tuple[str, str]] = (),
        datatype: str = "",
    ) -> None:
        self.kind, self.scope, self.subject = kind, scope, subject
        self.predicate, self.object, self.reifiers = predicate, object, reifiers
        self.datatype, self.last, self.n_li, self.depth = datatype, "", 0, 0
        self.texts: list[str] = []
        self.literal: XmlLiteral | None = None
