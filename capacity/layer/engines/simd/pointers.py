"""Arrays as words, and in compiled code as pointers: a word each, where numba has seven an array.

What is done to an array takes numba about as long to compile as it has words, most of all the
conversion of arguments. So `words` writes a named tuple of arrays and numbers down as one array, of
addresses and values, and compiled code reads it with `pointers`. The fields of the tuple's class
are annotated by ``int``, ``float``, `Floats`, `Doubles`, `Integers`, or another such class.
"""

# as in `vector`
# pyright: basic, reportReturnType=false, reportGeneralTypeIssues=false
# ruff: noqa: ARG001

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from capacity.errors import InvalidTypeError

_I64 = ir.IntType(64)

# contiguous arrays of one dimension: of the layer's dtype, of float64, and of int64
Floats = NDArray[Any]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
_DTYPES = {Doubles: np.dtype(np.float64), Integers: np.dtype(np.int64)}


def words(arrays: NamedTuple) -> Integers:
    """Write a named tuple down: its numbers, and the addresses of its arrays.

    The tuple must be kept as long as its words are. Compiled code reads what is at an address as
    the field's type, so that another array would be read, and overwritten, as if it were one.

    Raises
    ------
    InvalidTypeError
        If an array isn't contiguous, or not of the type of its field.
    """
    return np.array(list(_words(arrays)), np.int64)


def _words(arrays: Any) -> Iterator[int]:
    for hint, value in zip(_hints(type(arrays)), arrays, strict=True):
        if isinstance(value, tuple):
            yield from _words(value)
        elif hint is float:
            yield int(np.float64(value).view(np.int64))
        elif hint is int:
            yield value
        else:
            right = value.dtype == _DTYPES[hint] if hint in _DTYPES else value.dtype.kind == "f"
            if not (right and value.flags.c_contiguous):
                raise InvalidTypeError(
                    f"A field of {type(arrays).__name__} must be a contiguous array of "
                    f"{_DTYPES.get(hint, 'floats')}; got {value.dtype} of strides "
                    f"{value.strides}."
                )
            yield value.ctypes.data


@cache
def _hints(kind: type) -> tuple[Any, ...]:
    """Annotations of a named tuple's fields, which take longer to read than a call may."""
    return tuple(get_type_hints(kind).values())


def _type(hint: Any, floats: types.Float) -> types.Type:
    """Numba's type of a field, given its annotation and the type of the layer's numbers."""
    if hint in (int, float):
        return {int: types.int64, float: types.float64}[hint]
    if isinstance(hint, type) and issubclass(hint, tuple):
        fields = [_type(h, floats) for h in _hints(hint)]
        return types.BaseTuple.from_types(fields, hint)
    numbers = {Floats: floats, Doubles: types.float64, Integers: types.int64}
    return types.CPointer(numbers[hint])


@intrinsic
def pointers(_context, kind, words, dims):
    """Read a named tuple of a class from its words; `dims` has numbers of the layer's type."""
    result = _type(kind.instance_class, dims.dtype)

    def code(context, builder, signature, arguments):
        data = context.make_array(words)(context, builder, arguments[1]).data
        places = iter(range(10**6))

        def read(field):
            if isinstance(field, types.BaseTuple):
                return context.make_tuple(builder, field, [read(part) for part in field])
            place = builder.gep(data, [ir.Constant(_I64, next(places))])
            pointer = context.get_value_type(field).as_pointer()
            return builder.load(builder.bitcast(place, pointer))

        return read(result)

    return result(kind, words, dims), code


@intrinsic
def shifted(_context, pointer, n):
    """Pointer to the number `n` places after another."""

    def code(_context, builder, _signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), code


@intrinsic
def kind_of(_context, pointer):
    """Type of the numbers that a pointer points to, which converts others to it."""

    def code(context, _builder, _signature, _arguments):
        return context.get_dummy_value()

    return types.NumberClass(pointer.dtype)(pointer), code


@intrinsic
def rolled(_context):
    """Keep a short loop from being unrolled: no instruction, but one that mustn't be repeated.

    LLVM would write eight rounds of each, and again where its function is inlined; that takes half
    of the time to compile, and is no faster for rounds of whole vectors.
    """

    def code(context, builder, _signature, _arguments):
        nothing = ir.FunctionType(ir.VoidType(), [])
        call = builder.asm(nothing, "", "", [], True)
        for attribute in ("convergent", "nounwind", "readnone"):
            call.attributes.add(attribute)
        return context.get_dummy_value()

    return types.void(), code
