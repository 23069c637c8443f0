"""Calls through the door: functions, and the public methods of classes."""

from __future__ import annotations

import functools
import inspect
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from capacity.checks import cut, in_a_line, nearest, shown
from capacity.door.annotations import fits, hints_of, in_words, is_array_like
from capacity.door.values import form_of_array, oddity
from capacity.errors import (
    CapacityError,
    InvalidArgumentError,
    InvalidTypeError,
    MemoryBudgetError,
    StorageError,
)
from capacity.safe_files import advice_on_name

_MARK = "_capacity_door"
# where the library's code is, and that of Python and of other packages
_LIBRARY = str(Path(__file__).parents[1])
_INSTALLED = tuple({*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix})
# what operations with arrays raise whose shapes or dtypes don't go together
_OF_ARRAYS = (ValueError, IndexError, TypeError, RuntimeError)
# methods of these names are public
_SPECIAL = ("__init__", "__call__")
# made by the million, for each token of a large file
_MANY = ("Term",)


def through_door(value: Any, room: str) -> Any:
    """Return a public value as users get it: a function that answers wrong calls, or the same.

    The methods of a class are replaced in it, once. Exceptions, protocols and dictionaries of
    keywords stay as they are.

    Parameters
    ----------
    value : object
        Value of a public name.
    room : str
        Package that has it.
    """
    if inspect.isfunction(value):
        # the same function by whatever name, and from whatever room
        made = value.__dict__.get(_MARK)
        if made is None:
            made = _answering(value, value.__name__)
            # pickle finds it there, and another function where this one is defined
            made.__module__, made.__qualname__ = room, value.__name__
            setattr(value, _MARK, made)
        return made
    if isinstance(value, type) and _is_ours(value):
        _answer_methods(value)
    return value


def _is_ours(kind: type) -> bool:
    return (
        kind.__module__.partition(".")[0] == "capacity"
        and not issubclass(kind, BaseException | dict)
        and kind.__name__ not in _MANY
        and not getattr(kind, "_is_protocol", False)
    )


def _answer_methods(kind: type) -> None:
    if _MARK in vars(kind):
        return
    setattr(kind, _MARK, True)
    for name, member in list(vars(kind).items()):
        # a named tuple is made by the second
        makes = name == ("__new__" if issubclass(kind, tuple) else "__init__")
        if name.startswith("_") and not (makes or name in _SPECIAL):
            continue
        said = kind.__name__ if makes else f"{kind.__name__}.{name}"
        if makes and name == "__new__":
            setattr(kind, name, staticmethod(_answering(inspect.unwrap(member), said, bound=True)))
        elif inspect.isfunction(member):
            setattr(kind, name, _answering(member, said, bound=True))
        elif isinstance(member, classmethod):
            setattr(kind, name, classmethod(_answering(member.__func__, said, bound=True)))
        elif isinstance(member, staticmethod):
            setattr(kind, name, staticmethod(_answering(member.__func__, said)))


def _answering(function: Callable[..., Any], said: str, *, bound: bool = False) -> Any:
    """Wrap a function, so that its wrong calls raise errors of the library.

    Parameters
    ----------
    function : callable
        The function.
    said : str
        Its name in messages.
    bound : bool
        True if the first argument isn't the user's.
    """

    @functools.wraps(function)
    def answering(*values: Any, **options: Any) -> Any:
        try:
            return function(*values, **options)
        # a warning that the user's filter makes an error is none of the call
        except (CapacityError, Warning):
            raise
        except Exception as error:
            if _is_of_users(error):
                raise
            wrong = wrong_call(function, said, values, options, error, bound=bound)
            if wrong is None:
                raise
            raise wrong from error

    return answering


def _is_of_users(error: Exception) -> bool:
    """Return True if the library has called a function of the user's, which failed."""
    # the first is the door's, the second that of the function which was called
    trace = error.__traceback__
    files = []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    known = (_LIBRARY, *_INSTALLED, "<")
    return any(not file.startswith(known) for file in files[2:])


def wrong_call(
    function: Callable[..., Any],
    said: str,
    values: tuple[Any, ...],
    options: Mapping[str, Any],
    error: Exception,
    *,
    bound: bool,
) -> CapacityError | None:
    """Find what is wrong with a call that has failed; None if nothing is.

    Parameters
    ----------
    function : callable
        The function that was called.
    said : str
        Its name in messages.
    values, options : tuple, mapping
        Its arguments.
    error : Exception
        How it failed.
    bound : bool
        True if the first argument isn't the user's.
    """
    if isinstance(error, MemoryError):
        return MemoryBudgetError(
            f"`{said}` needs more memory than there is. Pass it less. {in_a_line(error)}"
        )
    if isinstance(error, OSError) and isinstance(error.filename, str):
        reason = (error.strerror or str(error)).lower()
        return StorageError(cut(error.filename), reason, advice_on_name(error.filename))
    signature = inspect.signature(function)
    try:
        arguments = signature.bind(*values, **options).arguments
    except TypeError:
        return InvalidTypeError(_misfit(signature, said, values, options, bound=bound))
    parameters = list(signature.parameters.values())[bound:]
    given = [(one, arguments[one.name]) for one in parameters if one.name in arguments]
    hints = hints_of(function)
    for parameter, value in given:
        for one in _each(parameter, value):
            kind = hints.get(parameter.name, Any)
            if one is not parameter.default and not fits(one, kind):
                return InvalidTypeError(
                    f"`{parameter.name}` of `{said}` must be {in_words(kind)}; got {shown(one)}."
                )
    unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    if isinstance(error, TypeError) and unknown and unknown[1] in options:
        return InvalidTypeError(f"`{said}` has no option `{unknown[1]:.60}`. {in_a_line(error)}")
    told = [f"`{parameter.name}` {odd}" for parameter, value in given if (odd := oddity(value))]
    if not told and isinstance(error, _OF_ARRAYS):
        arrays = [
            (one.name, np.asarray(value) if is_array_like(hints.get(one.name)) else value)
            for one, value in given
        ]
        told = [f"`{name}` is {form}" for name, value in arrays if (form := form_of_array(value))]
    if told:
        return InvalidArgumentError(
            f"`{said}` can't use these arguments together: {', '.join(told)}. {in_a_line(error)}"
        )
    return None


def _each(parameter: inspect.Parameter, value: Any) -> tuple[Any, ...]:
    """Values of a parameter: those of ``*values`` one by one, none of ``**options``."""
    if parameter.kind is parameter.VAR_KEYWORD:
        return ()
    return value if parameter.kind is parameter.VAR_POSITIONAL else (value,)


def _misfit(
    signature: inspect.Signature,
    said: str,
    values: tuple[Any, ...],
    options: Mapping[str, Any],
    *,
    bound: bool,
) -> str:
    """List the arguments that a call lacks, or has beyond those of the function."""
    parameters = list(signature.parameters.values())[bound:]
    names = [one.name for one in parameters if one.kind is not one.VAR_POSITIONAL]
    has = f"it has {', '.join(names)}" if names else "it has none"
    for name in options:
        if name not in names:
            return f"`{said}` has no argument `{name:.60}`; {has}.{nearest(name, names)}"
    by_place = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY,
                one.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    n_given = len(values) - bound
    takes_all = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if n_given > len(by_place) and not takes_all:
        n = len(by_place)
        most = f"at most {n} argument{'s by their' if n > 1 else ' by its'} place" if n else "none"
        by_name = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
        advice = f" Pass {', '.join(f'`{one}=`' for one in by_name)} by name." if by_name else ""
        return f"`{said}` takes {most}; got {n_given}; {has}.{advice}"
    taken = {one.name for one in by_place[:n_given]}
    twice = [name for name in options if name in taken]
    if twice:
        return f"`{said}` got `{twice[0]}` by its place and by name; pass it once."
    lacking = " and ".join(
        f"`{one.name}`"
        for one in parameters
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and one.name not in taken
        and one.name not in options
    )
    return f"`{said}` needs {lacking}; {has}.{_makers(values[0], said) if bound else ''}"


def _makers(made: object, said: str) -> str:
    """Name the class methods that make an object which is made otherwise than people thought."""
    kind = type(made)
    names = [
        f"`{said}.{name}`"
        for name, member in vars(kind).items()
        if isinstance(member, classmethod) and name.startswith("from_")
    ]
    return f" Make one by {' or '.join(names[:3])}." if said == kind.__name__ and names else ""
