"""The kinds of arguments: each module of this folder is one, with data, proof and checker.

Whatever lies here is believed. A module names its `Kind` as ``KIND``.

A kind can be registered from outside the library as well. `verify` then believes its checker, in
that process: certificates of this kind are refused wherever it isn't registered.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import get_args

from capacity.errors import InvalidArgumentError
from capacity.limits import shown
from capacity.options import require_choice
from capacity.rank.verifier.argument import Form
from capacity.rank.verifier.kind import Kind

RESERVED = {"kind", "subjects", "predicates", "objects", "bases"}
# by their names in JSON
KINDS: dict[str, Kind] = {}


def register_kind(kind: Kind) -> None:
    """Let `capacity.verify` and the readers of certificates know a kind of argument.

    Raises
    ------
    ValueError
        If there is a kind of this name, or no checker, or a field of no known form.
    """
    if kind.name in KINDS:
        raise InvalidArgumentError(
            f"A kind of argument must have a name of its own; {kind.name!r} is registered."
        )
    if kind.lower is None and kind.upper is None:
        raise InvalidArgumentError(f"The kind {kind.name!r} must have a checker for some side.")
    forms = kind.argument.forms
    unknown = {*forms.values()} - {*get_args(Form)}
    if unknown:
        raise InvalidArgumentError(
            f"The fields of the kind {kind.name!r} must have forms of {', '.join(get_args(Form))}; "
            f"got {', '.join(map(shown, unknown))}."
        )
    # a view stands in JSON by the names of its own fields
    views = sum(form == "view" for form in forms.values())
    if views > 1 or {*forms} & RESERVED:
        raise InvalidArgumentError(
            f"The kind {kind.name!r} must have one view at most, and no field called "
            f"{', '.join(sorted(RESERVED))}."
        )
    KINDS[kind.name] = kind


def unregister_kind(name: str) -> Kind:
    """Take a kind out of the registry, and return it; its certificates are refused from then on.

    Raises
    ------
    ValueError
        If there is none of that name.
    """
    return KINDS.pop(require_choice("A kind of argument", name, sorted(KINDS)))


for _module in pkgutil.iter_modules(__path__):
    register_kind(importlib.import_module(f"{__name__}.{_module.name}").KIND)
