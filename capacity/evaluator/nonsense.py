"""Answers of a layer to pairs outside the domain of the database.

A pair (k, q) outside the domain, such as "Malaysia born_in", is a *nonsense query*. Training never
sees one, so nothing keeps a layer from answering it with confidence (Wong 2025, section 2.1 and
Remark 2.5). Queries use the forward pass and not the tensor L, which is E off the domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.checks import Seed, generator
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.database.terms.term import label
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.recall import check_tau, pair_logits

if TYPE_CHECKING:
    from capacity.layer.model.decoder import AnyLayer


@briefly_shown
@dataclass(frozen=True)
class NonsenseAnswers:
    """Statistics of a layer's answers to nonsense queries.

    All numbers but `n_queries` and `tau` are NaN if there is no query or a logit isn't finite.

    Attributes
    ----------
    n_queries : int
        Number of queries.
    answered : float
        Share of the queries after which some token has probability >= `tau`.
    answered_with_object : float
        Share of the queries after which some object of the database has probability >= `tau`.
    mean_confidence : float
        Mean probability of the likeliest token.
    mean_entropy : float
        Mean entropy of the predicted distribution, in bits.
    tau : float
        Probability that counts as an answer.
    """

    n_queries: int
    answered: float
    answered_with_object: float
    mean_confidence: float
    mean_entropy: float
    tau: float


def nonsense_pairs(
    db: DatabaseLike, *, n_queries: int | None = None, seed: Seed = 0
) -> NDArray[np.int64]:
    """List or sample the pairs of a subject and a predicate outside the domain.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Database, functional or not.
    n_queries : int, optional
        Number of pairs to draw without replacement; by default, or if there are fewer, all pairs.
    seed : int or numpy.random.Generator
        Seed of the draw.

    Returns
    -------
    ndarray of int64, shape (n, 2)
        Token ids of subject and predicate.

    Raises
    ------
    InvalidArgumentError
        If `n_queries` is below 1, for facts of another arity than 3, or for a seed out of range.

    Examples
    --------
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> [[str(db.tokens[i]) for i in pair] for pair in nonsense_pairs(db)]
    [['a', 'q'], ['b', 'p']]
    """
    db = require_triples(db, "nonsense_pairs(db)")
    if n_queries is not None and n_queries < 1:
        raise InvalidArgumentError(f"`n_queries` must be at least 1; got {n_queries}.")
    n_subjects, n_predicates, _ = db.shape
    triples = db.triples.astype(np.int64)
    asked = np.unique(triples[:, 0] * n_predicates + triples[:, 1])
    outside = np.setdiff1d(np.arange(n_subjects * n_predicates), asked, assume_unique=True)
    if n_queries is not None and n_queries < len(outside):
        outside = generator(seed).choice(outside, n_queries, replace=False)
    k, q = np.divmod(outside, n_predicates)
    return np.stack([db.subject_ids[k], db.predicate_ids[q]], axis=1).astype(np.int64)


def with_unknown(
    db: DatabaseLike,
    share: float,
    *,
    token: str = "unknown",
    seed: Seed = 0,
) -> Database:
    """Add facts that answer some nonsense queries with a token for "unknown".

    A layer trained on the result can be tested on the other nonsense queries, which are the
    `nonsense_pairs` of the result.

    Parameters
    ----------
    db : Database, or what `as_database` takes
        Facts to extend.
    share : float
        Share of the nonsense pairs that get a fact, above 0 and at most 1; at least one pair does.
    token : str
        Label of the new token, which no term of the database may have.
    seed : int or numpy.random.Generator
        Seed of the sample of pairs.

    Returns
    -------
    Database
        The facts and the new ones, under the policy of `db`.

    Raises
    ------
    InvalidArgumentError
        If the share is out of range, the token is taken, or there is no nonsense pair; for facts of
        another arity than 3.

    Examples
    --------
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> with_unknown(db, 0.5)
    Database(3 triples: 2 subjects x 2 predicates x 3 objects, 7 tokens; functional)
    """
    db = require_triples(db, "with_unknown(db, share)")
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"`share` must be above 0 and at most 1; got {share}.")
    unknown = label(token)
    if unknown in db.tokens:
        raise InvalidArgumentError(
            f"`token` must be a new label; {token!r:.60} is a term of the database."
        )
    outside = nonsense_pairs(db)
    if not len(outside):
        raise InvalidArgumentError(
            "There must be a pair without an object to be unknown; here every subject has every "
            "predicate."
        )
    n = max(1, round(share * len(outside)))
    sample = outside[generator(seed).permutation(len(outside))[:n]]
    answers_of = np.column_stack([sample, np.full(n, db.n_tokens)])
    triples = np.concatenate([db.token_triples.astype(np.int64), answers_of])
    return Database.from_ids((*db.tokens, unknown), triples, multi=db.multi)


def nonsense_answers(
    layer: AnyLayer,
    db: DatabaseLike,
    *,
    tau: float = 0.95,
    n_queries: int | None = None,
    seed: Seed = 0,
) -> NonsenseAnswers:
    """Measure how often and how confidently a layer answers nonsense queries.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database that defines the nonsense queries.
    tau : float
        Probability that counts as an answer, strictly between 0.5 and 1.
    n_queries : int, optional
        Number of queries to draw without replacement; by default, or if there are fewer, all.
    seed : int or numpy.random.Generator
        Seed of the draw.

    Returns
    -------
    NonsenseAnswers
        Shares and means over the queries.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, or `tau`, `n_queries` or a seed out of range.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> found = nonsense_answers(AttentionLayer(LayerConfig(4, 1, 2, 2), db.n_tokens), db)
    >>> found.n_queries, found.answered
    (2, 0.0)
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    check_tau(tau)
    db = require_same_vocabulary(layer, db)
    pairs = nonsense_pairs(db, n_queries=n_queries, seed=seed)
    z = pair_logits(layer, pairs) if len(pairs) else np.zeros((0, db.n_tokens))
    if not len(pairs) or not np.isfinite(z).all():
        return NonsenseAnswers(len(pairs), math.nan, math.nan, math.nan, math.nan, tau)
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    best = p.max(axis=1)
    surprisal = -np.log2(p, out=np.zeros_like(p), where=p > 0)
    return NonsenseAnswers(
        n_queries=len(pairs),
        answered=float((best >= tau).mean()),
        answered_with_object=float((p[:, db.object_ids].max(axis=1) >= tau).mean()),
        mean_confidence=float(best.mean()),
        mean_entropy=float((p * surprisal).sum(axis=1).mean()),
        tau=tau,
    )
