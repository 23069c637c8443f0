"""Products of small matrices, unrolled over d_model while the code is generated.

Sizes below 9 are too small for loops: their accumulators must stay in registers, and numba would
keep a tuple that is indexed by a variable in memory. So each function here writes out the
instructions for one size. The *type* of its argument ``dims``, a tuple of d_model zeros or of as
many as there are dimensions in a part (`in_registers`), holds that number, so that numba compiles,
and caches, each size separately.

Arrays are flat. A *row* is 8 numbers of which the first d_model count, the others are zero.
"""

# as in `simd`
# pyright: basic
# ruff: noqa: ARG001

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.compile import (
    add_halves,
    array_data,
    constant,
    llvm_call,
    load_scalar,
    load_vector,
    splat,
    store_vector,
)
from capacity.layer.engines.simd.vector import Vec, llvm_type

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _moved(builder, index, by: int):
    return builder.add(index, ir.Constant(_I64, by))


def _unpacked(builder, values, n: int):
    return [builder.extract_value(values, i) for i in range(n)]


@intrinsic
def repeat(_context, dims, vec):
    """(vec,) * len(dims)."""
    n = len(dims)

    def code(_context, builder, _signature, arguments):
        return cgutils.pack_array(builder, [arguments[1]] * n)

    return types.UniTuple(vec, n)(dims, vec), code


@intrinsic
def in_registers(_context, dims):
    """As many dims as have the sums of four rows in 32 registers of AVX-512, or half a row."""
    n = len(dims)
    # beside the sums there are a vector of the matrix, one of its gradient, and four errors
    some = types.UniTuple(dims.dtype, n if 4 * n + 6 <= 32 else ROW // 2)

    def code(context, builder, signature, _arguments):
        return context.get_constant_null(signature.return_type)

    return some(dims), code


@intrinsic
def add_products(_context, dims, sums, matrix, column, width, rows, row):
    """sums[i] + sum_d rows[row + 8 i + d] matrix[d, column:], for a (d_model, width) matrix."""
    n_dims, n_rows, vec = len(dims), sums.count, sums.dtype

    def code(context, builder, signature, arguments):
        vector = llvm_type(vec)
        sums_ = _unpacked(builder, arguments[1], n_rows)
        matrix_ = array_data(context, builder, signature.args[2], arguments[2])
        rows_ = array_data(context, builder, signature.args[5], arguments[5])
        at = arguments[3]
        for d in range(n_dims):
            part = load_vector(builder, matrix_, at, vector)
            for i in range(n_rows):
                x = load_scalar(builder, rows_, _moved(builder, arguments[6], ROW * i + d))
                x = splat(builder, vector, x)
                sums_[i] = llvm_call(builder, "fmuladd", vector, part, x, sums_[i])
            at = builder.add(at, arguments[4])
        return cgutils.pack_array(builder, sums_)

    signature = sums(dims, sums, matrix, types.intp, types.intp, rows, types.intp)
    return signature, code


@intrinsic
def add_gradients(_context, dims, sums, errors, matrix, grad, column, width, rows, row):
    """Add gradients of a product of rows and a matrix, given errors[i] in columns from `column` on.

    grad[d, column:] += sum_i rows[row + 8 i + d] errors[i], in memory; returns, for the rows,
    sums[i len(dims) + d] + errors[i] matrix[d, column:], whose lanes are still to be added.
    """
    n_dims, n_rows, vec = len(dims), errors.count, errors.dtype

    def code(context, builder, signature, arguments):
        vector = llvm_type(vec)
        sums_ = _unpacked(builder, arguments[1], n_rows * n_dims)
        errors_ = _unpacked(builder, arguments[2], n_rows)
        matrix_, grad_, rows_ = (
            array_data(context, builder, signature.args[i], arguments[i]) for i in (3, 4, 7)
        )
        at = arguments[5]
        for d in range(n_dims):
            part = load_vector(builder, matrix_, at, vector)
            gradient = load_vector(builder, grad_, at, vector)
            for i in range(n_rows):
                j = i * n_dims + d
                sums_[j] = llvm_call(builder, "fmuladd", vector, errors_[i], part, sums_[j])
                x = load_scalar(builder, rows_, _moved(builder, arguments[8], ROW * i + d))
                x = splat(builder, vector, x)
                gradient = llvm_call(builder, "fmuladd", vector, errors_[i], x, gradient)
            store_vector(builder, grad_, at, gradient)
            at = builder.add(at, arguments[6])
        return cgutils.pack_array(builder, sums_)

    signature = sums(
        dims, sums, errors, matrix, grad, types.intp, types.intp, rows, types.intp
    )  # fmt: skip
    return signature, code


@intrinsic
def store_totals(_context, dims, sums, rows, row):
    """rows[row + 8 i + d] = total of sums[i len(dims) + d], padded with zeros.

    They are padded to 4 numbers if there are no more, else to 8; what lies beyond stays.
    """
    n_dims, vec = len(dims), sums.dtype
    n_rows = sums.count // n_dims

    def code(context, builder, signature, arguments):
        rows_ = array_data(context, builder, signature.args[2], arguments[2])
        sums_ = _unpacked(builder, arguments[1], n_rows * n_dims)
        for i in range(n_rows):
            totals = _totals(builder, vec, sums_[i * n_dims : (i + 1) * n_dims])
            store_vector(builder, rows_, _moved(builder, arguments[3], ROW * i), totals)
        return context.get_dummy_value()

    return types.void(dims, sums, rows, types.intp), code


def _totals(builder, vec: Vec, vectors):
    """Totals of at most 8 vectors, in a vector of 4 or 8 lanes, by a tree of shuffles and sums."""
    n, lanes = vec.n, ROW // 2 if len(vectors) <= ROW // 2 else ROW
    while n > lanes:
        vectors = [add_halves(builder, value, n) for value in vectors]
        n //= 2
    row = llvm_type(Vec(vec.scalar, lanes))
    vectors = [*vectors, *[constant(row, 0.0)] * (lanes - len(vectors))]
    span = lanes // 2
    while span:
        vectors = [
            _merged(builder, *pair, lanes, span)
            for pair in zip(vectors[:span], vectors[span:], strict=True)
        ]
        span //= 2
    return vectors[0]


def _merged(builder, x, y, lanes: int, span: int):
    """Add the two halves of each block of 2 span lanes, with the sums of x before those of y."""
    low, high = [], []
    for block in range(0, lanes, 2 * span):
        for start in (block, lanes + block):
            low += range(start, start + span)
            high += range(start + span, start + 2 * span)
    halves = [
        builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_I32, lanes), half))
        for half in (low, high)
    ]
    return builder.fadd(*halves)


@intrinsic
def add_outer(_context, sums, rows, row, vec):
    """sums[a] + rows[row + a] vec: the outer product of a row and a vector, added."""
    n = sums.count

    def code(context, builder, signature, arguments):
        vector = llvm_type(vec)
        rows_ = array_data(context, builder, signature.args[1], arguments[1])
        sums_ = _unpacked(builder, arguments[0], n)
        for a in range(n):
            x = load_scalar(builder, rows_, _moved(builder, arguments[2], a))
            x = splat(builder, vector, x)
            sums_[a] = llvm_call(builder, "fmuladd", vector, x, arguments[3], sums_[a])
        return cgutils.pack_array(builder, sums_)

    return sums(sums, rows, types.intp, vec), code


@intrinsic
def store_rows(_context, vectors, rows, row):
    """rows[row + 8 a:] = vectors[a]."""
    n = vectors.count

    def code(context, builder, signature, arguments):
        rows_ = array_data(context, builder, signature.args[1], arguments[1])
        for a, value in enumerate(_unpacked(builder, arguments[0], n)):
            store_vector(builder, rows_, _moved(builder, arguments[2], ROW * a), value)
        return context.get_dummy_value()

    return types.void(vectors, rows, types.intp), code


@intrinsic
def store_column(_context, rows, at, vec):
    """rows[at + 8 i] = vec[i]: a vector of 8 lanes as a column of rows."""

    def code(context, builder, signature, arguments):
        rows_ = array_data(context, builder, signature.args[0], arguments[0])
        for i in range(vec.n):
            number = builder.extract_element(arguments[2], ir.Constant(_I32, i))
            builder.store(number, builder.gep(rows_, [_moved(builder, arguments[1], ROW * i)]))
        return context.get_dummy_value()

    return types.void(rows, types.intp, vec), code
