"""The terminals of a query in SPARQL, and the parts that paging and counting need.

A query is sent as its author wrote it. What has to be found in it, its columns and the places of
its parameters, is found among the terminals of the grammar, so that a question mark in a string, a
comment or an IRI is never taken for a variable. A SELECT is asked for in pages, and counted, as a
sub-select: the prologue and the data set (FROM) stay outside, where the grammar has them, and the
rest is sent as it was written.

References
----------
SPARQL 1.1 Query Language, W3C 2013, section 19.8, rules 139 to 173; section 19.2 on escapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from capacity.checks import shown
from capacity.database.arity import LEAST, MOST
from capacity.errors import InvalidArgumentError, InvalidTypeError

_LETTER = (
    "A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_COMBINING = "\u00b7\u0300-\u036f\u203f-\u2040"
_IN_NAME = rf"{_LETTER}0-9{_COMBINING}\-"
# of a lookahead in a possessive repeat Python before 3.11.5 matches nothing, so runs are atomic
_TERMINALS = re.compile(
    rf"""
      (?P<space>[\x20\t\r\n]+|\#[^\r\n]*)
    | (?P<iri><[^<>"{{}}|^`\\\x00-\x20]*>)
    | (?P<string>'''(?>[^'\\]+|\\.|'(?!''))*''' | \"""(?>[^"\\]+|\\.|"(?!""))*\"""
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


_BEFORE = {"BASE": 2, "PREFIX": 3, "VERSION": 2}
_UPDATES = ("INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH")
_NEEDED = "A query must be a SELECT of the columns of facts, or a CONSTRUCT"


@dataclass(frozen=True)
class Query:
    """A SELECT or CONSTRUCT, in parts.

    Attributes
    ----------
    text : str
        The whole query.
    columns : tuple of str
        Names of the variables of a SELECT; empty for a CONSTRUCT.
    prologue : str
        What precedes the form: prefixes and a base.
    dataset : str
        Its FROM clauses.
    bare : str
        The query without these two; a sub-select.
    """

    text: str
    columns: tuple[str, ...]
    prologue: str
    dataset: str
    bare: str

    @property
    def is_select(self) -> bool:
        """True for a SELECT, False for a CONSTRUCT."""
        return bool(self.columns)

    def counted(self, *, distinct: bool) -> str:
        """Write the query that counts the rows, or the different ones; its column is ``n``."""
        inner = self._distinct() if distinct else self.bare
        return f"{self.prologue}SELECT (COUNT(*) AS ?n) {self.dataset} WHERE {{ {inner}\n}}"

    def page(self, n: int, start: int) -> str:
        """Write the query for `n` different rows from the row `start`, in order."""
        names = " ".join(f"?{name}" for name in self.columns)
        return (
            f"{self.prologue}SELECT DISTINCT {names} {self.dataset} WHERE {{ {self.bare}\n}} "
            f"ORDER BY {names} LIMIT {n} OFFSET {start}"
        )

    def _distinct(self) -> str:
        names = " ".join(f"?{name}" for name in self.columns)
        return f"SELECT DISTINCT {names} WHERE {{ {self.bare}\n}}"


def read_query(text: str) -> Query:
    """Find the parts of a query.

    Raises
    ------
    InvalidArgumentError
        For another form than SELECT and CONSTRUCT, ``SELECT *``, another number of columns than 2
        to 32, or a column that is named twice.

    Examples
    --------
    >>> query = read_query("PREFIX x: <x:> SELECT ?s ?p (?x + 1 AS ?o) FROM <x:g> { ?s ?p ?x }")
    >>> query.columns, query.dataset
    (('s', 'p', 'o'), 'FROM <x:g>')
    """
    tokens = terminals(text)
    form = _first_of_form(tokens)
    word = tokens[form].word if form < len(tokens) else ""
    if word not in ("SELECT", "CONSTRUCT"):
        raise _wrong_form(word)
    prologue = text[: tokens[form].start]
    if word == "CONSTRUCT":
        return Query(text, (), prologue, "", text[len(prologue) :])
    columns, end = _columns(tokens, form + 1)
    # the data set, between the columns and the pattern
    where = end
    while where < len(tokens) and tokens[where].text != "{" and tokens[where].word != "WHERE":
        where += 1
    if where == len(tokens):
        raise InvalidArgumentError(f"{_NEEDED}; got a SELECT without a pattern in braces.")
    split, after = tokens[end].start, tokens[where].start
    # a comment between clauses would hide what is put after it
    dataset = " ".join(token.text for token in tokens[end:where])
    # an endpoint's messages name the lines of the query as its author wrote it
    lines = "\n" * text.count("\n", split, after)
    bare = f"{text[len(prologue) : split]}{lines} {text[after:]}"
    return Query(text, columns, prologue, dataset, bare)


def _first_of_form(tokens: Sequence[Token]) -> int:
    """Index of the word that names the form, after the prologue."""
    at = 0
    while at < len(tokens) and (length := _BEFORE.get(tokens[at].word)):
        at += length
    return at


def _columns(tokens: Sequence[Token], at: int) -> tuple[tuple[str, ...], int]:
    """Read the columns of a SELECT, and return the index of the token after them."""
    if at < len(tokens) and tokens[at].word in ("DISTINCT", "REDUCED"):
        at += 1
    columns: list[str] = []
    while at < len(tokens):
        token = tokens[at]
        if token.text == "*":
            raise InvalidArgumentError(
                f"{_NEEDED}; got SELECT *. Name the columns, the object's last: SELECT ?s ?p ?o."
            )
        if token.variable:
            columns.append(token.variable)
        elif token.text == "(":
            at = _closing(tokens, at)
            named = tokens[at - 1].variable if tokens[at - 2].word == "AS" else ""
            if not named:
                raise InvalidArgumentError(
                    f"{_NEEDED}; a column in parentheses needs a name: (... AS ?o)."
                )
            columns.append(named)
        else:
            break
        at += 1
    if not LEAST <= len(columns) <= MOST:
        raise InvalidArgumentError(
            f"{_NEEDED}; got {len(columns)} columns, which must be {LEAST} to {MOST}: subject, "
            "predicate and object, or the columns of a key and then the object."
        )
    if len(set(columns)) < len(columns):
        raise InvalidArgumentError(f"The columns must differ; got {shown(' '.join(columns))}.")
    return tuple(columns), at


def _closing(tokens: Sequence[Token], at: int) -> int:
    """Index of the parenthesis that closes the one at an index."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].text, 0)
        if depth == 0:
            return i
    raise InvalidArgumentError(f"{_NEEDED}; got a parenthesis that isn't closed.")


def _wrong_form(word: str) -> InvalidArgumentError:
    if word == "DESCRIBE":
        return InvalidArgumentError(
            f"{_NEEDED}; got a DESCRIBE, whose facts each endpoint chooses for itself. Name the "
            "facts you mean."
        )
    if word in _UPDATES:
        return InvalidArgumentError(f"{_NEEDED}; got an update, {word}. Nothing was sent.")
    return InvalidArgumentError(f"{_NEEDED}; got {word or 'no form at all'}.")
