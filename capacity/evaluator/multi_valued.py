"""Predictions for pairs that have several objects, each with a probability.

The facts of a pair (subject, predicate) with the objects S have weights, such as how often each
occurs, of which p is the distribution. Against the layer's softmax q over all tokens:

* *divergence*: KL(p || q) = sum over S of p log(p / q), in nats, the mean over pairs;
* *majority*: the pair's most probable object has the largest logit of all tokens;
* *sets*: the |S| largest logits are those of S: what is asserted, whatever the probabilities.

For a functional database the last two are `Accuracy.argmax`, and divergence is the loss at objects.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from capacity.database.given_facts import DatabaseLike
from capacity.database.policy import pair_starts
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.model.decoder import AnyLayer
from capacity.layer.recall import log_probabilities, pair_logits


@briefly_shown
@dataclass(frozen=True)
class ObjectsAccuracy:
    """Agreement of a layer with the objects of pairs, or of keys.

    Attributes
    ----------
    divergence : float
        Mean over pairs of KL(p || q), in nats.
    majority : float
        Share of the pairs with a most probable object whose logit is the only largest; NaN if the
        most probable objects of all pairs are tied.
    sets : float
        Share of the pairs each of whose objects has a larger logit than any other token.
    n_pairs, n_majorities : int
        Number of pairs, and of those with one most probable object.
    """

    divergence: float
    majority: float
    sets: float
    n_pairs: int
    n_majorities: int


def evaluate_objects(
    layer: AnyLayer, db: DatabaseLike, weights: ArrayLike | None = None
) -> ObjectsAccuracy:
    """Compare a layer's predictions with the distributions of the objects of all pairs.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database of any arity, functional or not.
    weights : array_like of float, shape (n_facts,), optional
        Positive weights of the facts, in the order of ``db.tuples``, as for `train`. If omitted,
        all objects of a pair have the same probability.

    Returns
    -------
    ObjectsAccuracy
        Each pair counts alike, whatever the weights of its facts. All NaN if a logit isn't finite.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, no fact, or weights that aren't one positive number for each
        fact.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import AttentionLayer, LayerConfig, Recipe, train
    >>> db = Database.from_triples(
    ...     [("a", "p", "x"), ("a", "p", "y"), ("b", "p", "y")], multi="keep"
    ... )
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens)
    >>> _ = train(layer, db, Recipe(learning_rate=0.03), weights=[3, 1, 4])
    >>> found = evaluate_objects(layer, db, [3, 1, 4])
    >>> found.majority, found.sets, found.divergence < 0.01
    (1.0, 1.0, True)
    """
    # torch loads with it
    from capacity.layer.model.tensor import require_same_vocabulary
    from capacity.layer.run.fact_weights import require_fact_weights

    db = require_same_vocabulary(layer, db, any_arity=True)
    if not db.n_facts:
        raise InvalidArgumentError("There must be at least one fact; the database has none.")
    given = require_fact_weights(np.ones(db.n_facts) if weights is None else weights, db.n_facts)
    # facts are sorted, so that those of a pair are consecutive
    starts = pair_starts(db.tuples)
    n_objects = np.diff(np.append(starts, db.n_facts))
    pair = np.repeat(np.arange(len(starts)), n_objects)
    p = given / np.add.reduceat(given, starts)[pair]
    logits, objects = pair_logits(layer, db.token_tuples[starts, :-1]), db.token_tuples[:, -1]
    if not np.isfinite(logits).all():
        return ObjectsAccuracy(math.nan, math.nan, math.nan, len(starts), 0)
    log_q = log_probabilities(logits)[pair, objects]
    mine, others = logits[pair, objects], logits.copy()
    others[pair, objects] = -np.inf
    sets = np.minimum.reduceat(mine, starts) > others.max(axis=1)
    most = np.maximum.reduceat(p, starts)[pair]
    is_most = p >= most * (1 - 1e-9)
    alone = np.add.reduceat(is_most.astype(int), starts) == 1
    heaviest = np.flatnonzero(is_most & alone[pair])
    at = pair[heaviest]
    rivals = logits[at]
    rivals[np.arange(len(at)), objects[heaviest]] = -np.inf
    right = logits[at, objects[heaviest]] > rivals.max(axis=1, initial=-np.inf)
    return ObjectsAccuracy(
        divergence=float((p * (np.log(p) - log_q)).sum() / len(starts)),
        majority=float(right.mean()) if len(right) else math.nan,
        sets=float(sets.mean()),
        n_pairs=len(starts),
        n_majorities=len(right),
    )
