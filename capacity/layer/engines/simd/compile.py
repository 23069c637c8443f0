"""Compilation of the engines' functions, whose code is kept for the next process."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils

from capacity.kept_code import kept
from capacity.safe_files import claim

# LLVM's and numba's types have no stubs
# pyright: basic


_I32 = ir.IntType(32)
# not 'reassoc': it would undo the rounding in `exp2`; not 'nnan': NaN must show divergence
FLAGS = ("contract", "nsz", "arcp")


def splat(builder, vector: ir.VectorType, scalar):
    """Copy a number into every lane."""
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(_I32, 0))
    nowhere = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, first, nowhere)


def constant(vector: ir.VectorType, x: float):
    """A constant in every lane."""
    return ir.Constant(vector, [x] * vector.count)


def llvm_call(builder, name: str, vector: ir.VectorType, *arguments):
    """Call an LLVM intrinsic of a vector's type, such as ``fmuladd``."""
    bits = 32 if isinstance(vector.element, ir.FloatType) else 64
    signature = ir.FunctionType(vector, [a.type for a in arguments])
    name = f"llvm.{name}.v{vector.count}f{bits}"
    function = cgutils.get_or_insert_function(builder.module, signature, name)
    return builder.call(function, arguments)


def array_data(context, builder, array_type, array):
    """Pointer to the first number of an array, or of what is a pointer to it already."""
    if isinstance(array_type, types.CPointer):
        return array
    return context.make_array(array_type)(context, builder, array).data


def load_vector(builder, data, index, vector: ir.VectorType):
    """Load a vector from an index on."""
    pointer = builder.bitcast(builder.gep(data, [index]), vector.as_pointer())
    loaded = builder.load(pointer)
    loaded.align = 4
    return loaded


def store_vector(builder, data, index, value) -> None:
    """Store a vector from an index on."""
    pointer = builder.bitcast(builder.gep(data, [index]), value.type.as_pointer())
    builder.store(value, pointer).align = 4


def load_scalar(builder, data, index):
    """Load the number at an index."""
    return builder.load(builder.gep(data, [index]))


def add_halves(builder, value, n: int):
    """Add the first n / 2 lanes to the next n / 2."""
    low, high = (
        ir.Constant(ir.VectorType(_I32, n // 2), list(range(start, start + n // 2)))
        for start in (0, n // 2)
    )
    halves = [builder.shuffle_vector(value, value, half) for half in (low, high)]
    return builder.fadd(*halves, flags=FLAGS)


LOG2_E = math.log2(math.e)


_njit: Any = numba.njit
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": set(FLAGS)}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call with arguments of some types, and keep the code."""
    return kept(function, **_OPTIONS)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into its callers.

    Numba passes each array of a named tuple as seven words, and so hundreds in a call: calls of the
    functions of an epoch would take a third of its time.
    """
    return _njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(
        function
    )


def linked(function: Callable[..., Any]) -> Any:
    """Compile a function of few arguments into one that is kept, as a function of its own."""
    return _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)


def kept_types(function: Any) -> list[tuple[Any, ...]]:
    """Find the argument types that a function is compiled for, by this or another process.

    Returns
    -------
    list of tuple
        Numba's types, for this processor; empty if numba stores its index in a way that isn't known
        here.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError, ValueError):
        processor = function.targetctx.codegen().magic_tuple()
        index = function._cache._cache_file._load_index()
        return [types for types, made_for, _ in index if made_for == processor]
    return []


@contextlib.contextmanager
def claimed(function: Any, name: str, *, wait: bool) -> Iterator[bool]:
    """Claim to compile some of a function's code, of all processes that keep it in one folder.

    Parameters
    ----------
    function : function of numba
        The function.
    name : str
        Name of the code.
    wait : bool
        Whether to wait for a process that has claimed it.

    Yields
    ------
    bool
        False if another process has claimed it; True where there are no locks.
    """
    with contextlib.ExitStack() as stack:
        is_free: bool | None = None
        # without a folder nothing is kept
        with contextlib.suppress(OSError, TypeError):
            path = Path(function.stats.cache_path, f"{name}.lock")
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            stack.callback(os.close, descriptor)
            is_free = claim(descriptor, wait=wait)
        yield is_free is not False
