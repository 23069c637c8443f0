"""Powers of two of `simd` vectors, and flushing of denormal numbers to zero."""

# as in `simd`
# pyright: basic
# ruff: noqa: ARG001

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from capacity.layer.engines.simd.llvm import constant, llvm_call
from capacity.layer.engines.simd.vector import Vec, llvm_type

_I32, _I64, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)
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
    """Set this thread's control word of SSE and AVX; -1 stands for one that flushes denormals.

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
