"""Loops over epochs: forward pass, early stop, backward pass, step of Adam."""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

import math

import numpy as np

from capacity.layer.engines.fused.attention import backward, forward
from capacity.layer.engines.fused.buffers import Batches, Facts, Run
from capacity.layer.engines.fused.logits import predict
from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.compile import compiled, inlined
from capacity.layer.engines.simd.pointers import kind_of, pointers, rolled
from capacity.layer.engines.simd.vector import (
    flush_denormals,
    fma,
    full,
    lanes_of,
    load,
    sqrt,
    store,
)

# epochs between updates of the shifts to the present log-sum-exps
REFRESH = 16
GOING, MEMORISED, DIVERGED = 0, 1, 2
LN_2 = math.log(2)


@inlined
def _look(dims, sizes, rule, facts, weights, grads, work):
    """Predict, with gradients; return True if all logits are finite."""
    forward(sizes, rule.scale, facts, weights, work)
    zero = full(kind_of(work.rows)(0))
    for i in range(0, len(dims) * sizes.width, lanes_of(grads.U)):
        rolled()
        store(grads.U, i, zero)
    first, second = rule.first_weight / facts.n, rule.second_weight / facts.n
    return predict(dims, sizes, first, second, facts, weights, grads, work)


@inlined
def _knows_all(facts, work, stop_tau):
    """Return True if every fact's object has the probability that ends training."""
    if stop_tau <= 0:
        return False
    for i in range(facts.n):
        rolled()
        # false for NaN
        if not work.right[i] >= stop_tau:
            return False
    return True


@compiled
def train_epochs(dims, words, start, stop):
    """Train full-batch epochs from `start` to `stop`; return their end and the epoch reached.

    At the end `work` holds the predictions of the final weights, unless training has diverged.

    Parameters
    ----------
    dims : tuple of float32 or of float64
        As many zeros, of the layer's dtype, as products are unrolled for; at least d_model.
    words : (n,) ndarray of int64
        A `Run`.
    """
    sizes, rule, facts, weights, grads, work, state, curve, n_epochs, rates = pointers(
        Run, words, dims
    )
    f = kind_of(work.rows)
    word = flush_denormals(np.int32(-1))
    end, epoch = GOING, start
    mark = _mark(curve, start)
    while True:
        if not _look(dims, sizes, rule, facts, weights, grads, work):
            end = DIVERGED
            epoch = min(epoch + 1, n_epochs)
            break
        if _knows_all(facts, work, rule.stop_tau):
            end = MEMORISED
            break
        if epoch == stop:
            break
        if mark < curve.n and curve.epochs[mark] == epoch:
            curve.losses[mark], curve.shares[mark] = _seen(sizes, rule, facts, weights, work)
            mark += 1
        if epoch % REFRESH == 0:
            for i in range(facts.n_rows + facts.n):
                rolled()
                work.shifts[i] += f(math.log2(work.sums[i]))
        backward(dims, sizes, rule.scale, facts, weights, grads, work)
        adam(rule, state, rates[epoch])
        epoch += 1
    flush_denormals(word)
    return end, epoch


@compiled
def train_batches(dims, words, batches, start):
    """Train epochs of batches from `start` on; return as `train_epochs` does.

    Parameters
    ----------
    dims, words
        As `train_epochs` takes them.
    batches : (n,) ndarray of int64
        A `Batches`.
    """
    sizes, rule, facts, weights, grads, work, state, curve, _, rates = pointers(Run, words, dims)
    n_orders, orders, batch, batch_work = pointers(Batches, batches, dims)
    f = kind_of(work.rows)
    word = flush_denormals(np.int32(-1))
    end, epoch = GOING, start
    n, size = facts.n, batch.n
    mark = _mark(curve, start)
    while epoch < start + n_orders and end == GOING:
        if rule.stop_tau > 0:
            finite = _look(dims, sizes, rule, facts, weights, grads, work)
            if finite and _knows_all(facts, work, rule.stop_tau):
                end = MEMORISED
                break
        recorded = mark < curve.n and curve.epochs[mark] == epoch
        if recorded:
            curve.losses[mark], curve.shares[mark] = 0.0, 0.0
        for begin in range(0, n, size):
            first = (epoch - start) * n + begin
            part = _chosen(facts, orders, first, min(size, n - begin), batch)
            if not _look(dims, sizes, rule, part, weights, grads, batch_work):
                end = DIVERGED
            if recorded:
                loss, share = _seen(sizes, rule, part, weights, batch_work)
                curve.losses[mark] += loss * part.n / n
                curve.shares[mark] += share * part.n / n
            # the next batch has other rows: one shift for all
            n_rows = part.n_rows + part.n
            level = 0.0
            for i in range(n_rows):
                rolled()
                level += batch_work.shifts[i] + math.log2(batch_work.sums[i])
            for i in range(batch.n_rows + size):
                rolled()
                batch_work.shifts[i] = f(level / n_rows)
            backward(dims, sizes, rule.scale, part, weights, grads, batch_work)
            adam(rule, state, rates[epoch])
        mark += recorded
        epoch += 1
    flush_denormals(word)
    return end, epoch


@inlined
def _mark(curve, epoch):
    """Return the index of the first epoch to record from one on."""
    mark = 0
    while mark < curve.n and curve.epochs[mark] < epoch:
        mark += 1
    return mark


@inlined
def _seen(sizes, rule, facts, weights, work):
    """Return the mean loss of the last look, and the share of facts with p above one half."""
    n, n_first = facts.n, facts.n_rows
    known, first, product = 0, 0.0, 1.0
    for row in range(n_first):
        for j in range(facts.row_starts[row], facts.row_starts[row + 1]):
            rolled()
            first += work.shifts[row] - _logit(sizes, weights, work, row, facts.row_predicates[j])
            # one logarithm of several factors: each would take as long as its logit
            product *= work.sums[row]
            if not 1e-200 < product < 1e200:
                first += math.log2(product)
                product = 1.0
    first += math.log2(product)
    second, product = 0.0, 1.0
    for fact in range(n):
        rolled()
        row = n_first + fact
        second += work.shifts[row] - _logit(sizes, weights, work, row, facts.objects[fact])
        product *= work.sums[row]
        if not 1e-200 < product < 1e200:
            second += math.log2(product)
            product = 1.0
        known += work.right[fact] > 0.5
    second += math.log2(product)
    return (rule.first_weight * first + rule.second_weight * second) * LN_2 / n, known / n


@inlined
def _logit(sizes, weights, work, row, token):
    """Return a logit to the base 2."""
    z = 0.0
    for d in range(sizes.d_model):
        rolled()
        x, u = work.rows_2[row * ROW + d], weights.U[d * sizes.width + token]
        z += np.float64(x) * np.float64(u)
    return z


@inlined
def _chosen(facts, orders, first, n, batch):
    """Copy `n` of the facts into the arrays of `batch`: those in `orders` from `first` on."""
    for i in range(n):
        rolled()
        j = orders[first + i]
        batch.subjects[i] = facts.subjects[j]
        batch.predicates[i] = facts.predicates[j]
        batch.objects[i] = facts.objects[j]
    n_first = min(n, batch.n_rows)
    for i in range(n_first):
        rolled()
        batch.row_subjects[i] = batch.subjects[i]
        batch.row_predicates[i] = facts.columns[orders[first + i]]
    return Facts(
        n, n_first, batch.subjects, batch.predicates, batch.objects, batch.columns,
        batch.row_subjects, batch.row_starts, batch.row_predicates,
    )  # fmt: skip


@inlined
def adam(rule, state, rate):
    """Do one step of Adam, or AdamW, on all weights that can change, in a loop for each span."""
    f = kind_of(state.values)
    state.decayed[0] *= rule.beta_1
    state.decayed[1] *= rule.beta_2
    root = math.sqrt(1 - state.decayed[1])
    pace = full(f(-rate * root / (1 - state.decayed[0])))
    floor = full(f(1e-8 * root))
    b_1, c_1 = full(f(rule.beta_1)), full(f(1 - rule.beta_1))
    b_2, c_2 = full(f(rule.beta_2)), full(f(1 - rule.beta_2))
    added, kept = full(f(0)), full(f(1))
    if rule.decoupled:
        kept = full(f(1 - rate * rule.weight_decay))
    else:
        added = full(f(rule.weight_decay))
    for span in range(rule.n_spans):
        start, end = rule.spans[2 * span], rule.spans[2 * span + 1]
        for i in range(start, end, lanes_of(state.values)):
            rolled()
            value = load(state.values, i)
            g = fma(value, added, load(state.gradient, i))
            m = fma(load(state.first, i), b_1, g * c_1)
            v = fma(load(state.second, i), b_2, g * c_2 * g)
            store(state.first, i, m)
            store(state.second, i, v)
            store(state.values, i, fma(pace, m / (sqrt(v) + floor), value * kept))
