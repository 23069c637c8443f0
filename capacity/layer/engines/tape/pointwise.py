"""Norms, activation functions and rotations, and their gradients."""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

from capacity.layer.engines.simd.compile import LOG2_E, linked
from capacity.layer.engines.simd.pointers import kind_of, rolled
from capacity.layer.engines.simd.vector import (
    exp2,
    fma,
    full,
    lanes_of,
    load,
    positive,
    sqrt,
    store,
)

RELU, GELU, SILU = 0, 1, 2
# added to the variance, as torch does
EPSILON = 1e-5
# of GELU's approximation by tanh (Hendrycks and Gimpel 2016)
_INNER, _CUBIC = 0.7978845608028654, 0.044715


@linked
def normalise(a, R, y, inverse, x, M, centred):
    """Y += X / sqrt(mean(X^2) + eps) for each row, less its mean before if `centred`."""
    n, f = lanes_of(a), kind_of(a)
    share, one, eps = full(f(1 / M)), full(f(1)), full(f(EPSILON))
    for r in range(0, R, n):
        mean = one - one
        if centred:
            for i in range(x + r, x + r + M * R, R):
                rolled()
                mean = mean + load(a, i)
            mean = mean * share
        square = one - one
        for i in range(x + r, x + r + M * R, R):
            rolled()
            d = load(a, i) - mean
            square = fma(d, d, square)
        factor = one / sqrt(fma(square, share, eps))
        store(a, inverse + r, factor)
        for i in range(r, r + M * R, R):
            rolled()
            store(a, y + i, fma(load(a, x + i) - mean, factor, load(a, y + i)))


@linked
def normalise_back(a, R, dx, y, inverse, dy, M, centred):
    """DX += (dY - mean(dY) - Y mean(dY Y)) / sqrt(...), the first mean if `centred`."""
    n, f = lanes_of(a), kind_of(a)
    share = full(f(1 / M))
    for r in range(0, R, n):
        factor = load(a, inverse + r)
        mean, along = factor - factor, factor - factor
        for i in range(r, r + M * R, R):
            rolled()
            d = load(a, dy + i)
            mean, along = mean + d, fma(d, load(a, y + i), along)
        mean, along = mean * share, along * share
        if not centred:
            mean = factor - factor
        for i in range(r, r + M * R, R):
            rolled()
            d = load(a, dy + i) - mean - along * load(a, y + i)
            store(a, dx + i, fma(d, factor, load(a, dx + i)))


@linked
def activate(a, R, y, slope, x, M, kind):
    """Y += f(X), and slope = f'(X)."""
    f = kind_of(a)
    one = full(f(1))
    log2_e = full(f(-LOG2_E))
    inner, cubic = full(f(2 * _INNER)), full(f(_CUBIC))
    cubic_3 = full(f(3 * _CUBIC))
    for i in range(0, M * R, lanes_of(a)):
        rolled()
        u = load(a, x + i)
        if kind == RELU:
            d = positive(u)
            # a product keeps NaN
            value = u * d
        elif kind == SILU:
            gate = one / (one + exp2(u * log2_e))
            value = u * gate
            d = fma(value, one - gate, gate)
        else:
            # u (1 + tanh(w)) / 2 = u sigmoid(2 w), with w = c (u + b u^3)
            square = u * u
            gate = one / (one + exp2(inner * u * fma(cubic, square, one) * log2_e))
            value = u * gate
            d = fma(value * (one - gate), inner * fma(cubic_3, square, one), gate)
        store(a, y + i, load(a, y + i) + value)
        store(a, slope + i, d)


@linked
def rotate(a, R, y, x, n_heads, size, cosines, sines, sign):
    """Y += X turned by the angle of each row's position, in pairs of dimensions (i, i + size/2)."""
    n, half = lanes_of(a), size // 2
    turn = full(kind_of(a)(sign))
    for head in range(n_heads):
        for i in range(half):
            first, second = (head * size + i) * R, (head * size + half + i) * R
            for r in range(0, R, n):
                rolled()
                c, s = load(a, cosines + i * R + r), load(a, sines + i * R + r) * turn
                u, v = load(a, x + first + r), load(a, x + second + r)
                store(a, y + first + r, load(a, y + first + r) + (u * c - v * s))
                store(a, y + second + r, load(a, y + second + r) + fma(u, s, v * c))
