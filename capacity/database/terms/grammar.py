"""Texts of terms that RDF has a form of, whatever the format.

A term that a program makes, or that a reader lets in, may be none of RDF, as an IRI with a space;
it is written only if it is one, so that every file is read as what was written.

References
----------
RDF 1.2 N-Triples, section 6 (BLANK_NODE_LABEL, PN_CHARS); RDF 1.2 Concepts, section 3.4: a literal
has a language just if its datatype is ``rdf:langString`` or ``rdf:dirLangString``.
"""

from __future__ import annotations

import re

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
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
_TRIPLES = re.compile(r'"(?:[^"\\]|\\.)*+"|<(?!<)[^<>]*+>|(<<\()|(\)>>)')


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


def triple_depth(text: str) -> int:
    """Return how deep triple terms nest in the text of one.

    Examples
    --------
    >>> triple_depth('<<( <x:a> <x:p> <<( <x:b> <x:p> "<<( <<(" )>> )>>')
    2
    """
    depth = most = 0
    for found in _TRIPLES.finditer(text):
        depth += bool(found[1]) - bool(found[2])
        most = max(most, depth)
    return most
