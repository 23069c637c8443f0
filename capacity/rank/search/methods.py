"""The registry of search methods, cheapest first; a new method is a module and a line below.

Other packages can register a method too, before another one or last. `rank_interval` and
``capacity rank --method`` accept any of them by name.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from capacity.checks import nearest, shown
from capacity.errors import InvalidArgumentError, InvalidTypeError
from capacity.rank.method import Method


def _named(where: str) -> Method:
    module, name = where.split(":")
    return getattr(importlib.import_module(f"capacity.rank.{module}"), name)


# methods that give explicit terms come before those that only prove that some exist
METHODS: list[Method] = [
    _named("upper.merging:MERGING"),
    _named("lower.single_entries:PEELING"),
    _named("upper.spanning_tree:SPANNING_TREE"),
    _named("lower.substitution.dense:SUBSTITUTION"),
    _named("lower.substitution.sparse.methods:SPARSE_SUBSTITUTION"),
    _named("lower.pencil:PENCIL"),
    _named("lower.rank_one_completions:RANK_ONE_COMPLETION"),
    _named("lower.diagonalization:DIAGONALIZATION"),
    _named("lower.algebras:ALGEBRA"),
    _named("composition.remainders:REMAINDERS"),
    _named("composition.w_states:W_STATES"),
    _named("upper.published_schemes:PUBLISHED_SCHEMES"),
    _named("lower.koszul:KOSZUL"),
    _named("lower.published:PUBLISHED"),
    _named("lower.published:PUBLISHED_OF_ENTRIES"),
    _named("lower.rank_one_loci:RANK_ONE_LOCUS"),
    _named("upper.binary_search:BINARY_FLIPS"),
    _named("upper.ternary.search:TERNARY_FLIPS"),
    _named("upper.symmetric.search:SYMMETRIC_FLIPS"),
    # after the walks: from the 30 terms that it composes for matrices of 3 x 3 x 4 they don't find
    # the 29 that they find from others
    _named("composition.composing:COMPOSITION"),
    _named("cp.exact_fits:LEAST_SQUARES"),
    _named("lower.substitution.dense:ANNEALED_SUBSTITUTION"),
    _named("lower.substitution.dense:SUBSTITUTION_IN_OTHER_BASES"),
    _named("lower.substitution.case_trees:CASES"),
    # a theorem gives no terms, so it comes after all that look for some
    _named("upper.maximal_rank:MAXIMAL_RANK"),
]


def register_method(method: Method, *, before: str | None = None) -> None:
    """Register a method of search, which every search then uses.

    Parameters
    ----------
    method : Method
        The method, with a name that isn't registered yet.
    before : str, optional
        Name of the registered method that it is tried before; last if omitted.

    Raises
    ------
    InvalidTypeError
        If `method` isn't a `Method`.
    InvalidArgumentError
        If a method of this name is registered, or none is named `before`.

    Examples
    --------
    >>> register_method(Method("idle", lambda problem, goal: []), before="pencil")
    >>> names = [method.name for method in METHODS]
    >>> names.index("pencil") - names.index("idle")
    1
    >>> unregister_method("idle").name
    'idle'
    """
    names = [one.name for one in METHODS]
    if not isinstance(method, Method):  # pyright: ignore[reportUnnecessaryIsInstance]
        wrap = (
            ' Wrap it: Method("its name", function, sides=("lower",)).' if callable(method) else ""
        )
        raise InvalidTypeError(f"A method must be a `Method`; got {shown(method)}.{wrap}")
    if method.name in names:
        raise InvalidArgumentError(
            f"A method must have a name of its own; {method.name!r} is registered already."
        )
    METHODS.insert(len(METHODS) if before is None else names.index(_known(before)), method)


def unregister_method(name: str) -> Method:
    """Remove a method from the registry, and return it.

    Parameters
    ----------
    name : str
        Name of a registered method.

    Returns
    -------
    Method
        The method, which `register_method` can register again.

    Raises
    ------
    InvalidArgumentError
        If no method of this name is registered.

    Examples
    --------
    >>> pencil = unregister_method("pencil")
    >>> "pencil" in [method.name for method in METHODS]
    False
    >>> register_method(pencil, before="diagonalization")
    """
    return METHODS.pop([one.name for one in METHODS].index(_known(name)))


def chosen(methods: Iterable[str | Method] | None) -> Sequence[Method]:
    """Return the chosen methods in the order of the registry, unregistered ones last.

    Parameters
    ----------
    methods : iterable of str or Method, optional
        Names of registered methods, or methods themselves; all registered methods if omitted.

    Returns
    -------
    sequence of Method

    Raises
    ------
    InvalidArgumentError
        If `methods` isn't an iterable of names and methods, a name isn't registered, or two methods
        have the same name.
    """
    if methods is None:
        return tuple(METHODS)
    if isinstance(methods, str | Method) or not hasattr(methods, "__iter__"):
        raise InvalidArgumentError(
            f"`methods` must be a list of names or methods; got {shown(methods)}."
        )
    wanted = [one if isinstance(one, Method) else _known(one) for one in methods]
    mine = [one for one in METHODS if one.name in wanted or one in wanted]
    others = [one for one in wanted if isinstance(one, Method) and one not in METHODS]
    names = Counter(one.name for one in (*mine, *dict.fromkeys(others)))
    again = [name for name, n in names.items() if n > 1]
    if again:
        raise InvalidArgumentError(
            f"Methods must have different names; got more than one called {', '.join(again)}."
        )
    return (*mine, *dict.fromkeys(others))


def uncited(methods: Iterable[str | Method] | None) -> Sequence[Method]:
    """Return the chosen methods whose arguments rest on no published theorem.

    Raises
    ------
    InvalidArgumentError
        If methods are named, and one of them rests on a theorem; and as `chosen`.
    """
    every = chosen(methods)
    cite = [one.name for one in every if one.cites]
    if methods is not None and cite:
        raise InvalidArgumentError(
            f"Without citations, no method may rest on published theorems; got {', '.join(cite)}. "
            "Omit the method, or allow citations."
        )
    return [one for one in every if not one.cites]


def _known(name: object) -> str:
    names = [one.name for one in METHODS]
    if isinstance(name, str) and name in names:
        return name
    # a word of a longer name is nearest to it
    words = {word.lower(): one for one in reversed(names) for word in one.split()}
    near = get_close_matches(str(name).lower()[:60], words, n=1, cutoff=0.6)
    hint = nearest(name, names, most=3) or "".join(f" Did you mean `{words[n]}`?" for n in near)
    # all names are over 400 characters
    raise InvalidArgumentError(
        f"A method of search must have a registered name; got {shown(name)}."
        f"{hint} `[method.name for method in capacity.rank.METHODS]` lists "
        f"all {len(names)}."
    )
