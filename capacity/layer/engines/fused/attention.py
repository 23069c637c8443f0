"""Attention over two positions, forward and backward.

A sentence (k, q) has two positions, for which (2) and (3) of Wong 2025 have closed forms. With
y = x W_V W_O, and q, k for the queries and keys of a token, summed over heads:

* after the subject the residual is r = x_k + y_k, equal in all facts of the subject, so that there
  is one row for each *distinct* subject;
* after the predicate the gate is a = sigmoid(q_q . (k_k - k_q)), and r = x_q + y_q + a (y_k - y_q).

y, q and k are computed once for each token that is a subject or a predicate.
"""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

from capacity.layer.engines.fused.small_matmul import add_outer, repeat, store_column, store_rows
from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.compile import LOG2_E, inlined
from capacity.layer.engines.simd.pointers import kind_of, rolled
from capacity.layer.engines.simd.vector import (
    broadcast8,
    exp2,
    fma,
    full,
    full8,
    lanes_of,
    load,
    load8,
    store,
    total,
)


@inlined
def forward(sizes, scale, facts, weights, work):
    """Compute the residuals of all rows that predict: after subjects, then after predicates."""
    f = kind_of(work.y)
    d_model, heads = sizes.d_model, sizes.heads
    zero = full8(f(0))
    for h in range(heads):
        for a in range(d_model):
            at = (h * ROW + a) * ROW
            out = zero
            for j in range(sizes.vo):
                rolled()
                out = fma(
                    load8(weights.O, (h * sizes.vo + j) * ROW), broadcast8(weights.V, at + j), out
                )
            store(work.VO, at, out)
    for token in range(sizes.active):
        for h in range(heads):
            y, q, k = zero, zero, zero
            for a in range(d_model):
                rolled()
                x = broadcast8(weights.E, token * ROW + a)
                at = (h * ROW + a) * ROW
                y = fma(x, load8(work.VO, at), y)
                q = fma(x, load8(weights.Q, at), q)
                k = fma(x, load8(weights.K, at), k)
            at = (token * heads + h) * ROW
            store(work.y, at, y)
            store(work.q, at, q)
            store(work.k, at, k)
    n_first, n = facts.n_rows, facts.n
    log2_e = full8(f(LOG2_E))
    for i in range(n_first):
        token = facts.row_subjects[i]
        r = load8(weights.E, token * ROW)
        for h in range(heads):
            rolled()
            r = r + load8(work.y, (token * heads + h) * ROW)
        store(work.rows, i * ROW, r)
        store(work.rows_2, i * ROW, r * log2_e)
    for i in range(n):
        k, q = facts.subjects[i] * heads * ROW, facts.predicates[i] * heads * ROW
        for h in range(heads):
            rolled()
            keys = load8(work.k, k + h * ROW) - load8(work.k, q + h * ROW)
            work.gates[i * heads + h] = total(load8(work.q, q + h * ROW) * keys)
    one, down = full(f(1)), full(f(-LOG2_E * scale))
    for i in range(0, n * heads, lanes_of(work.gates)):
        rolled()
        store(work.gates, i, one / (one + exp2(load(work.gates, i) * down)))
    for i in range(n):
        k, q = facts.subjects[i] * heads * ROW, facts.predicates[i] * heads * ROW
        r = load8(weights.E, facts.predicates[i] * ROW)
        for h in range(heads):
            rolled()
            y_q = load8(work.y, q + h * ROW)
            gate = broadcast8(work.gates, i * heads + h)
            r = r + fma(gate, load8(work.y, k + h * ROW) - y_q, y_q)
        at = (n_first + i) * ROW
        store(work.rows, at, r)
        store(work.rows_2, at, r * log2_e)


@inlined
def backward(dims, sizes, scale, facts, weights, grads, work):
    """Compute the gradients of embeddings and heads from those of the rows."""
    d_model, heads = sizes.d_model, sizes.heads
    f = kind_of(work.y)
    zero, one = full8(f(0)), f(1)
    for i in range(sizes.active):
        rolled()
        store(grads.E, i * ROW, zero)
    for i in range(sizes.active * heads):
        rolled()
        store(work.dy, i * ROW, zero)
        store(work.dq, i * ROW, zero)
        store(work.dk, i * ROW, zero)
    n_first = facts.n_rows
    for i in range(n_first):
        token = facts.row_subjects[i]
        d_row = load8(work.d_rows, i * ROW)
        store(grads.E, token * ROW, load8(grads.E, token * ROW) + d_row)
        for h in range(heads):
            rolled()
            at = (token * heads + h) * ROW
            store(work.dy, at, load8(work.dy, at) + d_row)
    for i in range(facts.n):
        token = facts.predicates[i]
        d_row = load8(work.d_rows, (n_first + i) * ROW)
        store(grads.E, token * ROW, load8(grads.E, token * ROW) + d_row)
        for h in range(heads):
            rolled()
            k, q = (facts.subjects[i] * heads + h) * ROW, (token * heads + h) * ROW
            gate = work.gates[i * heads + h]
            d_gate = total(d_row * (load8(work.y, k) - load8(work.y, q)))
            d_score = full8(d_gate * gate * (one - gate) * f(scale))
            gated = d_row * full8(gate)
            # one after the other: subject and predicate can be the same token
            store(work.dy, k, load8(work.dy, k) + gated)
            store(work.dy, q, load8(work.dy, q) + (d_row - gated))
            keys = load8(work.k, k) - load8(work.k, q)
            store(work.dq, q, fma(keys, d_score, load8(work.dq, q)))
            d_key = load8(work.q, q) * d_score
            store(work.dk, k, load8(work.dk, k) + d_key)
            store(work.dk, q, load8(work.dk, q) - d_key)
    _transpose_heads(d_model, sizes, weights, work)
    for i in range(heads * sizes.vo):
        rolled()
        store(grads.O, i * ROW, zero)
    for h in range(heads):
        d_vo = repeat(dims, zero)
        d_q, d_k = d_vo, d_vo
        for token in range(sizes.active):
            at = (token * heads + h) * ROW
            d_x = load8(grads.E, token * ROW)
            for b in range(d_model):
                rolled()
                d_x = fma(broadcast8(work.dy, at + b), load8(work.VO_T, (h * ROW + b) * ROW), d_x)
            for j in range(sizes.qk):
                rolled()
                d_x = fma(broadcast8(work.dq, at + j), load8(work.Q_T, (h * ROW + j) * ROW), d_x)
                d_x = fma(broadcast8(work.dk, at + j), load8(work.K_T, (h * ROW + j) * ROW), d_x)
            d_vo = add_outer(d_vo, weights.E, token * ROW, load8(work.dy, at))
            d_q = add_outer(d_q, weights.E, token * ROW, load8(work.dq, at))
            d_k = add_outer(d_k, weights.E, token * ROW, load8(work.dk, at))
            store(grads.E, token * ROW, d_x)
        store_rows(d_vo, work.d_product, h * ROW * ROW)
        store_rows(d_q, grads.Q, h * ROW * ROW)
        store_rows(d_k, grads.K, h * ROW * ROW)
        for a in range(d_model):
            at = (h * ROW + a) * ROW
            d_row = load8(work.d_product, at)
            for j in range(sizes.vo):
                rolled()
                o = (h * sizes.vo + j) * ROW
                grads.V[at + j] = total(d_row * load8(weights.O, o))
                store(grads.O, o, fma(broadcast8(weights.V, at + j), d_row, load8(grads.O, o)))


@inlined
def _transpose_heads(d_model, sizes, weights, work):
    for h in range(sizes.heads):
        for a in range(d_model):
            rolled()
            at, to = (h * ROW + a) * ROW, h * ROW * ROW + a
            store_column(work.VO_T, to, load8(work.VO, at))
            store_column(work.Q_T, to, load8(weights.Q, at))
            store_column(work.K_T, to, load8(weights.K, at))
