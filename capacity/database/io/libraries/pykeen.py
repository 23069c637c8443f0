"""Conversion between PyKEEN's `TriplesFactory` and `Database`: names are text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from capacity.checks import shown
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.database.io.libraries.frames import unmistakable_cells
from capacity.database.io.table_options import TableTerms, table_options
from capacity.database.io.tables.cells import read_rows
from capacity.database.io.tables.table import Table
from capacity.database.policy import MultiPolicy
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.optional import needed_by

if TYPE_CHECKING:
    from pykeen.datasets import Dataset
    from pykeen.triples import TriplesFactory


def from_pykeen(
    factory: TriplesFactory | Dataset,
    *,
    terms: TableTerms | None = None,
    multi: MultiPolicy | None = None,
) -> Database:
    """Make a database from the triples of a `pykeen.triples.TriplesFactory`.

    Inverse triples, which PyKEEN makes while it trains, aren't facts and aren't read.

    Parameters
    ----------
    factory : pykeen.triples.TriplesFactory or pykeen.datasets.Dataset
        Triples with names of entities and relations; of a data set, those for training.
    terms : {'label', 'n3'}, optional
        Form of the names, as `from_pandas` has it.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.

    Returns
    -------
    Database
        The facts (head, relation, tail).

    Raises
    ------
    InvalidTypeError
        If `factory` isn't a factory with names; a `CoreTriplesFactory` has none.
    InvalidArgumentError
        If `terms` is unknown.
    DatabaseFormatError
        For a factory without triples, or names that can be read in two ways.
    MultiValuedError
        Under the policy ``error``, or if a policy leaves no fact.

    Examples
    --------
    >>> factory = to_pykeen(Database.from_triples([("Astrid", "born_in", "Singapore")]))
    >>> str(from_pykeen(factory)("Astrid", "born_in"))
    'Singapore'
    """
    with needed_by("from_pykeen"):
        from pykeen.datasets import Dataset
        from pykeen.triples import TriplesFactory

    given = factory.training if isinstance(factory, Dataset) else factory
    if not isinstance(given, TriplesFactory):
        raise InvalidTypeError(
            "`factory` must be a pykeen.triples.TriplesFactory, which has names; got "
            f"{type(given).__name__}."
        )
    entities, relations = given.entity_id_to_label, given.relation_id_to_label
    rows = [
        (number, (entities[s], relations[q], entities[o]))
        for number, (s, q, o) in enumerate(given.mapped_triples.tolist())
    ]
    table = Table("the TriplesFactory", "pykeen", rows, ("subject", "predicate", "object"))
    return read_rows(table, table_options(None, terms, None, None), multi=multi)


def to_pykeen(
    db: DatabaseLike,
    *,
    terms: TableTerms | None = None,
    like: TriplesFactory | None = None,
    **options: Any,
) -> TriplesFactory:
    """Write the facts as a `pykeen.triples.TriplesFactory`, for PyKEEN's pipeline.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Facts to write: triples.
    terms : {'label', 'n3'}, optional
        Form of the names, as `to_pandas` has it.
    like : pykeen.triples.TriplesFactory, optional
        A factory whose numbers of entities and relations are taken, and whether there are inverse
        triples; for facts to validate or test a model on, that of the facts that it is trained on.
    **options
        Others of `TriplesFactory`, such as ``create_inverse_triples=True``.

    Returns
    -------
    pykeen.triples.TriplesFactory
        The facts in the order of `db`. Entities are those that are subject or object.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For facts of another arity than 3, a token that has no such form, or one that `like` lacks.

    Examples
    --------
    >>> factory = to_pykeen(Database.from_triples([("Astrid", "born_in", "Singapore")]))
    >>> factory.mapped_triples.tolist(), factory.entity_to_id
    ([[0, 0, 1]], {'Astrid': 0, 'Singapore': 1})
    """
    db = require_triples(db, "to_pykeen(db)")
    with needed_by("to_pykeen"):
        import torch
        from pykeen.triples import TriplesFactory

    rows = list(unmistakable_cells(db, terms))
    if like is None:
        entities = {
            name: i for i, name in enumerate(sorted({x for s, _, o in rows for x in (s, o)}))
        }
        relations = {name: i for i, name in enumerate(sorted({q for _, q, _ in rows}))}
    else:
        entities, relations = dict(like.entity_to_id), dict(like.relation_to_id)
        options = {"create_inverse_triples": like.create_inverse_triples, **options}
    try:
        numbers = [(entities[s], relations[q], entities[o]) for s, q, o in rows]
    except KeyError as error:
        raise InvalidArgumentError(
            f"`like` must have every entity and relation of the facts; it lacks "
            f"{shown(error.args[0])}. Keep the facts whose names it has."
        ) from None
    triples = torch.from_numpy(np.array(numbers, np.int64).reshape(-1, 3))
    return TriplesFactory(triples, entities, relations, **options)
