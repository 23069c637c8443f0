"""Pieces of LLVM code on vectors, from which `vector` and `small_matmul` are built."""

# LLVM's and numba's types have no stubs
# pyright: basic

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils

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
