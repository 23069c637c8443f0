"""Softmax errors of a block of logits, in place, for `blocked`."""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

import math

import numpy as np

from capacity.layer.engines.simd.compile import compiled
from capacity.layer.engines.simd.vector import (
    exp2,
    flush_denormals,
    full,
    lanes_of,
    load,
    maximum,
    store,
    total,
)

LN_2 = math.log(2)


@compiled
def errors_of(block, first, stop, starts, targets, weight, scales, losses, mask):
    """Replace a block of logits by errors, in place, and compute the losses.

    Parameters
    ----------
    block : (rows, width) flat
        In: logits to the base 2. Out: for each row powers minus the sum of the powers, shared among
        the row's targets; times `scales` that is the gradient of the loss.
    first, stop : int
        Rows of the block among all rows, from `first` to `stop` - 1.
    starts, targets : (all rows + 1,), (n,)
        Tokens that each row must predict, from ``targets[starts[row]]`` on.
    weight : float
        Weight of each target in the loss.
    scales, losses : (all rows,)
        Out: see above, and the sum of the targets' cross entropies in nats.
    mask : (width,)
        0 for tokens, -inf for padding.
    """
    f = block.dtype.type
    word = flush_denormals(np.int32(-1))
    lanes, width = lanes_of(block), len(mask)
    heights = np.empty(lanes, block.dtype)
    for row in range(first, stop):
        at = (row - first) * width
        height = full(f(-np.inf))
        for t in range(0, width, lanes):
            height = maximum(height, load(block, at + t) + load(mask, t))
        store(heights, 0, height)
        most = heights.max()
        count = starts[row + 1] - starts[row]
        logits = 0.0
        for j in range(starts[row], starts[row + 1]):
            logits += block[at + targets[j]]
        shift, sums = full(most), full(f(0))
        for t in range(0, width, lanes):
            power = exp2(load(block, at + t) + load(mask, t) - shift)
            sums = sums + power
            store(block, at + t, power)
        p = total(sums)
        losses[row] = (count * (most + math.log2(p)) - logits) * LN_2
        scales[row] = f(weight) * f(count) / p
        for j in range(starts[row], starts[row + 1]):
            block[at + targets[j]] -= p / f(count)
    flush_denormals(word)


@compiled
def scatter_add(out, rows, values):
    """Add values[i] to out[rows[i]], one after the other: rows may repeat."""
    for i in range(len(rows)):
        for j in range(values.shape[1]):
            out[rows[i], j] += values[i, j]
