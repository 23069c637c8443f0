"""Check values in a sweep's file against fields of dataclasses, with messages that name them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from capacity.checks import nearest, require_choice, shown
from capacity.errors import CapacityError, SweepError
from capacity.sweep.storage.records import is_integer

Section = TypeVar("Section")
# length of a list
MOST_VALUES = 100_000


def read_section(kind: type[Section], options: Any, where: str) -> Section:
    """Make a dataclass from a table of the file, whose keys are its fields.

    Parameters
    ----------
    kind : type
        A dataclass. Its fields are int, float, str, Literal, tuple[int, int] or
        tuple[float, float] for least and most, list[int], list[float] or list[str], any of them
        optional; or Any, for values that are read elsewhere. Their metadata hold ``least`` and
        ``most``.
    options : mapping
        Content of the table.
    where : str
        Name of the table, for messages.

    Returns
    -------
    Section
        An instance of `kind`.

    Raises
    ------
    SweepError
        If `options` isn't a table, has an unknown key, lacks a required one, or has a value that
        its field doesn't allow.
    """
    require_known(options, where, keys_of(kind))
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        if each.name in options:
            name, limits = f"`{each.name}` in {where}", each.metadata
            values[each.name] = _checked(name, options[each.name], hints[each.name], limits)
        elif is_required(each):
            raise SweepError(f"{where} must have the key `{each.name}`.")
    return kind(**values)


def made_from(
    kind: type[Section], options: Any, where: str, *, without: tuple[str, ...] = ()
) -> Section:
    """Make a dataclass that checks its fields itself, such as `Recipe`.

    Parameters
    ----------
    kind : type
        The dataclass.
    options : mapping
        Content of the table.
    where : str
        Name of the table, for messages.
    without : tuple of str
        Fields that are not keys of the file.

    Returns
    -------
    Section
        An instance of `kind`.

    Raises
    ------
    SweepError
        If `options` isn't a table, or has an unknown key or a value that the dataclass refuses.
    """
    require_known(options, where, keys_of(kind, without))
    try:
        return kind(**options)
    except (CapacityError, ValueError, TypeError, OverflowError) as error:
        raise SweepError(f"in {where}: {error}") from None


def keys_of(kind: type, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Names of a dataclass's fields, which are the keys of its table."""
    return tuple(each.name for each in fields(kind) if each.name not in without)


def is_required(each: Field[Any]) -> bool:
    """Return True if a field has no default, so that its key must be given."""
    return each.default is MISSING and each.default_factory is MISSING


def require_known(options: Any, where: str, names: tuple[str, ...]) -> None:
    """Refuse options that are not a table of known keys.

    Raises
    ------
    SweepError
        If so; the message names the nearest known key.
    """
    if not isinstance(options, Mapping):
        raise SweepError(f"{where} must be a table of keys; got {shown(options)}.")
    for name in options:
        if name not in names:
            raise SweepError(
                f"{where} has the unknown key `{name!s:.60}`; known are {', '.join(names)}."
                f"{nearest(name, names)}"
            )


def require_at_most(most: int, asked: int, where: str, what: str) -> None:
    """Refuse a file that asks for more of something than a sweep may have.

    Raises
    ------
    SweepError
        If `asked` exceeds `most`.
    """
    if asked > most:
        raise SweepError(
            f"{where} must ask for at most {most:,} {what}; got {asked:,}. Ask for fewer, or split "
            "the sweep into several."
        )


def _checked(name: str, value: Any, kind: Any, limits: Mapping[str, Any]) -> Any:
    """Return a value whose type and limits are those of its field."""
    if kind is Any:
        return value
    # a value of an optional field is never None, since TOML has no null
    kinds = [one for one in get_args(kind) if one is not type(None)]
    if type(None) in get_args(kind):
        return _checked(name, value, kinds[0], limits)
    match get_origin(kind) or kind:
        case origin if origin is Literal:
            require_choice(name, value, kinds, error=SweepError)
        case origin if origin is tuple:
            if not isinstance(value, list | tuple) or len(value) != 2:
                raise SweepError(
                    f"{name} must be a list of two numbers, the least and the largest; got "
                    f"{shown(value)}."
                )
            least, most = (_checked(name, one, kinds[0], limits) for one in value)
            if least > most:
                raise SweepError(f"{name} must name the least first; got {shown(value)}.")
            return least, most
        case origin if origin is list:
            if not isinstance(value, list) or not 0 < len(value) <= MOST_VALUES:
                what = "strings" if kinds[0] is str else "numbers"
                raise SweepError(
                    f"{name} must be a list of 1 to {MOST_VALUES:,} {what}; got {shown(value)}."
                )
            return [_checked(name, one, kinds[0], limits) for one in value]
        case origin if origin is int:
            least = limits.get("least", 0)
            if not is_integer(value, least=least):
                raise SweepError(
                    f"{name} must be an integer of at least {least}, and below 2**63; got "
                    f"{shown(value)}."
                )
        case origin if origin is float:
            return _real(name, value, **limits)
        case _:
            if not isinstance(value, str):
                raise SweepError(f"{name} must be a string; got {shown(value)}.")
    return value


def _real(name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        between = "" if least == -math.inf else f" between {least} and {most}"
        raise SweepError(f"{name} must be a number{between}; got {shown(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise SweepError(
            f"{name} must be a number that float64 can hold; got {shown(value)}."
        ) from None
