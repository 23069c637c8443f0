"""A `Database` of what a query selects at a SPARQL endpoint: all of it, or an error."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypedDict

import numpy as np

from capacity.checks import require_choice, require_integer
from capacity.database.facts import Database
from capacity.database.io.rdf.readers import parse_rdf
from capacity.database.io.sparql.answers import construct_triples
from capacity.database.io.sparql.client import Client
from capacity.database.io.sparql.endpoints import endpoint_at
from capacity.database.io.sparql.pages import COMPLETENESS, Completeness, every_row
from capacity.database.io.sparql.query_parameters import bound
from capacity.database.io.sparql.query_parts import Query, read_query
from capacity.database.policy import MultiPolicy, check_policy, multi_valued_warning
from capacity.database.source import Source
from capacity.database.terms.term import Ids, Term
from capacity.errors import DatabaseFormatError, EndpointError, InvalidArgumentError, warn_caller
from capacity.progress import Progress, spinner
from capacity.reading_limits import MAX_TERM_BYTES

TIMEOUT, DEADLINE = 60.0, 3600.0
MAX_ROWS, MAX_BYTES = 10**6, 2**30
# limits of endpoints are round numbers, and few answers are of exactly as many triples
_ROUND = 1000


class SparqlOptions(TypedDict, total=False):
    """The options of `from_sparql`, whose docstring has them."""

    parameters: Mapping[str, object] | None
    timeout: float
    deadline: float
    max_rows: int
    max_bytes: int
    page: int | None
    completeness: Completeness
    multi: MultiPolicy | None
    allow_empty: bool
    progress: Progress | None


def from_sparql(
    endpoint: str,
    query: str,
    *,
    parameters: Mapping[str, object] | None = None,
    timeout: float = TIMEOUT,
    deadline: float = DEADLINE,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    page: int | None = None,
    completeness: Completeness = "check",
    multi: MultiPolicy | None = None,
    allow_empty: bool = False,
    progress: Progress | None = None,
) -> Database:
    """Make a database of the facts that a query selects at a SPARQL endpoint.

    Parameters
    ----------
    endpoint : str
        Address of http or https that takes queries by POST. Credentials come from the environment
        alone: ``CAPACITY_SPARQL_USER`` and ``CAPACITY_SPARQL_PASSWORD``, or
        ``CAPACITY_SPARQL_TOKEN``. They go to that host alone, and over https alone, but for this
        machine.
    query : str
        A SELECT of three named columns, subject, predicate and object, or of another number, the
        object's last; or a CONSTRUCT.
    parameters : mapping of str to object, optional
        Terms that replace variables of these names in the query: a str or a number is a literal,
        an IRI is ``Term("iri", ...)``. They are bound as terms and never pasted as text.
    timeout, deadline : float
        Seconds that the endpoint may be silent, and seconds for all that is asked, with the pauses
        after which a busy endpoint is asked again.
    max_rows, max_bytes : int
        Maximum of the rows or triples, and of the bytes of one answer, unpacked.
    page : int, optional
        Rows to ask for at once; by default one answer holds all. Only a SELECT without blank nodes
        has pages.
    completeness : {'check', 'trust'}
        ``check``: the endpoint is asked to count the rows of a SELECT first, so that a part of them
        is never taken for the whole; a CONSTRUCT, which can't be counted, must not have a number of
        triples that ends in 000. ``trust``: no such check.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.
    allow_empty : bool
        Whether a query without rows is an empty database, and no error.
    progress : Progress, optional
        Function that is called with the rows so far; by default a spinner on a terminal shows them.

    Returns
    -------
    Database
        The facts, rows that came twice once, as terms of RDF. Its ``source`` has the endpoint's
        address without its query part, ``sparql`` as the format, and, in place of a file's hash,
        the hash of the facts before the policy (`Database.facts_sha256`): an answer's bytes differ
        each time. Its notes have the SHA-256 of the query and the numbers of answers and rows.

    Raises
    ------
    MissingExtraError
        Without urllib3, which the extra ``sparql`` installs.
    InvalidTypeError
        If the address, the query or a parameter is of the wrong type.
    InvalidArgumentError
        For an address that isn't of http or https or that holds a password, for another query than
        a SELECT of named columns or a CONSTRUCT, a parameter that the query hasn't or that is no
        IRI and no literal, or an option out of its range.
    EndpointError
        If the endpoint can't be reached, refuses the query, stays busy, is silent or too slow, or
        returns too many rows, or a part of them.
    DatabaseFormatError
        If an answer can't be read, or holds no facts; if a predicate is a literal.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> from capacity.database import from_sparql
    >>> from_sparql("https://example.org/sparql", "SELECT * { ?s ?p ?o }")
    Traceback (most recent call last):
        ...
    capacity.errors.InvalidArgumentError: A query must be a SELECT of the columns of facts, or a
    CONSTRUCT; got SELECT *. Name the columns, the object's last: SELECT ?s ?p ?o.
    """
    where, asked = endpoint_at(endpoint), read_query(bound(query, parameters))
    require_choice("`completeness`", completeness, COMPLETENESS)
    require_integer("max_rows", max_rows, most=sys.maxsize)
    require_integer("max_bytes", max_bytes, most=sys.maxsize)
    check_policy(multi or "keep", len(asked.columns) or 3)
    if page is not None:
        require_integer("page", page, most=sys.maxsize)
        if not asked.is_select:
            raise InvalidArgumentError(
                "`page` needs a SELECT, whose rows can be ordered and counted; got a CONSTRUCT. "
                "Omit it, or select the columns of facts."
            )
    with (
        _telling(progress) as tell,
        Client(
            where,
            "from_sparql",
            timeout=timeout,
            deadline=deadline,
            max_bytes=max_bytes,
            say=lambda text: tell(text, 0, 0),
        ) as client,
    ):
        if asked.is_select:
            kept, notes = _selected(client, asked, page, max_rows, completeness, tell)
        else:
            kept, notes = _constructed(client, asked, max_rows, completeness, max_bytes, tell)
    if not kept.n_facts and not allow_empty:
        raise DatabaseFormatError(
            where.name,
            "the query has no rows",
            format="sparql",
            advice="Check the query"
            + (" and its parameters: an IRI is a Term" if parameters else "")
            + "; `allow_empty` makes an empty database of none.",
        )
    source = Source(where.name, kept.facts_sha256, "sparql", (_hash_of(asked), *notes))
    if multi is None and not kept.is_functional:
        warn_caller(multi_valued_warning(kept.n_multi_valued_pairs, kept.n_pairs, kept.arity))
    return replace(kept.with_policy(multi) if multi not in (None, "keep") else kept, source=source)


def _selected(
    client: Client,
    query: Query,
    page: int | None,
    max_rows: int,
    completeness: Completeness,
    tell: Callable[[str, int, int], object],
) -> tuple[Database, tuple[str, ...]]:
    """Ask for the rows of a SELECT, as a database, with notes on how they came."""
    found = every_row(
        client,
        query,
        page=page,
        max_rows=max_rows,
        completeness=completeness,
        say=lambda n, total: tell("rows", n, total),
    )
    if len(query.columns) == 3:
        _refuse_literal_predicates(client.name, query.columns[1], found.rows)
    ids = Ids()
    rows = [[ids[term] for term in row] for row in found.rows]
    kept = Database.from_ids(
        list(ids),
        np.array(rows, dtype=np.int64) if rows else np.zeros((0, 0), int),
        arity=len(query.columns),
        multi="keep",
        allow_empty=True,
    )
    pages = "1 answer" if found.pages == 1 else f"{found.pages:,} answers"
    n = f"{len(found.rows):,} rows in {pages}"
    if completeness == "check":
        return kept, (f"{n}, as many as the endpoint counts",)
    return kept, (f"{n}, which the endpoint didn't count",)


def _refuse_literal_predicates(name: str, column: str, rows: Sequence[Sequence[Term]]) -> None:
    """Refuse columns in another order than that of facts: no predicate of RDF is a literal."""
    wrong = next((n for n, row in enumerate(rows) if row[1].kind == "literal"), None)
    if wrong is not None:
        raise DatabaseFormatError(
            name,
            "the predicate of a fact of RDF must not be a literal; in row "
            f"{wrong}, from 0, ?{column} is {rows[wrong][1].n3():.60}",
            format="sparql",
            advice="Name the columns in the order subject, predicate, object, and an IRI for the "
            "predicate.",
        )


def _constructed(
    client: Client,
    query: Query,
    max_rows: int,
    completeness: Completeness,
    max_bytes: int,
    tell: Callable[[str, int, int], object],
) -> tuple[Database, tuple[str, ...]]:
    """Ask for the triples of a CONSTRUCT, as a database, with notes on how they came."""
    data, format, check = construct_triples(client, query.text, say=lambda text: tell(text, 0, 0))
    try:
        kept = parse_rdf(
            data,
            format,
            multi="keep",
            allow_empty=True,
            max_bytes=max_bytes,
            max_term_bytes=MAX_TERM_BYTES,
        )
    except DatabaseFormatError as error:
        raise DatabaseFormatError(
            client.name, error.reason, format=format, line=error.line, advice=error.advice
        ) from None
    n = kept.n_facts
    check(n)
    if n > max_rows:
        raise EndpointError(
            client.name,
            f"its answer has {n:,} triples, more than {max_rows:,}",
            "Ask for fewer facts, or raise `max_rows`.",
        )
    if completeness == "check" and n and n % _ROUND == 0:
        raise EndpointError(
            client.name,
            f"its answer has {n:,} triples, a round number, at which endpoints cut answers off "
            "without a word",
            'Ask by SELECT, whose rows are counted, or pass completeness="trust".',
        )
    return kept, (f"{n:,} triples, which no endpoint counts",)


def _hash_of(query: Query) -> str:
    digest = hashlib.sha256(query.text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"SHA-256 of the query, with its parameters: {digest}"


@contextmanager
def _telling(progress: Progress | None) -> Iterator[Callable[[str, int, int], object]]:
    """Return the function that is called with what is done: the caller's, or a spinner's."""
    if progress is not None:
        yield lambda what, done, total: progress(what, done, total, None)
        return
    with spinner("asking the endpoint") as say:
        yield lambda what, done, total: say(_in_words(what, done, total))


def _in_words(what: str, done: int, total: int) -> str:
    if not done:
        return what
    return f"{done:,} of {total:,} {what}" if total else f"{done:,} {what}"
