"""Choices by name; a value that isn't one of them is refused, with the nearest choice."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, TypeVar

from capacity.errors import CapacityError, InvalidArgumentError, InvalidTypeError
from capacity.limits import shown

_Class = TypeVar("_Class", bound=type[Any])


def nearest(value: object, choices: Iterable[str], *, most: int = 1) -> str:
    """Return a hint with the choices nearest to a wrong value, one by default; empty if none is.

    Examples
    --------
    >>> nearest("quik", ["quick", "standard"])
    ' Did you mean `quick`?'
    >>> nearest("cp", ["CP", "SimplE"])
    ' Did you mean `CP`?'
    >>> nearest("lr", ["learning_rate", "epochs"])
    ' Did you mean `learning_rate`?'
    >>> nearest("label", ["labels", "lable", "type"], most=2)
    ' Did you mean `labels` or `lable`?'
    """
    given, names = str(value)[:60], list(choices)
    near = difflib.get_close_matches(given, names, n=most, cutoff=0.7)
    if not near:
        small = {name.lower(): name for name in names}
        found = difflib.get_close_matches(given.lower(), small, n=most, cutoff=0.7)
        near = [small[one] for one in found]
    near += [name for name in names if "".join(part[:1] for part in name.split("_")) == given]
    said = [f"`{name}`" for name in near[:most]]
    return f" Did you mean {' or '.join(said)}?" if said else ""


def require_choice(
    what: str,
    value: object,
    choices: Iterable[str],
    *,
    advice: str = "",
    error: type[CapacityError] = InvalidArgumentError,
) -> str:
    """Return a value that is one of the choices, and refuse any other.

    Raises
    ------
    InvalidArgumentError
        Or the given `error`, with all choices and the nearest.

    Examples
    --------
    >>> require_choice("`effort`", "quick", ["quick", "standard"])
    'quick'
    """
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        hint = nearest(value, choices) if isinstance(value, str) else ""
        more = f" {advice}" if advice else ""
        raise error(f"{what} must be one of {', '.join(choices)}; got {shown(value)}.{hint}{more}")
    return value


def with_known_options(cls: _Class) -> _Class:
    """Decorate a dataclass so that an unknown option is refused, with a list of its options.

    Raises
    ------
    InvalidTypeError
        From the class's ``__init__``, for an unknown option.
    """
    names = [each.name for each in fields(cls) if each.init]
    init: Callable[..., None] = cls.__init__

    @functools.wraps(init)
    def known(self: Any, *values: Any, **options: Any) -> None:
        for name in options:
            if name not in names:
                raise InvalidTypeError(
                    f"{cls.__name__} has no option `{name:.60}`; it has {', '.join(names)}."
                    f"{nearest(name, names)}"
                )
        init(self, *values, **options)

    cls.__init__ = known
    return cls
