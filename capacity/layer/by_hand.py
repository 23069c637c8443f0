"""Facts written into the weights of a layer by hand, without training.

Two constructions, one for each circuit, memorise any functional database at any tau:

* `store_in_query_key`: one head with ``d_head_vo = 1``. The attention from predicate q to subject
  k is a number that encodes the object, and a parabola decodes it.
* `store_in_value_output`: a head for each predicate, with ``d_head_qk = 1``. Attention only
  switches heads on and off, the value is the number, and the heads' outputs add up (the *additive
  motif*).

In both, the facts are in the embeddings of the subjects, one real number for each (k, q); the heads
and W_U only address it and read it. Two databases that differ by a permutation of their objects get
the same W_Q, W_K, W_V, W_O and W_U, and other W_E.

Both decode in the same way. Object v is encoded as a number s_v = j / (|V| + 1), j = 1 ... |V|; the
heads write a number u, and for predicate q the logits are

    z_v = c (2 s_v u - (s_v - o_q)^2),    and -4 c for every token that is not an object.

Up to terms that are equal for all objects this is -c (u - (s_v - o_q))^2, so u = s_v - o_q puts
v ahead of every other object by c (s_v - s_w)^2 >= c / (|V| + 1)^2, and of every other token by
3 c at least. With c = (|V| + 1)^2 ln((|T| - 1) tau / (1 - tau)) and a little more for rounding, v
has probability tau or more. The offset o_q is 0, unless (q, q) has an object itself: there u is 0
for any attention, since both positions hold the same token, and o_q = s_D(q, q) corrects for it.

The sizes of these layers depend on the number of predicates alone, not on the number of facts or on
rank(D), which is at least |V|. So no function of d_model, n_heads, d_head_qk and d_head_vo bounds
the number of facts that a layer can memorise; W_E, which has d_model |T| numbers, and their
precision do. With disjoint subjects and predicates, both have rank(L) <= min(|K|, |Q|) + 1: L is
the matrix of the numbers u, (K x Q), times one vector, plus a tensor of ones times another. So for
every functional database there is a tensor of rank at most min(|K|, |Q|) + 1 whose argmax is D on
the observed pairs, however large rank(D) is.

Numbers of size c are summed where differences of c / (|V| + 1)^2 matter, so float32 suffices for
about a thousand objects. Each function checks the probability of every fact's object in the layer
that it has built, and refuses to return one that misses tau.

References
----------
Wong 2025, Example 3.3 (facts written into circuits) and equations (9), (10); Section 3 for the
circuits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.errors import InvalidArgumentError
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.model.config import LayerConfig, query_key_config

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
# factor on the margin that tau needs, against rounding
SPARE = 1.25
# a closed gate passes e^-GATE of a value
GATE = 40.0
FACTS_AT_ONCE = 4096


def store_in_query_key(
    db: DatabaseLike, tau: float = 0.99, *, dtype: torch.dtype = torch.float64
) -> AttentionLayer:
    """Write facts into attention: one head, or two if some token is subject and predicate.

    With subjects and predicates disjoint, ``d_model = |Q| + 1, d_head_qk = |Q|``. Predicate q is
    embedded as (e_q, 0), subject k as (y_k, 1); W_Q and W_K take the first |Q| coordinates, so that
    the score of q is y_k[q] at k and 1 at itself, and y_k[q] = logit(s_v) + 1 makes s_v the
    attention to k. The value is the last coordinate: u = s_v.

    Otherwise ``d_model = 2 |Q| + 2``: tokens are embedded as (e_t, y_t, m_t, 0), with zeros for a
    role that t doesn't have, and y_q[q] = 0. Two heads with opposite W_K and W_O, whose value is
    m_t, together write u = (a - (1 - a)) (m_k - m_q) with a = sigmoid(y_k[q]), of either sign. The
    marks m_t of two different tokens that can meet are at least 1 apart, which allows every u
    between -1 and 1.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        A functional database.
    tau : float
        Least probability of every fact's object, strictly between 0.5 and 1.
    dtype : torch.dtype
        Type of the weights.

    Returns
    -------
    AttentionLayer
        A layer with ``d_vocab = db.n_tokens`` that memorises the database at `tau`.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    InvalidArgumentError
        For facts of another arity than 3; if `tau` is out of range, or `dtype` too coarse for the
        number of objects.

    Examples
    --------
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> layer = store_in_query_key(db)
    >>> layer.config.name
    'd3-h1-qk2-vo1'
    """
    db = require_triples(db, "store_in_query_key(db)")
    codes = _Codes.of(db, tau)
    k, q, n = codes.k, codes.q, len(db.predicate_ids)
    config = query_key_config(db)
    if not codes.in_both_roles.any():
        W_E = np.zeros((db.n_tokens, n + 1))
        W_E[db.predicate_ids, np.arange(n)] = 1
        W_E[db.subject_ids, n] = 1
        W_E[k, q] = np.log(codes.u / (1 - codes.u)) + 1
        read = np.eye(n + 1)[None, :, :n]
        last = np.eye(n + 1)[None, :, n:]
        W_U = np.vstack([codes.constant, codes.slope])
        weights = (W_E, W_U, read, read.transpose(0, 2, 1), last, last.transpose(0, 2, 1))
        return _layer(config, db, weights, codes, dtype)
    eye = np.eye(2 * n + 2)
    marks = codes.marks
    W_E = np.zeros((db.n_tokens, 2 * n + 2))
    W_E[db.predicate_ids, np.arange(n)] = 1
    W_E[:, 2 * n] = marks
    apart = marks[k] - marks[db.predicate_ids[q]]
    same = apart == 0
    # 2 a - 1 = tanh(y / 2)
    y = 2 * np.arctanh(np.divide(codes.u, apart, out=np.zeros(len(k)), where=~same))
    W_E[k, n + q] = y
    queries = np.stack([eye[:, :n]] * 2)
    keys = np.stack([eye[:, n : 2 * n].T, -eye[:, n : 2 * n].T])
    values = np.stack([eye[:, 2 * n : 2 * n + 1]] * 2)
    out = np.stack([eye[2 * n + 1 :], -eye[2 * n + 1 :]])
    W_U = np.vstack([codes.constant, np.zeros((n + 1, db.n_tokens)), codes.slope])
    return _layer(config, db, (W_E, W_U, queries, keys, values, out), codes, dtype)


def store_in_value_output(
    db: DatabaseLike, tau: float = 0.99, *, dtype: torch.dtype = torch.float64
) -> AttentionLayer:
    """Write facts into values: a head for each predicate, two if some token has both roles.

    With subjects and predicates disjoint, ``n_heads = |Q|, d_head_qk = d_head_vo = 1, d_model =
    |Q| + 3``. Subject k is embedded as (s_D(k, 1), ..., s_D(k, |Q|), 0, 0, 0), predicate q as
    (0, ..., 0, cos t_q, sin t_q, 1) with angles t_q that are spread evenly. The query of head h is
    a multiple of cos(t_q - t_h) minus a threshold that only its own predicate exceeds, so that it
    attends to the subject if q is its predicate and to q itself if not; its value is s_D(k, h), or
    0.

    Otherwise ``n_heads = 2 |Q|, d_model = 2 |Q| + 1``, with (e_t, s_D(t, .) - o, 0) for token t, o
    the offsets. Head h attends to the subject if q is its predicate, and evenly to both tokens if
    not; a second head with the opposite W_O always attends evenly. With W_O = +-2 they write u.

    Parameters
    ----------
    db, tau, dtype : Database, float, torch.dtype
        As for `store_in_query_key`.

    Returns
    -------
    AttentionLayer
        A layer with ``d_vocab = db.n_tokens`` that memorises the database at `tau`.

    Raises
    ------
    MultiValuedError, InvalidArgumentError
        As for `store_in_query_key`.

    Examples
    --------
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> store_in_value_output(db).config.name
    'd5-h2-qk1-vo1'
    """
    db = require_triples(db, "store_in_value_output(db)")
    codes = _Codes.of(db, tau)
    k, q, n = codes.k, codes.q, len(db.predicate_ids)
    if not codes.in_both_roles.any():
        config = LayerConfig(d_model=n + 3, n_heads=n, d_head_qk=1, d_head_vo=1)
        angles = 2 * np.pi * np.arange(n) / n
        points = np.stack([np.cos(angles), np.sin(angles), np.ones(n)], axis=1)
        W_E = np.zeros((db.n_tokens, n + 3))
        W_E[db.predicate_ids, n:] = points
        W_E[k, q] = codes.u
        # halfway between a predicate and its neighbours
        edge = (1 + math.cos(2 * math.pi / n)) / 2 if n > 1 else 0.0
        queries = np.zeros((n, n + 3, 1))
        queries[:, n:, 0] = GATE / (1 - edge) * (points - [0, 0, 1 + edge])
        keys = np.zeros((n, 1, n + 3))
        keys[:, 0, n + 2] = -1
        values = np.eye(n + 3)[:n, :, None]
        # the first coordinate is 0 in all predicates
        out = np.zeros((n, 1, n + 3))
        out[:, 0, 0] = 1
        W_U = np.zeros((n + 3, db.n_tokens))
        W_U[0], W_U[n + 2] = codes.slope, codes.constant[0]
        return _layer(config, db, (W_E, W_U, queries, keys, values, out), codes, dtype)
    config = LayerConfig(d_model=2 * n + 1, n_heads=2 * n, d_head_qk=1, d_head_vo=1)
    eye = np.eye(2 * n + 1)
    W_E = np.zeros((db.n_tokens, 2 * n + 1))
    W_E[db.predicate_ids, np.arange(n)] = 1
    # for (q, q) the offset makes it 0
    W_E[k, n + q] = codes.u
    gates = np.concatenate([eye[:n, :, None], np.zeros((n, 2 * n + 1, 1))])
    keys = np.tile(-GATE * eye[:n, None], (2, 1, 1))
    values = np.tile(eye[n : 2 * n, :, None], (2, 1, 1))
    out = np.repeat(np.array([2.0, -2.0])[:, None, None] * eye[2 * n], n, axis=0)[:, None]
    out = out.reshape(2 * n, 1, 2 * n + 1)
    W_U = np.vstack([codes.constant, np.zeros((n, db.n_tokens)), codes.slope])
    return _layer(config, db, (W_E, W_U, gates, keys, values, out), codes, dtype)


@dataclass(frozen=True)
class _Codes:
    """Numbers that encode the objects, and the logits that decode them.

    Attributes
    ----------
    k, q : (n_triples,)
        Token of each fact's subject, and number of its predicate.
    u : (n_triples,)
        Number that the heads must write for each fact, s_v - o_q, between -1 and 1.
    slope : (n_tokens,)
        2 c s_v for objects, 0 for other tokens.
    constant : (n_predicates, n_tokens)
        -c (s_v - o_q)^2 for objects, -4 c for other tokens.
    in_both_roles : (n_tokens,)
        True for tokens that are both subject and predicate.
    marks : (n_tokens,)
        0 for a predicate, 1, 2, ... for tokens in both roles, one more for a subject.
    tau : float
        Least probability of every fact's object.
    """

    k: Ints
    q: Ints
    u: Array
    slope: Array
    constant: Array
    in_both_roles: NDArray[np.bool_]
    marks: Array
    tau: float

    @classmethod
    def of(cls, db: Database, tau: float) -> _Codes:
        db.require_functional("Writing facts into weights")
        if not 0.5 < tau < 1:
            raise InvalidArgumentError(f"`tau` must lie strictly between 0.5 and 1; got {tau}.")
        n_objects = len(db.object_ids)
        s = np.arange(1, n_objects + 1) / (n_objects + 1)
        odds = math.log(max(db.n_tokens - 1, 1) * tau / (1 - tau))
        c = SPARE * odds * (n_objects + 1) ** 2
        k, (_, q, v) = db.token_triples[:, 0].astype(np.int64), db.triples.astype(np.int64).T
        offset = np.zeros(len(db.predicate_ids))
        twice = k == db.predicate_ids[q]
        offset[q[twice]] = s[v[twice]]
        slope = np.zeros(db.n_tokens)
        slope[db.object_ids] = 2 * c * s
        constant = np.full((len(offset), db.n_tokens), -4 * c)
        constant[:, db.object_ids] = -c * (s - offset[:, None]) ** 2
        is_subject, is_predicate = (
            np.isin(np.arange(db.n_tokens), ids) for ids in (db.subject_ids, db.predicate_ids)
        )
        both = is_subject & is_predicate
        marks = np.where(both, np.cumsum(both), (both.sum() + 1) * is_subject)
        return cls(k, q, s[v] - offset[q], slope, constant, both, marks.astype(np.float64), tau)


def _layer(
    config: LayerConfig, db: Database, weights: tuple[Array, ...], codes: _Codes, dtype: torch.dtype
) -> AttentionLayer:
    """Build a layer of weights (W_E, W_U, W_Q, W_K, W_V, W_O), and check every fact's object."""
    names = ("W_E", "W_U", "W_Q", "W_K", "W_V", "W_O")
    tensors = {
        name: torch.tensor(array, dtype=dtype) for name, array in zip(names, weights, strict=True)
    }
    layer = AttentionLayer.of_weights(config, tensors)
    with torch.no_grad():
        for facts in torch.from_numpy(db.token_triples.astype(np.int64)).split(FACTS_AT_ONCE):
            log_p = layer(facts[:, :2])[:, -1].double().log_softmax(-1)
            if not bool((log_p.gather(1, facts[:, 2:]) >= math.log(codes.tau)).all()):
                raise InvalidArgumentError(
                    f"`dtype` must distinguish {len(db.object_ids):,} objects; {dtype} can't, for "
                    "logits grow as the square of their number. Use torch.float64, or fewer "
                    "objects."
                )
    return layer
