"""`as_database`: facts in whatever form they come, as a `Database`.

Every function of facts takes what this takes, and calls `require_database` or `require_triples`. A
form is a line in `CONVERTERS`, or one that another package registers; the function that makes the
database is imported when such an object comes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Union, cast

from capacity.checks import nearest, shown
from capacity.converters import Converter, Converters, names_of
from capacity.database.arity import not_triples
from capacity.database.columns import Columns
from capacity.database.policy import MultiPolicy, multi_valued_warning
from capacity.errors import InvalidTypeError, warn_caller

if TYPE_CHECKING:
    from capacity.database.facts import Database


# what `as_database` takes, of which other libraries' classes have no name here
DatabaseLike: TypeAlias = Union["Database", str, os.PathLike[str], Iterable[Any], Any]

_KEEP = {"multi": "keep"}
_LIBRARIES = "capacity.database.io.libraries"
CONVERTERS = Converters([
    Converter("file", (str, os.PathLike), "capacity.database.io.readers:load", "read", _KEEP),
    Converter("DataFrame of pandas", ("pandas.DataFrame",), f"{_LIBRARIES}.pandas:from_pandas",
              options=_KEEP),
    Converter("graph of rdflib", ("rdflib.Graph",), f"{_LIBRARIES}.rdflib:from_rdflib",
              options=_KEEP),
    Converter("store of pyoxigraph", ("pyoxigraph.Store", "pyoxigraph.Dataset"),
              f"{_LIBRARIES}.pyoxigraph:from_pyoxigraph", options=_KEEP),
    Converter("graph of networkx", ("networkx.Graph",), f"{_LIBRARIES}.networkx:from_networkx",
              options=_KEEP),
    Converter("triples of PyKEEN", ("pykeen.CoreTriplesFactory", "pykeen.Dataset"),
              f"{_LIBRARIES}.pykeen:from_pykeen", options=_KEEP),
    Converter("array", ("numpy.ndarray", "torch.Tensor"), f"{_LIBRARIES}.arrays:from_array",
              options=_KEEP),
    Converter("table of Arrow", (), f"{_LIBRARIES}.arrow:from_arrow", "__arrow_c_stream__", _KEEP),
    Converter("rows", (), "capacity.database.io.readers:from_rows", "__iter__", _KEEP),
])  # fmt: skip
# what would be taken for rows or a file, and is neither
_REFUSED = {
    "builtins.bytes": "bytes: text goes to capacity.database.parse_rdf",
    "builtins.dict": "a dict: pass its facts as rows of three cells",
    "capacity.SparseTensor": "a tensor, whose facts have no names: call "
    "capacity.database.from_numpy(tensor.to_numpy()) first",
    "scipy.sparray": "a sparse array, which is a tensor: capacity.rank_interval takes it",
    "scipy.spmatrix": "a sparse matrix, which is a tensor: capacity.rank_interval takes it",
    "torch.Module": "a model, which holds no facts",
}


def as_database(
    facts: DatabaseLike, *, multi: MultiPolicy | None = None, **options: Any
) -> Database:
    """Return facts as a database, in whatever form they come.

    All functions of facts take what this takes, by the policy ``keep``.

    Parameters
    ----------
    facts : database, path, table, graph, array or iterable
        One of

        * a `Database`, which is returned as it is;
        * a path, a list of paths, or a binary file, which `load` reads;
        * a DataFrame of pandas, whose columns `from_pandas` describes; a table of Arrow, as
          pyarrow, polars and DuckDB return it;
        * a graph of rdflib (``Graph``, ``Dataset``), of networkx, or a ``Store`` of pyoxigraph;
        * a ``TriplesFactory`` of PyKEEN, or one of its data sets, whose training facts count;
        * an array of numpy or torch with one row per fact and three columns, of text or of
          integers; or one of zeros and ones with three modes, as `from_numpy` has it;
        * an iterable of (subject, predicate, object).

        Integers become labels: 7 is ``"7"``.
    multi : MultiPolicy, optional
        Policy for multi-valued pairs; by default ``keep``, with a warning if there are any.
    **options
        Keywords of the function that reads such an object, such as ``table``, ``columns`` and
        ``split`` of `from_pandas` and `load`, ``graph`` of `from_rdflib`, or ``predicate`` of
        `from_networkx`.

    Returns
    -------
    Database
        The facts.

    Raises
    ------
    InvalidTypeError
        For anything else, with what to do; for a keyword that is of no use for such an object.
    CapacityError
        As the function that reads such an object.

    Examples
    --------
    >>> import numpy as np
    >>> as_database([("Astrid", "born_in", "Singapore")])
    Database(1 triples: 1 subjects x 1 predicates x 1 objects, 3 tokens; functional)
    >>> as_database(np.array([[0, 7, 1], [1, 7, 0]])) == as_database({("0", "7", "1"), (1, 7, 0)})
    True
    >>> import pandas as pd
    >>> people = pd.DataFrame({"name": ["Ann"], "born": [1980], "likes": ["tea, jam"]})
    >>> as_database(people, table="wide", split=",", multi="keep").n_triples
    3
    """
    if isinstance(facts, Columns) and not options:
        db = cast("Database", facts)
        return db if multi is None else db.with_policy(multi)
    db = facts_given(facts, "as_database(facts)", options)
    if multi is not None:
        return db.with_policy(multi)
    if not db.is_functional:
        warn_caller(multi_valued_warning(db.n_multi_valued_pairs, db.n_pairs, db.arity))
    return db


def facts_given(value: object, call: str, options: Mapping[str, Any] | None = None) -> Database:
    """Return facts as a database, by the policy ``keep``, for a function that takes them.

    Parameters
    ----------
    value : object
        What `as_database` takes.
    call : str
        The function with its arguments, for the message.
    options : mapping of str to object, optional
        Keywords of the function that makes a database of it.

    Raises
    ------
    InvalidTypeError
        If it is something else, or has no use for one of the `options`.
    """
    left, known = dict(options or {}), "what is a Database already has none."
    seen: list[type] = []
    unknown = ""
    while not isinstance(value, Columns):
        refused = next((_REFUSED[name] for name in names_of(value) if name in _REFUSED), None)
        if refused == _REFUSED["torch.Module"] and "layer" in call:
            refused = "a model: swap the layer and the database"
        converter = None if refused or type(value) in seen else CONVERTERS.of(value)
        if converter is None:
            raise InvalidTypeError(
                f"{call} needs a Database, or what capacity.database.as_database makes one of: a "
                f"path, a table, a graph or rows of three cells; got {refused or shown(value)}."
            )
        seen.append(type(value))
        names = converter.names_of_options() if left else ()
        unknown = next((name for name in left if name not in names), "")
        if names and unknown:
            known = f"`{converter.name}` has {', '.join(names)}.{nearest(unknown, names)}"
            break
        known = f"`{converter.name}` has {'no others' if names else 'none'}."
        value = converter.made(value, **{name: left.pop(name) for name in names if name in left})
    if left:
        raise InvalidTypeError(f"{call} has no option `{unknown or next(iter(left)):.60}`: {known}")
    return cast("Database", value)


def register_database_converter(converter: Converter) -> None:
    """Register a converter, so that every function of facts accepts objects of another kind.

    Parameters
    ----------
    converter : Converter
        The kind, and a function that converts an object to a database, or to something else that
        `as_database` takes. It is asked before those of the library.

    Raises
    ------
    InvalidTypeError
        If it isn't a `Converter`.
    InvalidArgumentError
        If there is one of its name.

    Examples
    --------
    >>> from capacity import rank_interval
    >>> class Edges:
    ...     pairs = [("a", "b"), ("b", "c")]
    >>> def facts_of(edges):
    ...     return [(tail, "to", head) for tail, head in edges.pairs]
    >>> register_database_converter(Converter("edges", (Edges,), facts_of))
    >>> print(rank_interval(Edges()))
    [2, 2]
    >>> unregister_database_converter("edges").name
    'edges'
    """
    CONVERTERS.register(converter)


def unregister_database_converter(name: str) -> Converter:
    """Remove the converter of a name from the registry.

    Parameters
    ----------
    name : str
        Name of a registered converter.

    Returns
    -------
    Converter
        The converter.

    Raises
    ------
    InvalidArgumentError
        If there is none.

    Examples
    --------
    >>> register_database_converter(Converter("edges", (), list))
    >>> unregister_database_converter("edges").make is list
    True
    """
    return CONVERTERS.unregister(name)


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
