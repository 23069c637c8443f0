"""Products of matrices and sums, over rows that lie side by side.

A buffer of m features is m rows of `R` numbers in one flat array `a`, one for each position that
predicts; `R` is a multiple of 16. So each loop runs along whole vectors, whatever m is. A weight
matrix from k features to m has the entry (k, m) at ``w + k * sk + m * sm``. All operations but
`zero` add to what is there, as gradients need.
"""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

from capacity.layer.engines.simd.compile import linked
from capacity.layer.engines.simd.pointers import rolled
from capacity.layer.engines.simd.vector import broadcast, fma, lanes_of, load, store, total


@linked
def zero(a, y, n):
    """a[y:y + n] = 0, for whole vectors."""
    nothing = load(a, y) - load(a, y)
    for i in range(y, y + n, lanes_of(a)):
        rolled()
        store(a, i, nothing)


@linked
def matmul(a, R, y, x, w, K, M, sk, sm):
    """Y += W^T X, for M rows of Y and K of X."""
    n = lanes_of(a)
    for r in range(0, R - n, 2 * n):
        for m in range(0, M - 3, 4):
            _tile(a, R, y + m * R + r, x + r, w + m * sm, K, sk, sm)
    if R % (2 * n):
        for m in range(0, M - 3, 4):
            _half_tile(a, R, y + m * R + R - n, x + R - n, w + m * sm, K, sk, sm)
    for m in range(M - M % 4, M):
        for r in range(0, R, n):
            s = load(a, y + m * R + r)
            for k in range(K):
                rolled()
                s = fma(load(a, x + k * R + r), broadcast(a, w + k * sk + m * sm), s)
            store(a, y + m * R + r, s)


@linked
def _tile(a, R, y, x, w, K, sk, sm):
    """Four features of two vectors of rows."""
    n = lanes_of(a)
    s_0, s_1, s_2, s_3 = load(a, y), load(a, y + R), load(a, y + 2 * R), load(a, y + 3 * R)
    t_0, t_1 = load(a, y + n), load(a, y + R + n)
    t_2, t_3 = load(a, y + 2 * R + n), load(a, y + 3 * R + n)
    for k in range(K):
        rolled()
        u, v = load(a, x + k * R), load(a, x + k * R + n)
        at = w + k * sk
        w_0, w_1 = broadcast(a, at), broadcast(a, at + sm)
        w_2, w_3 = broadcast(a, at + 2 * sm), broadcast(a, at + 3 * sm)
        s_0, s_1, s_2, s_3 = fma(u, w_0, s_0), fma(u, w_1, s_1), fma(u, w_2, s_2), fma(u, w_3, s_3)
        t_0, t_1, t_2, t_3 = fma(v, w_0, t_0), fma(v, w_1, t_1), fma(v, w_2, t_2), fma(v, w_3, t_3)
    store(a, y, s_0)
    store(a, y + R, s_1)
    store(a, y + 2 * R, s_2)
    store(a, y + 3 * R, s_3)
    store(a, y + n, t_0)
    store(a, y + R + n, t_1)
    store(a, y + 2 * R + n, t_2)
    store(a, y + 3 * R + n, t_3)


@linked
def _half_tile(a, R, y, x, w, K, sk, sm):
    """Four features of one vector of rows."""
    s_0, s_1, s_2, s_3 = load(a, y), load(a, y + R), load(a, y + 2 * R), load(a, y + 3 * R)
    for k in range(K):
        rolled()
        u, at = load(a, x + k * R), w + k * sk
        s_0, s_1 = fma(u, broadcast(a, at), s_0), fma(u, broadcast(a, at + sm), s_1)
        s_2 = fma(u, broadcast(a, at + 2 * sm), s_2)
        s_3 = fma(u, broadcast(a, at + 3 * sm), s_3)
    store(a, y, s_0)
    store(a, y + R, s_1)
    store(a, y + 2 * R, s_2)
    store(a, y + 3 * R, s_3)


@linked
def outer(a, R, g, x, y, K, M, sk, sm):
    """G += X Y^T, the gradient of a weight matrix from K features to M."""
    for k in range(0, K - 3, 4):
        for m in range(0, M - 3, 4):
            _outer_tile(a, R, g + k * sk + m * sm, x + k * R, y + m * R, sk, sm)
        for m in range(M - M % 4, M):
            for i in range(4):
                at = g + (k + i) * sk + m * sm
                a[at] += dot(a, R, x + (k + i) * R, y + m * R)
    for k in range(K - K % 4, K):
        for m in range(M):
            a[g + k * sk + m * sm] += dot(a, R, x + k * R, y + m * R)


@linked
def dot(a, R, x, y):
    """Sum of the products of two rows of numbers."""
    n = lanes_of(a)
    s = load(a, x) * load(a, y)
    for r in range(n, R, n):
        rolled()
        s = fma(load(a, x + r), load(a, y + r), s)
    return total(s)


@linked
def _outer_tile(a, R, g, x, y, sk, sm):
    n = lanes_of(a)
    nothing = load(a, x) - load(a, x)
    s_00 = s_01 = s_02 = s_03 = nothing
    s_10 = s_11 = s_12 = s_13 = nothing
    s_20 = s_21 = s_22 = s_23 = nothing
    s_30 = s_31 = s_32 = s_33 = nothing
    for r in range(0, R, n):
        rolled()
        y_0, y_1 = load(a, y + r), load(a, y + R + r)
        y_2, y_3 = load(a, y + 2 * R + r), load(a, y + 3 * R + r)
        u = load(a, x + r)
        s_00, s_01, s_02, s_03 = (
            fma(u, y_0, s_00),
            fma(u, y_1, s_01),
            fma(u, y_2, s_02),
            fma(u, y_3, s_03),
        )
        u = load(a, x + R + r)
        s_10, s_11, s_12, s_13 = (
            fma(u, y_0, s_10),
            fma(u, y_1, s_11),
            fma(u, y_2, s_12),
            fma(u, y_3, s_13),
        )
        u = load(a, x + 2 * R + r)
        s_20, s_21, s_22, s_23 = (
            fma(u, y_0, s_20),
            fma(u, y_1, s_21),
            fma(u, y_2, s_22),
            fma(u, y_3, s_23),
        )
        u = load(a, x + 3 * R + r)
        s_30, s_31, s_32, s_33 = (
            fma(u, y_0, s_30),
            fma(u, y_1, s_31),
            fma(u, y_2, s_32),
            fma(u, y_3, s_33),
        )
    _add(a, g, sm, s_00, s_01, s_02, s_03)
    _add(a, g + sk, sm, s_10, s_11, s_12, s_13)
    _add(a, g + 2 * sk, sm, s_20, s_21, s_22, s_23)
    _add(a, g + 3 * sk, sm, s_30, s_31, s_32, s_33)


@linked
def _add(a, at, step, s_0, s_1, s_2, s_3):
    a[at] += total(s_0)
    a[at + step] += total(s_1)
    a[at + 2 * step] += total(s_2)
    a[at + 3 * step] += total(s_3)


@linked
def add(a, R, y, x, M):
    """Y += X."""
    for i in range(0, M * R, lanes_of(a)):
        rolled()
        store(a, y + i, load(a, y + i) + load(a, x + i))


@linked
def multiply_add(a, R, y, x, z, M):
    """Y += X * Z, entry by entry."""
    for i in range(0, M * R, lanes_of(a)):
        rolled()
        store(a, y + i, fma(load(a, x + i), load(a, z + i), load(a, y + i)))


@linked
def add_bias(a, R, y, b, M):
    """Y[m] += b[m]."""
    n = lanes_of(a)
    for m in range(M):
        b_m = broadcast(a, b + m)
        for r in range(y + m * R, y + m * R + R, n):
            rolled()
            store(a, r, load(a, r) + b_m)


@linked
def add_sums(a, R, g, y, M):
    """g[m] += the sum of Y[m]: the gradient of a bias."""
    n = lanes_of(a)
    for m in range(M):
        s = load(a, y + m * R)
        for r in range(n, R, n):
            rolled()
            s = s + load(a, y + m * R + r)
        a[g + m] += total(s)


@linked
def scale_rows(a, R, y, x, w, M):
    """Y[m] += w[m] X[m]: the gain of a norm."""
    n = lanes_of(a)
    for m in range(M):
        w_m = broadcast(a, w + m)
        for r in range(m * R, m * R + R, n):
            rolled()
            store(a, y + r, fma(load(a, x + r), w_m, load(a, y + r)))


@linked
def add_dots(a, R, g, x, y, M):
    """g[m] += X[m] . Y[m]: the gradient of a gain."""
    for m in range(M):
        a[g + m] += dot(a, R, x + m * R, y + m * R)
