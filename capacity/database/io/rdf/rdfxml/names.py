"""Names of XML, and the namespaces that their prefixes denote.

References
----------
Namespaces in XML 1.0, sections 2 to 6; XML 1.0, section 2.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from capacity.database.io.rdf.guards.texts import MAX_NAMESPACE
from capacity.database.terms.grammar import NAME_GOES_ON, NAME_STARTS

XML = "http://www.w3.org/XML/1998/namespace"
_XMLNS = "http://www.w3.org/2000/xmlns/"
# declarations in scope
MAX_NAMESPACES = 1000
NC_NAME = re.compile(rf"[{NAME_STARTS}][{NAME_GOES_ON}.]*+")


class ForbiddenError(Exception):
    """Raised for what isn't allowed at its place."""


def namespaces_within(prefixes: Mapping[str, str], attributes: Sequence[str]) -> Mapping[str, str]:
    """Return the namespace of each prefix within an element of some attributes.

    Raises
    ------
    ForbiddenError
        For a declaration that isn't allowed, too many, or one that is too long.
    """
    found: dict[str, str] | None = None
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
        found = dict(prefixes) if found is None else found
        found[prefix] = value
        if len(found) > MAX_NAMESPACES:
            raise ForbiddenError(
                f"over {MAX_NAMESPACES:,} namespaces are declared around one element"
            )
    return prefixes if found is None else found


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
