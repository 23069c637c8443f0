"""The grammar of terms: texts that RDF has a form of, and what no format can write.

A term must have such a text wherever it is made, so that every file is read as what was written.
What RDF takes for one term is made one: languages are put in lower case, ``xsd:string`` and
``rdf:langString`` are omitted, and triple terms are written with the same spaces.

References
----------
RDF 1.2 N-Triples, section 6 (BLANK_NODE_LABEL, PN_CHARS); RDF 1.2 Concepts, section 3.4: a literal
has a language just if its datatype is ``rdf:langString`` or ``rdf:dirLangString``. RDF 1.1 Concepts
and Abstract Syntax, section 3; RFC 3987 (IRIs); BCP 47, section 2.1 (languages).
"""

from __future__ import annotations

import re
from typing import TypeAlias

import pyoxigraph as ox

from capacity.errors import InvalidArgumentError, InvalidTypeError

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
# datatypes of literals with a language, which `Term` omits
OF_LANGUAGES = frozenset({f"{RDF}langString", f"{RDF}dirLangString"})
# characters that begin a name, and those that go on with it; XML has the same
NAME_STARTS = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
NAME_GOES_ON = rf"{NAME_STARTS}\-0-9\xb7\u0300-\u036f\u203f-\u2040"
# pattern of a blank node's name, which doesn't end in a dot
BLANK_NAME = rf"[{NAME_STARTS}0-9](?:[{NAME_GOES_ON}.]*[{NAME_GOES_ON}])?"
_BLANK_NAME = re.compile(BLANK_NAME)
# parsers and printers recur into triple terms
MAX_TRIPLE_DEPTH = 128

# RDF 1.2 N-Triples, productions IRIREF, STRING_LITERAL_QUOTE, BLANK_NODE_LABEL, LANG_DIR and
# tripleTerm. A cell must be one term; one that holds a second term, or a comment, is refused.
_IRIREF = r"<(?:[^\x00-\x20<>\"{}|^`\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*+>"
_STRING = r"\"(?:[^\x22\x5C\x0A\x0D]|\\.|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*+\""
_ONE = (
    rf"{_IRIREF}|_:{BLANK_NAME}"
    rf"|{_STRING}(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?|\^\^{_IRIREF})?"
)
# the parser checks how the parts of a triple term nest
_TERM = re.compile(rf"{_ONE}|<<\((?:{_ONE}|<<\(|\)>>|[ \t])++(?<=\)>>)")
_BEGINS = re.compile(rf"{_STRING}|(<<\()")


def is_blank_name(name: str) -> bool:
    """Return whether a blank node can have a name in every format.

    Examples
    --------
    >>> is_blank_name("b.1"), is_blank_name("b."), is_blank_name("a:b")
    (True, False, False)
    """
    return _BLANK_NAME.fullmatch(name) is not None


def lacks_language(datatype: str, language: str) -> bool:
    """Return whether a literal is of a datatype that needs a language, and has none.

    Examples
    --------
    >>> lacks_language("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "")
    True
    """
    return datatype in OF_LANGUAGES and not language


def is_term(cell: str) -> bool:
    """Return whether a cell has the form of one N-Triples term.

    Examples
    --------
    >>> is_term("<http://x/a>"), is_term("Astrid")
    (True, False)
    """
    return _TERM.fullmatch(cell) is not None


def parsed_term(text: str) -> ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple:
    """Parse the text of one term of N-Triples.

    Raises
    ------
    InvalidArgumentError
        If it is no such text, or triple terms nest too deep, with the reason.

    Examples
    --------
    >>> parsed_term('"chat"@fr').language
    'fr'
    """
    # a triple term is the object of another one at most, so they nest as often as they begin
    if text.count("<<(") > MAX_TRIPLE_DEPTH < sum(map(bool, _BEGINS.findall(text))):
        raise InvalidArgumentError(f"triple terms nest over {MAX_TRIPLE_DEPTH} deep")
    quads: list[ox.Quad] = []
    if is_term(text):
        try:
            quads = list(ox.parse(f"<x:s> <x:p> {text} .", format=ox.RdfFormat.N_TRIPLES))
        except (SyntaxError, ValueError, MemoryError) as error:
            raise InvalidArgumentError(str(error)) from None
    if len(quads) != 1:
        raise InvalidArgumentError("not one N-Triples term")
    return quads[0].object


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
