"""What a layer answers where the database has no answer.

A pair (k, q) outside the domain, such as "Malaysia born_in", is a *nonsense query*. Training never
sees one, so nothing keeps a layer from answering it, and with confidence (Wong 2025, section 2.1
and Remark 2.5). The forward pass is asked, not the tensor L, which is E off the domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.database.terms import label
from capacity.errors import InvalidArgumentError
from capacity.evaluator.accuracy import check_tau, pair_logits
from capacity.limits import Seed, generator

if TYPE_CHECKING:
    from capacity.layer.model import AttentionLayer


@dataclass(frozen=True)
class NonsenseAnswers:
    """How a layer answers pairs outside the domain; NaN throughout if there is none.

    Attributes
    ----------
    n_queries : int
        Pairs that were asked.
    answered : float
        Share of them to which some token has probability >= `tau`.
    answered_with_object : float
        Share of them to which some object of the database has probability >= `tau`.
    mean_confidence : float
        Mean probability of the likeliest token.
    mean_entropy : float
        Mean entropy of the answer, in bits.
    tau : float
    """

    n_queries: int
    answered: float
    answered_with_object: float
    mean_confidence: float
    mean_entropy: float
    tau: float


def nonsense_pairs(
    db: Database, *, n_queries: int | None = None, seed: Seed = 0
) -> NDArray[np.int64]:
    """Pairs of a subject and a predicate outside the domain, as token ids, shape (n, 2).

    Parameters
    ----------
    db : Database
    n_queries : int, optional
        Draw so many without replacement; all of them if left out, or if there are no more.
    seed : int or numpy.random.Generator

    Raises
    ------
    ValueError
        If `n_queries` is below 1.
    """
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
    db: Database,
    share: float,
    *,
    token: str = "unknown",
    seed: Seed = 0,
) -> Database:
    """Add facts that answer some nonsense queries with a token for not knowing.

    A layer that is trained on them can be asked the other nonsense queries, which are
    ``nonsense_pairs`` of what this returns.

    Parameters
    ----------
    db : Database
    share : float
        Of the nonsense pairs, above 0 and at most 1; one pair at least.
    token : str
        Label that no term of the database has.
    seed : int or numpy.random.Generator
        Of the sample.

    Raises
    ------
    ValueError
        If the share is out of range, the token is taken, or there is no nonsense pair.

    Examples
    --------
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> with_unknown(db, 0.5)
    Database(3 triples: 2 subjects x 2 predicates x 3 objects, 7 tokens; functional)
    """
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"`share` must be above 0 and at most 1; got {share}.")
    unknown = label(token)
    if unknown in db.tokens:
        raise InvalidArgumentError(f"`token` must be a label of its own; {token!r:.60} is a term.")
    outside = nonsense_pairs(db)
    if not len(outside):
        raise InvalidArgumentError(
            "There must be a pair without an object to be unknown; every subject has every "
            "predicate."
        )
    n = max(1, round(share * len(outside)))
    sample = outside[generator(seed).permutation(len(outside))[:n]]
    answers_of = np.column_stack([sample, np.full(n, db.n_tokens)])
    triples = np.concatenate([db.token_triples.astype(np.int64), answers_of])
    return Database.from_ids((*db.tokens, unknown), triples, multi=db.multi)


def nonsense_answers(
    layer: AttentionLayer,
    db: Database,
    *,
    tau: float = 0.95,
    n_queries: int | None = None,
    seed: Seed = 0,
) -> NonsenseAnswers:
    """Measure how often, and how confidently, a layer answers nonsense queries.

    Parameters
    ----------
    layer : AttentionLayer
        With ``d_vocab == db.n_tokens``.
    db : Database
    tau : float
        Strictly between 0.5 and 1: the probability that counts as an answer.
    n_queries, seed
        As in `nonsense_pairs`.

    Raises
    ------
    ValueError
        For a tau out of range, or another vocabulary.
    """
    from capacity.layer.tensor import require_same_vocabulary

    check_tau(tau)
    require_same_vocabulary(layer, db)
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
