"""Refuse hostile JSON-LD before a parser sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from capacity.database.io.files.foreign import foreign_json
from capacity.database.io.rdf.guards.texts import MAX_NAMESPACE, first_deeper
from capacity.errors import DatabaseFormatError

MAX_DEPTH = 128
# terms of a context, each defined by the next
MAX_CONTEXT_CHAIN = 128
# each context, where it is used, is merged with the one around it: uses times terms of the largest,
# at most this, or this many times the file if that is more
FREE_MERGES, MAX_MERGES = 10**7, 4
# what JSON can write by escapes, and UTF-8 can't
HALF_CHARACTER = "a string holds half of a surrogate pair, \\ud800 to \\udfff"
# possessive: a string costs no memory for each of its characters
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# each letter of the key can be written as an escape
_CONTEXT_KEY_TEXT = re.compile(
    '"' + "".join(rf"(?:{c}|\\u00(?i:{ord(c):02x}))" for c in "@context") + r'"\s*:\s*'
)
_CONTEXT_KEY = re.compile(_CONTEXT_KEY_TEXT.pattern.encode())


def refuse_deep_json(name: str, data: bytes) -> None:
    """Refuse JSON that is nested too deeply.

    Raises
    ------
    DatabaseFormatError
        With the line.
    """
    bare = _STRING.sub(b"", data)
    if (at := first_deeper(MAX_DEPTH, bare, b"[{", b"]}")) is not None:
        raise DatabaseFormatError(
            name,
            f"its JSON nests over {MAX_DEPTH} deep",
            format="jsonld",
            line=bare.count(b"\n", 0, at) + 1,
            advice="Flatten it, or convert it to N-Quads.",
        )


def refuse_costly_contexts(name: str, data: bytes) -> None:
    """Refuse contexts of JSON-LD, not nested deeply, that would crash the parser or take it long.

    Raises
    ------
    DatabaseFormatError
        With what is too much.
    """
    largest = times = 0
    scoped: set[bytes] = set()
    for context in _contexts(data):
        times += 1
        largest = max(largest, _size(context))
        for one in _objects(context):
            for term, value in one.items():
                for inner in _flat(value):
                    if isinstance(inner, dict) and "@context" in inner:
                        scoped.add(term.encode("utf-8", "surrogatepass"))
                        largest = max(largest, _size(inner["@context"]))
            if _has_long_chain(one):
                raise _refused(
                    name,
                    f"over {MAX_CONTEXT_CHAIN} terms of a context are each defined by the next",
                    "Write the terms' whole IRIs into the context.",
                )
            if any(len(word) > MAX_NAMESPACE for value in one.values() for word in _words(value)):
                raise _refused(
                    name,
                    f"an IRI in a context is longer than {MAX_NAMESPACE:,} characters",
                    "Shorten it.",
                )
    if scoped:
        # one with an escape may be any of them
        times += sum(b"\\" in s[0] or s[0][1:-1] in scoped for s in _STRING.finditer(data))
    if times * largest > max(FREE_MERGES, MAX_MERGES * len(data)):
        raise _refused(
            name,
            f"its contexts, used {times:,} times, would be merged with up to {largest:,} terms",
            "Write one context at the beginning, without contexts of terms.",
        )


def _refused(name: str, reason: str, advice: str) -> DatabaseFormatError:
    return DatabaseFormatError(name, reason, format="jsonld", advice=advice)


def _size(context: Any) -> int:
    """Count the terms of a context, or of those in a list."""
    return sum(len(one) for one in _flat(context) if isinstance(one, dict))


def _contexts(data: bytes) -> Iterator[Any]:
    """Find the values of the key ``@context``, without parsing the data around them."""
    if not _CONTEXT_KEY.search(data):
        return
    text = data.decode("utf-8")
    read = json.JSONDecoder(object_pairs_hook=_all_values, parse_int=str).raw_decode
    end = 0
    for key in _CONTEXT_KEY_TEXT.finditer(text):
        # those within another context were found in it
        if key.start() >= end:
            try:
                context, end = read(text, key.end())
            except json.JSONDecodeError:
                # the parser will say what is wrong
                return
            yield context


def _all_values(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of pairs; parsers differ in which of two equal keys counts, so keep both."""
    made = dict(pairs)
    if len(made) < len(pairs):
        return {key: [value for other, value in pairs if other == key] for key in made}
    return made


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """List the objects in a context: itself, and the definitions and contexts of its terms."""
    for one in _flat(value):
        if isinstance(one, dict):
            yield one
            for inner in one.values():
                yield from _objects(inner)


def parse_json(name: str, data: bytes, **options: Any) -> Any:
    """Parse JSON that isn't nested deeply; options are those of `json.loads`.

    Raises
    ------
    DatabaseFormatError
        If it is broken, with the line.
    """
    try:
        # Python limits the length of an integer
        return json.loads(data.decode("utf-8"), **{"parse_int": str, **options})
    except json.JSONDecodeError as error:
        raise DatabaseFormatError(
            name,
            f"broken JSON ({error.msg})"
            if error.msg != "Extra data"
            else "after the end of the document there is another, as in JSON Lines",
            format="jsonld",
            line=error.lineno,
            advice="Fix the file."
            if error.msg != "Extra data"
            else 'If each line is a row of a table, pass format="records".',
        ) from None


def why_no_facts(data: bytes) -> tuple[str, str] | None:
    """Explain why JSON holds no facts, and what to do; None if it isn't plain why.

    Parameters
    ----------
    data : bytes
        A document, which was parsed as JSON-LD.

    Examples
    --------
    >>> why_no_facts(b'[{"name": "Ann"}]')[0]
    'it is plain JSON: it has no @context, and no key of it is an IRI'
    """
    document = json.loads(data.decode("utf-8"), parse_int=str)
    if foreign := foreign_json(document):
        return f"it is {foreign.what}", foreign.advice
    keys = {key for one in _objects(document) for key in one}
    if keys and not any(key.startswith("@") or ":" in key for key in keys):
        return (
            "it is plain JSON: it has no @context, and no key of it is an IRI",
            'A list of flat objects is read as a table, and so is JSON Lines: format="records". Of '
            "other JSON make a table with pandas.json_normalize, and pass it to from_pandas.",
        )
    if isinstance(document, dict) and document.keys() == {"@context"}:
        return (
            "it is a context alone, and holds no facts",
            "Name it for the documents that refer to it: contexts={IRI: FILE}.",
        )
    return None


def _flat(value: Any) -> Iterator[Any]:
    """List a value, or the values in a list, however it is nested."""
    if isinstance(value, list):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def _words(value: Any) -> Iterator[str]:
    """List the strings of a term's definition that may name other terms."""
    for one in _flat(value):
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            yield from _words([one[key] for key in ("@id", "@type", "@reverse") if key in one])


def _has_long_chain(context: dict[str, Any]) -> bool:
    """Return True if over `MAX_CONTEXT_CHAIN` terms are each defined by the next."""
    if len(context) <= MAX_CONTEXT_CHAIN:
        return False
    # terms that a term needs, itself not
    needs = {
        term: {
            found
            for word in (*_words(value), term)
            for found in (word, word.partition(":")[0])
            if found in context and found != term
        }
        for term, value in context.items()
    }
    heights: dict[str, int] = {}
    for first in needs:
        # without recursion; a term is left when all that it needs has its height
        path = [first]
        while path:
            term = path[-1]
            lacking = None
            if term not in heights:
                heights[term] = 0
                lacking = [one for one in needs[term] if one not in heights]
            if lacking:
                path += lacking
                continue
            path.pop()
            heights[term] = 1 + max((heights[one] for one in needs[term]), default=0)
            if heights[term] > MAX_CONTEXT_CHAIN:
                return True
    return False
