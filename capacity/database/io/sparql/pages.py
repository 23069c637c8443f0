"""Every row of a SELECT, in one answer or in pages, or an error: never a part in silence.

Endpoints cut long answers off, and many don't report it. So the endpoint is asked to count the rows
first, and what comes is compared with that number. Pages are pages of *different* rows: two pages
with a row in common, or less rows than were counted, show that the endpoint's order changed between
pages or that it cut one off. All rows came if there are as many different ones as were counted.

Blank nodes have names that hold within one answer. So rows with blank nodes come in one answer, or
not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from capacity.database.io.sparql.answers import select_rows, whole_number
from capacity.database.io.sparql.client import Client
from capacity.database.io.sparql.query_parts import Query
from capacity.database.terms.term import Term, blank_names
from capacity.errors import EndpointError

Completeness: TypeAlias = Literal["check", "trust"]
COMPLETENESS = ("check", "trust")
# told of the rows so far, and how many there are, where that is known
Say: TypeAlias = Callable[[int, int], object]


@dataclass(frozen=True)
class Rows:
    """The rows of a SELECT.

    Attributes
    ----------
    rows : list of tuple of Term
        The terms of each row.
    pages : int
        Number of the answers that they came in.
    """

    rows: list[tuple[Term, ...]]
    pages: int


def every_row(
    client: Client,
    query: Query,
    *,
    page: int | None,
    max_rows: int,
    completeness: Completeness,
    say: Say,
) -> Rows:
    """Ask for all rows of a SELECT.

    Parameters
    ----------
    client : Client
        Where to ask.
    query : Query
        The SELECT.
    page : int, optional
        Rows of a page; by default one answer holds all of them.
    max_rows : int
        Maximum of the rows.
    completeness : {'check', 'trust'}
        Whether the endpoint counts the rows first.
    say : callable
        Function that is called with the number of rows so far, and of all if that is known, else 0.

    Raises
    ------
    EndpointError
        If the endpoint can't be asked, or doesn't return all rows.
    DatabaseFormatError
        If an answer can't be read.
    """
    expected = None
    if completeness == "check":
        expected = _counted(client, query.counted(distinct=page is not None))
        if expected > max_rows:
            raise EndpointError(
                client.name,
                f"the query has {expected:,} rows, more than {max_rows:,}",
                "Ask for fewer facts, or raise `max_rows`.",
            )
    if page is not None:
        return _in_pages(client, query, page, max_rows, expected, say)
    total = expected or 0
    rows = select_rows(
        client, query.text, query.columns, most=max_rows, say=lambda n: say(n, total)
    )
    if expected is not None and len(rows) != expected:
        raise _not_all(client, len(rows), expected, _smaller(len(rows)))
    return Rows(rows, 1)


def _in_pages(
    client: Client,
    query: Query,
    page: int,
    max_rows: int,
    expected: int | None,
    say: Say,
) -> Rows:
    rows: dict[tuple[Term, ...], None] = {}
    pages, blank = 0, False
    while len(rows) != expected:
        start = len(rows)
        found = select_rows(
            client,
            query.page(page, start),
            query.columns,
            most=page,
            excess=EndpointError(
                client.name,
                f"it returned more rows than the {page:,} of a page: it ignores LIMIT",
                "Ask without `page`.",
            ),
            say=lambda n, start=start: say(start + n, expected or 0),
        )
        # where nobody counted, only an empty page is the last for sure
        if not found and expected is None:
            break
        pages += 1
        # before rows are compared: the same name is another node in another page
        blank = blank or bool(blank_names(chain.from_iterable(found)))
        if blank and pages > 1:
            raise _blank_nodes(client)
        rows.update(dict.fromkeys(found))
        if len(rows) < start + len(found):
            raise EndpointError(
                client.name,
                "a row came twice: its facts changed meanwhile, or its order of rows isn't the "
                "same for each page",
                "Ask again, or without `page`.",
            )
        if len(rows) > max_rows:
            raise EndpointError(
                client.name,
                f"the query has more than {max_rows:,} rows",
                "Ask for fewer facts, or raise `max_rows`.",
            )
        missing = 0 if expected is None else expected - len(rows)
        if expected is not None and (missing < 0 or (missing and len(found) < page)):
            raise _not_all(client, len(rows), expected, _smaller(len(found)))
        if blank and missing:
            raise _blank_nodes(client)
    return Rows(list(rows), pages)


def _counted(client: Client, query: str) -> int:
    try:
        rows = select_rows(client, query, ("n",), most=1)
    except EndpointError as error:
        raise EndpointError(
            client.name,
            f"the rows can't be counted, so that an answer that is cut off would go unseen: "
            f"{error.reason}",
            f'{error.advice} Pass completeness="trust" to do without the count.',
        ) from None
    return whole_number(client, rows[0][0] if rows else None)


def _not_all(client: Client, n: int, expected: int, advice: str) -> EndpointError:
    if n > expected:
        return EndpointError(
            client.name,
            f"it returned {n:,} rows, and had counted {expected:,}: its facts changed meanwhile",
            "Ask again.",
        )
    return EndpointError(
        client.name,
        f"it returned {n:,} of {expected:,} rows without an error: it cuts answers off, or its "
        "facts changed meanwhile",
        advice,
    )


def _smaller(n: int) -> str:
    return f"Ask in pages: page={max(1, n)}, or smaller." if n else "Ask again later."


def _blank_nodes(client: Client) -> EndpointError:
    return EndpointError(
        client.name,
        "the rows hold blank nodes, whose names are others in each page",
        "Ask without `page`, or omit them: FILTER(!ISBLANK(?o)).",
    )
