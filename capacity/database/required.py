"""Arguments that must be facts, or triples: what comes is made a database, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.database.arity import not_triples
from capacity.database.given_facts import facts_given

if TYPE_CHECKING:
    from capacity.database.facts import Database


def require_database(value: object, call: str) -> Database:
    """Return facts as a database, and refuse any other value with the call that makes one of it.

    Parameters
    ----------
    value : object
        What `capacity.database.as_database` takes.
    call : str
        The function with its arguments, for the message.

    Raises
    ------
    InvalidTypeError
        If it is something else.
    """
    return facts_given(value, call)


def require_triples(value: object, call: str) -> Database:
    """Return triples as a database, and refuse facts of another arity and any other value.

    Parameters
    ----------
    value : object
        What `capacity.database.as_database` takes.
    call : str
        The function with its arguments, for the message.

    Raises
    ------
    InvalidTypeError
        If it is something else.
    InvalidArgumentError
        If its facts have another arity than 3.
    """
    db = facts_given(value, call)
    if db.arity != 3:
        raise not_triples(call, db.arity)
    return db
