"""Checks of arguments that must be a database, or one of triples.

The error names the call that makes one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from capacity.checks import shown
from capacity.database.arity import not_triples
from capacity.database.columns import Columns
from capacity.errors import InvalidTypeError

if TYPE_CHECKING:
    from capacity.database.facts import Database

# by the module and the name of a class, so that no library has to be imported
_CALLS = {
    ("pandas", "DataFrame"): "a table: call capacity.database.from_pandas(table) first",
    ("rdflib", "Graph"): "an rdflib graph: call capacity.database.from_rdflib(graph) first",
    ("networkx", "Graph"): "a networkx graph: call capacity.database.from_networkx(graph) first",
    ("numpy", "ndarray"): "an array: for one of zeros and ones call capacity.database."
    "from_numpy(array) first",
    ("torch", "Tensor"): "a tensor: for one of zeros and ones call capacity.database."
    "from_numpy(tensor.numpy()) first",
    ("torch", "Module"): "a model: swap the layer and the database",
}


def require_database(value: object, call: str) -> Database:
    """Return a database, and refuse any other value with the call that makes one of it.

    Parameters
    ----------
    value : object
        Argument that must be a database.
    call : str
        The function with its arguments, for the message.

    Raises
    ------
    InvalidTypeError
        If it isn't one.
    """
    if isinstance(value, Columns):
        return cast("Database", value)
    if isinstance(value, str | os.PathLike):
        advice = f"{shown(value)}, a path: load it first, with capacity.load(path)"
    elif isinstance(value, list | tuple | set):
        advice = f"a {type(value).__name__}: call capacity.Database.from_triples(rows) first"
    else:
        names = ((one.__module__.partition(".")[0], one.__name__) for one in type(value).__mro__)
        known = next((_CALLS[name] for name in names if name in _CALLS), None)
        if known == _CALLS["torch", "Module"] and "layer" not in call:
            known = "a model, which holds no facts"
        advice = known or shown(value)
    raise InvalidTypeError(f"{call} needs a Database; got {advice}.")


def require_triples(value: object, call: str) -> Database:
    """Return a database of triples, and refuse facts of another arity and any other value.

    Parameters
    ----------
    value : object
        Argument that must be a database of arity 3.
    call : str
        The function with its arguments, for the message.

    Raises
    ------
    InvalidTypeError
        If it isn't a database.
    InvalidArgumentError
        If its facts have another arity than 3.
    """
    db = require_database(value, call)
    if db.arity != 3:
        raise not_triples(call, db.arity)
    return db
