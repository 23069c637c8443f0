"""Type maps of JSON-LD, written as the nodes that they denote.

A term with ``"@container": "@type"`` has an object as its value, whose keys are the types of the
nodes in it. pyoxigraph adds such a type after the keys of a node, and refuses it beside ``@id``. So
the value is written as a list of nodes, each with its type first, of another term that is the same
but for its container. A value that is no object has the same term: it isn't indexed.

What pyoxigraph would read as other facts is refused: values that are no nodes, and a type that
means something else within the node, by a context there.

References
----------
JSON-LD 1.1, W3C 2020, section 4.6.4 "Node Type Indexing"; JSON-LD 1.1 Processing Algorithms and
API, W3C 2020, section 5.1.2 "Expansion Algorithm", step 13.8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import quote

from capacity.database.io.rdf.guards.json import parse_json
from capacity.errors import DatabaseFormatError

# definitions of the terms in force
_Terms: TypeAlias = Mapping[str, Any]
# each letter of a keyword may be an escape: what has escapes is looked at, too
_MAY_HAVE_MAPS = re.compile(rb'"@container"\s*:\s*(?:"@type"|\[)|\\u00')
_OF_NODES = " of nodes"
# containers whose values are indexed by their keys
_KEYED = {"@id", "@index", "@language", "@type"}
# what a context may change about the name of a type, beside the name's own definition
_CHANGES = {"@vocab", "@base", "@import"}


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
        If it is broken as JSON, or a type map has what the parser would read as other facts.

    Examples
    --------
    >>> text = b'{"@context": {"has": {"@id": "x:h", "@container": "@type"}}, "has": {"x:T": {}}}'
    >>> json.loads(without_type_maps("a", text))["has of nodes"]
    [{'@type': ['x:T']}]
    """
    if not _MAY_HAVE_MAPS.search(data):
        return data
    writer = _Writer(name)
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
    """A document that is left as it is: with a key twice."""


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

    def __init__(self, name: str) -> None:
        self.name = name
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
            if is_type_map(definition) and not isinstance(value, dict):
                made[_without_container(key)] = self.value(value, within)
            elif is_type_map(definition) and not _has_words(value, definition):
                self._refuse_other_types(value, definition, terms, within)
                made[_without_container(key)] = [*self.nodes(value, within)]
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
            for one in _members(terms, value):
                node = {"@id": one} if isinstance(one, str) else self.value(one, terms)
                if not isinstance(node, dict) or any(
                    _means(terms, key, word) for key in node for word in ("@value", "@list")
                ):
                    raise self._refused(f"its type map holds {one!r:.60} under {name!r:.60}, and "
                                        "must hold nodes")  # fmt: skip
                said = [key for key in node if _means(terms, key, "@type")]
                others = [x for key in said for x in _listed(node[key])]
                rest = {key: v for key, v in node.items() if key not in (*said, "@context")}
                context = {"@context": node["@context"]} if "@context" in node else {}
                all_types = {"@type": [*own, *others]} if own or others else {}
                yield {**context, **all_types, **rest}

    def _refuse_other_types(
        self, types: Mapping[str, Any], definition: Mapping[str, Any], terms: _Terms, within: _Terms
    ) -> None:
        """Refuse a type that has another meaning, or another order of contexts, in the node.

        A key is a type by the contexts around the node, and its context comes before that of the
        map's term.
        """
        for name, value in types.items():
            scoped = "@context" in definition and _of(terms.get(name), "@context") is not None
            words = _CHANGES | {name, name.partition(":")[0]}
            changed = any(within.get(word) != terms.get(word) for word in words)
            for one in _members(terms, value):
                contexts = _listed(one["@context"]) if _has(one, "@context") else []
                changed |= any(not isinstance(c, dict) or words & c.keys() for c in contexts)
            if scoped or changed:
                raise self._refused(
                    f"the type {name!r:.60} of its type map may mean something else in a node there"
                    ", by a context of the node or of the map's term"
                )

    def _refused(self, reason: str) -> DatabaseFormatError:
        return DatabaseFormatError(
            self.name, reason, format="jsonld",
            advice="Write the nodes in a list, each with its @type.",
        )  # fmt: skip

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
                    # whatever its IRI is; a text in a type map is the id of a node
                    made[_without_container(term)] = {"@type": "@id", **other, "@id": term}
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


def is_type_map(definition: Any) -> TypeGuard[dict[str, Any]]:
    """Return True if the values of a term are indexed by their types."""
    is_of_types = "@type" in _listed(_of(definition, "@container"))
    # the parser refuses both together
    return is_of_types and "@reverse" not in definition


def _without_container(term: str) -> str:
    """Name the other term; a colon or a slash in it would make it a compact or a relative IRI."""
    return quote(term, safe="@ ") + _OF_NODES


def _has_words(types: Mapping[str, Any], definition: Mapping[str, Any]) -> bool:
    """Return True if a text in a type map may be a term, by the definition of the map's."""
    nodes = [one for value in types.values() for one in _listed(value)]
    return definition.get("@type") == "@vocab" and any(isinstance(one, str) for one in nodes)


def _members(terms: _Terms, value: Any) -> Iterator[Any]:
    """List the values under a key of a type map, also those of sets."""
    for one in _listed(value):
        sets = [key for key in one if _means(terms, key, "@set")] if isinstance(one, dict) else []
        if sets:
            for key in sets:
                yield from _members(terms, one[key])
        elif one is not None:
            yield one


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


def _has(node: Any, key: str) -> bool:
    return isinstance(node, dict) and key in node


def _of(definition: Any, key: str) -> Any:
    return definition.get(key) if isinstance(definition, dict) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
