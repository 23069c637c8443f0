"""Annotations of arguments: whether a value is of the type that one names, and in words.

Annotations are texts, and may name classes that are imported for checks of types alone. Such a
class is looked up in its module, if that has been loaded; if not, no value is of it. A type that
can't be checked, such as a protocol, fits.
"""

from __future__ import annotations

import ast
import builtins
import collections.abc
import functools
import inspect
import os
import re
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

# elements of a container that are looked at
MOST_ELEMENTS = 1000
# classes of numbers that stand for those of Python
_NUMBERS: dict[type, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    complex: (complex, float, int, np.number),
}
_ARTICLES = {int: "an integer", float: "a number", str: "a str", bool: "a bool",
             os.PathLike: "a path", type(None): "None"}  # fmt: skip


def absent(name: str) -> type:
    """Make a class in place of one that isn't loaded, of which no value can be."""
    return type(name, (), {"__class_getitem__": classmethod(lambda cls, _inside: cls)})


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Types of the arguments of a function, by name; what can't be evaluated is omitted."""
    function = inspect.unwrap(function)
    module = sys.modules.get(function.__module__)
    names = {
        **vars(typing),
        **vars(collections.abc),
        **vars(builtins),
        **(_checked_alone(module) if module else {}),
        **function.__globals__,
    }
    found: dict[str, Any] = {}
    # keywords of a TypedDict are in the signature alone
    for name, one in inspect.signature(function).parameters.items():
        annotation = one.annotation
        if annotation is one.empty:
            continue
        # some classes have parameters in annotations alone
        for text in (annotation, re.sub(r"\[.*\]", "", str(annotation))):
            try:
                found[name] = eval(text, names) if isinstance(text, str) else text
                break
            # whatever an annotation raises, it tells nothing
            except Exception:
                continue
    return found


@functools.cache
def _checked_alone(module: types.ModuleType) -> dict[str, Any]:
    """Names that a module imports under ``if TYPE_CHECKING``."""
    try:
        body = ast.parse(inspect.getsource(module)).body
    except (OSError, TypeError, SyntaxError):
        return {}
    blocks = [one.body for one in body if isinstance(one, ast.If)
              and ast.unparse(one.test).endswith("TYPE_CHECKING")]  # fmt: skip
    names: dict[str, Any] = {}
    for line in (line for block in blocks for line in block):
        if isinstance(line, ast.ImportFrom):
            there = sys.modules.get(line.module or "")
            for one in line.names:
                names[one.asname or one.name] = getattr(there, one.name, absent(one.name))
        elif isinstance(line, ast.Import):
            for one in line.names:
                names[one.asname or one.name] = sys.modules.get(one.name, _Unloaded(one.name))
    return names


class _Unloaded(types.ModuleType):
    """A module that isn't loaded, and all its classes."""

    def __getattr__(self, name: str) -> type:
        return absent(name)


def fits(value: object, kind: Any) -> bool:
    """Return False if a value is surely not of a type.

    Parameters
    ----------
    value : object
        Any value.
    kind : type
        A class, a union, a literal, or a container of types.

    Examples
    --------
    >>> fits(3, int | None), fits("3", int | None), fits([1, "a"], list[int])
    (True, False, False)
    """
    if kind is None or kind is type(None):
        return value is None
    origin = get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        arrays, others = _array_likes(kind)
        if kind == DTypeLike:
            return _is_dtype(value)
        return (arrays and _is_numbers(value)) or any(fits(value, one) for one in others)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in get_args(kind))
    if origin is typing.Annotated:
        return fits(value, get_args(kind)[0])
    if hasattr(kind, "array_type"):
        # of jaxtyping, which looks at its dtype and its number of dimensions
        return _is_a(value, kind.array_type) and isinstance(value, kind)
    if origin is np.ndarray:
        return _is_a(value, np.ndarray) and _dtype_fits(value, get_args(kind))
    if isinstance(origin, type):
        return _is_a(value, origin) and _elements_fit(value, origin, get_args(kind))
    return _is_a(value, kind) if isinstance(kind, type) else True


def _array_likes(union: Any) -> tuple[bool, list[Any]]:
    """Split a union into array_like, which is one itself, and its other members."""
    members, of_arrays = list(get_args(union)), set(get_args(ArrayLike))
    if not of_arrays.issubset(members):
        return False, members
    return True, [one for one in members if one not in of_arrays]


def _is_numbers(value: Any) -> bool:
    """Return False for what becomes no array of numbers, such as texts and ragged lists."""
    try:
        return np.asarray(value).dtype.kind in "biufc"
    # what else a class may raise that is asked for an array
    except Exception:
        return False


def is_array_like(kind: Any) -> bool:
    """Return True if a type is array_like, or a union of it."""
    return get_origin(kind) in (typing.Union, types.UnionType) and _array_likes(kind)[0]


def _is_dtype(value: Any) -> bool:
    try:
        np.dtype(value)
    # what else a class may raise that is asked for its dtype
    except Exception:
        return False
    return True


def _dtype_fits(array: Any, inside: tuple[Any, ...]) -> bool:
    """Return False if numbers of an array are surely not of the annotated kind."""
    dtypes = get_args(inside[1]) if len(inside) == 2 else ()
    if not dtypes or not isinstance(dtypes[0], type):
        return True
    asked = dtypes[0]
    for kind, codes in ((np.bool_, "b"), (np.integer, "iub"), (np.floating, "fiub")):
        if issubclass(asked, kind):
            return array.dtype.kind in codes
    return True


def _is_a(value: object, kind: type) -> bool:
    if getattr(kind, "_is_protocol", False) and not kind.__module__.startswith("collections"):
        return True
    if issubclass(kind, np.ndarray):
        return isinstance(value, np.ndarray)
    # a text is a sequence of texts, and a mistake
    if isinstance(value, str | bytes) and kind not in (str, bytes, object, os.PathLike):
        try:
            return issubclass(type(value), kind) and not issubclass(kind, Iterable) and not (
                issubclass(Iterable, kind) or issubclass(Collection, kind)
            )  # fmt: skip
        except TypeError:
            return False
    if isinstance(value, bool) and kind in (int, float):
        return False
    if kind in (Iterable, Collection, Sequence) and isinstance(value, np.ndarray):
        return value.ndim > 0
    try:
        return isinstance(value, _NUMBERS.get(kind, kind))
    except TypeError:
        return True


def _elements_fit(value: Any, origin: type, inside: tuple[Any, ...]) -> bool:
    """Return False if an element of a container, of the first ones, is surely of another type."""
    if not inside or not isinstance(value, Iterable) or iter(value) is value:
        # an iterator would be used up
        return True
    if issubclass(origin, Mapping):
        pairs = list(dict(value).items())[:MOST_ELEMENTS]
        return len(inside) != 2 or all(
            fits(one, inside[0]) and fits(other, inside[1]) for one, other in pairs
        )
    if getattr(value, "ndim", 1) == 0:
        return False
    elements = [one for one, _ in zip(value, range(MOST_ELEMENTS), strict=False)]
    if origin is tuple and Ellipsis not in inside:
        return len(elements) == len(inside) and all(map(fits, elements, inside))
    return all(fits(one, inside[0]) for one in elements) if origin is not type else True


def in_words(kind: Any) -> str:
    """Describe a type.

    Examples
    --------
    >>> in_words(int | None), in_words(dict[str, int]), in_words(Literal["a", "b"])
    ('an integer or None', 'a dict[str, int]', "'a' or 'b'")
    """
    origin = get_origin(kind)
    if kind == DTypeLike:
        return "a dtype of numpy"
    if origin in (typing.Union, types.UnionType):
        arrays, others = _array_likes(kind)
        said = ["numbers in an array, or in lists of one length"] * arrays
        return " or ".join(dict.fromkeys([*said, *map(in_words, others)]))
    if origin is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if hasattr(kind, "array_type"):
        dtype, sides = kind.__name__.partition("[")[0].lower(), ", ".join(kind.dim_str.split())
        return f"a {dtype} {kind.array_type.__name__} of the shape ({sides})"
    if origin is np.ndarray:
        inside = get_args(kind)
        dtypes = [one for one in get_args(inside[1]) if one is not Any] if inside[1:] else []
        return " of ".join(["an array of numpy", *map(_short, dtypes)])
    if origin is typing.Annotated:
        return in_words(get_args(kind)[0])
    if origin is not None and issubclass(origin if isinstance(origin, type) else object, Callable):
        return "a function"
    if kind is None:
        return "None"
    for one, said in _ARTICLES.items():
        if kind is one or origin is one:
            return said
    if isinstance(kind, TypeVar):
        return kind.__name__
    name = _short(kind)
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _short(kind: Any) -> str:
    """Name of a type without those of modules."""
    if kind is Ellipsis:
        return "..."
    inside = get_args(kind)
    name = getattr(get_origin(kind) or kind, "__name__", str(kind))
    return f"{name}[{', '.join(map(_short, inside))}]" if inside else name
