"""Losses of the rows, and the errors of their logits."""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

import math

from capacity.layer.engines.simd.compile import LOG2_E, linked
from capacity.layer.engines.simd.pointers import kind_of, rolled
from capacity.layer.engines.simd.vector import exp2, full, lanes_of, load, maximum, store

LN_2 = math.log(2)


@linked
def cross_entropy(a, indices, R, z, V, weights, lse, targets, masses, n_targets, chosen, n_facts):
    """Turn the logits Z into the gradient of the loss; return the loss, the least log p, a share.

    The loss is the sum of the masses of the targets, each times the target's -log p. The last
    `n_facts` targets are the facts' objects: of them are the least log-probability, and the share
    above one half. A target is an index into Z, and its row; a row's weight is the sum of its
    targets' masses.
    """
    n, f = lanes_of(a), kind_of(a)
    log2_e = full(f(LOG2_E))
    for j in range(n_targets):
        rolled()
        a[chosen + j] = a[z + indices[targets + 2 * j]]
    for r in range(0, R, n):
        most = load(a, z + r)
        for i in range(z + r, z + r + V * R, R):
            rolled()
            most = maximum(load(a, i), most)
        p = most - most
        for i in range(z + r, z + r + V * R, R):
            rolled()
            power = exp2((load(a, i) - most) * log2_e)
            store(a, i, power)
            p = p + power
        scale = load(a, weights + r) / p
        for i in range(z + r, z + r + V * R, R):
            rolled()
            store(a, i, load(a, i) * scale)
        # the largest logit and the sum, of which the loss needs the logarithm
        store(a, lse + r, most)
        store(a, lse + R + r, p)
    loss, least, known, half = 0.0, 0.0, 0, math.log(0.5)
    for j in range(n_targets):
        rolled()
        row = indices[targets + 2 * j + 1]
        log_p = a[chosen + j] - a[lse + row] - math.log(a[lse + R + row])
        loss -= a[masses + j] * log_p
        a[z + indices[targets + 2 * j]] -= a[masses + j]
        if j >= n_targets - n_facts:
            # NaN stays
            if not log_p >= least:
                least = log_p
            known += log_p > half
    return loss, least, known / n_facts
