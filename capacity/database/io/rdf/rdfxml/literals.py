"""Literals of a document as N-Triples has them, and XML literals as canonical XML.

References
----------
Exclusive XML Canonicalization 1.0, with comments and without inclusive prefixes, as RDF 1.1 XML
Syntax, section 7.2.17 asks for; RDF 1.1 N-Triples, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from capacity.database.io.rdf.rdfxml.names import ForbiddenError, expanded, namespaces_within

_QUOTED = re.compile(r'[\x00-\x1f"\\\x7f]')
# as the parser of N-Triples writes them; XML knows no other control characters
_ESCAPES = str.maketrans(
    {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\x7f": r"\u007F"}
)
_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;"})
_VALUE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#x9;", "\n": "&#xA;", "\r": "&#xD;"}
)


def quoted(text: str) -> str:
    r"""Write a text in quotation marks, as N-Triples has it.

    Examples
    --------
    >>> print(quoted('a "b"'))
    "a \"b\""
    """
    return f'"{text.translate(_ESCAPES) if _QUOTED.search(text) else text}"'


class XmlLiteral:
    """The content of an element as exclusive canonical XML, from its events.

    Parameters
    ----------
    prefixes : mapping of str to str
        Namespaces around it.

    Attributes
    ----------
    size : int
        Characters so far.
    """

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self.size = 0
        self._parts: list[str] = []
        # namespaces in scope, and those that the open elements have been written with
        self._scopes: list[tuple[Mapping[str, str], Mapping[str, str]]] = [(prefixes, {})]

    def start(self, tag: str, attributes: Sequence[str]) -> int:
        """Write the beginning of an element; return how long its namespaces are.

        Raises
        ------
        ForbiddenError
            For a name whose prefix isn't declared, or two attributes of one name.
        """
        outer, written = self._scopes[-1]
        prefixes = namespaces_within(outer, attributes)
        expanded(prefixes, tag, attribute=False)
        used = {tag.rpartition(":")[0]}
        values: dict[tuple[str, str], tuple[str, str]] = {}
        for key, value in zip(attributes[::2], attributes[1::2], strict=True):
            if key == "xmlns" or key.startswith("xmlns:"):
                continue
            name = expanded(prefixes, key, attribute=True)
            if name in values:
                raise ForbiddenError(f"an element has two attributes {key!r:.60}")
            values[name] = key, value
            if ":" in key:
                used.add(key.rpartition(":")[0])
        fresh = {
            prefix: prefixes.get(prefix, "")
            for prefix in sorted(used - {"xml"})
            if prefixes.get(prefix, "") != written.get(prefix, "")
        }
        parts = [f"<{tag}"]
        for prefix, namespace in fresh.items():
            colon = ":" if prefix else ""
            parts.append(f' xmlns{colon}{prefix}="{namespace.translate(_VALUE)}"')
        length = sum(map(len, parts[1:]))
        parts += [
            f' {key}="{value.translate(_VALUE)}"' for _, (key, value) in sorted(values.items())
        ]
        self.add(*parts, ">")
        self._scopes.append((prefixes, {**written, **fresh} if fresh else written))
        return length

    def end(self, tag: str) -> None:
        """Write the end of an element."""
        self._scopes.pop()
        self.add(f"</{tag}>")

    def text(self, text: str) -> None:
        """Write text."""
        self.add(text.translate(_TEXT))

    def add(self, *parts: str) -> None:
        """Add what is written already."""
        self._parts += parts
        self.size += sum(map(len, parts))

    def __str__(self) -> str:
        return "".join(self._parts)
