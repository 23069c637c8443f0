"""Checks of terms where a `Term` is made: what no format can write is refused.

Every file is then read as what was written. What RDF takes for one term is made one: languages are
put in lower case, ``xsd:string`` and ``rdf:langString`` are omitted, and triple terms are written
with the same spaces.

References
----------
RDF 1.1 Concepts and Abstract Syntax, section 3; RFC 3987 (IRIs); BCP 47, section 2.1 (languages).
"""

from __future__ import annotations

from typing import TypeAlias

import pyoxigraph as ox

from capacity.database.terms.grammar import (
    OF_LANGUAGES,
    RDF,
    XSD_STRING,
    is_blank_name,
    parsed_term,
)
from capacity.errors import InvalidArgumentError, InvalidTypeError

Fields: TypeAlias = tuple[str, str, str, str]


def well_formed(kind: str, text: str, datatype: str, language: str) -> Fields:
    """Return the fields of a term as RDF compares them; all terms but plain ones are checked.

    Parameters are the fields of `Term`.

    Raises
    ------
    InvalidArgumentError
        If no format can write the term, with the reason.
    InvalidTypeError
        If a field isn't a str.

    Examples
    --------
    >>> well_formed("literal", "chat", "", "FR-be")
    ('literal', 'chat', '', 'fr-be')
    """
    if not type(kind) is type(text) is type(datatype) is type(language) is str:
        kind, text, datatype, language = map(_plain, (kind, text, datatype, language))
    if kind == "literal":
        return _literal(text, datatype, language)
    if datatype or language:
        raise InvalidArgumentError(
            f"A literal alone has a datatype or a language; got {datatype or language!r:.60} for "
            f"the {kind} {text!r:.60}. Omit it, or use Term('literal', ...)."
        )
    if kind == "iri":
        _require_iri(text)
    elif kind == "blank":
        _require_blank_name(text)
    elif kind == "triple":
        text = _triple(text)
    elif kind == "label":
        _require_utf8(text)
    elif kind != "set":
        raise InvalidArgumentError(
            "A term must be of the kind 'iri', 'literal', 'blank', 'label', 'set' or 'triple'; got "
            f"{kind!r:.60}."
        )
    return kind, text, datatype, language


def _plain(field: object) -> str:
    """Make a str of one that is of a class of its own, as rdflib's IRIs are."""
    if not isinstance(field, str):
        raise InvalidTypeError(
            "A term must be made of texts: a kind, a text, and, of a literal, a datatype or a "
            f"language; got one of type {type(field).__name__}. Pass str(...), and a datatype "
            "by its IRI."
        )
    return str(field)


def _require_iri(text: str) -> None:
    try:
        ox.NamedNode(text)
    except ValueError as error:
        raise InvalidArgumentError(
            "An IRI must be absolute, as http://example.org/a is, and without spaces and "
            f'<>"{{}}|^`\\; got {text!r:.60} ({error!s:.100}). Escape what it must not hold '
            "(urllib.parse.quote), or make a plain name of it: label(...)."
        ) from None


def _require_blank_name(text: str) -> None:
    if not is_blank_name(text):
        raise InvalidArgumentError(
            "The name of a blank node must consist of letters, digits, _ and, after the first, - "
            f"and dots, of which none is the last; got {text!r:.60}. Choose another name, such "
            "as b0."
        )


def _require_utf8(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"A text must have a form in UTF-8, which files are in; the half of a pair, "
            f"{text[error.start]!r}, in {text!r:.60} has none. Decode the text otherwise, or use "
            'text.encode(errors="replace").decode().'
        ) from None


def _literal(text: str, datatype: str, language: str) -> Fields:
    _require_utf8(text)
    if language:
        return "literal", text, "", _language(text, datatype, language)
    if not datatype or datatype == XSD_STRING:
        return "literal", text, "", ""
    if datatype in OF_LANGUAGES:
        raise InvalidArgumentError(
            f"A literal of the datatype {datatype} must have a language; {text!r:.60} has none. "
            "Add one, or choose another datatype."
        )
    try:
        ox.NamedNode(datatype)
    except ValueError as error:
        raise InvalidArgumentError(
            f"The datatype of a literal must be an absolute IRI; got {datatype!r:.60} for "
            f"{text!r:.60} ({error!s:.100}). Write its IRI in full."
        ) from None
    return "literal", text, datatype, ""


def _language(text: str, datatype: str, language: str) -> str:
    """Return a language in lower case, with its direction, which has no other case."""
    tag, dashes, direction = language.partition("--")
    wanted = f"{RDF}dirLangString" if dashes else f"{RDF}langString"
    if datatype not in ("", wanted):
        raise InvalidArgumentError(
            f"A literal with a language must be of the datatype {wanted}, which can be omitted; "
            f"got {datatype!r:.60} for {text!r:.60} in {language!r:.60}. Omit one of the two."
        )
    # a letter of another alphabet may be of this one in lower case
    tag = tag.lower() if tag.isascii() else tag
    try:
        if dashes:
            ox.Literal("", language=tag, direction=ox.BaseDirection(direction))
        else:
            ox.Literal("", language=tag)
    except ValueError as error:
        raise InvalidArgumentError(
            "A language must be a tag of BCP 47, as en and zh-TW are, perhaps with a direction, "
            f"--ltr or --rtl; got {language!r:.60} for {text!r:.60} ({error!s:.100}). Write "
            "parts with a hyphen, and none longer than eight letters."
        ) from None
    return f"{tag}{dashes}{direction}"


def _triple(text: str) -> str:
    """Write a triple term as N-Triples writes it; a parser checks its parts."""
    try:
        node = parsed_term(text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"The text of a triple term must be one of N-Triples, <<( s p o )>>; got {text!r:.60} "
            f"({error!s:.160}). Write its parts as Term(...).n3() does."
        ) from None
    if not isinstance(node, ox.Triple):
        raise InvalidArgumentError(
            f"The text of a triple term must be one of N-Triples, <<( s p o )>>; got {text!r:.60}. "
            "Pass the kind of what it is."
        )
    return written(node)


def written(node: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> str:
    """Write a node of a parser in N-Triples, with languages in lower case.

    Examples
    --------
    >>> written(ox.Literal("chat", language="FR"))
    '"chat"@fr'
    """
    if isinstance(node, ox.Triple):
        s, p, o = map(written, (node.subject, node.predicate, node.object))
        return f"<<( {s} {p} {o} )>>"
    if isinstance(node, ox.Literal) and node.language and not node.language.islower():
        return str(ox.Literal(node.value, language=node.language.lower(), direction=node.direction))
    return str(node)
