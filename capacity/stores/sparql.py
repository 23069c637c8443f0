"""Counts of the facts of a SPARQL endpoint, by aggregate queries that the endpoint answers.

Each query states which facts are meant, and doesn't leave it to the endpoint. By SPARQL 1.1 an
endpoint chooses what its *default graph* is: some have the triples outside of named graphs there
(Oxigraph, Fuseki), others the union of all graphs (Virtuoso, GraphDB). ``graph=None`` asks for the
union of the default graph and of all named graphs, which is the same facts at both, and what is
read of a file; ``default`` for the default graph, whatever the endpoint means by it, which takes it
less time; an IRI for that graph alone. In all of them facts are a set: a triple in two graphs
counts once.

Each number is asked for by a query of its own. An endpoint under load may answer a part of them
wrongly, or cut one off, so that what has to agree is compared: the rows of predicates with the
totals, and the number of facts at the end with that at the beginning.
"""

from __future__ import annotations

from itertools import combinations

from capacity.checks import shown
from capacity.database.io.sparql.client import Client
from capacity.database.io.sparql.endpoints import endpoint_at
from capacity.database.io.sparql.query_parameters import written_term
from capacity.database.terms.term import Term
from capacity.database.terms.vocabularies import RDF_TYPE
from capacity.errors import DatabaseFormatError, InvalidArgumentError
from capacity.progress import Progress
from capacity.stores.aggregate_queries import Aggregates, contradiction
from capacity.stores.counts import ROLES, StoreCounts

TIMEOUT, DEADLINE = 300.0, 24 * 3600.0
# an answer has a row a predicate at most
MAX_BYTES = 2**28
# tokens, pairs, sides and private tokens of three roles; facts twice; three others and the classes
_STEPS = 4 * 3 + 2 + 3 + 1


def count_endpoint(
    url: str,
    *,
    graph: str | None = None,
    timeout: float = TIMEOUT,
    deadline: float = DEADLINE,
    progress: Progress | None = None,
) -> StoreCounts:
    """Count the facts of a SPARQL endpoint, and bound their rank by the counts.

    Parameters
    ----------
    url : str
        Address of http or https that takes queries by POST. Credentials come from the environment
        alone, as `capacity.database.from_sparql` has it.
    graph : str, optional
        The only graph to count: its IRI, or ``default`` for the endpoint's default graph. By
        default, and for ``union``, the default graph and all named graphs are merged.
    timeout, deadline : float
        Seconds that the endpoint may be silent, which is how long it takes for a count, and seconds
        for all counts.
    progress : callable, optional
        Function that is called with the count that is asked for.

    Returns
    -------
    StoreCounts
        Numbers of facts and tokens, and bounds of the rank.

    Raises
    ------
    MissingExtraError
        Without urllib3, which the extra ``sparql`` installs.
    InvalidTypeError
        If `url` isn't a str.
    InvalidArgumentError
        If `url` isn't an address of http or https, or holds a password, if `graph` isn't an
        absolute IRI, or for a time out of its range.
    EndpointError
        If the endpoint can't be reached, refuses a query, stays busy, is too slow, reports that an
        answer isn't whole, or if its counts contradict each other.
    DatabaseFormatError
        If an answer can't be read, or there are no facts.

    Examples
    --------
    >>> count_endpoint("https://example.org/sparql", graph="people")
    Traceback (most recent call last):
        ...
    capacity.errors.InvalidArgumentError: `graph` must be an absolute IRI, or `default`, or `union`;
    got 'people'.
    """
    where, pattern = endpoint_at(url), _pattern(graph)
    with Client(
        where, "count_endpoint", timeout=timeout, deadline=deadline, max_bytes=MAX_BYTES
    ) as client:
        asked = Aggregates(client, pattern, _STEPS, progress)
        found = _counted(asked, where.name, graph)
        if (after := asked.facts()) != found.facts:
            raise contradiction(
                where.name, f"{found.facts:,} facts at the beginning, and {after:,} at the end"
            )
    _require_agreement(found)
    return found


def _pattern(graph: str | None) -> str:
    """Write the pattern of the facts that are asked for."""
    if graph in (None, "union"):
        return "{ ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } }"
    if graph == "default":
        return "?s ?p ?o"
    try:
        name = written_term("graph", Term("iri", graph))  # type: ignore[arg-type]
    except (InvalidArgumentError, TypeError):
        raise InvalidArgumentError(
            f"`graph` must be an absolute IRI, or `default`, or `union`; got {shown(graph)}."
        ) from None
    return f"GRAPH {name} {{ ?s ?p ?o }}"


def _named(graph: str | None) -> str:
    if graph in (None, "union"):
        return "the default graph and all named graphs"
    return "the endpoint's default graph" if graph == "default" else f"the graph <{graph}>"


def _counted(asked: Aggregates, source: str, graph: str | None) -> StoreCounts:
    """Ask for all counts."""
    facts = asked.facts()
    if not facts:
        raise DatabaseFormatError(
            source,
            f"there are no facts in {_named(graph)}",
            format="sparql",
            advice="Check the address, and the name of the graph.",
        )
    subject, predicate, object_ = ROLES
    rows = asked.by_predicate()
    return StoreCounts(
        source=source,
        facts=facts,
        subjects=asked.tokens(subject),
        predicates=asked.tokens(predicate),
        objects=asked.tokens(object_),
        pairs=asked.pairs(subject, predicate),
        multi_valued_pairs=asked.several(),
        subject_objects=asked.pairs(subject, object_),
        predicate_objects=asked.pairs(predicate, object_),
        slice_sums=(asked.sides(subject), asked.sides(predicate), asked.sides(object_)),
        private=(asked.private(subject), asked.private(predicate), asked.private(object_)),
        predicates_rows=rows,
        classes=asked.classes(),
        notes=(f"the facts are those of {_named(graph)}", *asked.notes),
    )


def _require_agreement(found: StoreCounts) -> None:
    """Refuse counts that can't all be right, whatever the facts are."""
    rows = found.predicates_rows
    pairs = (found.pairs, found.subject_objects, found.predicate_objects)
    # the two kinds of pairs that the slices of each role have as rows and columns
    sides = ((pairs[0], pairs[1]), (pairs[0], pairs[2]), (pairs[1], pairs[2]))
    tokens = (found.subjects, found.predicates, found.objects)
    checks = [
        ("facts of predicates", sum(row.facts for row in rows), found.facts, found.facts),
        ("predicates in rows", len(rows), found.predicates, found.predicates),
        ("subjects of predicates", sum(row.subjects for row in rows), found.pairs, found.pairs),
        ("objects of predicates", sum(row.objects for row in rows), pairs[2], pairs[2]),
        ("predicates' pairs with several objects",
         sum(row.multi_valued_pairs for row in rows), *[found.multi_valued_pairs] * 2),
        ("pairs with several objects", found.multi_valued_pairs, int(found.facts > found.pairs),
         found.facts - found.pairs),
        ("lower bound of the rank", found.lower, 1, found.upper),
    ]  # fmt: skip
    for role, n, sum_, private, ends in zip(
        ROLES, tokens, found.slice_sums, found.private, sides, strict=True
    ):
        checks.append((f"{role}s", n, 1, min(ends)))
        checks.append((f"smaller sides of {role} slices", sum_, n, min(ends)))
        # in a functional database every object is the only one of its pairs
        least = n if role == ROLES[2] and found.functional else 0
        checks.append((f"private {role}s", private, least, n))
    checks += [(f"({a}, {b}) pairs", n, 1, found.facts)
               for n, (a, b) in zip(pairs, combinations(ROLES, 2), strict=True)]  # fmt: skip
    of_types = 0
    for row in rows:
        checks.append((f"subjects of {row.name}", row.subjects, 1, row.facts))
        checks.append((f"objects of {row.name}", row.objects, 1, row.facts))
        other = max(row.literal_facts, row.blank_facts)
        checks.append((f"literals and blank nodes of {row.name}", other, 0, row.facts))
        if row.predicate == Term("iri", RDF_TYPE):
            of_types = row.subjects
    checks += [("subjects of a class", n, 1, of_types) for _, n in found.classes]
    for what, n, least, most in checks:
        if not least <= n <= most:
            wanted = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            raise contradiction(found.source, f"{n:,} {what}, where there must be {wanted}")
