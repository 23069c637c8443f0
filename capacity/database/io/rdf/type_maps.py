"""Type maps of JSON-LD, written as the nodes that they denote.

A term with ``"@container": "@type"`` has an object as its value, whose keys are the types of the
nodes in it. pyoxigraph adds such a type after the keys of a node, and refuses it beside ``@id``. So
the value is written as a list of nodes, each with its type first, of another term that is the same
but for its container.

References
----------
JSON-LD 1.1, W3C 2020, section 4.6.4 "Node Type Indexing"; JSON-LD 1.1 Processing Algorithms and
API, W3C 2020, section 5.1.2 "Expansion Algorithm", step 13.8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from capacity.database.io.rdf.guards.json import parse_json

# definitions of the terms in force
_Terms: TypeAlias = Mapping[str, Any]
# each letter of a keyword may be an escape: what has escapes is looked at, too
_MAY_HAVE_MAPS = re.compile(rb'"@container"\s*:\s*(?:"@type"|\[)|\\u00')
_OF_NODES = " of nodes"
# containers whose values are indexed by their keys
_KEYED = {"@id", "@index", "@language", "@type"}


def without_type_maps(name: str, data: bytes) -> bytes:
    """Write a JSON-LD document without type maps; the same bytes if it has none.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    data : bytes
        The document, which was checked not to be nested deeply.

    Raises
    ------
    DatabaseFormatError
        If it is broken as JSON.

    Examples
    --------
    >>> text = b'{"@context": {"has": {"@id": "x:h", "@container": "@type"}}, "has": {"x:T": {}}}'
    >>> json.loads(without_type_maps("a", text))["has of nodes"]
    [{'@type': ['x:T']}]
    """
    if not _MAY_HAVE_MAPS.search(data):
        return data
    writer = _Writer()
    try:
        document = parse_json(
            name, data, parse_int=_Number, parse_float=_Number, object_pairs_hook=_each_once
        )
        made = writer.value(document, {})
    except _UnsuitedError:
        # the parser tells what is wrong
        return data
    if not writer.has_maps:
        return data
    return writer.written(made).encode("utf-8", "surrogatepass")


class _UnsuitedError(Exception):
    """A document that is left as it is: with a key twice, or a type map of anything but nodes."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _UnsuitedError
    return made


class _Number(float):
    """A number that is written as it was read."""

    def __new__(cls, text: str) -> _Number:
        number = super().__new__(cls, text if len(text) < 300 else "inf")
        number.text = text
        return number

    text: str

    def __repr__(self) -> str:
        return self.text


class _Writer:
    """The replacement of type maps in one document."""

    def __init__(self) -> None:
        self.has_maps = False

    def value(self, node: Any, terms: _Terms) -> Any:
        """Write a value within contexts."""
        if isinstance(node, list):
            return [self.value(item, terms) for item in node]
        if not isinstance(node, dict):
            return node
        made: dict[str, Any] = {}
        if "@context" in node:
            terms = merged(terms, node["@context"])
            made["@context"] = self.context(node["@context"])
        here = _for_types(terms, node)
        for key, value in node.items():
            definition = here.get(key)
            if key == "@context":
                continue
            if key == "@value" or _of(definition, "@type") == "@json":
                made[key] = value
                continue
            # contexts of types end with their node
            within = terms
            if isinstance(definition, dict) and "@context" in definition:
                within = merged(terms, definition["@context"])
            if is_type_map(definition) and isinstance(value, dict) and _is_plain(value, definition):
                made[key + _OF_NODES] = [*self.nodes(value, within)]
            elif isinstance(value, dict) and _KEYED.intersection(
                _listed(_of(definition, "@container"))
            ):
                # its keys are no terms
                made[key] = {name: self.value(item, within) for name, item in value.items()}
            else:
                made[key] = self.value(value, within)
        return made

    def nodes(self, types: Mapping[str, Any], terms: _Terms) -> Iterator[dict[str, Any]]:
        """Yield the nodes of a type map, each with its type before all but a context."""
        for name, value in types.items():
            own = [] if _means(terms, name, "@none") else [name]
            for one in value if isinstance(value, list) else [value]:
                node = {"@id": one} if isinstance(one, str) else self.value(one, terms)
                if not isinstance(node, dict):
                    raise _UnsuitedError
                said = [key for key in node if _means(terms, key, "@type")]
                others = [x for key in said for x in _listed(node[key])]
                rest = {key: v for key, v in node.items() if key not in (*said, "@context")}
                context = {"@context": node["@context"]} if "@context" in node else {}
                all_types = {"@type": [*own, *others]} if own or others else {}
                yield {**context, **all_types, **rest}

    def context(self, context: Any) -> Any:
        """Add to each term of a type map another without container; @set has no meaning in RDF."""
        if isinstance(context, list):
            return [self.context(item) for item in context]
        if not isinstance(context, dict):
            return context
        made: dict[str, Any] = {}
        for term, definition in context.items():
            if isinstance(definition, dict) and not term.startswith("@"):
                definition = dict(definition)
                if "@context" in definition:
                    definition["@context"] = self.context(definition["@context"])
                container = definition.get("@container")
                if isinstance(container, list) and len(container) > 1 and "@set" in container:
                    definition["@container"] = [item for item in container if item != "@set"]
                if is_type_map(definition):
                    self.has_maps = True
                    other = {k: v for k, v in definition.items() if k != "@container"}
                    # whatever its IRI is
                    made[term + _OF_NODES] = {**other, "@id": term}
            made[term] = definition
        return made

    def written(self, made: Any) -> str:
        """Write a document, with its numbers as they were."""
        numbers: list[str] = []

        def marked(node: Any) -> Any:
            if isinstance(node, _Number):
                numbers.append(node.text)
                return 0
            if isinstance(node, list):
                return [marked(one) for one in node]
            if isinstance(node, dict):
                return {key: marked(value) for key, value in node.items()}
            return node

        # a number of the document stands where 0 is written outside of strings
        text = json.dumps(marked(made), ensure_ascii=False)
        found = iter(numbers)
        return _STRING_OR_ZERO.sub(lambda m: next(found) if m[0] == "0" else m[0], text)


_STRING_OR_ZERO = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|0', re.DOTALL)


def merged(terms: _Terms, context: Any) -> _Terms:
    """Merge the terms in force with a context, or a list of them; null forgets them."""
    for one in _listed(context):
        if one is None:
            terms = {}
        elif isinstance(one, dict):
            terms = {**terms, **one}
    return terms


def is_type_map(definition: Any) -> bool:
    """Return True if the values of a term are indexed by their types."""
    is_of_types = "@type" in _listed(_of(definition, "@container"))
    # the parser refuses both together
    return is_of_types and "@reverse" not in definition


def _is_plain(types: Mapping[str, Any], definition: Any) -> bool:
    """Return True if what is within a type map means the same outside of it.

    The key is a type by the contexts around a node, which its own may change; and a text may be a
    term by its definition.
    """
    nodes = [(name, one) for name, value in types.items() for one in _listed(value)]
    if _of(definition, "@type") == "@vocab" and any(isinstance(one, str) for _, one in nodes):
        return False
    return all(
        isinstance(context, dict) and not {"@vocab", name, name.partition(":")[0]} & context.keys()
        for name, one in nodes
        if isinstance(one, dict) and "@context" in one
        for context in _listed(one["@context"])
    )


def _for_types(terms: _Terms, node: Mapping[str, Any]) -> _Terms:
    """Merge the terms in force with the contexts of a node's types, in the order of their names."""
    types = [t for key in node if _means(terms, key, "@type") for t in _listed(node[key])]
    here = terms
    for one in sorted(t for t in types if isinstance(t, str)):
        scoped = terms.get(one)
        if isinstance(scoped, dict) and "@context" in scoped:
            here = merged(here, scoped["@context"])
    return here


def _means(terms: _Terms, key: str, keyword: str) -> bool:
    definition = terms.get(key)
    return key == keyword or keyword in (definition, _of(definition, "@id"))


def _of(definition: Any, key: str) -> Any:
    return definition.get(key) if isinstance(definition, dict) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
