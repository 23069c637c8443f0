"""Texts of terms that RDF has a form of, whatever the format.

A term must have such a text wherever it is made (`capacity.database.terms.well_formed`), so that
every file is read as what was written.

References
----------
RDF 1.2 N-Triples, section 6 (BLANK_NODE_LABEL, PN_CHARS); RDF 1.2 Concepts, section 3.4: a literal
has a language just if its datatype is ``rdf:langString`` or ``rdf:dirLangString``.
"""

from __future__ import annotations

import re

import pyoxigraph as ox

from capacity.errors import InvalidArgumentError

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
