"""Logits and probabilities of the rows that predict, and the loss's gradients, four at a time.

The logits r W_U become probabilities without a search for their maximum: they are shifted by the
row's log-sum-exp of some epochs ago, and the sum of their exponentials shows whether this shift is
still good enough. Exponentials and shifts are to the base 2.
"""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

import numpy as np

from capacity.layer.engines.fused.small_matmul import (
    add_gradients,
    add_products,
    in_registers,
    repeat,
    store_totals,
)
from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.compile import inlined
from capacity.layer.engines.simd.pointers import kind_of, rolled
from capacity.layer.engines.simd.vector import broadcast, exp2, full, lanes_of, load, store, total


@inlined
def predict(dims, sizes, first_weight, second_weight, facts, weights, grads, work):
    """Compute the probabilities of all rows, and the gradients of the loss for rows and W_U.

    Returns True if all logits are finite. Adds to ``grads.U``, sets ``work.d_rows``.
    """
    f = kind_of(work.rows)
    width, step = sizes.width, lanes_of(work.mask)
    n_first, n_rows = facts.n_rows, facts.n_rows + facts.n
    zero, finite = full(f(0)), True
    for row in range(0, n_rows, 4):
        at = row * ROW
        p_0, p_1, p_2, p_3 = zero, zero, zero, zero
        shift_0, shift_1 = broadcast(work.shifts, row), broadcast(work.shifts, row + 1)
        shift_2, shift_3 = broadcast(work.shifts, row + 2), broadcast(work.shifts, row + 3)
        for t in range(0, width, step):
            rolled()
            mask = load(work.mask, t)
            z = (mask - shift_0, mask - shift_1, mask - shift_2, mask - shift_3)
            z_0, z_1, z_2, z_3 = add_products(dims, z, weights.U, t, width, work.rows_2, at)
            z_0, z_1, z_2, z_3 = exp2(z_0), exp2(z_1), exp2(z_2), exp2(z_3)
            p_0, p_1, p_2, p_3 = p_0 + z_0, p_1 + z_1, p_2 + z_2, p_3 + z_3
            store(work.powers, t, z_0)
            store(work.powers, width + t, z_1)
            store(work.powers, 2 * width + t, z_2)
            store(work.powers, 3 * width + t, z_3)
        work.sums[row], work.sums[row + 1] = total(p_0), total(p_1)
        work.sums[row + 2], work.sums[row + 3] = total(p_2), total(p_3)
        for i in range(4):
            if row + i >= n_rows:
                work.scales[i] = f(0)
                continue
            powers = i * width
            if not f(1e-12) < work.sums[row + i] < f(1e30):
                finite = _shift_anew(sizes, row + i, powers, weights, work) and finite
            p = work.sums[row + i]
            if row + i < n_first:
                start, stop = facts.row_starts[row + i], facts.row_starts[row + i + 1]
                count = f(stop - start)
                work.scales[i] = f(first_weight) * count / p
                for j in range(start, stop):
                    rolled()
                    work.powers[powers + facts.row_predicates[j]] -= p / count
            else:
                fact = row + i - n_first
                target = powers + facts.objects[fact]
                power = work.powers[target]
                work.right[fact] = power / p
                work.powers[target] = power - p
                work.scales[i] = f(second_weight) / p
        some = in_registers(dims)
        for first in range(0, len(dims), len(some)):
            _add_errors(some, first, width, weights, grads, work, at)
    return finite


@inlined
def _add_errors(dims, first, width, weights, grads, work, at):
    """Set gradients of the four rows at `at`, and add W_U's, in the dimensions from `first` on."""
    step = lanes_of(work.mask)
    scale_0, scale_1 = broadcast(work.scales, 0), broadcast(work.scales, 1)
    scale_2, scale_3 = broadcast(work.scales, 2), broadcast(work.scales, 3)
    sums = repeat(dims + dims + dims + dims, full(kind_of(work.rows)(0)))
    matrix, rows = first * width, at + first
    for t in range(0, width, step):
        rolled()
        errors = (
            load(work.powers, t) * scale_0,
            load(work.powers, width + t) * scale_1,
            load(work.powers, 2 * width + t) * scale_2,
            load(work.powers, 3 * width + t) * scale_3,
        )
        sums = add_gradients(
            dims, sums, errors, weights.U, grads.U, matrix + t, width, work.rows, rows
        )  # fmt: skip
    store_totals(dims, sums, work.d_rows, rows)


@inlined
def _shift_anew(sizes, row, powers, weights, work):
    """Recompute one row, shifted by its true maximum; return True if its logits are finite."""
    f = kind_of(work.rows)
    width = sizes.width
    most = f(-np.inf)
    finite = True
    for t in range(sizes.tokens):
        z = f(0)
        for d in range(sizes.d_model):
            rolled()
            z += work.rows_2[row * ROW + d] * weights.U[d * width + t]
        work.powers[powers + t] = z
        finite = finite and np.isfinite(z)
        most = max(most, z)
    p = f(0)
    for t in range(sizes.tokens):
        rolled()
        power = f(2.0 ** (work.powers[powers + t] - most)) if finite else f(0)
        work.powers[powers + t] = power
        p += power
    for t in range(sizes.tokens, width):
        rolled()
        work.powers[powers + t] = f(0)
    # finite numbers, so that the row's errors are finite too
    work.shifts[row], work.sums[row] = (most, p) if finite else (f(0), f(1))
    return finite
