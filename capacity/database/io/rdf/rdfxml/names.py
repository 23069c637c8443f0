"""Names of XML in their namespaces, and IRIs resolved against a base, as N-Triples has them.

References
----------
Namespaces in XML 1.0, sections 2 to 6; XML 1.0, section 2.3. RFC 3986, sections 5.2 and 5.3,
appendix B; RFC 3987; RDF 1.1 XML Syntax, section 5.3; XML Base.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyoxigraph as ox

from capacity.database.io.rdf.guards.texts import MAX_NAMESPACE
from capacity.database.terms.grammar import NAME_GOES_ON, NAME_STARTS

XML = "http://www.w3.org/XML/1998/namespace"
_XMLNS = "http://www.w3.org/2000/xmlns/"
# declarations in scope
MAX_NAMESPACES = 1000
NC_NAME = re.compile(rf"[{NAME_STARTS}][{NAME_GOES_ON}.]*+")


class ForbiddenError(Exception):
    """Raised for what isn't allowed at its place."""


class LongTermError(Exception):
    """Raised for a term that is too long, with its length."""


def namespaces_within(prefixes: Mapping[str, str], attributes: Sequence[str]) -> Mapping[str, str]:
    """Return the namespace of each prefix within an element of some attributes.

    Raises
    ------
    ForbiddenError
        For a declaration that isn't allowed, too many, or one that is too long.
    """
    namespaces: dict[str, str] | None = None
    for key, value in zip(attributes[::2], attributes[1::2], strict=True):
        if not key.startswith("xmlns") or key[5:6] not in ("", ":"):
            continue
        prefix = key[6:]
        if len(value) > MAX_NAMESPACE:
            raise ForbiddenError(f"a namespace is longer than {MAX_NAMESPACE:,} characters")
        if key != "xmlns" and not (value and NC_NAME.fullmatch(prefix)):
            raise ForbiddenError(f"{key!r:.60} declares no namespace")
        if prefix == "xmlns" or value == _XMLNS or (prefix == "xml") != (value == XML):
            raise ForbiddenError(f"{key!r:.60} can't be declared as {value!r:.60}")
        namespaces = dict(prefixes) if namespaces is None else namespaces
        namespaces[prefix] = value
        if len(namespaces) > MAX_NAMESPACES:
            raise ForbiddenError(
                f"over {MAX_NAMESPACES:,} namespaces are declared around one element"
            )
    return prefixes if namespaces is None else namespaces


def expanded(prefixes: Mapping[str, str], name: str, *, attribute: bool) -> tuple[str, str]:
    """Return the namespace of a name, or "", and the rest of it.

    Raises
    ------
    ForbiddenError
        If its prefix isn't declared, or it has two.
    """
    prefix, colon, local = name.rpartition(":")
    if colon and not (NC_NAME.fullmatch(prefix) and NC_NAME.fullmatch(local)):
        raise ForbiddenError(f"{name!r:.60} is no name with a prefix")
    namespace = "" if attribute and not colon else prefixes.get(prefix, "")
    if colon and not namespace:
        raise ForbiddenError(f"the prefix of {name!r:.60} isn't declared")
    return namespace, local


_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(#.*)?", re.DOTALL)
# IRIs that need no further check, as `lines.matched_lines` has them
_PATH = r"[\w\-.~!$&'()*+,;=:@/?]*+"
_PLAIN = re.compile(
    rf"[A-Za-z][A-Za-z\d+.\-]*+:(?://[\w.~\-]*+(?::\d*+|)(?=/|\Z)|(?!//)){_PATH}(?:#{_PATH})?",
    re.ASCII,
)
# resolved references that are kept, because they are used again
_KEPT = 2**15


class Base:
    """The base of an element, and the IRIs that were resolved against it.

    Parameters
    ----------
    iri : str
        Absolute IRI.
    """

    __slots__ = ("_parts", "iri", "known")

    def __init__(self, iri: str) -> None:
        self.iri = iri
        self._parts = _PARTS.match(iri).groups()  # type: ignore[union-attr]
        self.known: dict[str, str] = {}

    def within(self, reference: str) -> Base:
        """Return the base of an element that has another one.

        Raises
        ------
        ForbiddenError
            If it is no IRI, or too long.
        """
        base = Base(checked_iri(self.resolved(reference)))
        if len(base.iri) > MAX_NAMESPACE:
            raise ForbiddenError(f"its base is longer than {MAX_NAMESPACE:,} characters")
        return base

    def of(self, reference: str) -> str:
        """Return an IRI as N-Triples has it, from a reference to it.

        Raises
        ------
        ForbiddenError
            If it is none.
        """
        if len(self.known) >= _KEPT:
            self.known.clear()
        plain = _PLAIN.fullmatch(reference)
        iri = f"<{reference if plain else checked_iri(self.resolved(reference))}>"
        if len(iri) <= MAX_NAMESPACE:
            self.known[reference] = iri
        return iri

    def resolved(self, reference: str) -> str:
        """Resolve a reference; an absolute one stays as it is, dots in its path too.

        Raises
        ------
        ForbiddenError
            If it is none, or what it is resolved to would be read as another IRI.

        Examples
        --------
        >>> Base("http://x/a/b?c").resolved("../d#e"), Base("http://x/a#b").resolved("")
        ('http://x/d#e', 'http://x/a')
        """
        scheme, authority, path, query, fragment = _PARTS.match(reference).groups()  # type: ignore[union-attr]
        if scheme is not None:
            return reference
        if authority is None and path.startswith(":"):
            raise ForbiddenError(f"{reference!r:.60} is no reference to an IRI")
        scheme, its_authority, its_path, its_query, _ = self._parts
        if authority is None:
            authority = its_authority
            if not path:
                path, query = its_path, its_query if query is None else query
            elif path[0] == "/":
                path = _without_dots(path)
            elif its_authority is not None and not its_path:
                path = _without_dots(f"/{path}")
            else:
                path = _without_dots(its_path[: its_path.rfind("/") + 1] + path)
        else:
            path = _without_dots(path)
        if authority is None and path.startswith("//"):
            raise ForbiddenError(f"{reference!r:.60} has no IRI against the base {self.iri!r:.60}")
        before = "" if authority is None else f"//{authority}"
        after = "" if query is None else f"?{query}"
        return f"{scheme}:{before}{path}{after}{fragment or ''}"


def _without_dots(path: str) -> str:
    """Remove the segments ``.`` and ``..`` of a path, as RFC 3986, section 5.2.4 does."""
    if "." not in path:
        return path
    rooted = path.startswith("/")
    segments = path.split("/")[rooted:]
    kept: list[str] = []
    for at, segment in enumerate(segments, 1):
        if segment not in (".", ".."):
            kept.append(segment)
            continue
        if segment == ".." and kept:
            kept.pop()
            # a slash is left of a rootless path that is gone up to its beginning
            rooted = rooted or not kept
        if at == len(segments):
            kept.append("")
    return "/" * rooted + "/".join(kept)


def checked_iri(iri: str) -> str:
    """Return an IRI if it is absolute and valid.

    Raises
    ------
    ForbiddenError
        If it isn't.
    """
    if _PLAIN.fullmatch(iri):
        return iri
    try:
        return ox.NamedNode(iri).value
    except ValueError as error:
        raise ForbiddenError(f"{iri!r:.60} is no IRI ({error!s:.60})") from None
