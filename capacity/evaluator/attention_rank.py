"""Exact rank of the attention tensors A^h of a layer, equation (5) of Wong 2025.

For subjects and predicates that are different tokens, A^h is a sum over the keys t of a matrix of
rank one times e_t: for a subject k the matrix e_k a_k, and for a predicate q the matrix b_q e_q,
where a_k[q] = A^h[k, q, k] and b_q[k] = 1 - a_k[q] on the domain. So rank(A^h) is the dimension of
the span of these |K| + |Q| matrices: the span has a basis of some of them, and the tensor is a sum
of as many simple tensors; an unfolding proves that fewer aren't enough.

A relation between them has coefficients with c_k a_k[q] + d_q b_q[k] = 0 at every pair (k, q) of
the domain. All a_k[q] lie strictly between 0 and 1, and a_k[q] / b_q[k] = exp(s_kq) with
s_kq = (W_QK)_qk - (W_QK)_qq. So a coefficient of one token determines those of all tokens that
pairs connect to it, none of them is zero, and log |d_q| - log |c_k| = s_kq. Each connected
component of the pairs has one relation if s_kq = x_k + y_q at its pairs for some x and y, and
otherwise none:

    rank(A^h) = |K| + |Q| - (number of components where s is such a sum)

Whatever W_QK is, zero included, rank(A^h) is at least |K| + |Q| less the number of components. The
weights are binary fractions, so that s, and with it the rank, is computed in integers.

References
----------
Wong 2025, section 3.1: equation (5), Example 3.3, and what follows equation (9).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from capacity.database.given_facts import DatabaseLike
from capacity.errors import InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor

    from capacity.layer.model.attention_layer import AttentionLayer


def attention_ranks(layer: AttentionLayer, db: DatabaseLike) -> NDArray[np.int64]:
    """Compute the exact rank of the attention tensor of each head.

    Parameters
    ----------
    layer : AttentionLayer
        A plain layer with ``d_vocab == db.n_tokens`` and finite weights.
    db : Database, or what `as_database` takes
        Facts whose pairs are the domain; no token is a subject and a predicate.

    Returns
    -------
    ndarray of int64, shape (n_heads,)
        rank(A^h) over the real numbers, for the layer's weights as they are stored.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, a layer with norm, bias or positions, a weight that isn't
        finite, or a token that is a subject and a predicate.

    Examples
    --------
    Ranks above that of W_QK, which is one here: three subjects and two predicates.

    >>> from capacity import Database
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> facts = [(k, q, f"{k}{q}") for k in "abc" for q in "pr"]
    >>> db = Database.from_triples(facts)
    >>> attention_ranks(AttentionLayer(LayerConfig(2, 2, 1, 1), db.n_tokens), db)
    array([5, 5])
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_same_vocabulary(layer, db)
    layer.require_plain()
    shared = np.intersect1d(db.subject_ids, db.predicate_ids)
    if shared.size:
        raise InvalidArgumentError(
            "Subjects and predicates must be different tokens for the rank of attention; "
            f"{db.tokens[shared[0]]} is both. `layer_tensor(layer, db).A` has its entries."
        )
    pairs = np.unique(db.token_triples[:, :2], axis=0).astype(np.int64)
    W_E, W_Q, W_K = (_integers(name, getattr(layer, name)) for name in ("W_E", "W_Q", "W_K"))
    k, q = pairs.T
    most = len(db.subject_ids) + len(db.predicate_ids)
    ranks: list[int] = []
    for queries, keys in zip(W_E[q] @ W_Q, W_K, strict=True):
        scores = (queries * ((W_E[k] - W_E[q]) @ keys.T)).sum(axis=1)
        ranks.append(most - _additive_components(pairs.tolist(), scores.tolist()))
    return np.array(ranks, dtype=np.int64)


def _integers(name: str, weight: Tensor) -> NDArray[Any]:
    """The weight times a power of two, as integers of any size."""
    x = weight.detach().cpu().double().numpy()
    if not np.isfinite(x).all():
        raise InvalidArgumentError(
            f"The weights must be finite for an exact rank; {name} has NaN or infinities."
        )
    fractions = [number.as_integer_ratio() for number in x.ravel().tolist()]
    scale = max(below for _, below in fractions)
    whole = np.empty(x.size, dtype=object)
    whole[:] = [above * (scale // below) for above, below in fractions]
    return whole.reshape(x.shape)


def _additive_components(pairs: Iterable[tuple[int, int]], scores: Iterable[int]) -> int:
    """The number of connected components where each score is a sum of its two tokens' numbers."""
    beside: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for (k, q), score in zip(pairs, scores, strict=True):
        beside[k].append((q, score))
        beside[q].append((k, score))
    number: dict[int, int] = {}
    count = 0
    for start in beside:
        if start in number:
            continue
        # of one token it is free; a spanning tree determines the others
        number[start], waiting, fits = 0, [start], True
        while waiting:
            token = waiting.pop()
            for other, score in beside[token]:
                if other not in number:
                    number[other] = score - number[token]
                    waiting.append(other)
                fits &= number[token] + number[other] == score
        count += fits
    return count
