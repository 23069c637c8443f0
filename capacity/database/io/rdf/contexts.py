"""JSON-LD contexts outside of a document, given as files.

Nothing is fetched. A context that a document refers to by its IRI, also as ``@import``, is replaced
by the one that the user passes for this IRI, or that is in a *file of contexts*: a JSON object
of IRIs and files, which are looked up beside it. The environment variable ``CAPACITY_CONTEXTS``
names such a file for all that is read; what is given in a call comes first.

References
----------
JSON-LD 1.1 Processing Algorithms and API, W3C 2020, sections 4.1 and 4.2.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from capacity.checks import nearest, shown
from capacity.database.io.files.content import Content, read
from capacity.database.io.rdf.guards.json import HALF_CHARACTER, parse_json, refuse_deep_json
from capacity.database.io.reading import Contexts
from capacity.errors import DatabaseFormatError, InvalidArgumentError, InvalidTypeError

# bytes of all contexts, each as often as it is used
MAX_INLINED = 2**26
# environment variable that names a file of contexts
REGISTERED = "CAPACITY_CONTEXTS"
# where contexts are downloaded whose IRI isn't their address
_DOWNLOADS = {
    "schema.org": "https://schema.org/docs/jsonldcontext.jsonld",
    "www.w3.org/ns/activitystreams": "https://www.w3.org/ns/activitystreams.jsonld",
}
# IRIs of these hosts name one context with http and with https, and with a slash at the end or not
_ONE_CONTEXT = re.compile(r"https?://(?:www\.)?(schema\.org)(?:/|/docs/jsonldcontext\.jsonld?)?")


def known_contexts(contexts: object) -> Contexts:
    """Return the contexts that are given, and those of the file that the environment names.

    Raises
    ------
    DatabaseFormatError
        If a file of contexts can't be read.
    InvalidTypeError
        For what are no contexts.
    """
    given = {} if contexts is None else check_contexts(contexts)
    registered = os.environ.get(REGISTERED)
    return {**contexts_of_file(registered), **given} if registered else given


def contexts_of_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a file of contexts: a JSON object of IRIs and files, relative to it.

    Raises
    ------
    DatabaseFormatError
        If it can't be read, or is something else, such as a context itself.
    """
    content = read(path)
    files = parse_json(content.name, content.data)
    if not isinstance(files, dict) or not all(isinstance(file, str) for file in files.values()):
        raise DatabaseFormatError(
            content.name,
            "a file of contexts must be a JSON object of IRIs and names of files",
            format="json",
            advice='Write {"https://schema.org/": "schema.jsonld"}; a context alone is given with '
            f"its IRI: contexts={{'IRI': {content.name!r}}}.",
        )
    folder = Path(path).parent
    return {iri: os.fspath(folder / file) for iri, file in files.items()}


def check_contexts(contexts: object) -> Contexts:
    """Return contexts, and refuse anything else than a mapping of IRIs to files or documents.

    Raises
    ------
    DatabaseFormatError
        If it is a file of contexts that can't be read.
    InvalidTypeError
        With what was given.
    """
    if isinstance(contexts, str | os.PathLike):
        return contexts_of_file(contexts)
    if isinstance(contexts, Mapping) and all(
        isinstance(iri, str) and isinstance(one, str | os.PathLike | Mapping)
        for iri, one in contexts.items()
    ):
        return contexts
    raise InvalidTypeError(
        "`contexts` must map the IRIs of JSON-LD contexts to files or to parsed documents, or be a "
        "JSON file that does, as in "
        f'{{"https://schema.org/": "schema.jsonld"}}; got {shown(contexts)}.'
    )


def with_contexts(content: Content, contexts: Contexts, base: str) -> bytes:
    """Write a JSON-LD document with the contexts that it refers to in it.

    Parameters
    ----------
    content : Content
        The document, which was checked not to be nested deeply.
    contexts : mapping of str to path or dict
        Contexts by IRI.
    base : str
        IRI of the document, against which relative ones are resolved.

    Raises
    ------
    DatabaseFormatError
        For a context that isn't given, is no context, refers to itself, or for too many of them.
    """
    document = parse_json(
        content.name, content.data, parse_constant=_no_constant, parse_int=_integer
    )
    if not any(_references(document)):
        return content.data
    # which nests as deep as the document, at most, in each of its contexts
    whole = _Inline(content.name, contexts, _depth(document)).document(document, base)
    try:
        return json.dumps(whole, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DatabaseFormatError(
            content.name, HALF_CHARACTER, format="jsonld", advice="Fix the file."
        ) from None


def missing_context(content: Content) -> DatabaseFormatError:
    """Make the error of a document that refers to a context elsewhere."""
    iri = next(_references(parse_json(content.name, content.data)), "a context")
    return _missing(content.name, iri, ())


def _missing(name: str, iri: str, given: Sequence[str]) -> DatabaseFormatError:
    return DatabaseFormatError(
        name,
        f"its context {shown(iri)} is elsewhere, and nothing is fetched",
        format="jsonld",
        advice=f"Write the context into the file, or save it{_address(iri)} and name the copy: "
        f"contexts={{{shown(iri)}: 'context.jsonld'}}. For all files, name it in a JSON file that "
        f"the environment variable {REGISTERED} names.{nearest(iri, given)}",
    )


def _address(iri: str) -> str:
    """State where a context is downloaded, if its IRI isn't the address."""
    name = _shared_name(iri) or re.sub(r"^https?://|/$", "", iri)
    return f" from {_DOWNLOADS[name]}" if name in _DOWNLOADS else ""


def _alike(iri: str, given: Iterable[str]) -> str | None:
    """Return the given IRI of the same context, where it has several."""
    name = _shared_name(iri)
    return next((other for other in given if name and _shared_name(other) == name), None)


def _shared_name(iri: str) -> str | None:
    """Return the name of a context that has several IRIs."""
    known = _ONE_CONTEXT.fullmatch(iri)
    return None if known is None else known[1]


def _references(node: Any) -> Any:
    if isinstance(node, list):
        for one in node:
            yield from _references(one)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("@context", "@import"):
                yield from (c for c in _listed(value) if isinstance(c, str))
            yield from _references(value)


def _depth(node: Any) -> int:
    """Count the objects within one another."""
    if isinstance(node, list):
        return max(map(_depth, node), default=0)
    return 1 + max(map(_depth, node.values()), default=0) if isinstance(node, dict) else 0


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _no_constant(name: str) -> Any:
    raise InvalidArgumentError(f"JSON has no {name}")


def _integer(text: str) -> int | float:
    """Read an integer; from 10^21 on it is a double of JSON-LD, and Python limits its length."""
    return int(text) if len(text) < 300 else float(text)


class _Inline:
    """The replacement of references in one document, which nests `depth` deep.

    A context of a term's values may refer to the context around it, and so without end. It is
    written as often as the document can descend into it.
    """

    def __init__(self, name: str, contexts: Contexts, depth: int) -> None:
        self.name, self.contexts, self.depth = name, contexts, depth
        self.level = self.size = 0
        self.read: dict[str, tuple[Any, int]] = {}
        self.made: dict[tuple[str, int], tuple[Any, int]] = {}
        # terms whose values are JSON, in which @context is a key like others
        self.of_json = {"@value"}

    def document(self, node: Any, base: str) -> Any:
        if isinstance(node, list):
            return [self.document(one, base) for one in node]
        if not isinstance(node, dict):
            return node
        made = dict(node)
        # first, for it tells which terms are JSON
        if "@context" in node:
            made["@context"] = self.context(node["@context"], base, ())
        for key, value in node.items():
            if key != "@context" and key not in self.of_json:
                made[key] = self.document(value, base)
        return made

    def context(self, value: Any, base: str, within: tuple[str, ...]) -> Any:
        """Replace references in the value of a key ``@context``."""
        made: list[Any] = []
        for one in _listed(value):
            if isinstance(one, str):
                made += _listed(self.referred(one, base, within))
            else:
                made.append(self.definitions(one, base, within) if isinstance(one, dict) else one)
        return made[0] if len(made) == 1 and not isinstance(value, list) else made

    def definitions(self, context: dict[str, Any], base: str, within: tuple[str, ...]) -> Any:
        made = dict(context)
        imported = made.pop("@import", None)
        if isinstance(imported, str):
            found = self.referred(imported, base, within)
            if not isinstance(found, dict):
                raise self.refused(f"{shown(imported)} is imported, so it must be one context")
            made = {**found, **made}
        elif "@import" in context:
            raise self.refused(f"@import must name a context; it is {shown(imported)}")
        for term, value in context.items():
            if isinstance(value, dict):
                if value.get("@type") == "@json":
                    self.of_json.add(term)
                if "@context" in value:
                    made[term] = {**value, "@context": self.scoped(value["@context"], base)}
        return made

    def scoped(self, value: Any, base: str) -> Any:
        """Replace references in the context of a term's values."""
        if self.level > self.depth:
            return {}
        self.level += 1
        made = self.context(value, base, ())
        self.level -= 1
        return made

    def referred(self, reference: str, base: str, within: tuple[str, ...]) -> Any:
        """Return the context at an IRI, with its own references replaced."""
        try:
            iri = urljoin(base, reference)
        except ValueError:
            # a bracket in the host, as of an address of IPv6 that isn't one
            iri = reference
        if iri in within:
            raise self.refused(f"the context {shown(iri)} refers to itself")
        key = next((one for one in (reference, iri) if one in self.contexts), None)
        key = _alike(iri, self.contexts) if key is None else key
        if key is None:
            raise _missing(self.name, iri if within else reference, list(self.contexts))
        # by the level, for what is within ends there; a size is that of all that is within
        if (iri, self.level) not in self.made:
            before, self.size = self.size, 0
            made = self.found(iri, key, within)
            self.made[iri, self.level] = made, self.size
            self.size = before
        made, size = self.made[iri, self.level]
        self.size += size
        if self.size > MAX_INLINED:
            raise self.refused(
                f"its contexts, each as often as used, take over {MAX_INLINED:,} bytes"
            )
        return made

    def found(self, iri: str, key: str, within: tuple[str, ...]) -> Any:
        if key not in self.read:
            self.read[key] = self.opened(key)
        document, self.size = self.read[key]
        if not isinstance(document, Mapping) or "@context" not in document:
            raise self.refused(f"what was passed for {shown(iri)} has no key @context")
        made = self.context(document["@context"], iri, (*within, iri))
        # section 4.1.2, step 5.7: the base of a context from elsewhere has no effect
        dropped = [
            {k: v for k, v in one.items() if k != "@base"} if isinstance(one, dict) else one
            for one in _listed(made)
        ]
        return dropped if isinstance(made, list) else dropped[0]

    def opened(self, key: str) -> tuple[Any, int]:
        one = self.contexts[key]
        if isinstance(one, Mapping):
            return one, len(json.dumps(one))
        content = read(one)
        refuse_deep_json(content.name, content.data)
        return parse_json(content.name, content.data), len(content.data)

    def refused(self, reason: str) -> DatabaseFormatError:
        return DatabaseFormatError(
            self.name, reason, format="jsonld", advice="Write its context into the file."
        )
