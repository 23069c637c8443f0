"""Enclosures of the margins of facts, in Arb's ball arithmetic (`recall.certified`).

flint keeps the precision for the whole process; `bits_set` sets it, and puts it back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

# logits of a batch, each of which takes about 200 bytes
LOGITS_AT_ONCE = 2**18


@contextmanager
def bits_set(bits: int) -> Iterator[None]:
    """Compute with this number of bits, which flint keeps for the whole process."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def difference_of_logs(a: float, b: float) -> tuple[float, float]:
    """Floats below and above log a - log b."""
    with bits_set(128):
        return _ends(flint.arb(a).log() - flint.arb(b).log())


def margins(
    scale: bool, weights: Mapping[str, NDArray[np.float64]], facts: NDArray[np.int64], tau: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the margins of facts by the precision that is set, two arrays of shape (n_facts,).

    Ends are infinite where nothing is known. `facts` has the tokens of each fact, (n_facts, 3).
    """
    # tokens with the same column have the same logit; most have that of tokens that aren't objects
    columns, column_of, counts = np.unique(
        weights["W_U"], axis=1, return_inverse=True, return_counts=True
    )
    unembedding, column_of = _matrix(columns), column_of.ravel()
    tokens = flint.arb_mat(len(counts), 1, counts.tolist())
    log_tau = flint.arb(float(tau)).log()
    ends: list[tuple[float, float]] = []
    step = max(1, LOGITS_AT_ONCE // len(counts))
    for start in range(0, len(facts), step):
        part = facts[start : start + step]
        logits = _residuals(scale, weights, part) * unembedding
        exps = list(map(flint.arb.exp, logits.entries()))
        own = column_of[part[:, 2]]
        places = (np.arange(len(part)) * len(counts) + own).tolist()
        mine = [exps[place] for place in places]
        for place in places:
            # omitted from the sum: to subtract it afterwards would lose digits
            exps[place] = flint.arb(0)
        others = (flint.arb_mat(len(part), len(counts), exps) * tokens).entries()
        # tokens with v's own column have its very logit
        equal = (counts[own] - 1).tolist()
        for e, rest, n in zip(mine, others, equal, strict=True):
            ends.append(_ends(-(rest / e + n).log1p() - log_tau))
    lower, upper = np.array(ends).T
    return lower, upper


def _residuals(
    scale: bool, weights: Mapping[str, NDArray[np.float64]], facts: NDArray[np.int64]
) -> flint.arb_mat:
    """Enclosures of the residual stream at the second position, shape (n_facts, d_model)."""
    heads, d_model, d_qk = weights["W_Q"].shape
    d_vo = weights["W_V"].shape[2]
    tokens, place = np.unique(facts[:, :2], return_inverse=True)
    place = place.reshape(-1, 2)
    embedded = _matrix(weights["W_E"][tokens])

    def rows_of(matrices: NDArray[np.float64]) -> list[list[Any]]:
        # all heads side by side
        return (embedded * _matrix(matrices.transpose(1, 0, 2).reshape(d_model, -1))).tolist()

    queries, values = rows_of(weights["W_Q"]), rows_of(weights["W_V"])
    keys = rows_of(weights["W_K"].transpose(0, 2, 1))
    factor = 1 / flint.arb(d_qk).sqrt() if scale else flint.arb(1)
    seen: list[Any] = []
    for k, q in place.tolist():
        query, of_k, of_q = queries[q], keys[k], keys[q]
        at_k, at_q = values[k], values[q]
        for h in range(heads):
            inner = range(h * d_qk, (h + 1) * d_qk)
            score = factor * sum((query[j] * (of_k[j] - of_q[j]) for j in inner), flint.arb(0))
            # each is computed by itself: 1 - a would lose a small number beside 1
            to_k, to_q = 1 / (1 + (-score).exp()), 1 / (1 + score.exp())
            seen += [to_k * at_k[j] + to_q * at_q[j] for j in range(h * d_vo, (h + 1) * d_vo)]
    outputs = _matrix(weights["W_O"].reshape(heads * d_vo, d_model))
    own = _matrix(weights["W_E"][facts[:, 1]])
    return own + flint.arb_mat(len(facts), heads * d_vo, seen) * outputs


def _matrix(array: NDArray[np.float64]) -> flint.arb_mat:
    """A matrix of floats, each of which is exact."""
    rows, columns = array.shape
    return flint.arb_mat(rows, columns, array.ravel().tolist())


def _ends(ball: Any) -> tuple[float, float]:
    """Floats below and above all of a ball."""
    if not ball.is_finite():
        return -math.inf, math.inf
    return _at_most(ball.lower()), -_at_most(-ball.upper())


def _at_most(number: Any) -> float:
    """A float next to an exact number, from below; the number itself if it is a float."""
    near = float(number)
    while not flint.arb(near) <= number:
        near = math.nextafter(near, -math.inf)
    return near
