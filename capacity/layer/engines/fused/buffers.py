"""Arrays of the kernels, as named tuples, which numba compiles to plain arguments.

All arrays are flat and contiguous, with a multiple of 64 bytes where whole vectors are loaded; the
shapes below are those of their contents. Rows are 8 numbers wide, padded with zeros.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Weights(NamedTuple):
    """Weights, or gradients, as parts of one flat array, padded with zeros.

    Attributes
    ----------
    E : (n_active, 8)
        Embeddings of the tokens that are a subject or a predicate; others have no gradient.
    U : (d_model, n_tokens padded to whole vectors)
        Unembedding.
    Q, K, V : (n_heads, d_model, 8)
        Queries, keys and values; K is transposed: keys are x K.
    O : (n_heads, d_head_vo, 8)
        Outputs.
    """

    E: Any
    U: Any
    Q: Any
    K: Any
    V: Any
    O: Any  # noqa: E741


class Facts(NamedTuple):
    """The facts of a step.

    Attributes
    ----------
    subjects, predicates : (n,)
        Rows of E.
    objects, columns : (n,)
        Objects, and again predicates, as columns of U.
    row_subjects : (r,)
        Subject of each row that predicts predicates; none if those aren't learnt.
    row_starts : (r + 1,)
        Position of each row's first fact in `row_predicates`.
    row_predicates : (n,)
        Predicates as columns of U, sorted by row.
    """

    subjects: Any
    predicates: Any
    objects: Any
    columns: Any
    row_subjects: Any
    row_starts: Any
    row_predicates: Any


class Sizes(NamedTuple):
    """Numbers of tokens with a row in E, of heads, of their dimensions, and of all tokens."""

    active: int
    heads: int
    qk: int
    vo: int
    tokens: int


class Rule(NamedTuple):
    """Constants of a run: attention scale, weights of the two losses, parameters of Adam.

    `spans`, of shape (n, 2), has the starts and ends of what can change of the flat array of
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
    decoupled: bool
    spans: Any


class State(NamedTuple):
    """All weights as one array, their gradients, moments, and beta_1^t, beta_2^t of t steps."""

    values: Any
    gradient: Any
    first: Any
    second: Any
    decayed: Any


class Curve(NamedTuple):
    """The epochs to record, ascending, and room for their losses and shares of known facts."""

    epochs: Any
    losses: Any
    shares: Any


class Work(NamedTuple):
    """Intermediate results.

    Attributes
    ----------
    y, q, k, dy, dq, dk : (n_active, n_heads, 8)
        Outputs, queries and keys of tokens, and their gradients.
    VO, d_product : (n_heads, d_model, 8)
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

    y: Any
    q: Any
    k: Any
    dy: Any
    dq: Any
    dk: Any
    VO: Any
    d_product: Any
    VO_T: Any
    Q_T: Any
    K_T: Any
    gates: Any
    rows: Any
    rows_2: Any
    d_rows: Any
    powers: Any
    mask: Any
    shifts: Any
    sums: Any
    right: Any
    scales: Any
