"""Arity: the number of columns of a database's facts.

The last column of a fact is its object, the others are its key. Facts of arity 3 are triples, whose
key is a (subject, predicate) pair; they are the default, and what RDF, layers and sweeps need.
"""

from __future__ import annotations

from capacity.checks import require_integer
from capacity.errors import InvalidArgumentError
from capacity.tensor.coordinates import LARGEST_ORDER

# a key and an object at least, and a mode of the tensor for each column
LEAST, MOST = 2, LARGEST_ORDER


def require_arity(value: object) -> int:
    """Return a number of columns as an int.

    Raises
    ------
    InvalidArgumentError
        Unless it is an integer from 2 to 32.

    Examples
    --------
    >>> require_arity(4)
    4
    """
    return require_integer("arity", value, least=LEAST, most=MOST)


def role_names(arity: int) -> tuple[str, ...]:
    """Names of the columns, which are the header of a table.

    Examples
    --------
    >>> role_names(3), role_names(4)
    (('subject', 'predicate', 'object'), ('key_1', 'key_2', 'key_3', 'object'))
    """
    if arity == 3:
        return "subject", "predicate", "object"
    return *(f"key_{i}" for i in range(1, arity)), "object"


def key_names(arity: int) -> tuple[str, str]:
    """Names of a key, for messages: in full for one, and short for several.

    Examples
    --------
    >>> key_names(3), key_names(4)
    (('(subject, predicate) pair', 'pairs'), ('key', 'keys'))
    """
    return ("(subject, predicate) pair", "pairs") if arity == 3 else ("key", "keys")


def not_triples(what: str, arity: int) -> InvalidArgumentError:
    """Make the error of a use that needs facts of arity 3."""
    return InvalidArgumentError(
        f"{what} needs facts of three columns, subject, predicate and object; those of this "
        f"database have {arity}. Facts of every arity have `tuples`, `roles` and `tensor()`."
    )
