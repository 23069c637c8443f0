"""A result of SPARQL in JSON, read row by row as it comes, and its cells as terms.

A label of a blank node is any string there, local to the answer: Virtuoso writes ``nodeID://b1``.
Parsers of RDF hold labels to the grammar of N-Triples, so that results are read here, and blank
nodes are named ``b0``, ``b1``, ... in the order in which they come.

References
----------
SPARQL 1.1 Query Results JSON Format, W3C 2013, section 3; SPARQL 1.2 Query Results JSON Format
(triple terms, base directions).
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyoxigraph as ox

from capacity.checks import cut, shown
from capacity.database.io.sparql.bodies import AT_ONCE
from capacity.database.terms.nodes import term_from_pyoxigraph
from capacity.database.terms.term import Term

_SPACE = " \t\r\n"
# characters of the longest token that isn't a string, so that one may be cut off by the end
_TOKEN = 16
_LITERALS = ("literal", "typed-literal")
_NEEDS_LANGUAGE = (
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString",
)
_OF_LITERALS = ("datatype", "xml:lang", "its:dir")


class BrokenResultError(ValueError):
    """The text is no result of SPARQL in JSON, or a part of one."""


class UnkeptTermError(ValueError):
    """A cell is no term of RDF."""


class Result:
    """The rows of a result, each a mapping of columns to cells, as they come.

    Parameters
    ----------
    read : callable
        Function of a number of bytes that returns at most as many; none at the end.

    Attributes
    ----------
    columns : list of str or None
        The names in its head, as soon as that has come.
    is_boolean : bool
        Whether it is the answer to an ASK.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self.columns: list[str] | None = None
        self.is_boolean = False
        self._text = _Text(read)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        text, has_rows = self._text, False
        for key in text.members():
            if key == "head":
                self.columns = _columns(text.value())
            elif key == "results":
                for inner in text.members():
                    if inner != "bindings":
                        text.value()
                        continue
                    has_rows = True
                    for row in text.items():
                        if not isinstance(row, dict):
                            raise BrokenResultError("a row must be an object")
                        yield row
            else:
                text.value()
                self.is_boolean |= key == "boolean"
        text.end()
        if not self.is_boolean and not (has_rows and self.columns is not None):
            raise BrokenResultError("it must contain a 'boolean' or a 'results' key, with its head")


def _columns(head: object) -> list[str] | None:
    names = head.get("vars") if isinstance(head, dict) else None
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BrokenResultError("'vars' must be a list of names")
    return names


class Cells:
    """Terms of the cells of one answer, in which a label denotes one blank node."""

    def __init__(self) -> None:
        self._known: dict[object, Term] = {}
        self._blank: dict[str, ox.BlankNode] = {}

    def term(self, cell: object) -> Term:
        """Return the term of a cell.

        Raises
        ------
        UnkeptTermError
            If it is no term of RDF, such as an IRI with a space.
        """
        try:
            key = tuple(cell.items())  # type: ignore[attr-defined]
            known = self._known.get(key)
        except (AttributeError, TypeError):
            # what isn't an object, and a triple term, whose value is one
            return term_from_pyoxigraph(self._node(cell))
        if known is None:
            known = self._known[key] = term_from_pyoxigraph(self._node(cell))
        return known

    def _node(self, cell: object) -> Any:
        if not isinstance(cell, dict) or not isinstance(kind := cell.get("type"), str):
            raise UnkeptTermError("a term must be an object with a type")
        allowed = ("type", "value", *(_OF_LITERALS if kind in _LITERALS else ()))
        if other := next((key for key in cell if key not in allowed), None):
            raise UnkeptTermError(f"a term of the type {cut(kind)} has no key {shown(other)}")
        value = cell.get("value")
        if kind == "triple":
            return self._triple(value)
        if not isinstance(value, str):
            raise UnkeptTermError("the value of a term must be a string")
        if kind == "bnode":
            return self._blank.setdefault(value, ox.BlankNode(f"b{len(self._blank)}"))
        if kind != "uri" and kind not in _LITERALS:
            raise UnkeptTermError(f"RDF has no terms of the type {shown(kind)}")
        try:
            return ox.NamedNode(value) if kind == "uri" else _literal(value, cell)
        except (TypeError, ValueError) as error:
            what = "IRI" if kind == "uri" else "literal"
            raise UnkeptTermError(f"RDF has no {what} {_written(cell)} ({error!s:.160})") from None

    def _triple(self, value: object) -> ox.Triple:
        keys = ("subject", "predicate", "object")
        if not isinstance(value, dict) or set(value) != set(keys):
            raise UnkeptTermError("a triple term must have a subject, a predicate and an object")
        try:
            return ox.Triple(*(self._node(value[key]) for key in keys))
        except TypeError:
            raise UnkeptTermError(
                "the subject of a triple term must be an IRI or a blank node, its predicate an IRI"
            ) from None


def _literal(text: str, cell: dict[str, Any]) -> ox.Literal:
    # what is null or empty says nothing
    given = map(cell.get, _OF_LITERALS)
    datatype, language, direction = (None if said in (None, "") else said for said in given)
    if language is None:
        if direction is not None or datatype in _NEEDS_LANGUAGE:
            raise UnkeptTermError("it needs a language")
        return ox.Literal(text, datatype=datatype and ox.NamedNode(datatype))
    if datatype not in (None, *_NEEDS_LANGUAGE):
        raise UnkeptTermError("it has a language and another datatype than rdf:langString")
    return ox.Literal(text, language=language, direction=direction and ox.BaseDirection(direction))


def _written(cell: dict[str, Any]) -> str:
    """Write a cell for a message, its parts apart, so that a long text hides no other."""
    language, datatype = cell.get("xml:lang"), cell.get("datatype")
    end = f"@{cut(str(language))}" if language else f"^^<{cut(str(datatype))}>" if datatype else ""
    return shown(cell["value"]) + end


class _Text:
    """JSON as it comes, of which a value is read at a time."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        # a mark of the order of bytes isn't JSON, and some servers send one
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text, self._at, self._is_whole = "", 0, False
        self._scan = json.JSONDecoder(
            # whatever a number is, none counts in a result; one of 10,000 digits isn't made
            parse_int=lambda _text: 0, parse_float=lambda _text: 0.0,
            parse_constant=_no_number, object_pairs_hook=_once,
        ).raw_decode  # fmt: skip

    def value(self) -> Any:
        """Read a value whole."""
        self._next()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                cut_off = error.msg.startswith("Unterminated") or (
                    error.pos >= len(self._text) - _TOKEN
                )
                if self._is_whole or not cut_off:
                    raise BrokenResultError(error.msg) from None
            else:
                # a number at the end may go on
                if end < len(self._text) or self._is_whole:
                    self._at = end
                    return value
            self._more()

    def members(self) -> Iterator[str]:
        """Yield the keys of an object; after each its value is to be read."""
        known = set()
        for _ in self._parts("{", "}"):
            key = self.value()
            if not isinstance(key, str) or key in known:
                raise BrokenResultError("keys must be strings, each once in an object")
            known.add(key)
            self._take(":")
            yield key

    def items(self) -> Iterator[Any]:
        """Yield the values of an array."""
        for _ in self._parts("[", "]"):
            yield self.value()

    def end(self) -> None:
        """Refuse what follows.

        Raises
        ------
        BrokenResultError
            If anything but spaces does.
        """
        if self._next():
            raise BrokenResultError("it continues after its end")

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        if self._next() != closing:
            yield
            while self._next() == ",":
                self._at += 1
                yield
        self._take(closing)

    def _take(self, wanted: str) -> None:
        found = self._next()
        if found != wanted:
            what = repr(found) if found else "its end"
            raise BrokenResultError(f"expecting {wanted!r}, and there is {what}")
        self._at += 1

    def _next(self) -> str:
        """Return the next character that isn't a space; none at the end."""
        while True:
            while self._at < len(self._text):
                if (found := self._text[self._at]) not in _SPACE:
                    return found
                self._at += 1
            if self._is_whole:
                return ""
            self._more()

    def _more(self) -> None:
        """Double what is to be read, so that a long value isn't begun too often."""
        pieces = [self._text[self._at :]]
        wanted = max(1, len(pieces[0]))
        while wanted > 0 and not self._is_whole:
            data = self._read(AT_ONCE)
            self._is_whole = not data
            pieces.append(self._decode(data, final=self._is_whole))
            wanted -= len(pieces[-1])
        self._text, self._at = "".join(pieces), 0


def _no_number(text: str) -> float:
    raise BrokenResultError(f"JSON has no {text}")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BrokenResultError("an object has a key twice")
    return found
