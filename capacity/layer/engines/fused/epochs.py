"""Loops over epochs: forward pass, early stop, backward pass, step of Adam."""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

import math

import numpy as np

from capacity.layer.engines.fused.attention import backward, forward
from capacity.layer.engines.fused.buffers import Facts
from capacity.layer.engines.fused.logits import predict
from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.compile import compiled, inlined
from capacity.layer.engines.simd.exp2 import flush_denormals
from capacity.layer.engines.simd.vector import fma, full, lanes_of, load, sqrt, store

# epochs between updates of the shifts to the present log-sum-exps
REFRESH = 16
GOING, MEMORISED, DIVERGED = 0, 1, 2
LN_2 = math.log(2)


@inlined
def _look(dims, sizes, rule, facts, weights, grads, work):
    """Predict, with gradients; return True if all logits are finite."""
    forward(dims, sizes, rule.scale, facts, weights, work)
    grads.U[:] = work.rows.dtype.type(0)
    n = len(facts.subjects)
    return predict(
        dims, sizes, rule.first_weight / n, rule.second_weight / n, facts, weights, grads, work
    )


@inlined
def _knows_all(facts, work, stop_tau):
    """Return True if every fact's object has the probability that ends training."""
    if stop_tau <= 0:
        return False
    for i in range(len(facts.subjects)):  # noqa: SIM110 - numba has no all()
        # false for NaN
        if not work.right[i] >= stop_tau:
            return False
    return True


@compiled
def train_epochs(
    dims, sizes, rule, facts, weights, grads, work, state, rates, curve, start, stop
):  # fmt: skip
    """Train full-batch epochs from `start` to `stop`; return their end and the epoch reached.

    At the end `work` holds the predictions of the final weights, unless training has diverged.
    """
    f = work.rows.dtype.type
    word = flush_denormals(np.int32(-1))
    end, epoch = GOING, start
    mark = np.searchsorted(curve.epochs, start)
    while True:
        if not _look(dims, sizes, rule, facts, weights, grads, work):
            end = DIVERGED
            epoch = min(epoch + 1, len(rates))
            break
        if _knows_all(facts, work, rule.stop_tau):
            end = MEMORISED
            break
        if epoch == stop:
            break
        if mark < len(curve.epochs) and curve.epochs[mark] == epoch:
            curve.losses[mark], curve.shares[mark] = _seen(dims, rule, facts, weights, work)
            mark += 1
        if epoch % REFRESH == 0:
            for i in range(len(facts.row_subjects) + len(facts.subjects)):
                work.shifts[i] += f(math.log2(work.sums[i]))
        backward(dims, sizes, rule.scale, facts, weights, grads, work)
        adam(rule, state, rates[epoch])
        epoch += 1
    flush_denormals(word)
    return end, epoch


@compiled
def train_batches(
    dims, sizes, rule, facts, weights, grads, work, state, rates, curve, start, orders, batch,
    batch_work,
):  # fmt: skip
    """Train epochs of batches, one for each row of `orders`; return as `train_epochs` does.

    `batch` has room for a batch of facts, each with a row of its own for its subject.
    """
    f = work.rows.dtype.type
    word = flush_denormals(np.int32(-1))
    end, epoch = GOING, start
    n, size = len(facts.subjects), len(batch.subjects)
    mark = np.searchsorted(curve.epochs, start)
    while epoch < start + len(orders) and end == GOING:
        if rule.stop_tau > 0:
            finite = _look(dims, sizes, rule, facts, weights, grads, work)
            if finite and _knows_all(facts, work, rule.stop_tau):
                end = MEMORISED
                break
        recorded = mark < len(curve.epochs) and curve.epochs[mark] == epoch
        if recorded:
            curve.losses[mark], curve.shares[mark] = 0.0, 0.0
        for begin in range(0, n, size):
            members = orders[epoch - start, begin : begin + size]
            part = _chosen(facts, members, batch)
            if not _look(dims, sizes, rule, part, weights, grads, batch_work):
                end = DIVERGED
            if recorded:
                loss, share = _seen(dims, rule, part, weights, batch_work)
                curve.losses[mark] += loss * len(part.subjects) / n
                curve.shares[mark] += share * len(part.subjects) / n
            # the next batch has other rows: one shift for all
            n_rows = len(part.row_subjects) + len(part.subjects)
            level = 0.0
            for i in range(n_rows):
                level += batch_work.shifts[i] + math.log2(batch_work.sums[i])
            batch_work.shifts[:] = f(level / n_rows)
            backward(dims, sizes, rule.scale, part, weights, grads, batch_work)
            adam(rule, state, rates[epoch])
        mark += recorded
        epoch += 1
    flush_denormals(word)
    return end, epoch


@inlined
def _seen(dims, rule, facts, weights, work):
    """Return the mean loss of the last look, and the share of facts with p above one half."""
    n, n_first = len(facts.subjects), len(facts.row_subjects)
    known, first, product = 0, 0.0, 1.0
    for row in range(n_first):
        for j in range(facts.row_starts[row], facts.row_starts[row + 1]):
            first += work.shifts[row] - _logit(dims, weights, work, row, facts.row_predicates[j])
            # one logarithm of several factors: each would take as long as its logit
            product *= work.sums[row]
            if not 1e-200 < product < 1e200:
                first += math.log2(product)
                product = 1.0
    first += math.log2(product)
    second, product = 0.0, 1.0
    for fact in range(n):
        row = n_first + fact
        second += work.shifts[row] - _logit(dims, weights, work, row, facts.objects[fact])
        product *= work.sums[row]
        if not 1e-200 < product < 1e200:
            second += math.log2(product)
            product = 1.0
        known += work.right[fact] > 0.5
    second += math.log2(product)
    return (rule.first_weight * first + rule.second_weight * second) * LN_2 / n, known / n


@inlined
def _logit(dims, weights, work, row, token):
    """Return a logit to the base 2."""
    z, width = 0.0, len(work.mask)
    for d in range(len(dims)):
        z += np.float64(work.rows_2[row * ROW + d]) * np.float64(weights.U[d * width + token])
    return z


@inlined
def _chosen(facts, members, batch):
    """Copy some of the facts into the arrays of `batch`."""
    n = len(members)
    for i in range(n):
        j = members[i]
        batch.subjects[i] = facts.subjects[j]
        batch.predicates[i] = facts.predicates[j]
        batch.objects[i] = facts.objects[j]
    n_first = min(n, len(batch.row_subjects))
    for i in range(n_first):
        batch.row_subjects[i] = batch.subjects[i]
        batch.row_predicates[i] = facts.columns[members[i]]
    return Facts(
        batch.subjects[:n], batch.predicates[:n], batch.objects[:n], batch.columns,
        batch.row_subjects[:n_first], batch.row_starts[: n_first + 1], batch.row_predicates[:n],
    )  # fmt: skip


@inlined
def adam(rule, state, rate):
    """Do one step of Adam, or AdamW, on all weights that can change, in a loop for each span."""
    f = state.values.dtype.type
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
    for span in range(len(rule.spans)):
        for i in range(rule.spans[span, 0], rule.spans[span, 1], lanes_of(state.values)):
            value = load(state.values, i)
            g = fma(value, added, load(state.gradient, i))
            m = fma(load(state.first, i), b_1, g * c_1)
            v = fma(load(state.second, i), b_2, g * c_2 * g)
            store(state.first, i, m)
            store(state.second, i, v)
            store(state.values, i, fma(pace, m / (sqrt(v) + floor), value * kept))
