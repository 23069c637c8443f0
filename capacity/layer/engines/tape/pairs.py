"""Embeddings, and the two attention weights of each pair.

Rows are positions: those after each distinct subject, and those after each fact's subject and
predicate. `source` has, for a pair, the row of its subject, and for any other row that row itself.
The attention of a pair is one number, the gate g = sigmoid(scale q . (k_s - k)), by which the
head's output is v + g (v_s - v). A subject's own row has k_s = k and v_s = v, and so the output v.
"""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

from capacity.layer.engines.simd.compile import LOG2_E, linked
from capacity.layer.engines.simd.pointers import kind_of, rolled
from capacity.layer.engines.simd.vector import exp2, fma, full, lanes_of, load, store


@linked
def embed(a, indices, R, y, w, index, M):
    """Y[:, r] += W[index[r]], for W of M columns."""
    for r in range(R):
        at = w + indices[index + r] * M
        for i in range(M):
            rolled()
            a[y + i * R + r] += a[at + i]


@linked
def embed_back(a, indices, R, g, y, index, M):
    """G[index[r]] += Y[:, r]."""
    for r in range(R):
        at = g + indices[index + r] * M
        for i in range(M):
            rolled()
            a[at + i] += a[y + i * R + r]


@linked
def gather(a, indices, R, y, x, source, M):
    """Y[:, r] += X[:, source[r]]."""
    for i in range(0, M * R, R):
        for r in range(R):
            rolled()
            a[y + i + r] += a[x + i + indices[source + r]]


@linked
def scatter(a, indices, R, x, y, source, M):
    """X[:, source[r]] += Y[:, r]."""
    for i in range(0, M * R, R):
        for r in range(R):
            rolled()
            a[x + i + indices[source + r]] += a[y + i + r]


@linked
def attend(a, R, z, g, q, k, ks, v, vs, qk, vo, scale):
    """One head: g = sigmoid(scale q . (ks - k)), and z += v + g (vs - v)."""
    n, one = lanes_of(a), kind_of(a)(1)
    factor, ones = full(-a[scale] * kind_of(a)(LOG2_E)), full(one)
    for r in range(0, R, n):
        s = load(a, q + r) * (load(a, ks + r) - load(a, k + r))
        for i in range(R + r, qk * R + r, R):
            rolled()
            s = fma(load(a, q + i), load(a, ks + i) - load(a, k + i), s)
        gate = ones / (ones + exp2(s * factor))
        store(a, g + r, gate)
        for i in range(r, vo * R + r, R):
            rolled()
            own = load(a, v + i)
            store(a, z + i, load(a, z + i) + fma(gate, load(a, vs + i) - own, own))


@linked
def attend_back(a, R, dz, g, q, k, ks, v, vs, dq, dk, dks, dv, dvs, qk, vo, scale):
    """Add the gradients of one head's queries, keys and values, given that of its output."""
    n, one = lanes_of(a), kind_of(a)(1)
    factor, ones = full(a[scale]), full(one)
    for r in range(0, R, n):
        gate = load(a, g + r)
        d_gate = gate - gate
        for i in range(r, vo * R + r, R):
            rolled()
            d = load(a, dz + i)
            d_gate = fma(d, load(a, vs + i) - load(a, v + i), d_gate)
            of_source = gate * d
            store(a, dvs + i, load(a, dvs + i) + of_source)
            store(a, dv + i, load(a, dv + i) + (d - of_source))
        d_s = factor * d_gate * gate * (ones - gate)
        for i in range(r, qk * R + r, R):
            rolled()
            query = load(a, q + i)
            store(a, dq + i, fma(d_s, load(a, ks + i) - load(a, k + i), load(a, dq + i)))
            d_key = d_s * query
            store(a, dks + i, load(a, dks + i) + d_key)
            store(a, dk + i, load(a, dk + i) - d_key)
