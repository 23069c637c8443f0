"""A step of Adam in the kernel, and the moments that registers hold from step to step."""

# compiled by triton, which is installed with the extra `gpu` alone
# pyright: basic, reportMissingImports=false, reportArgumentType=false, reportIndexIssue=false
# pyright: reportOperatorIssue=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def adam_step(
    values, firsts, seconds, at, mask, gradient, first, second, rates, beta2, decay,
    DECOUPLED: tl.constexpr, MOVES: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Do a step of Adam on the weights at some places, or of AdamW if DECOUPLED.

    `values`, `firsts` and `seconds` point to weights and moments in memory; `rates` to three
    numbers of this step, rate / (1 - beta1^t), 1 / sqrt(1 - beta2^t) and rate. With HELD the
    moments are `first` and `second`, in registers, and are returned changed; else those in memory.
    Without MOVES nothing moves, and the gradient is stored in `firsts`.
    """
    if MOVES:
        step, root, rate = tl.load(rates), tl.load(rates + 1), tl.load(rates + 2)
        w = tl.load(values + at, mask, 0.0)
        if DECOUPLED:
            w = w * (1 - rate * decay)
        else:
            gradient += decay * w
        if HELD:
            m, v = first, second
        else:
            m, v = tl.load(firsts + at, mask, 0.0), tl.load(seconds + at, mask, 0.0)
        # beta1 is 0.9 in all recipes
        m += (1 - 0.9) * (gradient - m)
        v = beta2 * v + (1 - beta2) * gradient * gradient
        tl.store(values + at, w - step * m / (tl.sqrt(v) * root + 1e-8), mask)
        if HELD:
            first, second = m, v
        else:
            tl.store(firsts + at, m, mask)
            tl.store(seconds + at, v, mask)
    else:
        tl.store(firsts + at, gradient, mask)
    return first, second


@triton.jit
def load_moments(firsts, seconds, ROWS: tl.constexpr, COLUMNS: tl.constexpr, HELD: tl.constexpr):
    """Load the moments of a matrix that are to be held."""
    if HELD:
        at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        first, second = tl.load(firsts + at), tl.load(seconds + at)
    else:
        first, second = 0.0, 0.0
    return first, second


@triton.jit
def store_moments(
    firsts, seconds, first, second,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HELD: tl.constexpr,
):  # fmt: skip
    """Store the moments of a matrix that were held."""
    if HELD:
        at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
        tl.store(firsts + at, first)
        tl.store(seconds + at, second)
