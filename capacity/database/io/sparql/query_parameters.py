r"""Parameters of queries: terms in the place of variables, and never text.

A parameter is replaced by its term, as if the query's author had written the term: each variable
of its name, found among the terminals of the grammar, is replaced by one terminal that pyoxigraph
serialises. A block of VALUES would not do: patterns in inner groups and sub-selects don't see what
an outer group binds, so that a FILTER there would drop every row in silence.

Why no value can leave its place: an IRI is checked to hold none of the characters ``<>"{}|^`\``
and no space; in a literal quotes, backslashes and line ends are escaped. Endpoints may read escapes
of code points (``\u0022``) before they read strings (SPARQL 1.1, section 19.2), so a backslash in a
value is never followed by a letter u: that letter is written as an escape itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Any

import pyoxigraph as ox

from capacity.checks import nearest, shown
from capacity.database.io.sparql.query_parts import Token, plain_query, terminals
from capacity.database.terms.nodes import term_from_rdflib, term_to_pyoxigraph
from capacity.database.terms.term import Term
from capacity.errors import InvalidArgumentError, InvalidTypeError

_ESCAPE = re.compile(r"\\(.)([uU]?)", re.DOTALL)


def bound(query: str, parameters: Mapping[str, object] | None) -> str:
    r"""Write a query with terms in the place of the variables that parameters name.

    Parameters
    ----------
    query : str
        A query of SPARQL.
    parameters : mapping of str to object, optional
        Terms by the names of variables, without the question mark. A str, int, float or bool is a
        literal, an IRI is ``Term("iri", ...)``; nodes of rdflib and pyoxigraph are taken, too.

    Returns
    -------
    str
        The query; a variable among the columns of a SELECT stays one, with the term as its value.

    Raises
    ------
    InvalidTypeError
        If the query is no str, the parameters are no mapping, or a value is of another type.
    InvalidArgumentError
        For a query that `plain_query` refuses, a name that the query hasn't, a value that is no IRI
        and no literal, or a variable that the query itself binds.

    Examples
    --------
    >>> bound('SELECT ?s ?p ?o { ?s ?p ?o ; <x:in> ?land }', {"land": 'O"Higgins } #'})
    'SELECT ?s ?p ?o { ?s ?p ?o ; <x:in>  "O\\"Higgins } #"  }'
    """
    query = plain_query(query)
    if parameters is None:
        return query
    if not isinstance(parameters, Mapping):
        raise InvalidTypeError(
            f'`parameters` must map names of variables to terms, such as {{"country": '
            f'Term("iri", ...)}}; got {shown(parameters)}.'
        )
    tokens = terminals(query)
    known = {token.variable for token in tokens if token.variable}
    for name in parameters:
        if name not in known:
            has = f" It has {', '.join(sorted(known))}." if known else " It has none."
            raise InvalidArgumentError(
                f"`parameters` must name variables of the query, without their question mark; got "
                f"{shown(name)}.{nearest(name, known) or has}"
            )
    texts = {name: written_term(name, value) for name, value in parameters.items()}
    return _replaced(query, tokens, texts)


def written_term(name: str, value: object) -> str:
    r"""Write a parameter's term as one terminal of SPARQL.

    Raises
    ------
    InvalidTypeError
        For a value of another type.
    InvalidArgumentError
        If it is no IRI and no literal, or not a valid one.

    Examples
    --------
    >>> print(written_term("name", "\\u0022 } DROP ALL #"))
    "\\\u00750022 } DROP ALL #"
    """
    try:
        node = _node(value)
    except InvalidTypeError:
        raise InvalidTypeError(
            f"The parameter {shown(name)} must be a Term, a str, a number or a node of rdflib or "
            f"pyoxigraph; got {shown(value)}."
        ) from None
    except (ValueError, UnicodeError) as error:
        raise InvalidArgumentError(
            f"The parameter {shown(name)} must be a valid IRI or literal; got {shown(value)} "
            f"({error!s:.160})."
        ) from None
    if not isinstance(node, ox.NamedNode | ox.Literal):
        raise InvalidArgumentError(
            f"The parameter {shown(name)} must be an IRI or a literal; got {shown(value)}. In a "
            "query, a blank node is a variable."
        )
    return _ESCAPE.sub(_apart, str(node))


def _node(value: object) -> Any:
    if isinstance(value, ox.NamedNode | ox.Literal | ox.BlankNode | ox.Triple):
        return value
    if isinstance(value, Term):
        return term_to_pyoxigraph(value)
    # nodes of rdflib are subclasses of str
    if type(value) in (str, int, float, bool):
        return ox.Literal(value)  # type: ignore[arg-type]
    return term_to_pyoxigraph(term_from_rdflib(value))


def _apart(found: re.Match[str]) -> str:
    """Keep a backslash and a letter u of a value from reading as an escape of a code point."""
    if found[1] == "\\" and found[2]:
        return rf"\\\u{ord(found[2]):04X}"
    return found[0]


def _replaced(query: str, tokens: list[Token], texts: Mapping[str, str]) -> str:
    pieces: list[str] = []
    at = depth = braces = 0
    taken = {token.variable for token in tokens}
    # whether the columns of a SELECT are read, or the variables of VALUES
    columns = values = False
    for i, token in enumerate(tokens):
        before = tokens[i - 1].word if i else ""
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        braces += {"{": 1, "}": -1}.get(token.text, 0)
        if token.word in ("SELECT", "VALUES"):
            columns, values, depth = token.word == "SELECT", token.word == "VALUES", 0
        elif token.text == "{" or token.word in ("WHERE", "FROM"):
            columns = values = False
        text = texts.get(token.variable)
        if text is None:
            continue
        if values or before == "AS":
            raise InvalidArgumentError(
                f"A parameter must not be bound by the query itself; ?{token.variable} is "
                f"after {'VALUES' if values else 'AS'}. Rename one of the two."
            )
        if columns and depth == 0:
            # a column of an inner SELECT is no variable outside any more: it only keeps its place
            name = _fresh(token.variable, taken) if braces else token.variable
            text = f"({text} AS ?{name})"
        pieces += [query[at : token.start], f" {text} "]
        at = token.end
    return "".join([*pieces, query[at:]])


def _fresh(name: str, taken: set[str]) -> str:
    """Return a name that no variable has, and reserve it."""
    fresh = next(f"{name}_{i}" for i in count(1) if f"{name}_{i}" not in taken)
    taken.add(fresh)
    return fresh
