"""Vectors of floats as values in numba: one instruction, many lanes.

A compiler turns a loop over an array into vector instructions only if it can prove that this is
safe. Here the vectors are explicit. A `Vec` is a value in numba's compiled functions, a register
of n floats that LLVM knows as ``<n x float>``::

    @njit
    def axpy(alpha, x, y):                     # y += alpha x, all of one type
        a = full(alpha)                        # alpha in every lane
        for i in range(0, len(x), lanes_of(x)):
            store(y, i, fma(a, load(x, i), load(y, i)))

`exp2` takes powers of two, and `flush_denormals` has denormal numbers flushed to zero. There is no
masking: arrays are padded to whole vectors, with zeros that stay zeros.

Widths
    `load`, `broadcast` and `full` return vectors of 64 bytes, 16 lanes of float32 or 8 of float64,
    one register of AVX-512. On a processor with narrower registers LLVM makes several instructions
    of each: two with AVX2, four with SSE or NEON. AVX-512, AVX2 and SSE are tested; NEON (ARM)
    should work, and is untested. `load8`, `broadcast8` and `full8` return 8 lanes of either type,
    for rows of at most 8 numbers.

How it works
    A numba type (`Vec`) is mapped to an LLVM type (`_VecModel`). Each operation is an *intrinsic*:
    a function of the argument types that returns the type of the result and a generator of LLVM
    instructions. The operators + - * / are overloaded by intrinsics. Of numba's internals only
    ``numba.core.cgutils`` and two methods of its contexts are used; the pieces of LLVM code are in
    `capacity.layer.engines.simd.compile`.

Rounding
    Multiplications and additions may be contracted into one rounding, and a division by a constant
    may become a product; sums keep their order, except inside `total`. So the same machine always
    computes the same bits. NaN and infinity are kept, so that divergence is detected.
"""

# intrinsics are functions of numba's and LLVM's types, which have no stubs
# pyright: basic, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ARG001

from __future__ import annotations

import operator
import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.compile import (
    FLAGS,
    add_halves,
    array_data,
    constant,
    llvm_call,
    load_scalar,
    load_vector,
    splat,
    store_vector,
)

VECTOR_BYTES = 64
_I32, _I64 = ir.IntType(32), ir.IntType(64)


class Vec(types.Type):
    """Numba's type of a vector.

    Parameters
    ----------
    scalar : numba type
        Type of each lane, float32 or float64.
    n : int
        Number of lanes.
    """

    def __init__(self, scalar: types.Float, n: int) -> None:
        self.scalar, self.n = scalar, n
        super().__init__(f"Vec({scalar}, {n})")

    @property
    def key(self) -> tuple[types.Float, int]:
        """Key by which numba compares types."""
        return self.scalar, self.n


def llvm_type(vec: Vec) -> ir.VectorType:
    """LLVM's type of a vector."""
    return ir.VectorType(ir.FloatType() if vec.scalar is types.float32 else ir.DoubleType(), vec.n)


@register_model(Vec)
class _VecModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vec: Vec) -> None:
        super().__init__(manager, vec, llvm_type(vec))


def lanes(scalar: types.Float) -> int:
    """Number of lanes in a whole vector."""
    return VECTOR_BYTES * 8 // scalar.bitwidth


# ---- loads, stores, broadcasts ------------------------------------------------------------------


def _is_flat(array) -> bool:
    if isinstance(array, types.Array) and array.ndim != 1:
        return False
    return isinstance(array, types.Array | types.CPointer) and isinstance(array.dtype, types.Float)


def _read(n_lanes, pieces):
    """Make an operation that reads a vector from an array at an index."""

    @intrinsic
    def operate(_context, array, index):
        if not _is_flat(array):
            return None
        vec = Vec(array.dtype, n_lanes(array.dtype))

        def code(context, builder, signature, arguments):
            data = array_data(context, builder, signature.args[0], arguments[0])
            return pieces(builder, data, arguments[1], llvm_type(vec))

        return vec(array, types.intp), code

    return operate


def _full(n_lanes):
    @intrinsic
    def full(_context, scalar):
        if not isinstance(scalar, types.Float):
            return None
        vec = Vec(scalar, n_lanes(scalar))

        def code(_context, builder, _signature, arguments):
            return splat(builder, llvm_type(vec), arguments[0])

        return vec(scalar), code

    return full


def _broadcast(builder, data, index, vector: ir.VectorType):
    return splat(builder, vector, load_scalar(builder, data, index))


def _row(_scalar: types.Float) -> int:
    return ROW


# (array, index): the numbers array[index:index + lanes]
load, load8 = _read(lanes, load_vector), _read(_row, load_vector)
# (array, index): array[index] in every lane
broadcast, broadcast8 = _read(lanes, _broadcast), _read(_row, _broadcast)
# (number): the number in every lane
full, full8 = _full(lanes), _full(_row)


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
    """Number of lanes in a vector that `load` reads from an array."""
    if not _is_flat(array):
        return None
    n = lanes(array.dtype)
    return types.intp(array), lambda _context, _builder, _signature, _arguments: ir.Constant(
        _I64, n
    )


# ---- arithmetic ---------------------------------------------------------------------------------


def _operator(symbol, name: str) -> None:
    # an overload would be a function, and take as long to compile as one
    @type_callable(symbol)
    def kind(_context):
        return lambda x, y: x if isinstance(x, Vec) and x == y else None

    @lower_builtin(symbol, Vec, Vec)
    def code(_context, builder, _signature, arguments):
        return getattr(builder, name)(*arguments, flags=FLAGS)


for _symbol, _name in [
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
]:
    _operator(_symbol, _name)


@intrinsic
def fma(_context, x, y, z):
    """Multiply and add, x y + z, rounded once if the processor can."""
    if not (isinstance(x, Vec) and x == y == z):
        return None

    def code(_context, builder, _signature, arguments):
        return llvm_call(builder, "fmuladd", llvm_type(x), *arguments)

    return x(x, x, x), code


@intrinsic
def maximum(_context, x, y):
    """Larger of the two numbers in each lane; y if one is NaN."""
    if not (isinstance(x, Vec) and x == y):
        return None

    def code(_context, builder, _signature, arguments):
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return x(x, x), code


@intrinsic
def positive(_context, x):
    """1 in each lane whose number is above 0, and 0 in the others."""
    if not isinstance(x, Vec):
        return None

    def code(_context, builder, _signature, arguments):
        one, zero = (constant(llvm_type(x), number) for number in (1.0, 0.0))
        return builder.select(builder.fcmp_ordered(">", arguments[0], zero), one, zero)

    return x(x), code


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


_BYTE = ir.IntType(8)
_X86 = platform.machine().lower() in ("x86_64", "amd64")

# least maximal relative error on [-1/2, 1/2] (Remez): 7.5e-8 and 3.1e-18
_EXP2_32 = (
    1.00000007165840925, 0.693146967088512908, 0.240221197139137204, 0.0555071324780298214,
    0.00967554170452802001, 0.00132764786875739947,
)  # fmt: skip
_EXP2_64 = (
    0.999999999999999997, 0.69314718055994533, 0.240226506959101562, 0.0555041086648199221,
    0.00961812910758833397, 0.00133335581467898473, 0.000154035304625159015,
    0.0000152527334900405418, 1.32154330889836651e-6, 1.01781980048336848e-7,
    7.07410572737850424e-9, 4.43528478418879029e-10,
)  # fmt: skip


@intrinsic
def exp2(_context, x):
    """2^x, exactly 0 for x below -125.5, and 2^127 for x above 127; NaN stays NaN.

    For float64 the ends are -1021.5 and 1023. x = n + r with |r| <= 1/2: adding 1.5 * 2^23 (2^52)
    leaves the nearest integer n in the last bits of the sum, on any processor; adding 126 (1022)
    more leaves the exponent of 2^(n-1), or of 0 for the least n. 2^(r+1) is a polynomial, which
    keeps NaN.
    """
    if not isinstance(x, Vec):
        return None
    single = x.scalar is types.float32
    least, most = (-126.0, 127.0) if single else (-1022.0, 1023.0)
    fraction_bits = 23 if single else 52
    polynomial = _EXP2_32 if single else _EXP2_64

    def code(_context, builder, _signature, arguments):
        vector = llvm_type(x)
        integers = ir.VectorType(_I32 if single else _I64, x.n)
        exponent = arguments[0]
        low, high = constant(vector, least), constant(vector, most)
        # neither changes NaN
        clamped = builder.select(builder.fcmp_ordered("<", exponent, low), low, exponent)
        clamped = builder.select(builder.fcmp_ordered(">", clamped, high), high, clamped)
        magic = constant(vector, 1.5 * 2.0**fraction_bits - least)
        shifted = builder.fadd(clamped, magic)
        r = builder.fsub(clamped, builder.fsub(shifted, magic))
        power = constant(vector, 2 * polynomial[-1])
        for coefficient in reversed(polynomial[:-1]):
            twice = constant(vector, 2 * coefficient)
            power = llvm_call(builder, "fmuladd", vector, power, r, twice)
        n = builder.shl(builder.bitcast(shifted, integers), constant(integers, fraction_bits))
        return builder.fmul(power, builder.bitcast(n, vector))

    return x(x), code


@intrinsic
def flush_denormals(_context, word):
    """Set this thread's control word of SSE and AVX; -1 denotes one that flushes denormals.

    Arithmetic with denormal numbers is tens of times slower, and softmax makes many. Returns the
    previous word, for the same call to restore. Does nothing on other processors.
    """

    def code(_context, builder, _signature, arguments):
        if not _X86:
            return arguments[0]
        place = cgutils.alloca_once(builder, _I32)
        pointer = builder.bitcast(place, _BYTE.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer()])
        read, write = (
            cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
            for name in ("stmxcsr", "ldmxcsr")
        )
        builder.call(read, [pointer])
        before = builder.load(place)
        # flush results to zero (bit 15), and take denormals for zeros (bit 6)
        flushing = builder.or_(before, ir.Constant(_I32, 0x8040))
        asked = builder.icmp_signed("==", arguments[0], ir.Constant(_I32, -1))
        builder.store(builder.select(asked, flushing, arguments[0]), place)
        builder.call(write, [pointer])
        return before

    return types.int32(types.int32), code
