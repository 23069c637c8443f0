"""Ask a database for an object by the names of its key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from capacity.database.arity import role_names
from capacity.database.terms import Term, position
from capacity.errors import InvalidTypeError, UnknownTokenError

if TYPE_CHECKING:
    from capacity.database.facts import Database

_MOST_NAMED = 5


def lookup(db: Database, key: tuple[object, ...]) -> Term:
    """Return the object of a key, as `Database.__call__` does, and raise as it does."""
    if len(key) != db.arity - 1:
        names = "a subject and a predicate" if db.arity == 3 else f"{db.arity - 1} tokens"
        raise InvalidTypeError(f"A key of this database is {names}; got {len(key)} tokens.")
    db.require_functional("D(k, q)" if db.arity == 3 else "A lookup")
    at = [
        position(one, of, db.prefixes, lambda: db.labels, role)
        for one, of, role in zip(key, db.roles, role_names(db.arity), strict=False)
    ]
    same = [db.tuples[:, mode] == i for mode, i in enumerate(at)]
    rows = np.flatnonzero(np.logical_and.reduce(same))
    if not len(rows):
        said = ", ".join(f"{one!s:.60}" for one in key)
        there = f" {_predicates_of(db, at[0])}" if db.arity == 3 else ""
        raise UnknownTokenError(f"({said}) lies outside the domain of the database.{there}")
    return db.objects[db.tuples[rows[0], -1]]


def _predicates_of(db: Database, subject: int) -> str:
    """Say which predicates a subject has."""
    mine = np.unique(db.triples[db.triples[:, 0] == subject, 1]).tolist()
    names = ", ".join(db.name(db.predicates[q]) for q in mine[:_MOST_NAMED])
    more = f" and {len(mine) - _MOST_NAMED} others" if len(mine) > _MOST_NAMED else ""
    return f"Predicates of the subject: {names:.300}{more}."
