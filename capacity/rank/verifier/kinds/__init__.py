"""The kinds of arguments: each module of this folder is one, with data, proof and checker.

Whatever lies here is believed, and nothing else is: a module names its `Kind` as ``KIND``.

A kind can be registered from outside the library as well. `verify` then believes its checker, in
that process: certificates of this kind are refused wherever it isn't registered.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from capacity.errors import InvalidArgumentError
from capacity.rank.verifier.kind import Kind

# by their names in JSON
KINDS: dict[str, Kind[Any]] = {}


def register_kind(kind: Kind[Any]) -> None:
    """Let `capacity.verify` and the readers of certificates know a kind of argument.

    Raises
    ------
    ValueError
        If there is a kind of this name, or no checker.
    """
    if kind.name in KINDS:
        raise InvalidArgumentError(
            f"A kind of argument must have a name of its own; {kind.name!r} is registered."
        )
    if kind.lower is None and kind.upper is None:
        raise InvalidArgumentError(f"The kind {kind.name!r} must have a checker for some side.")
    KINDS[kind.name] = kind


for _module in pkgutil.iter_modules(__path__):
    register_kind(importlib.import_module(f"{__name__}.{_module.name}").KIND)
