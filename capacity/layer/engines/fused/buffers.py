"""Arrays of the kernels, as named tuples, which they receive as words (`simd.pointers`).

All arrays are flat and contiguous, with a multiple of 64 bytes where whole vectors are loaded; the
shapes below are those of their contents. Rows are 8 numbers wide, padded with zeros.

`Layout` is the place of each part of a layer's weights in these arrays.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capacity.layer.engines.simd import ROW
from capacity.layer.engines.simd.pointers import Doubles, Floats, Integers
from capacity.layer.engines.simd.vector import VECTOR_BYTES
from capacity.layer.model.config import LayerConfig


class Weights(NamedTuple):
    """Weights, or gradients, as parts of one flat array, padded with zeros.

    Attributes
    ----------
    E : (n_active, 8)
        Embeddings of the tokens that are a subject or a predicate; others have no gradient.
    U : (8, n_tokens padded to whole vectors)
        Unembedding.
    Q, K, V : (n_heads, 8, 8)
        Queries, keys and values; K is transposed: keys are x K.
    O : (n_heads, d_head_vo, 8)
        Outputs.
    """

    E: Floats
    U: Floats
    Q: Floats
    K: Floats
    V: Floats
    O: Floats  # noqa: E741


class Facts(NamedTuple):
    """The facts of a step.

    Attributes
    ----------
    n, n_rows : int
        Numbers of facts, and of rows that predict predicates (`row_subjects`).
    subjects, predicates : (n,)
        Rows of E.
    objects, columns : (n,)
        Objects, and again predicates, as columns of U.
    row_subjects : (n_rows,)
        Subject of each row that predicts predicates; none if those aren't learnt.
    row_starts : (n_rows + 1,)
        Position of each row's first fact in `row_predicates`.
    row_predicates : (n,)
        Predicates as columns of U, sorted by row.
    """

    n: int
    n_rows: int
    subjects: Integers
    predicates: Integers
    objects: Integers
    columns: Integers
    row_subjects: Integers
    row_starts: Integers
    row_predicates: Integers


class Sizes(NamedTuple):
    """Numbers of tokens with a row in E, of heads, of their dimensions, and of all tokens.

    `width` is the number of all tokens, padded to whole vectors.
    """

    d_model: int
    active: int
    heads: int
    qk: int
    vo: int
    tokens: int
    width: int


class Rule(NamedTuple):
    """Constants of a run: attention scale, weights of the two losses, parameters of Adam.

    `spans`, of shape (n_spans, 2), has the starts and ends of what can change of the flat array of
    weights, as multiples of a vector's lanes: weights without a gradient change under weight decay
    only, and those that are frozen never.
    """

    scale: float
    first_weight: float
    second_weight: float
    stop_tau: float
    beta_1: float
    beta_2: float
    weight_decay: float
    decoupled: int
    n_spans: int
    spans: Integers


class State(NamedTuple):
    """All weights as one array, their gradients, moments, and beta_1^t, beta_2^t of t steps."""

    values: Floats
    gradient: Floats
    first: Floats
    second: Floats
    decayed: Doubles


class Curve(NamedTuple):
    """The `n` epochs to record, ascending, and room for their losses and shares of known facts."""

    n: int
    epochs: Integers
    losses: Doubles
    shares: Doubles


class Work(NamedTuple):
    """Intermediate results.

    Attributes
    ----------
    y, q, k, dy, dq, dk : (n_active, n_heads, 8)
        Outputs, queries and keys of tokens, and their gradients.
    VO, d_product : (n_heads, 8, 8)
        Products of V and O.
    VO_T, Q_T, K_T : (n_heads, 8, 8)
        Transposed.
    gates : (n, n_heads)
        Attention from each fact's predicate to its subject.
    rows, rows_2, d_rows : (rows padded, 8)
        Residuals at the positions that predict, the same times log2(e), and gradients.
    powers : (4, padded tokens)
        Probabilities of four rows, not yet normalised.
    mask : (padded tokens,)
        0 for tokens, -1e30 for padding.
    shifts, sums : (rows padded,)
        Shift of each row's logits, and the sum of its powers after that shift.
    right : (n,)
        Probability of each fact's object.
    scales : (4,)
        Weight of the row in the loss, over the sum of its powers.
    """

    y: Floats
    q: Floats
    k: Floats
    dy: Floats
    dq: Floats
    dk: Floats
    VO: Floats
    d_product: Floats
    VO_T: Floats
    Q_T: Floats
    K_T: Floats
    gates: Floats
    rows: Floats
    rows_2: Floats
    d_rows: Floats
    powers: Floats
    mask: Floats
    shifts: Floats
    sums: Floats
    right: Floats
    scales: Floats


class Run(NamedTuple):
    """All that a kernel needs of a run; `rates` is the learning rate of each of `n_epochs`."""

    sizes: Sizes
    rule: Rule
    facts: Facts
    weights: Weights
    grads: Weights
    work: Work
    state: State
    curve: Curve
    n_epochs: int
    rates: Doubles


class Batches(NamedTuple):
    """Orders of the facts in `n_epochs`, of shape (n_epochs, n), and room for one batch.

    Each fact of a batch has a row of its own for its subject.
    """

    n_epochs: int
    orders: Integers
    facts: Facts
    work: Work


def facts_of(rows: Integers, ids: Integers, *, both: bool) -> Facts:
    """Arrange facts as rows of E and columns of U, with the rows that predict predicates.

    Parameters
    ----------
    rows : ndarray of int64, shape (n, 2)
        Rows of E of the subjects and the predicates.
    ids : ndarray of int64, shape (n, 3)
        Tokens of the facts.
    both : bool
        Whether predicates are learnt, too.
    """
    order = np.argsort(rows[:, 0], kind="stable")
    if both:
        subjects, starts = np.unique(rows[order, 0], return_index=True)
    else:
        subjects, starts, order = (np.zeros(0, np.int64) for _ in range(3))
    return Facts(
        n=len(ids),
        n_rows=len(subjects),
        subjects=np.ascontiguousarray(rows[:, 0]),
        predicates=np.ascontiguousarray(rows[:, 1]),
        objects=np.ascontiguousarray(ids[:, 2]),
        columns=np.ascontiguousarray(ids[:, 1]),
        row_subjects=subjects,
        row_starts=np.append(starts, len(order)),
        row_predicates=np.ascontiguousarray(ids[order, 1]),
    )


def aligned_zeros(n: int, dtype: np.dtype[Any]) -> Floats:
    """Allocate zeros of shape (n,) that begin at a cache line."""
    n_spare = VECTOR_BYTES // dtype.itemsize
    array = np.zeros(n + n_spare, dtype)
    start = -array.ctypes.data % VECTOR_BYTES // dtype.itemsize
    return array[start : start + n]


def new_work(sizes: Sizes, facts: Facts, dtype: np.dtype[Any]) -> Work:
    """Allocate the intermediate results of a step on some facts."""
    n = len(facts.subjects)
    rows = padded(n + len(facts.row_subjects), 4)
    tokens, squares = sizes.active * sizes.heads * ROW, sizes.heads * ROW * ROW
    lengths = {
        **dict.fromkeys(("y", "q", "k", "dy", "dq", "dk"), tokens),
        **dict.fromkeys(("VO", "d_product", "VO_T", "Q_T", "K_T"), squares),
        "gates": padded(n * sizes.heads, VECTOR_BYTES // dtype.itemsize),
        **dict.fromkeys(("rows", "rows_2", "d_rows"), rows * ROW),
        "powers": 4 * sizes.width,
        "mask": sizes.width,
        **dict.fromkeys(("shifts", "sums"), rows),
        "right": n,
        "scales": 4,
    }
    work = Work(**{name: aligned_zeros(length, dtype) for name, length in lengths.items()})
    work.mask[sizes.tokens :] = -1e30
    return work


Array = NDArray[Any]

# embeddings of the tokens that are neither subject nor predicate, at the end
IDLE = "idle"


class Layout:
    """Parts of a flat array, each from a whole vector on, padded with zeros to rows of 8.

    All layers are padded alike, so that a kernel of more dimensions than a layer has can train it.

    Parameters
    ----------
    config : LayerConfig
        A plain layer.
    n_active, n_idle : int
        Numbers of tokens that are a subject or a predicate, and of the others.
    lanes : int
        Numbers in a vector.
    """

    def __init__(self, config: LayerConfig, n_active: int, n_idle: int, lanes: int) -> None:
        d, heads, n_tokens = config.d_model, config.n_heads, n_active + n_idle
        self.width = padded(n_tokens, lanes)
        # in the order of `Weights`
        self._shapes = {
            "W_E": (n_active, ROW), "W_U": (ROW, self.width), "W_Q": (heads, ROW, ROW),
            "W_K": (heads, ROW, ROW), "W_V": (heads, ROW, ROW),
            "W_O": (heads, config.d_head_vo, ROW), IDLE: (n_idle, ROW),
        }  # fmt: skip
        qk, vo = config.d_head_qk, config.d_head_vo
        # of these, rows and columns that aren't padding
        self._used = {
            "W_E": (n_active, d), "W_U": (d, n_tokens), "W_Q": (d, qk), "W_K": (d, qk),
            "W_V": (d, vo), "W_O": (vo, d), IDLE: (n_idle, d),
        }  # fmt: skip
        sizes = [padded(math.prod(shape), lanes) for shape in self._shapes.values()]
        ends = [0, *np.cumsum(sizes).tolist()]
        self._spans = dict(zip(self._shapes, pairwise(ends), strict=True))
        self.size = ends[-1]

    def views(self, flat: Array) -> Weights:
        """Views of the parts that the kernels know, flat, without what pads them."""
        return Weights(*(self._part(flat, name) for name in self._shapes if name != IDLE))

    def shaped(self, flat: Array) -> dict[str, Array]:
        """Views of all parts, shaped as in `LayerConfig.shapes`, without padding."""
        views = {
            name: self._part(flat, name).reshape(shape)[..., : used[0], : used[1]]
            for (name, shape), used in zip(self._shapes.items(), self._used.values(), strict=True)
        }
        views["W_K"] = views["W_K"].swapaxes(1, 2)
        return views

    def moving(self, still: Collection[str]) -> Array:
        """Starts and ends of what isn't `still`, shape (n, 2); spans that meet are one.

        Of W_U, the largest part, rows that are padding stay as well.
        """
        joined: list[tuple[int, int]] = []
        for name, (start, end) in self._spans.items():
            if name in still:
                continue
            if name == "W_U":
                end = start + self._used[name][0] * self.width
            if joined and joined[-1][1] == start:
                start, _ = joined.pop()
            joined.append((start, end))
        return np.array(joined, dtype=np.int64).reshape(-1, 2)

    def _part(self, flat: Array, name: str) -> Array:
        start, _ = self._spans[name]
        return flat[start : start + math.prod(self._shapes[name])]


def padded(n: int, multiple: int) -> int:
    """Round up to a multiple."""
    return -(-n // multiple) * multiple
