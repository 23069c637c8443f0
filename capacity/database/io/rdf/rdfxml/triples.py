"""Triples of a document of RDF/XML, as lines of N-Triples.

References
----------
RDF 1.1 XML Syntax, sections 7.2.22 (IDs), 7.2.34 (labels) and 7.3 (reification); RDF 1.2 XML
Syntax, for annotations.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from capacity.database.io.rdf.rdfxml.names import NC_NAME, ForbiddenError
from capacity.database.io.rdf.rdfxml.scopes import RDF, Name, Open, Scope
from capacity.database.terms.grammar import MAX_TRIPLE_DEPTH

TYPE = f"<{RDF}type>"
_FIRST, _REST, _NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
_STATEMENT, _SUBJECT = f"<{RDF}Statement>", f"<{RDF}subject>"
_PREDICATE, _OBJECT, _REIFIES = f"<{RDF}predicate>", f"<{RDF}object>", f"<{RDF}reifies>"
# characters of lines that are not yet taken: each triple of a node has its subject, however long
_MOST_LINES = 2**27


class Triples:
    """Writer of triples, of which each term is as N-Triples has it.

    Attributes
    ----------
    prefixes : mapping of str to str or None
        Namespaces around the first triple.
    """

    def __init__(self) -> None:
        self.prefixes: Mapping[str, str] | None = None
        # lines since they were taken last, or since a triple term began, and those around it
        self._lines: list[str] = []
        self._around: list[list[str]] = []
        self._size = self._n_blank = 0
        self._ids, self._labels = set[str](), dict[str, str]()
        # as the parser of other formats names anonymous nodes, which are renamed in the end
        self._anonymous = f"_:d{uuid.uuid4().hex[:15]}"

    def add(self, scope: Scope, s: str, p: str, o: str) -> None:
        """Write a triple.

        Raises
        ------
        ForbiddenError
            If all that is written takes too much.
        """
        line = f"{s} {p} {o} .\n"
        self._lines.append(line)
        self._size += len(line)
        if self._size > _MOST_LINES:
            raise ForbiddenError("its terms, written out, take too much")
        if self.prefixes is None:
            self.prefixes = scope.prefixes

    def add_property(self, top: Open) -> None:
        """Write the triple of a property, and those about it."""
        scope, s, p, o = top.scope, top.subject, top.predicate, top.object
        self.add(scope, s, p, o)
        for kind, name in top.reifiers:
            if kind == "ID":
                self.add(scope, name, TYPE, _STATEMENT)
                self.add(scope, name, _SUBJECT, s)
                self.add(scope, name, _PREDICATE, p)
                self.add(scope, name, _OBJECT, o)
            else:
                self.add(scope, name, _REIFIES, f"<<( {s} {p} {o} )>>")

    def add_attributes(self, scope: Scope, subject: str, told: Sequence[tuple[Name, str]]) -> None:
        """Write the triples of attributes that are properties."""
        for (what, predicate), value in told:
            if what == "type":
                self.add(scope, subject, TYPE, scope.base.of(value))
            elif not what:
                self.add(scope, subject, predicate, scope.literal(value))

    def add_item(self, top: Open, subject: str) -> None:
        """Write a cell of a list."""
        cell = self.blank()
        if top.last:
            self.add(top.scope, top.last, _REST, cell)
        else:
            top.object = cell
        top.last = cell
        self.add(top.scope, cell, _FIRST, subject)

    def end_list(self, top: Open) -> None:
        """Write the end of a list."""
        if top.last:
            self.add(top.scope, top.last, _REST, _NIL)
        top.object = top.object or _NIL

    def begin_term(self) -> None:
        """Begin a triple term: what is written until it ends is its triple.

        Raises
        ------
        ForbiddenError
            If it is too deep within others.
        """
        if len(self._around) >= MAX_TRIPLE_DEPTH:
            raise ForbiddenError(f"triple terms nest over {MAX_TRIPLE_DEPTH} deep")
        self._around.append(self._lines)
        self._lines = []

    def end_term(self) -> str:
        """End a triple term, and return it.

        Raises
        ------
        ForbiddenError
            If another number of triples than one was written.
        """
        written, self._lines = self._lines, self._around.pop()
        if len(written) != 1:
            raise ForbiddenError(
                f'rdf:parseType="Triple" must hold one triple; it holds {len(written):,}'
            )
        return f"<<( {written[0][:-3]} )>>"

    def taken(self) -> str:
        """Return the lines since they were taken last; none within a triple term."""
        if self._around:
            return ""
        lines, self._lines, self._size = self._lines, [], 0
        return "".join(lines)

    def identified(self, scope: Scope, name: str) -> str:
        """Return the IRI of an ``rdf:ID``, which a document has once.

        Raises
        ------
        ForbiddenError
            If it is used twice, or can't be one.
        """
        if not NC_NAME.fullmatch(name):
            raise ForbiddenError(f"rdf:ID must be a name without a colon; got {name!r:.60}")
        iri = scope.base.of(f"#{name}")
        if iri in self._ids:
            raise ForbiddenError(f"rdf:ID {name!r:.60} is used twice")
        self._ids.add(iri)
        return iri

    def labelled(self, name: str) -> str:
        """Return the blank node of an ``rdf:nodeID``.

        Raises
        ------
        ForbiddenError
            If it can't be one.
        """
        if not NC_NAME.fullmatch(name):
            raise ForbiddenError(
                "rdf:nodeID must be a name without a colon, which begins with a letter or _; got "
                f"{name!r:.60}"
            )
        if name.endswith("."):
            # N-Triples has no such labels
            if name not in self._labels:
                self._labels[name] = self.blank()
            return self._labels[name]
        return f"_:{name}"

    def blank(self) -> str:
        """Return a new blank node."""
        self._n_blank += 1
        return f"{self._anonymous}{self._n_blank:016x}"
