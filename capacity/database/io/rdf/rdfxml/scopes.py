"""Open elements of a document of RDF/XML, each in its scope.

A scope holds namespaces, base, language, direction, and what names mean there.

References
----------
RDF 1.1 XML Syntax, sections 5.1, 6.1.2 to 6.1.4; RDF 1.2
XML Syntax, for the version, base directions and annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import pyoxigraph as ox

from capacity.database.io.rdf.rdfxml.literals import XmlLiteral, quoted
from capacity.database.io.rdf.rdfxml.names import (
    Base,
    ForbiddenError,
    LongTermError,
    checked_iri,
    expanded,
    namespaces_within,
)

# a role that the grammar knows, or "", and the name as an IRI of N-Triples
Name: TypeAlias = "tuple[str, str]"
# names and values of attributes
Attributes: TypeAlias = "Sequence[tuple[Name, str]]"

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_ITS = "http://www.w3.org/2005/11/its"
# names of a scope, and scopes, that are kept, because they are used again
_KEPT, _KEPT_SCOPES = 10_000, 256
# coreSyntaxTerms, oldTerms and the other two that aren't plain names of elements
_OF_ELEMENTS = frozenset(
    {"RDF", "ID", "about", "parseType", "resource", "nodeID", "datatype", "Description", "li",
     "aboutEach", "aboutEachPrefix", "bagID"}
)  # fmt: skip
_OF_ATTRIBUTES = _OF_ELEMENTS | {"type", "annotation", "annotationNodeID"}
_UNQUALIFIED = ("ID", "about", "resource", "parseType", "type")


@lru_cache(maxsize=1024)
def _tail(language: str, direction: str) -> str | None:
    """Return what follows a literal with a language; None if it isn't one."""
    try:
        written = ox.Literal("", language=language).language
    except ValueError:
        return None
    return f"@{written}" + (f"--{direction}" if direction else "")


class Scope:
    """The scope of an element: all that holds within it.

    Attributes
    ----------
    prefixes : mapping of str to str
        Namespace of each prefix, "" for the default one.
    base : Base
    language, direction, version : str
        ``xml:lang``, ``its:dir`` and ``rdf:version``, empty if there is none.
    elements, attributes : dict of str to tuple
        Names that are known already.
    """

    __slots__ = (
        "attributes", "base", "direction", "elements", "language", "prefixes", "tail", "version",
    )  # fmt: skip

    def __init__(
        self,
        prefixes: Mapping[str, str],
        base: Base,
        language: str = "",
        direction: str = "",
        version: str = "",
    ) -> None:
        self.prefixes, self.base = prefixes, base
        self.language, self.direction, self.version = language, direction, version
        self.elements: dict[str, Name] = {}
        self.attributes: dict[str, Name] = {}
        # a direction counts only in RDF 1.2, and for a language
        self.tail = _tail(language, direction if version else "") if language else ""

    def within(self, attributes: Sequence[str]) -> Scope:
        """Return the scope of an element with some attributes.

        Raises
        ------
        ForbiddenError
            For a namespace, a base or a direction that can't be one.
        """
        prefixes = namespaces_within(self.prefixes, attributes)
        told = {"base": self.base, "language": self.language, "direction": self.direction,
                "version": self.version}  # fmt: skip
        for key, value in zip(attributes[::2], attributes[1::2], strict=True):
            if key == "xml:base":
                told["base"] = self.base.within(value)
            elif key == "xml:lang":
                told["language"] = value
            elif ":" in key and not key.lower().startswith("xml"):
                match expanded(prefixes, key, attribute=True):
                    case (namespace, "version") if namespace == RDF:
                        told["version"] = value if value.startswith("1.2") else ""
                    case (namespace, "dir") if namespace == _ITS:
                        if value not in ("ltr", "rtl", ""):
                            raise ForbiddenError(f"its:dir must be ltr or rtl, not {value!r:.60}")
                        told["direction"] = value
        found = Scope(prefixes, **told)  # type: ignore[arg-type]
        if prefixes is self.prefixes:
            # names mean the same
            found.elements, found.attributes = self.elements, self.attributes
        return found

    def element(self, name: str) -> Name:
        """Return what the name of an element means.

        Raises
        ------
        ForbiddenError
            If it isn't an IRI.
        """
        namespace, local = expanded(self.prefixes, name, attribute=False)
        role = local if namespace == RDF and local in _OF_ELEMENTS else ""
        return _keep(self.elements, name, (role, f"<{checked_iri(namespace + local)}>"))

    def attribute(self, name: str) -> Name:
        """Return what the name of an attribute means.

        Raises
        ------
        ForbiddenError
            If it isn't an IRI.
        """
        if name in ("xml:base", "xml:lang", "xmlns") or name.startswith("xmlns:"):
            return _keep(self.attributes, name, ("scope", ""))
        if name.lower().startswith("xml"):
            # reserved names
            return _keep(self.attributes, name, ("ignored", ""))
        namespace, local = expanded(self.prefixes, name, attribute=True)
        if not namespace:
            if local not in _UNQUALIFIED:
                raise ForbiddenError(f"the attribute {local!r:.60} has no namespace")
            namespace = RDF
        role = local if namespace == RDF and local in _OF_ATTRIBUTES else ""
        if (namespace, local) in ((RDF, "version"), (_ITS, "dir")):
            role = "scope"
        elif (namespace, local) == (_ITS, "version"):
            role = "ignored"
        return _keep(self.attributes, name, (role, f"<{checked_iri(namespace + local)}>"))

    def literal(self, text: str) -> str:
        """Write a literal of the language here.

        Raises
        ------
        ForbiddenError
            If the language is none.
        """
        if self.tail is None:
            raise ForbiddenError(f"{self.language!r:.60} is no language")
        return quoted(text) + self.tail


class Scopes:
    """Scopes that were made, by what they are within and the attributes that make them.

    Parameters
    ----------
    most_term : int
        Most characters of an attribute's value.
    """

    def __init__(self, most_term: int) -> None:
        self._most_term = most_term
        self._known: dict[tuple[Scope, tuple[str, ...]], Scope] = {}

    def named(self, scope: Scope, attributes: Sequence[str]) -> tuple[Scope, Attributes]:
        """Return the scope of an element, and the names and values of its other attributes.

        Raises
        ------
        ForbiddenError
            For an attribute that can't be one, or two of one name.
        LongTermError
            If a value is too long.
        """
        known, others = scope.attributes, list[tuple[Name, str]]()
        for at in range(0, len(attributes), 2):
            value = attributes[at + 1]
            if len(value) > self._most_term:
                raise LongTermError(len(value))
            name = known.get(attributes[at])
            if name is None or name[0] == "scope":
                scope = self.within(scope, attributes)
                every = [
                    (scope.attributes.get(key) or scope.attribute(key), value)
                    for key, value in zip(attributes[::2], attributes[1::2], strict=True)
                ]
                others = [one for one in every if one[0][0] not in ("scope", "ignored")]
                break
            if name[0] != "ignored":
                others.append((name, value))
        if len(others) > 1 and len({name for name, _ in others}) < len(others):
            raise ForbiddenError("an element has two attributes of one name")
        return scope, others

    def within(self, scope: Scope, attributes: Sequence[str]) -> Scope:
        """Return the scope of an element, as `Scope.within` does."""
        deciding: list[str] = []
        for key, value in zip(attributes[::2], attributes[1::2], strict=True):
            # which of the others decide, the namespaces tell
            if key[:3] == "xml" or key.endswith((":version", ":dir")):
                deciding += key, value
        if not deciding:
            return scope
        made = (scope, tuple(deciding))
        found = self._known.get(made)
        if found is None:
            if len(self._known) >= _KEPT_SCOPES:
                self._known.clear()
            found = self._known[made] = scope.within(deciding)
        return found


def _keep(names: dict[str, Name], key: str, name: Name) -> Name:
    if len(names) >= _KEPT:
        names.clear()
    names[key] = name
    return name


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
