"""The grammar of RDF/XML over the events of a parser of XML.

References
----------
RDF 1.1 XML Syntax, section 7; RDF 1.2 XML Syntax, for triple terms.
"""

from __future__ import annotations

from collections.abc import Sequence

from capacity.database.io.rdf.rdfxml.literals import XmlLiteral, quoted
from capacity.database.io.rdf.rdfxml.names import XML, Base, ForbiddenError, LongTermError
from capacity.database.io.rdf.rdfxml.scopes import (
    COLLECTION,
    IGNORED,
    LITERAL,
    NODE,
    NODES,
    PROPERTY,
    RDF,
    TRIPLE,
    Attributes,
    Name,
    Open,
    Scope,
    Scopes,
)
from capacity.database.io.rdf.rdfxml.triples import TYPE, Triples

_XML_LITERAL = f"^^<{RDF}XMLLiteral>"
_LANGUAGES = f"<{RDF}langString>", f"<{RDF}dirLangString>"
# attributes of a property that may stand beside each other
_TOGETHER = ({"resource", "attributes"}, {"nodeID", "attributes"})
_BLANKS = " \t\r\n"


class Elements:
    """Reader of elements and texts, which writes triples as they end.

    Parameters
    ----------
    base : str
        Base IRI of the document.
    most_term, most_namespaces : int
        Most characters of a term, and of the namespaces that all XML literals are written with.

    Attributes
    ----------
    top : Open
        The innermost open element.
    around : list of Open
        Those around it.
    triples : Triples
        What was written.
    """

    def __init__(self, base: str, most_term: int, most_namespaces: int) -> None:
        self._most_term, self._most_namespaces = most_term, most_namespaces
        # characters of the text that is read, and of namespaces in XML literals
        self._n_text = self._n_namespaces = 0
        self.top = Open(NODES, Scope({"xml": XML}, Base(base)))
        self.around: list[Open] = []
        self.triples, self._scopes = Triples(), Scopes(most_term)

    def start(self, tag: str, attributes: Sequence[str]) -> None:
        """Read the beginning of a node or of a property.

        Raises
        ------
        ForbiddenError
            If it isn't allowed there.
        LongTermError
            If an XML literal is too long.
        """
        top = self.top
        if top.kind >= LITERAL:
            top.depth += 1
            if top.literal is not None:
                self._n_namespaces += top.literal.start(tag, attributes)
                if self._n_namespaces > self._most_namespaces:
                    raise ForbiddenError(
                        f"namespaces in XML literals expand to over {self._most_namespaces:,} bytes"
                    )
                self._check_length(top.literal.size)
            return
        scope, others = top.scope, ()
        if attributes:
            scope, others = self._scopes.named(scope, attributes)
        name = scope.elements.get(tag) or scope.element(tag)
        opened = (self._property if top.kind == NODE else self._node)(top, scope, name, others)
        self.around.append(top)
        self.top = opened

    def end(self, tag: str) -> None:
        """Read the end of an element.

        Raises
        ------
        ForbiddenError
            If it may not end so.
        """
        top = self.top
        kind = top.kind
        if kind == PROPERTY:
            if not top.object:
                text = "".join(top.texts)
                top.object = (
                    _typed(text, top.datatype, top.scope)
                    if top.datatype
                    else top.scope.literal(text)
                )
            self.triples.add_property(top)
        elif kind == COLLECTION:
            self.triples.end_list(top)
            self.triples.add_property(top)
        elif kind >= LITERAL:
            if top.depth:
                top.depth -= 1
                if top.literal is not None:
                    top.literal.end(tag)
                return
            if top.literal is None:
                self.top = self.around.pop()
                return
            top.object = quoted(str(top.literal)) + _XML_LITERAL
            self.triples.add_property(top)
        elif kind == TRIPLE:
            top.object = self.triples.end_term()
            self.triples.add_property(top)
        self.top = self.around.pop()

    def text(self, text: str) -> None:
        """Read a piece of text.

        Raises
        ------
        ForbiddenError
            If there may be none.
        LongTermError
            If it is too long.
        """
        top = self.top
        if top.kind == PROPERTY and not top.object:
            self._n_text = len(text) + (self._n_text if top.texts else 0)
            top.texts.append(text)
            self._check_length(self._n_text)
        elif top.literal is not None:
            top.literal.text(text)
            self._check_length(top.literal.size)
        elif top.kind != IGNORED and text.strip(_BLANKS):
            raise ForbiddenError(f"the text {text.strip(_BLANKS)!r:.60} is among elements")

    def within_literal(self, written: str) -> None:
        """Read a comment or a processing instruction, which count within an XML literal.

        Raises
        ------
        LongTermError
            If the literal is too long.
        """
        literal = self.top.literal
        if literal is not None:
            literal.add(written)
            self._check_length(literal.size)

    def _check_length(self, length: int) -> None:
        if length > self._most_term:
            raise LongTermError(length)

    def _node(self, top: Open, scope: Scope, name: Name, others: Attributes) -> Open:
        role, iri = name
        if role == "RDF" and not self.around:
            if others:
                raise ForbiddenError(f"rdf:RDF can't have the attribute {others[0][0][1]:.60}")
            return Open(NODES, scope)
        if role not in ("", "Description"):
            raise ForbiddenError(f"rdf:{role} can't be a node")
        subject = ""
        for (what, attribute), value in others:
            if what in ("", "type"):
                continue
            if subject:
                raise ForbiddenError("a node can't have two of rdf:about, rdf:ID and rdf:nodeID")
            if what == "about":
                subject = scope.base.known.get(value) or scope.base.of(value)
            elif what in ("ID", "nodeID"):
                subject = (
                    self.triples.identified(scope, value)
                    if what == "ID"
                    else self.triples.labelled(value)
                )
            else:
                raise ForbiddenError(f"a node can't have the attribute {attribute:.60}")
        subject = subject or self.triples.blank()
        if top.kind == COLLECTION:
            self.triples.add_item(top, subject)
        elif top.kind != NODES:
            if top.object:
                raise ForbiddenError("a property can't hold a node beside its object")
            if top.datatype or "".join(top.texts).strip(_BLANKS):
                raise ForbiddenError("a property can't hold a node beside text or a datatype")
            top.object = subject
        if not role:
            self.triples.add(scope, subject, TYPE, iri)
        self.triples.add_attributes(scope, subject, others)
        return Open(NODE, scope, subject)

    def _property(self, node: Open, scope: Scope, name: Name, others: Attributes) -> Open:
        role, predicate = name
        if role == "li":
            node.n_li += 1
            predicate = f"<{RDF}_{node.n_li}>"
        elif role:
            raise ForbiddenError(f"rdf:{role} can't be a property")
        if not others:
            return Open(PROPERTY, scope, node.subject, predicate)
        roles: dict[str, str] = {}
        reifiers: list[tuple[str, str]] = []
        for (what, attribute), value in others:
            match what:
                case "resource" | "datatype":
                    roles[what] = scope.base.known.get(value) or scope.base.of(value)
                case "nodeID":
                    roles[what] = self.triples.labelled(value)
                case "parseType":
                    roles[what] = value
                case "ID":
                    reifiers.append((what, self.triples.identified(scope, value)))
                case "annotation":
                    reifiers.append((what, scope.base.of(value)))
                case "annotationNodeID":
                    reifiers.append((what, self.triples.labelled(value)))
                case "" | "type":
                    roles["attributes"] = ""
                case _:
                    raise ForbiddenError(f"a property can't have the attribute {attribute:.60}")
        if len(roles) > 1 and roles.keys() not in _TOGETHER:
            together = ", ".join("others" if one == "attributes" else f"rdf:{one}" for one in roles)
            raise ForbiddenError(f"a property can't have together the attributes {together}")
        opened = Open(PROPERTY, scope, node.subject, predicate, reifiers=reifiers)
        if "parseType" in roles:
            return self._parsed(opened, roles["parseType"])
        opened.datatype = roles.get("datatype", "")
        opened.object = roles.get("resource", roles.get("nodeID", ""))
        if "attributes" in roles:
            opened.object = opened.object or self.triples.blank()
            self.triples.add_attributes(scope, opened.object, others)
        return opened

    def _parsed(self, opened: Open, parse_type: str) -> Open:
        """Return a property as its ``rdf:parseType`` has it read."""
        if parse_type == "Resource":
            opened.object = self.triples.blank()
            self.triples.add_property(opened)
            return Open(NODE, opened.scope, opened.object)
        if parse_type == "Collection":
            opened.kind = COLLECTION
        elif parse_type != "Triple":
            opened.kind, opened.literal = LITERAL, XmlLiteral(opened.scope.prefixes)
        elif not opened.scope.version:
            # as RDF 1.2 has it of documents of RDF 1.1
            opened.kind = IGNORED
        else:
            self.triples.begin_term()
            opened.kind = TRIPLE
        return opened


def _typed(text: str, datatype: str, scope: Scope) -> str:
    """Write a literal of a datatype."""
    if datatype not in _LANGUAGES:
        return f"{quoted(text)}^^{datatype}"
    # what RDF 1.1 Concepts, section 3.3, makes of it, if the language is said
    if not scope.tail or ("--" in scope.tail) != (datatype == _LANGUAGES[1]):
        raise ForbiddenError(f"a literal of the datatype {datatype} must have a language")
    return scope.literal(text)
