"""The kinds of arguments: one in each module of this folder, with its data, proof and checker.

Every module here is trusted. It names its `Kind` as ``KIND``.

A kind can also be registered from outside the library. `verify` then trusts its checker, in that
process: certificates of this kind are refused wherever it isn't registered.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import get_args

from capacity.checks import require_choice, shown
from capacity.errors import InvalidArgumentError
from capacity.rank.verifier.argument import Argument, Form
from capacity.rank.verifier.kind import Kind, sources_of

RESERVED = {"kind", "subjects", "predicates", "objects", "indices", "bases"}
# keys are the names of the kinds in JSON
KINDS: dict[str, Kind] = {}


def register_kind(kind: Kind) -> None:
    """Register a kind of argument, for `capacity.verify` and for reading certificates.

    Parameters
    ----------
    kind : Kind
        The kind. Its checkers are trusted from then on, in this process.

    Raises
    ------
    InvalidArgumentError
        If a kind of this name is registered, the kind has no checker, a field has an unknown form
        or a reserved name, or two fields are views.

    Examples
    --------
    A kind of argument for a database that isn't empty, whose rank is at least 1:

    >>> from capacity import Database, verify
    >>> from capacity.rank import Certificate
    >>> from capacity.rank.verifier.argument import FromBelow
    >>> from capacity.rank.verifier.entries import require
    >>> class OneFact(FromBelow):
    ...     kind, forms, value = "one fact", {}, 1
    >>> def check_one_fact(argument, entries):
    ...     require(len(entries) > 0, "there is no fact")
    ...     return tuple(entries.indices[:1].T)
    >>> register_kind(Kind(OneFact, lower=check_one_fact))
    >>> db = Database.from_triples([("Ada", "born in", "London")])
    >>> bound = Certificate("rank", "lower", 1, "", (OneFact(),), db.facts_sha256, db.multi)
    >>> verify(bound, db)
    Verdict(proved=True, reason=None)
    >>> unregister_kind("one fact").name
    'one fact'
    """
    if kind.name in KINDS:
        raise InvalidArgumentError(
            f"A kind of argument must have a name of its own; {kind.name!r} is registered. Choose "
            "another, or unregister that kind first."
        )
    if kind.lower is None and kind.upper is None:
        raise InvalidArgumentError(
            f"The kind {kind.name!r} must have a checker: `lower`, `upper` or both."
        )
    forms = kind.argument.forms
    unknown = {*forms.values()} - {*get_args(Form)}
    if unknown:
        raise InvalidArgumentError(
            f"The fields of the kind {kind.name!r} must have forms of {', '.join(get_args(Form))}; "
            f"got {', '.join(map(shown, unknown))}."
        )
    # JSON has the fields of a view beside those of its argument
    views = sum(form == "view" for form in forms.values())
    if views > 1 or {*forms} & RESERVED:
        raise InvalidArgumentError(
            f"The kind {kind.name!r} must have at most one view, and no field named "
            f"{', '.join(sorted(RESERVED))}; got {', '.join(map(shown, forms))}."
        )
    KINDS[kind.name] = kind


def unregister_kind(name: str) -> Kind:
    """Remove a kind of argument from the registry; its certificates are refused from then on.

    Parameters
    ----------
    name : str
        Name of the kind in JSON.

    Returns
    -------
    Kind
        The kind that was registered under this name.

    Raises
    ------
    InvalidArgumentError
        If no kind of this name is registered.

    Examples
    --------
    >>> pencils = unregister_kind("pencil")
    >>> "pencil" in KINDS
    False
    >>> register_kind(pencils)
    """
    return KINDS.pop(require_choice("A kind of argument", name, sorted(KINDS)))


def cited_by(arguments: Sequence[Argument]) -> tuple[str, ...]:
    """Return who published the theorems that arguments of registered kinds rest on."""
    kinds = {kind.argument: kind for kind in KINDS.values()}
    return sources_of(arguments, [kinds[type(argument)] for argument in arguments])


for _module in pkgutil.iter_modules(__path__):
    register_kind(importlib.import_module(f"{__name__}.{_module.name}").KIND)
