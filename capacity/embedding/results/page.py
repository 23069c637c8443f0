"""The bounds of the dimensions of a graph in about ten lines, and as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from capacity.database import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.embedding.model import Reason
from capacity.embedding.one_way import Obstruction
from capacity.embedding.queries import QueryGraph
from capacity.embedding.results.result import WORDS, Dimension
from capacity.embedding.results.serialization import dimension_to_dict
from capacity.embedding.softmax_scale import margins_of
from capacity.errors import InvalidArgumentError
from capacity.visible import visible


def in_words(
    found: Sequence[Dimension],
    db: DatabaseLike,
    *,
    exact: Sequence[Dimension] = (),
    tau: float | None = None,
) -> str:
    r"""Describe dimensions of several families for one task.

    Parameters
    ----------
    found : sequence of Dimension
        What `dimensions` returns, one at least.
    db : Database
        The facts that they are about.
    exact : sequence of Dimension
        Those for exact scores, which are listed separately.
    tau : float, optional
        A probability above 1/2, for which `margins_of` is printed.

    Returns
    -------
    str
        Lines for people.

    Raises
    ------
    InvalidArgumentError
        If there is none, one is about other facts, or `tau` is out of range.

    Examples
    --------
    >>> from capacity.embedding import dimensions
    >>> db = Database.from_triples([("A", "knows", "B"), ("B", "knows", "C"), ("C", "knows", "A")])
    >>> lines = in_words(dimensions(db, ["CP", "DistMult"], witness=False), db).splitlines()
    >>> print(lines[0])
    3 facts, 3 entities, 1 relation; 3 queries (s, q, ?) of up to 1 answer; entities are shared
    >>> print(*(line[:60] for line in lines[3:5]), sep="\n")
    model     at least  enough
    CP               2       2  a moment curve for each relation
    >>> print(lines[5].split(": ", 1)[1])
    1 relation has a cycle of facts without reverses, such as knows: A, B, C, A
    """
    if not isinstance(found, Sequence) or not found:
        raise InvalidArgumentError(
            f"A page must have a sequence of one dimension at least; got {found!r}."
        )
    db = require_triples(db, "in_words(found, db)")
    for one in (*found, *exact):
        if (one.facts_sha256, one.multi) != (db.facts_sha256, db.multi):
            raise InvalidArgumentError(
                f"A page must be about the facts of its dimensions, {one.facts_sha256[:12]}; got "
                f"{db.facts_sha256[:12]}."
            )
    graph = QueryGraph.of(db, found[0].shared)
    width = max(8, *(len(one.model) for one in found))
    lines = [
        _counts(graph, found[0].shared),
        f"{WORDS[found[0].task]};",
        "it is about this graph, and not about predicting new facts",
        f"{'model':{width}}  at least  enough",
        *(_row(one, width, db, graph) for one in found),
        *_exact(exact),
        *_estimates(found),
        *_notes(found),
        *(() if tau is None else _margins(graph, tau)),
    ]
    return "\n".join(map(visible, lines))


def _counts(graph: QueryGraph, shared: bool) -> str:
    def several(n: int, one: str, more: str) -> str:
        return f"{n:,} {one if n == 1 else more}"

    who = (
        f"{several(graph.n_entities, 'entity', 'entities')}"
        if shared
        else f"{several(graph.shape[0], 'subject', 'subjects')}, "
        f"{several(graph.shape[2], 'object', 'objects')}"
    )
    return (
        f"{several(graph.n_facts, 'fact', 'facts')}, {who}, "
        f"{several(graph.shape[1], 'relation', 'relations')}; "
        f"{several(graph.n_queries, 'query', 'queries')} (s, q, ?) of up to "
        f"{several(int(graph.answers.max()), 'answer', 'answers')}; "
        f"{'entities are shared' if shared else 'subjects and objects have separate vectors'}"
    )


def _row(one: Dimension, width: int, db: Database, graph: QueryGraph) -> str:
    why = reason_in_words(one, db, graph)
    if one.impossible is not None:
        return f"{one.model:{width}}      none    does  {why}"
    if one.sufficient is None:
        return f"{one.model:{width}}  {one.necessary:8,}          {why}"
    return f"{one.model:{width}}  {one.necessary:8,}  {one.sufficient:6,}  {why}"


def reason_in_words(one: Dimension, db: Database, graph: QueryGraph | None = None) -> str:
    """Explain why a dimension is enough, or why none is or is known to be.

    Parameters
    ----------
    one : Dimension
        The dimension.
    db : Database
        The facts that it is about.
    graph : QueryGraph, optional
        Their queries, if they are made already.

    Returns
    -------
    str
        The reason of the upper bound; if no dimension does, with facts that stop it.

    Examples
    --------
    >>> from capacity.embedding import dimension
    >>> db = Database.from_triples([("A", "knows", "B"), ("B", "knows", "A")])
    >>> reason_in_words(dimension(db, "CP", witness=False), db)
    'at most two answers, whose signs are balanced'
    """
    if one.impossible is not None:
        graph = QueryGraph.of(db, one.shared) if graph is None else graph
        return one.impossible.words + _example(one.impossible, db, graph)
    best = one.best("sufficient")
    if one.sufficient is None:
        return "no dimension is proved to be enough"
    witness = one.witness is not None and one.witness.dimension == one.sufficient
    return "a witness, checked in integers" if witness or best is None else best.words


def _example(reason: Reason, db: Database, graph: QueryGraph) -> str:
    if not isinstance(reason.certificate, tuple) or not reason.certificate:
        return ""
    one = reason.certificate[0]
    names = ", ".join(db.name(db.tokens[i]) for i in _tokens(one, db, graph))
    return visible(f", such as {db.name(db.predicates[one.relation])}: {names}")


def _tokens(one: Obstruction, db: Database, graph: QueryGraph) -> list[int]:
    if graph.entities is None:
        return []
    token = np.zeros(graph.n_entities, np.int64)
    token[graph.entities[0]], token[graph.entities[1]] = db.role_ids[0], db.role_ids[2]
    return [int(token[i]) for i in one.entities if 0 <= i < len(token)]


def _exact(found: Sequence[Dimension]) -> Iterator[str]:
    ends: dict[str, list[str]] = {}
    for one in found:
        least, most = one.necessary, one.sufficient
        if least is None:
            said = "none does"
        elif most is None:
            said = f"at least {least:,}"
        else:
            said = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        ends.setdefault(said, []).append(one.model)
    if ends:
        parts = "; ".join(f"{', '.join(models)} {said}" for said, models in ends.items())
        yield f"{WORDS['exact']}: {parts}"


def _estimates(found: Sequence[Dimension]) -> Iterator[str]:
    for one in found:
        if one.estimate is None:
            continue
        if one.estimate.dimension is None:
            yield f"no estimate for {one.model}: {one.estimate.words}"
        else:
            yield f"an estimate, no bound: {one.estimate.dimension:,} is {one.estimate.words}"


def _notes(found: Sequence[Dimension]) -> Iterator[str]:
    said: dict[str, list[str]] = {}
    for one in found:
        for note in one.notes:
            said.setdefault(note, []).append(one.model)
    for note, models in said.items():
        yield f"{', '.join(models)}: {note}"


def _margins(graph: QueryGraph, tau: float) -> Iterator[str]:
    if graph.places[2] == 1:
        yield "the softmax of the only object is 1, at any scale of scores"
        return
    table = margins_of(graph, tau)
    if not table:
        yield f"every query has several answers: none can have softmax >= {tau:g}"
        return
    yield f"softmax >= {tau:g} for all single answers, scores <h, e> with |h| |e| <= R:"
    yield "dimension  R at least     R enough"
    for one in table:
        # rounded away from what isn't known
        least, most = math.floor(10 * one.necessary) / 10, math.ceil(10 * one.enough) / 10
        yield f"{one.dimension:9}  {least:10,.1f}  {most:11,.1f}  {one.by}"


def to_dict(one: Dimension, db: DatabaseLike) -> dict[str, Any]:
    """Write a dimension as JSON has it, with names of relations and entities.

    Parameters
    ----------
    one : Dimension
        The dimension.
    db : Database
        The facts that it is about.

    Returns
    -------
    dict
        As `dimension_to_dict` writes it, with the facts that stop it by their names.
    """
    db = require_triples(db, "to_dict(one, db)")
    graph = QueryGraph.of(db, one.shared)
    stopped = () if one.impossible is None else one.impossible.certificate
    facts = stopped if isinstance(stopped, tuple) else ()
    named = [
        {
            "relation": db.name(db.predicates[each.relation]),
            "entities": [db.name(db.tokens[i]) for i in _tokens(each, db, graph)],
        }
        for each in facts
    ]
    return {**dimension_to_dict(one), "impossible": named}
