"""The terminals of SPARQL: where strings, IRIs, comments and variables begin and end.

A query is sent as its author wrote it. What has to be found in it, its columns and the places of
its parameters, is found among the terminals of the grammar, so that a question mark in a string, a
comment or an IRI is never taken for a variable.

References
----------
SPARQL 1.1 Query Language, W3C 2013, section 19.8, rules 139 to 173; section 19.2 on escapes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from capacity.checks import shown
from capacity.errors import InvalidArgumentError, InvalidTypeError

_LETTER = (
    "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_COMBINING = "\u00b7\u0300-\u036f\u203f-\u2040"
_IN_NAME = rf"{_LETTER}0-9{_COMBINING}\-"
_TERMINALS = re.compile(
    rf"""
      (?P<space>[\x20\t\r\n]+|\#[^\r\n]*)
    | (?P<iri><[^<>"{{}}|^`\\\x00-\x20]*>)
    | (?P<string>'''(?:[^'\\]|\\.|'(?!''))*+''' | \"""(?:[^"\\]|\\.|"(?!""))*+\"""
        | '(?!'')(?:[^'\\\r\n]|\\.)*+' | "(?!"")(?:[^"\\\r\n]|\\.)*+")
    | (?P<variable>[?$][{_LETTER}0-9][{_LETTER}0-9{_COMBINING}]*)
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
    | (?P<name>(?:[{_LETTER}](?:[{_IN_NAME}.]*[{_IN_NAME}])?)?
        :(?:(?:[{_IN_NAME}:.]|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?\#@%])*
           (?:[{_IN_NAME}:]|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?\#@%]))?)
    | (?P<word>[{_LETTER}](?:[{_LETTER}0-9{_COMBINING}]*))
    | (?P<sign>[^'"\\])
    """,
    re.VERBOSE | re.DOTALL,
)
# an endpoint may replace them before it reads strings, or within strings alone
_CODE_POINT = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})")


class Token(NamedTuple):
    """A terminal of a query, and its place.

    Parameters
    ----------
    kind : str
        ``iri``, ``string``, ``variable``, ``number``, ``language``, ``name`` (with a colon),
        ``word``, or ``sign``, which is one character.
    text : str
        The terminal.
    start : int
        Its place in the query.
    """

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place after it."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """A word in capitals, in which keywords aren't distinguished; empty for other terminals."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def variable(self) -> str:
        """The name of a variable; empty for other terminals."""
        return self.text[1:] if self.kind == "variable" else ""


def plain_query(query: object) -> str:
    r"""Check that a query is text that every endpoint reads in the same way.

    Raises
    ------
    InvalidTypeError
        If it is no str.
    InvalidArgumentError
        For text that has no UTF-8 form, and for escapes of code points (``\u0022``): endpoints
        differ in whether these end a string.

    Examples
    --------
    >>> plain_query("SELECT ?s ?p ?o { ?s ?p ?o }")
    'SELECT ?s ?p ?o { ?s ?p ?o }'
    """
    if not isinstance(query, str):
        raise InvalidTypeError(f"`query` must be a str, a query of SPARQL; got {shown(query)}.")
    try:
        query.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"A query must have a form in UTF-8; got half of a surrogate pair in {shown(query)}."
        ) from None
    if found := _CODE_POINT.search(query):
        raise InvalidArgumentError(
            f"A query must hold characters themselves; got the escape {found[0]}, which endpoints "
            "read in different ways. Write the character."
        )
    return query


def terminals(query: str) -> list[Token]:
    """List the terminals of a query, without spaces and comments.

    Raises
    ------
    InvalidArgumentError
        For a string that isn't closed, or a backslash outside of strings.

    Examples
    --------
    >>> [token.text for token in terminals('SELECT ?s { ?s <x:p> "?o" } # ?t')]
    ['SELECT', '?s', '{', '?s', '<x:p>', '"?o"', '}']
    """
    tokens: list[Token] = []
    at = 0
    while at < len(query):
        found = _TERMINALS.match(query, at)
        if found is None:
            what = "a string that isn't closed" if query[at] in "'\"" else "a backslash"
            line = query.count("\n", 0, at) + 1
            raise InvalidArgumentError(
                f"A query must be SPARQL; line {line} has {what}: {shown(query[at:])}."
            )
        kind = found.lastgroup or "sign"
        if kind != "space":
            tokens.append(Token(kind, found[0], at))
        at = found.end()
    return tokens
