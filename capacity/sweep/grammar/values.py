"""Checks of the values in a sweep's configuration, with messages that say where they stand."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from capacity.errors import SweepError
from capacity.limits import shown
from capacity.sweep.records import is_integer


def require_known(options: Any, where: str, names: tuple[str, ...]) -> None:
    """Refuse what isn't a table of known keys.

    Raises
    ------
    SweepError
        With the nearest known key.
    """
    if not isinstance(options, Mapping):
        raise SweepError(f"{where} must be a table of keys; got {shown(options)}.")
    for name in options:
        if name not in names:
            near = difflib.get_close_matches(str(name)[:60], names, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise SweepError(
                f"{where} has the unknown key `{name!s:.60}`; known are {', '.join(names)}.{hint}"
            )


def required(options: Mapping[str, Any], name: str, where: str) -> Any:
    """The value of a key.

    Raises
    ------
    SweepError
        If it isn't there.
    """
    if name not in options:
        raise SweepError(f"{where} must have the key `{name}`.")
    return options[name]


def integer(
    options: Mapping[str, Any], name: str, where: str, *, least: int, default: int | None = None
) -> int:
    """The value of a key that holds an integer; TOML's have 64 bits, as the columns of the table.

    Raises
    ------
    SweepError
        If it is no integer, or out of range.
    """
    value = required(options, name, where) if default is None else options.get(name, default)
    if not is_integer(value, least=least):
        raise SweepError(
            f"`{name}` in {where} must be an integer of at least {least}, and below 2**63; got "
            f"{shown(value)}."
        )
    return value
