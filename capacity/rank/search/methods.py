"""The methods of search, cheapest first: a new one is a module and a line below.

A method can be registered from outside the library as well, before another, or last;
`rank_interval` and ``capacity rank --methods`` take any of them by name.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Sequence

from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.limits import shown
from capacity.options import require_choice
from capacity.rank.method import Method


def _named(where: str) -> Method:
    module, name = where.split(":")
    return getattr(importlib.import_module(f"capacity.rank.{module}"), name)


# explicit terms before arguments that only say that there are some
METHODS: list[Method] = [
    _named("upper.merging:MERGING"),
    _named("lower.single_entries:PEELING"),
    _named("upper.spanning_tree:SPANNING_TREE"),
    _named("lower.substitution:SUBSTITUTION"),
    _named("lower.pencil:PENCIL"),
    _named("lower.diagonalization:DIAGONALIZATION"),
    _named("lower.koszul:KOSZUL"),
    _named("upper.flip_search:FLIP_GRAPH"),
    _named("cp.exact_fits:LEAST_SQUARES"),
    _named("lower.substitution:ANNEALED_SUBSTITUTION"),
    _named("lower.substitution:SUBSTITUTION_IN_OTHER_BASES"),
]


def register_method(method: Method, *, before: str | None = None) -> None:
    """Let every search use a method.

    Parameters
    ----------
    method : Method
    before : str, optional
        The name of the method that it is tried before; last if omitted.

    Raises
    ------
    ValueError
        If there is a method of this name, or none of the other's.
    """
    names = [one.name for one in METHODS]
    if not isinstance(method, Method):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidTypeError(f"A method must be a `Method`; got {shown(method)}.")
    if method.name in names:
        raise InvalidArgumentError(
            f"A method must have a name of its own; {method.name!r} is registered."
        )
    METHODS.insert(len(METHODS) if before is None else names.index(_known(before)), method)


def unregister_method(name: str) -> Method:
    """Take a method out of the registry, and return it.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    return METHODS.pop([one.name for one in METHODS].index(_known(name)))


def chosen(methods: Iterable[str | Method] | None) -> Sequence[Method]:
    """Methods by name, or as they are, in the order of the register; all of them for None.

    Raises
    ------
    ValueError
        For a name that isn't registered.
    """
    if methods is None:
        return tuple(METHODS)
    if isinstance(methods, str | Method) or not hasattr(methods, "__iter__"):
        raise InvalidArgumentError(
            f"`methods` must be a list of names or of methods; got {shown(methods)}."
        )
    wanted = [one if isinstance(one, Method) else _known(one) for one in methods]
    mine = [one for one in METHODS if one.name in wanted or one in wanted]
    others = [one for one in wanted if isinstance(one, Method) and one not in METHODS]
    names = Counter(one.name for one in (*mine, *dict.fromkeys(others)))
    again = [name for name, n in names.items() if n > 1]
    if again:
        raise InvalidArgumentError(
            f"Methods must have different names; got several called {', '.join(again)}."
        )
    return (*mine, *dict.fromkeys(others))


def _known(name: object) -> str:
    return require_choice("A method of search", name, [one.name for one in METHODS])
