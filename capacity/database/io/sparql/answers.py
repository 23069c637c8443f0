"""Answers as terms: rows of a SELECT from JSON, and triples of a CONSTRUCT.

JSON alone is taken for rows. A table of tab-separated values that is cut off at the end of a line
can't be distinguished from a whole one, CSV doesn't mark IRIs, and XML is what hostile documents
are made of.

References
----------
SPARQL 1.1 Query Results JSON Format, W3C 2013.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from capacity.checks import cut
from capacity.database.io.sparql.bodies import AT_ONCE, Body, Nesting
from capacity.database.io.sparql.client import Answer, Client
from capacity.database.io.sparql.results import BrokenResultError, Cells, Result, UnkeptTermError
from capacity.database.terms.term import Term
from capacity.errors import DatabaseFormatError, EndpointError

ROWS = "application/sparql-results+json, application/json;q=0.5"
TRIPLES = "application/n-triples, text/turtle;q=0.9"
_JSON = ("application/sparql-results+json", "application/json")
_RDF = {"application/n-triples": "ntriples", "text/turtle": "turtle"}
_LIMIT = "X-SPARQL-MaxRows"
# rows between two signs of life
_STEP = 1000


def select_rows(
    client: Client,
    query: str,
    columns: Sequence[str],
    *,
    most: int,
    excess: EndpointError | None = None,
    say: Callable[[int], object] = lambda _rows: None,
) -> list[tuple[Term, ...]]:
    """Ask a SELECT, and read the terms of its rows.

    Blank nodes are named ``b0``, ``b1``, ... in the order in which they come: their labels are any
    strings, local to one answer.

    Parameters
    ----------
    client : Client
        Where to ask.
    query : str
        The SELECT.
    columns : sequence of str
        Names of its columns, in the order in which they are wanted.
    most : int
        Maximum of the rows.
    excess : EndpointError, optional
        Error for more rows, if its message contains more than their number.
    say : callable
        Function that is called with the number of rows, now and then.

    Raises
    ------
    EndpointError
        As `Client.asked` does, and for more rows than `most`.
    DatabaseFormatError
        If the answer is no result of SPARQL in JSON, is cut off, has other columns, or a row
        without a value in one of them, or with one that is no term of RDF.
    """

    def read(answer: Answer) -> list[tuple[Term, ...]]:
        if answer.media_type not in _JSON:
            # not looked at as JSON, whatever brackets it has
            body = answer.body(lambda _data: None)
            raise _wrong_type(client, answer, body, "a result of SPARQL in JSON")
        body = answer.body(Nesting(client.name))
        try:
            rows = _terms(client, Result(body.read), columns, most, excess, say)
        except (BrokenResultError, UnicodeDecodeError) as error:
            raise _broken(client, body, error) from None
        _refuse_limit(client, answer, len(rows))
        return rows

    return client.asked(query, ROWS, read)


def _terms(
    client: Client,
    result: Result,
    columns: Sequence[str],
    most: int,
    excess: EndpointError | None,
    say: Callable[[int], object],
) -> list[tuple[Term, ...]]:
    """Read the terms of a result as it comes."""
    cells, wanted = Cells(), set(columns)
    rows: list[tuple[Term, ...]] = []
    for row in result:
        if not rows:
            _require_columns(client, result, columns)
        if len(rows) == most:
            raise excess or _too_many(client, most)
        if row.keys() != wanted:
            raise _other_columns(client, row, columns, len(rows))
        rows.append(tuple(_kept(client, cells, row[name], name, len(rows)) for name in columns))
        if len(rows) % _STEP == 0:
            say(len(rows))
    if result.is_boolean:
        raise _refused(client, "its answer is yes or no, and no rows")
    _require_columns(client, result, columns)
    return rows


def _require_columns(client: Client, result: Result, columns: Sequence[str]) -> None:
    names = result.columns
    # the head may come last
    if names is not None and sorted(names) != sorted(columns):
        raise _refused(
            client, f"its columns are {cut(' '.join(names))}, not {cut(' '.join(columns))}"
        )


def _other_columns(
    client: Client, row: Collection[str], columns: Sequence[str], number: int
) -> DatabaseFormatError:
    """Make the error of a row without a column, or with another one."""
    missing = next((name for name in columns if name not in row), None)
    if missing is not None:
        return _refused(
            client,
            f"row {number} has no ?{missing}, and a fact needs all its columns",
            f"Add FILTER(BOUND(?{missing})), or take the part of the query out of OPTIONAL.",
        )
    other = next(name for name in row if name not in columns)
    return _refused(client, f"row {number} has a column that its head hasn't, {cut(other)!r}")


def _kept(client: Client, cells: Cells, cell: object, name: str, number: int) -> Term:
    try:
        return cells.term(cell)
    except UnkeptTermError as error:
        raise _refused(
            client,
            f"?{name} of row {number}, from 0, can't be kept: {error}",
            "Omit it by a FILTER, or fix it in the store.",
        ) from None


def whole_number(client: Client, term: Term | None) -> int:
    """Read a count.

    Raises
    ------
    DatabaseFormatError
        If a term is no integer of at least 0, or missing.
    """
    text = term.text if term is not None and term.kind == "literal" else ""
    # SUM gives a decimal at some endpoints, and no other number is a count
    found = re.fullmatch(r"\+?([0-9]{1,18})(?:\.0*)?", text)
    if found is None:
        raise _refused(client, f"a count must be a whole number; it is {cut(str(term))}")
    return int(found[1])


def construct_triples(
    client: Client, query: str, *, say: Callable[[str], object] = lambda _text: None
) -> tuple[bytes, str, Callable[[int], None]]:
    """Ask a CONSTRUCT, and return its bytes, their format, and a check of the number of triples.

    Raises
    ------
    EndpointError
        As `Client.asked` does, and if the end of the answer can't be detected.
    DatabaseFormatError
        If the answer is no RDF.
    """

    def read(answer: Answer) -> tuple[bytes, str, Callable[[int], None]]:
        body = answer.body(lambda _data: None)
        if answer.media_type not in _RDF:
            raise _wrong_type(client, answer, body, "RDF in N-Triples or Turtle")
        if not answer.framed:
            raise EndpointError(
                client.name,
                "its answer has neither a length nor an end, so that one that is cut off would "
                "pass for whole",
                "Ask by SELECT, whose answer has an end of its own.",
            )
        pieces, size = [], 0
        while piece := body.read():
            pieces.append(piece)
            size += len(piece)
            if size % (16 * AT_ONCE) < len(piece):
                say(f"{size / 2**20:.0f} MiB")
        return (
            b"".join(pieces),
            _RDF[answer.media_type],
            lambda n: _refuse_limit(client, answer, n),
        )

    return client.asked(query, TRIPLES, read)


def _too_many(client: Client, most: int) -> EndpointError:
    return EndpointError(
        client.name,
        f"its answer has more than {most:,} rows",
        "Ask for fewer facts, or raise `max_rows`.",
    )


def _refuse_limit(client: Client, answer: Answer, n: int) -> None:
    """Refuse an answer as long as the endpoint's own limit, where it states that it has one."""
    limit = answer.headers.get(_LIMIT, "").strip()
    if limit.isdecimal() and n >= int(limit):
        raise EndpointError(
            client.name,
            f"it cuts answers off at {int(limit):,} rows ({_LIMIT})",
            "Ask for fewer facts, or in pages: `page`, smaller than that.",
        )


def _wrong_type(client: Client, answer: Answer, body: Body, wanted: str) -> DatabaseFormatError:
    said = body.text()
    start = f", which begins {cut(said)!r}" if said else ""
    advice = "Report it to the endpoint's operator."
    if answer.media_type in ("text/html", "application/xhtml+xml"):
        advice = "Pass the address of the endpoint itself, which often ends in /sparql."
    return _refused(
        client,
        f"its answer must be {wanted}; it is {cut(answer.media_type or 'of no type')}{start}",
        advice,
    )


def _broken(client: Client, body: Body, error: Exception) -> DatabaseFormatError:
    said = "".join(c if c.isprintable() else " " for c in str(error))
    return _refused(
        client,
        f"its answer is no whole result of SPARQL in JSON ({said:.160}); it begins "
        f"{cut(body.text())!r}",
        "Ask again; if that doesn't help, ask for fewer facts.",
    )


def _refused(
    client: Client, reason: str, advice: str = "Report it to the endpoint's operator."
) -> DatabaseFormatError:
    return DatabaseFormatError(client.name, reason, format="sparql", advice=advice)
