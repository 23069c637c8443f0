"""Runs a tape: all epochs of a training, in one compiled function.

An instruction is a row of `WIDTH` integers, an operation and its arguments: places in the array
`a`, in whose type all is computed, and in the array `indices`.
"""

# compiled by numba, whose types have no stubs
# pyright: basic, reportCallIssue=false

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import NamedTuple

import numba
import numpy as np

from capacity.layer.engines.simd.compile import claimed, compiled, kept_types, linked
from capacity.layer.engines.simd.pointers import (
    Doubles,
    Floats,
    Integers,
    kind_of,
    pointers,
    rolled,
    shifted,
)
from capacity.layer.engines.simd.vector import (
    flush_denormals,
    fma,
    full,
    lanes_of,
    load,
    sqrt,
    store,
)
from capacity.layer.engines.tape import linear, pairs, pointwise
from capacity.layer.engines.tape.softmax import cross_entropy

WIDTH = 16
GOING, MEMORISED, DIVERGED = 0, 1, 2

(
    ZERO, MATMUL, OUTER, ADD, MULTIPLY_ADD, ADD_BIAS, ADD_SUMS, SCALE_ROWS, ADD_DOTS,
    EMBED, EMBED_BACK, GATHER, SCATTER, ATTEND, ATTEND_BACK,
    NORMALISE, NORMALISE_BACK, ACTIVATE, ROTATE,
) = range(19)  # fmt: skip


@numba.njit(inline="always")
def run(a, indices, R, tape, n):
    """Execute `n` instructions in their order."""
    for i in range(n):
        t = shifted(tape, i * WIDTH)
        op = t[0]
        if op == ZERO:
            linear.zero(a, t[1], t[2])
        elif op == MATMUL:
            linear.matmul(a, R, t[1], t[2], t[3], t[4], t[5], t[6], t[7])
        elif op == OUTER:
            linear.outer(a, R, t[1], t[2], t[3], t[4], t[5], t[6], t[7])
        elif op == ADD:
            linear.add(a, R, t[1], t[2], t[3])
        elif op == MULTIPLY_ADD:
            linear.multiply_add(a, R, t[1], t[2], t[3], t[4])
        elif op == ADD_BIAS:
            linear.add_bias(a, R, t[1], t[2], t[3])
        elif op == ADD_SUMS:
            linear.add_sums(a, R, t[1], t[2], t[3])
        elif op == SCALE_ROWS:
            linear.scale_rows(a, R, t[1], t[2], t[3], t[4])
        elif op == ADD_DOTS:
            linear.add_dots(a, R, t[1], t[2], t[3], t[4])
        elif op == EMBED:
            pairs.embed(a, indices, R, t[1], t[2], t[3], t[4])
        elif op == EMBED_BACK:
            pairs.embed_back(a, indices, R, t[1], t[2], t[3], t[4])
        elif op == GATHER:
            pairs.gather(a, indices, R, t[1], t[2], t[3], t[4])
        elif op == SCATTER:
            pairs.scatter(a, indices, R, t[1], t[2], t[3], t[4])
        elif op == ATTEND:
            pairs.attend(a, R, t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[10])
        elif op == ATTEND_BACK:
            pairs.attend_back(
                a, R, t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[10], t[11], t[12],
                t[13], t[14], t[15],
            )  # fmt: skip
        elif op == NORMALISE:
            pointwise.normalise(a, R, t[1], t[2], t[3], t[4], t[5])
        elif op == NORMALISE_BACK:
            pointwise.normalise_back(a, R, t[1], t[2], t[3], t[4], t[5], t[6])
        elif op == ACTIVATE:
            pointwise.activate(a, R, t[1], t[2], t[3], t[4], t[5])
        elif op == ROTATE:
            pointwise.rotate(a, R, t[1], t[2], t[3], t[4], t[5], t[6], t[7])


class Run(NamedTuple):
    """A training for the compiled function, which has it as words (`simd.pointers`).

    Attributes
    ----------
    a : (n,) ndarray of float32 or float64
        Weights, gradients, moments and buffers.
    indices : (n,) ndarray of int64
        What instructions look up.
    forward, backward : (n, WIDTH) ndarrays of int64
        Instructions.
    places : (17,) ndarray of int64
        Places in `a` and `indices`, and other numbers of `RecordedRun`.
    rule : (6,) ndarray of float64
        stop_tau, beta_1, beta_2, weight decay, and beta_1^t and beta_2^t after t steps.
    rates : (n_epochs,) ndarray of float64
        Learning rates.
    marks, losses, shares : ndarrays
        Epochs of the curve, ascending, and what is recorded before them.
    n_forward, n_backward, n_epochs, n_marks : int
        Numbers of instructions, learning rates and epochs of the curve.
    """

    a: Floats
    indices: Integers
    forward: Integers
    backward: Integers
    places: Integers
    rule: Doubles
    rates: Doubles
    marks: Integers
    losses: Doubles
    shares: Doubles
    n_forward: int
    n_backward: int
    n_epochs: int
    n_marks: int


@compiled
def train(words, dims, start, stop):
    """Train epochs from `start` to `stop`; return their end, the epoch reached, loss and share.

    The loss and the share of known facts are those of the weights before the epoch reached.

    Parameters
    ----------
    words : ndarray of int64
        Words of a `Run`.
    dims : ndarray
        An array of the type of `Run.a`.
    start, stop : int
        First epoch, and the one before which training pauses.
    """
    (a, indices, forward, backward, places, rule, rates, marks, losses, shares, n_forward,
     n_backward, n_epochs, n_marks) = pointers(Run, words, dims)  # fmt: skip
    R, z, V, weights, lse = places[0], places[1], places[2], places[3], places[4]
    targets, masses, n_targets = places[5], places[6], places[7]
    chosen, n_facts = places[8], places[9]
    word = flush_denormals(np.int32(-1))
    end, epoch, mark = GOING, start, 0
    enough = math.log(rule[0]) if rule[0] > 0 else math.inf
    while mark < n_marks and marks[mark] < start:
        mark += 1
    tape, n, is_forward = forward, n_forward, True
    while True:
        # in one place, so that all instructions are compiled once
        run(a, indices, R, tape, n)
        if is_forward:
            loss, least, known = cross_entropy(
                a, indices, R, z, V, weights, lse, targets, masses, n_targets, chosen, n_facts
            )
            if not math.isfinite(loss):
                end, epoch = DIVERGED, min(epoch + 1, n_epochs)
                break
            if least >= enough:
                end = MEMORISED
                break
            if epoch == stop:
                break
            if mark < n_marks and marks[mark] == epoch:
                losses[mark], shares[mark] = loss, known
                mark += 1
            tape, n = backward, n_backward
        else:
            adam(a, indices, places, rule, rates[epoch])
            epoch += 1
            tape, n = forward, n_forward
        is_forward = not is_forward
    flush_denormals(word)
    return end, epoch, loss, known


@linked
def adam(a, indices, places, rule, rate):
    """Do one step of Adam, or AdamW, on all weights that can change, in a loop for each span."""
    values, gradient, first, second = places[10], places[11], places[12], places[13]
    spans, n_spans, decoupled = places[14], places[15], places[16]
    f = kind_of(a)
    rule[4] *= rule[1]
    rule[5] *= rule[2]
    root = math.sqrt(1 - rule[5])
    pace = full(f(-rate * root / (1 - rule[4])))
    floor = full(f(1e-8 * root))
    b_1, c_1 = full(f(rule[1])), full(f(1 - rule[1]))
    b_2, c_2 = full(f(rule[2])), full(f(1 - rule[2]))
    added, kept = full(f(0)), full(f(1))
    if decoupled:
        kept = full(f(1 - rate * rule[3]))
    else:
        added = full(f(rule[3]))
    for span in range(n_spans):
        for i in range(indices[spans + 2 * span], indices[spans + 2 * span + 1], lanes_of(a)):
            rolled()
            value = load(a, values + i)
            g = fma(value, added, load(a, gradient + i))
            m = fma(load(a, first + i), b_1, g * c_1)
            v = fma(load(a, second + i), b_2, g * c_2 * g)
            store(a, first + i, m)
            store(a, second + i, v)
            store(a, values + i, fma(pace, m / (sqrt(v) + floor), value * kept))


def compile_for(dtype: str) -> None:
    """Compile `train` for a dtype, or load it; of several processes one compiles it."""
    words, dims = (numba.types.Array(t, 1, "C") for t in (numba.int64, getattr(numba, dtype)))
    types = (words, dims, numba.int64, numba.int64)
    if types in train.overloads:
        return
    is_kept = types in kept_types(train)
    with nullcontext() if is_kept else claimed(train, f"train-{dtype}", wait=True):
        train.compile(types)
