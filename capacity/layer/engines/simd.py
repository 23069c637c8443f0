"""Vectors of floats as values in numba: one instruction, many lanes.

A loop over an array is made into vector instructions by the compiler only if it can prove that it
may be. Here the vectors are explicit. A `Vec` is a value in numba's compiled functions, a register
of n floats that LLVM knows as ``<n x float>``::

    @njit
    def axpy(alpha, x, y):                     # y += alpha x
        a = full(alpha)                        # alpha in every lane
        for i in range(0, len(x), lanes_of(x)):
            store(y, i, fma(a, load(x, i), load(y, i)))

There is no masking: arrays are padded to whole vectors, with zeros that stay zeros.

Widths
    `load`, `broadcast` and `full` give vectors of 64 bytes, 16 lanes of float32 or 8 of float64,
    one register of AVX-512. On a processor with narrower registers LLVM makes several instructions
    of each: two with AVX2, four with SSE or NEON. `load8`, `broadcast8` and `full8` give 8 lanes of
    either, for rows of at most 8 numbers.

How it works
    A numba type (`Vec`) is tied to an LLVM type (`_VecModel`). Each operation is an *intrinsic*: a
    function that is given the types and returns the type of the result and a generator of LLVM
    instructions. The operators + - * / are overloaded by intrinsics. Beside ``numba.extending``,
    ``numba.core.cgutils`` and the context's `make_array` are all that is used.

Rounding
    Multiplications and additions may be contracted into one rounding, and a division by a constant
    may become a product; sums keep their order, except inside `total`. So the same machine always
    gives the same bits. NaN and infinity are kept, for a run that diverges must be seen.
"""

# intrinsics are functions of numba's and LLVM's types, which have no stubs
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ARG001

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

VECTOR_BYTES = 64
ROW = 8
_I32, _I64 = ir.IntType(32), ir.IntType(64)
# not 'reassoc': it would undo the rounding in `exp2`; not 'nnan': divergence must be seen
_FLAGS = ("contract", "nsz", "arcp")


class Vec(types.Type):
    """Numba's type of a vector.

    Parameters
    ----------
    scalar : numba type
        float32 or float64.
    n : int
        Lanes.
    """

    def __init__(self, scalar: types.Float, n: int) -> None:
        self.scalar, self.n = scalar, n
        super().__init__(f"Vec({scalar}, {n})")

    @property
    def key(self) -> tuple[types.Float, int]:
        """What makes two types equal."""
        return self.scalar, self.n


def llvm_type(vec: Vec) -> ir.VectorType:
    """LLVM's type of a vector."""
    return ir.VectorType(ir.FloatType() if vec.scalar is types.float32 else ir.DoubleType(), vec.n)


@register_model(Vec)
class _VecModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vec: Vec) -> None:
        super().__init__(manager, vec, llvm_type(vec))


def lanes(scalar: types.Float) -> int:
    """How many lanes a whole vector has."""
    return VECTOR_BYTES * 8 // scalar.bitwidth


# ---- pieces of LLVM code, for intrinsics here and in `unrolled` ---------------------------------


def splat(builder, vector: ir.VectorType, scalar):
    """One number in every lane."""
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
    """Pointer to the first number of an array."""
    return context.make_array(array_type)(context, builder, array).data


def load_vector(builder, data, index, vector: ir.VectorType):
    """The numbers from an index on."""
    pointer = builder.bitcast(builder.gep(data, [index]), vector.as_pointer())
    loaded = builder.load(pointer)
    loaded.align = 4
    return loaded


def store_vector(builder, data, index, value) -> None:
    """Write a vector from an index on."""
    pointer = builder.bitcast(builder.gep(data, [index]), value.type.as_pointer())
    builder.store(value, pointer).align = 4


def load_scalar(builder, data, index):
    """The number at an index."""
    return builder.load(builder.gep(data, [index]))


# ---- loads, stores, broadcasts ------------------------------------------------------------------


def _is_flat(array) -> bool:
    return (
        isinstance(array, types.Array) and array.ndim == 1 and isinstance(array.dtype, types.Float)
    )


def _loads(n_lanes):
    """`load`, `broadcast` and `full` of one width."""

    @intrinsic
    def load(_context, array, index):
        """The numbers array[index:index + lanes]."""
        if not _is_flat(array):
            return None
        vec = Vec(array.dtype, n_lanes(array.dtype))

        def code(context, builder, signature, arguments):
            data = array_data(context, builder, signature.args[0], arguments[0])
            return load_vector(builder, data, arguments[1], llvm_type(vec))

        return vec(array, types.intp), code

    @intrinsic
    def broadcast(_context, array, index):
        """array[index] in every lane."""
        if not _is_flat(array):
            return None
        vec = Vec(array.dtype, n_lanes(array.dtype))

        def code(context, builder, signature, arguments):
            data = array_data(context, builder, signature.args[0], arguments[0])
            return splat(builder, llvm_type(vec), load_scalar(builder, data, arguments[1]))

        return vec(array, types.intp), code

    @intrinsic
    def full(_context, scalar):
        """A number in every lane."""
        if not isinstance(scalar, types.Float):
            return None
        vec = Vec(scalar, n_lanes(scalar))

        def code(_context, builder, _signature, arguments):
            return splat(builder, llvm_type(vec), arguments[0])

        return vec(scalar), code

    return load, broadcast, full


load, broadcast, full = _loads(lanes)
load8, broadcast8, full8 = _loads(lambda _scalar: ROW)


@intrinsic
def store(_context, array, index, vec):
    """array[index:index + lanes] = vec."""
    if not (_is_flat(array) and isinstance(vec, Vec) and vec.scalar == array.dtype):
        return None

    def code(context, builder, signature, arguments):
        data = array_data(context, builder, signature.args[0], arguments[0])
        store_vector(builder, data, arguments[1], arguments[2])
        return context.get_dummy_value()

    return types.void(array, types.intp, vec), code


@intrinsic
def lanes_of(_context, array):
    """How many lanes `load` of an array has."""
    if not _is_flat(array):
        return None
    n = lanes(array.dtype)
    return types.intp(array), lambda _context, _builder, _signature, _arguments: ir.Constant(
        _I64, n
    )


# ---- arithmetic ---------------------------------------------------------------------------------


def _operator(symbol, name: str) -> None:
    @intrinsic
    def operate(_context, x, y):
        def code(_context, builder, _signature, arguments):
            return getattr(builder, name)(*arguments, flags=_FLAGS)

        return x(x, y), code

    @overload(symbol)
    def overloaded(x, y):
        if isinstance(x, Vec) and x == y:
            return lambda x, y: operate(x, y)
        return None


for _symbol, _name in [
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
]:
    _operator(_symbol, _name)


@intrinsic
def fma(_context, x, y, z):
    """X y + z, rounded once where the processor can."""
    if not (isinstance(x, Vec) and x == y == z):
        return None

    def code(_context, builder, _signature, arguments):
        return llvm_call(builder, "fmuladd", llvm_type(x), *arguments)

    return x(x, x, x), code


@intrinsic
def maximum(_context, x, y):
    """The larger of each two lanes; y where one is NaN."""
    if not (isinstance(x, Vec) and x == y):
        return None

    def code(_context, builder, _signature, arguments):
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return x(x, x), code


@intrinsic
def sqrt(_context, x):
    """Square root of each lane."""
    if not isinstance(x, Vec):
        return None

    def code(_context, builder, _signature, arguments):
        return llvm_call(builder, "sqrt", llvm_type(x), *arguments)

    return x(x), code


@intrinsic
def total(_context, x):
    """Sum of the lanes, by halves."""
    if not isinstance(x, Vec):
        return None

    def code(_context, builder, _signature, arguments):
        value, n = arguments[0], x.n
        while n > 1:
            value = add_halves(builder, value, n)
            n //= 2
        return builder.extract_element(value, ir.Constant(_I32, 0))

    return x.scalar(x), code


def add_halves(builder, value, n: int):
    """The sum of the first n / 2 lanes and the next n / 2."""
    low, high = (
        ir.Constant(ir.VectorType(_I32, n // 2), list(range(start, start + n // 2)))
        for start in (0, n // 2)
    )
    halves = [builder.shuffle_vector(value, value, half) for half in (low, high)]
    return builder.fadd(*halves, flags=_FLAGS)
