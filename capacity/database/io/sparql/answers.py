"""Answers as terms: rows of a SELECT from JSON, and triples of a CONSTRUCT.

JSON alone is taken for rows. A table of tab-separated values that is cut off at the end of a line
can't be told from a whole one, CSV doesn't say what an IRI is, and XML is what hostile documents
are made of.

References
----------
SPARQL 1.1 Query Results JSON Format, W3C 2013.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyoxigraph as ox

from capacity.checks import cut
from capacity.database.io.sparql.bodies import AT_ONCE, Body, Nesting
from capacity.database.io.sparql.client import Answer, Client
from capacity.database.terms.term import Ids
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
    ids: Ids,
    *,
    most: int,
    excess: EndpointError | None = None,
    say: Callable[[int], object] = lambda _rows: None,
) -> list[tuple[int, ...]]:
    """Ask a SELECT, and number the terms of its rows.

    Parameters
    ----------
    client : Client
        Where to ask.
    query : str
        The SELECT.
    columns : sequence of str
        Names of its columns, in the order in which they are wanted.
    ids : Ids
        Numbers of pyoxigraph's nodes, to which new ones are added.
    most : int
        Maximum of the rows.
    excess : EndpointError, optional
        Error for more rows, if there is more to say than their number.
    say : callable
        Function that is told the number of rows, now and then.

    Raises
    ------
    EndpointError
        As `Client.asked` does, and for more rows than `most`.
    DatabaseFormatError
        If the answer is no result of SPARQL in JSON, is cut off, has other columns, or a row
        without a value in one of them.
    """

    def read(answer: Answer) -> list[tuple[int, ...]]:
        if answer.media_type not in _JSON:
            # not looked at as JSON, whatever brackets it has
            body = answer.body(lambda _data: None)
            raise _wrong_type(client, answer, body, "a result of SPARQL in JSON")
        body = answer.body(Nesting(client.name))
        found = None
        try:
            found = ox.parse_query_results(body, ox.QueryResultsFormat.JSON)  # type: ignore[arg-type]
            rows = _numbered(client, found, columns, ids, most, excess, say)
        except (SyntaxError, ValueError) as error:
            if isinstance(error, DatabaseFormatError):
                raise
            raise _broken(client, body, error) from None
        finally:
            # the traceback of an error may keep this frame, and another thread may collect it:
            # pyoxigraph's results must end in the thread that made them
            del found
        _refuse_limit(client, answer, len(rows))
        return rows

    return client.asked(query, ROWS, read)


def _numbered(
    client: Client,
    found: object,
    columns: Sequence[str],
    ids: Ids,
    most: int,
    excess: EndpointError | None,
    say: Callable[[int], object],
) -> list[tuple[int, ...]]:
    """Number the terms of a result as it comes."""
    try:
        if not isinstance(found, ox.QuerySolutions):
            raise _refused(client, "its answer is yes or no, and no rows")
        names = [variable.value for variable in found.variables]
        if sorted(names) != sorted(columns):
            raise _refused(
                client, f"its columns are {cut(' '.join(names))}, not {cut(' '.join(columns))}"
            )
        places = [names.index(name) for name in columns]
        rows: list[tuple[int, ...]] = []
        for solution in found:
            if len(rows) == most:
                raise excess or _too_many(client, most)
            nodes = [solution[i] for i in places]
            if None in nodes:
                raise _gap(client, columns[nodes.index(None)], len(rows))
            rows.append(tuple(ids[node] for node in nodes))
            if len(rows) % _STEP == 0:
                say(len(rows))
        return rows
    finally:
        del found


def whole_number(client: Client, node: object) -> int:
    """Read a count.

    Raises
    ------
    DatabaseFormatError
        If a node is no integer of at least 0.
    """
    text = node.value if isinstance(node, ox.Literal) else ""
    # SUM gives a decimal at some endpoints, and no other number is a count
    found = re.fullmatch(r"\+?([0-9]{1,18})(?:\.0*)?", text)
    if found is None:
        raise _refused(client, f"a count must be a whole number; it is {cut(str(node))}")
    return int(found[1])


def construct_triples(
    client: Client, query: str, *, say: Callable[[str], object] = lambda _text: None
) -> tuple[bytes, str, Callable[[int], None]]:
    """Ask a CONSTRUCT, and return its bytes, their format, and a check of the number of triples.

    Raises
    ------
    EndpointError
        As `Client.asked` does, and if the end of the answer can't be told.
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


def _gap(client: Client, name: str, row: int) -> DatabaseFormatError:
    return _refused(
        client,
        f"row {row} has no ?{name}, and a fact needs all its columns",
        f"Add FILTER(BOUND(?{name})), or take the part of the query out of OPTIONAL.",
    )


def _too_many(client: Client, most: int) -> EndpointError:
    return EndpointError(
        client.name,
        f"its answer has more than {most:,} rows",
        "Ask for fewer facts, or raise `max_rows`.",
    )


def _refuse_limit(client: Client, answer: Answer, n: int) -> None:
    """Refuse an answer as long as the endpoint's own limit, where it says that it has one."""
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
    advice = "Tell who keeps the endpoint."
    if answer.media_type in ("text/html", "application/xhtml+xml"):
        advice = "Give the address of the endpoint itself, which often ends in /sparql."
    return _refused(
        client,
        f"its answer must be {wanted}; it is {cut(answer.media_type or 'of no type')}{start}",
        advice,
    )


def _broken(client: Client, body: Body, error: Exception) -> DatabaseFormatError:
    text = str(getattr(error, "msg", error))
    said = "".join(c if c.isprintable() else " " for c in text)
    return _refused(
        client,
        f"its answer is no whole result of SPARQL in JSON ({said:.160}); it begins "
        f"{cut(body.text())!r}",
        "Ask again; if that doesn't help, ask for fewer facts.",
    )


def _refused(
    client: Client, reason: str, advice: str = "Tell who keeps the endpoint."
) -> DatabaseFormatError:
    return DatabaseFormatError(client.name, reason, format="sparql", advice=advice)
