"""Accuracies of a layer on a database, by argmax and by softmax >= tau, and margins of its logits.

For the logits z of the sentence (k, q) and its object v (Wong 2025, equations (11) to (14)):

* `argmax_paper` counts v right if z_v is *a* maximum, as (11) does, so a constant layer scores 1;
* `argmax` requires the *unique* maximum; facts that `argmax_paper` alone counts are `tied`;
* softmax >= tau requires z_v - logsumexp(z) >= log(tau), with tau strictly between 0.5 and 1;
* `majority` requires a probability above one half, which at most one object can have.

Softmax and argmax range over all tokens, as they do in the forward pass, or over the objects alone.
All comparisons are made in float64. The accuracies of a diverged layer are NaN, because an argmax
over NaN would silently return the first token.

A layer's tau-memorising depends on the scale of its logits: multiplying W_U by c > 1 changes no
rank and no argmax, and raises the probability of every object that is the strict maximum. Two
numbers separate the scale from the order of the logits:

* the *margin* of a fact, z_v less the largest other logit, is positive if and only if v is the
  unique argmax;
* the *smallest scale* of a layer at tau is the least c at which softmax(c z) has for every object a
  probability of at least tau. It is finite if and only if all margins are positive. If it is at
  most 1, the layer tau-memorises as it is; its logarithm measures how far the scale alone falls
  short, or exceeds. Logits k times as large have margins k times as large and a smallest scale k
  times smaller.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_choice, shown
from capacity.database.given_facts import DatabaseLike
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import threshold_column
from capacity.layer.recall import (
    Threshold,
    check_tau,
    check_threshold,
    log_probabilities,
    pair_logits,
    recalled,
)

if TYPE_CHECKING:
    import pandas as pd

    from capacity.layer.model.decoder import AnyLayer


# Newton's method takes about ten
MAX_STEPS = 200


def margins(logits: NDArray[np.floating], targets: NDArray[np.integer]) -> NDArray[np.float64]:
    """Subtract the largest other logit from that of the right candidate, for each fact.

    Parameters
    ----------
    logits : ndarray, shape (n_facts, n_candidates)
        Logits of the candidates for each fact.
    targets : integer ndarray, shape (n_facts,)
        Index of the right candidate.

    Returns
    -------
    ndarray, shape (n_facts,)
        Margins in nats; NaN where logits aren't finite, infinite if there is no other candidate.

    Examples
    --------
    >>> margins(np.array([[0.0, 5.0], [1.0, 1.0]]), np.array([1, 0]))
    array([5., 0.])
    """
    z, rows = np.asarray(logits, dtype=np.float64), np.arange(len(targets))
    others = z.copy()
    others[rows, targets] = -np.inf
    found: NDArray[np.float64] = z[rows, targets] - others.max(axis=1, initial=-np.inf)
    found[~np.isfinite(z).all(axis=1)] = np.nan
    return found


def smallest_scale(logits: NDArray[np.floating], targets: NDArray[np.integer], tau: float) -> float:
    """Find the least c at which all right candidates have probability >= tau in softmax(c z).

    Parameters
    ----------
    logits : ndarray, shape (n_facts, n_candidates)
        Logits z of the candidates for each fact.
    targets : integer ndarray, shape (n_facts,)
        Index of the right candidate.
    tau : float
        Threshold on the probability, strictly between 0.5 and 1.

    Returns
    -------
    float
        Infinite unless every right candidate is the strict maximum; NaN if logits aren't finite.

    Raises
    ------
    InvalidArgumentError
        If tau is out of range, or there is no fact.

    Notes
    -----
    For each fact the equation is f(c) = log sum_w exp(-c (z_v - z_w)) - log((1 - tau) / tau) = 0,
    with the sum over the other candidates. f is convex and decreasing. At the start the term of the
    best rival alone is (1 - tau) / tau, so f >= 0, and Newton's steps ascend to the root without
    passing it.

    Examples
    --------
    A single rival, ln 3 below, has a third of the probability at c = 1:

    >>> round(smallest_scale(np.array([[np.log(3), 0.0]]), np.array([0]), 0.75), 12)
    1.0
    """
    check_tau(tau)
    if not len(targets):
        raise InvalidArgumentError("There must be a fact to scale for; got none.")
    z = np.asarray(logits, dtype=np.float64)
    least = margins(z, targets)
    # min propagates NaN
    if not least.min() > 0:
        return math.nan if np.isnan(least).any() else math.inf
    n_rivals = z.shape[1] - 1
    if not n_rivals:
        return 0.0
    odds = math.log(tau / (1 - tau))
    scale = odds / least
    # a root is at most that with all rivals as near as the nearest: most can't be the largest
    may = (odds + math.log(n_rivals)) / least >= scale.max()
    gaps, scale = _gaps(z[may], targets[may]), scale[may]
    for _ in range(MAX_STEPS):
        weights = np.exp(-scale[:, None] * gaps)
        total = weights.sum(axis=1)
        step = (np.log(total) + odds) * total / (gaps * weights).sum(axis=1)
        scale += step
        if (step <= 1e-14 * scale).all():
            break
    return float(scale.max())


def _gaps(z: NDArray[np.float64], targets: NDArray[np.integer]) -> NDArray[np.float64]:
    """z_v - z_w for all other candidates w, shape (n_facts, n_candidates - 1)."""
    n, candidates = z.shape
    others = np.arange(candidates) != targets[:, None]
    return z[np.arange(n), targets][:, None] - z[others].reshape(n, candidates - 1)


Over: TypeAlias = Literal["tokens", "objects"]
TAUS = (0.75, 0.95, 0.99)


@briefly_shown
@dataclass(frozen=True)
class Accuracy:
    """Shares of the facts that a layer recalls; all NaN if its logits aren't finite.

    Attributes
    ----------
    argmax : float
        Share of facts whose object alone has the largest logit.
    argmax_paper : float
        Share of facts whose object has a logit that none exceeds (11).
    tied : float
        Share of facts whose object shares the largest logit: ``argmax_paper - argmax``.
    majority : float
        Share of facts whose object has a probability above one half.
    softmax : mapping of float to float
        For each tau, the share of facts whose object has probability >= tau (14).
    n_facts : int
        Number of facts.
    """

    argmax: float
    argmax_paper: float
    tied: float
    majority: float
    softmax: Mapping[float, float]
    n_facts: int

    def at(self, tau: Threshold) -> float:
        """Return the share of the facts at a threshold.

        Parameters
        ----------
        tau : float, 'argmax' or 'argmax_paper'
            Threshold on the probability; 0.5 means a probability above one half.

        Raises
        ------
        InvalidArgumentError
            For another word, or a probability that the layer wasn't scored at.

        Examples
        --------
        >>> a = accuracy_of_logits(np.array([[0.0, 5.0], [1.0, 1.0]]), np.array([1, 0]))
        >>> a.at("argmax"), a.at("argmax_paper"), a.at(0.5), a.at(0.95)
        (0.5, 1.0, 0.5, 0.5)
        """
        check_threshold(tau)
        if isinstance(tau, str):
            return self.argmax if tau == "argmax" else self.argmax_paper
        if tau == 0.5:
            return self.majority
        if tau not in self.softmax:
            raise InvalidArgumentError(
                "`tau` must be a threshold that the layer was scored at: argmax, argmax_paper, "
                f"{', '.join(map(str, (0.5, *self.softmax)))}; got {shown(tau)}. Others are scored "
                "if `taus` has them."
            )
        return self.softmax[tau]


def accuracy_of_logits(
    logits: NDArray[np.floating], targets: NDArray[np.integer], taus: Iterable[float] = TAUS
) -> Accuracy:
    """Compute all accuracies from logits.

    Parameters
    ----------
    logits : ndarray, shape (n_facts, n_candidates)
        Logits of the candidates for each fact.
    targets : integer ndarray, shape (n_facts,)
        Index of the right candidate.
    taus : iterable of float
        Thresholds on the probability, strictly between 0.5 and 1.

    Returns
    -------
    Accuracy
        Shares of the facts; all NaN if a logit isn't finite.

    Raises
    ------
    InvalidArgumentError
        If a tau doesn't lie strictly between 0.5 and 1, or there is no fact.

    Examples
    --------
    >>> a = accuracy_of_logits(np.array([[0.0, 5.0], [1.0, 1.0]]), np.array([1, 0]))
    >>> a.argmax, a.argmax_paper, a.softmax[0.95]
    (0.5, 1.0, 0.5)
    """
    taus = tuple(taus)
    for tau in taus:
        check_tau(tau)
    if not len(targets):
        raise InvalidArgumentError(
            "Accuracy is a share of facts: there must be at least one; got none."
        )
    z = np.asarray(logits, dtype=np.float64)
    n = len(targets)
    if not np.isfinite(z).all():
        nan = math.nan
        return Accuracy(nan, nan, nan, nan, dict.fromkeys(taus, nan), n)
    right = recalled(z, targets, taus)
    share = {at: float(facts.mean()) for at, facts in right.items()}
    return Accuracy(
        argmax=share["argmax"],
        argmax_paper=share["argmax_paper"],
        tied=float((right["argmax_paper"] & ~right["argmax"]).mean()),
        majority=share[0.5],
        softmax={tau: share[tau] for tau in taus},
        n_facts=n,
    )


def evaluate(
    layer: AnyLayer, db: DatabaseLike, *, taus: Iterable[float] = TAUS, over: Over = "tokens"
) -> Accuracy:
    """Measure the shares of a database's facts that a layer recalls.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Functional database, of any arity.
    taus : iterable of float
        Thresholds on the probability, strictly between 0.5 and 1.
    over : {'tokens', 'objects'}
        Candidates of argmax and softmax: all tokens, or the objects of the database alone.

    Returns
    -------
    Accuracy
        Shares of the facts; all NaN if a logit isn't finite.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, or a tau or `over` out of range.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> accuracy = evaluate(store_in_query_key(db, 0.95), db)
    >>> accuracy.argmax, accuracy.softmax[0.95]
    (1.0, 1.0)
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    require_choice("`over`", over, get_args(Over))
    db = require_same_vocabulary(layer, db, any_arity=True)
    db.require_functional("Accuracy")
    logits = pair_logits(layer, db.token_tuples[:, :-1])
    if over == "objects":
        return accuracy_of_logits(logits[:, db.object_ids], db.tuples[:, -1], taus)
    return accuracy_of_logits(logits, db.token_tuples[:, -1], taus)


def memorises(layer: AnyLayer, db: DatabaseLike, tau: Threshold) -> bool:
    """Return True if the layer tau-memorises the database: all objects have probability >= tau.

    Wong 2025, below equation (14).

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Functional database.
    tau : float, 'argmax' or 'argmax_paper'
        Threshold on the probability; 0.5 means a probability above one half.

    Returns
    -------
    bool
        False for a layer whose logits aren't finite.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, or a tau out of range.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import AttentionLayer, LayerConfig, store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> memorises(store_in_query_key(db, 0.95), db, 0.95)
    True
    >>> memorises(AttentionLayer(LayerConfig(4, 1, 2, 2), db.n_tokens), db, 0.95)
    False
    """
    check_threshold(tau)
    taus = () if isinstance(tau, str) or tau == 0.5 else (tau,)
    return evaluate(layer, db, taus=taus).at(tau) == 1.0


def fact_table(
    layer: AnyLayer, db: DatabaseLike, *, taus: Iterable[float] = TAUS, over: Over = "tokens"
) -> pd.DataFrame:
    """Tabulate how a layer recalls each fact of a database.

    The mean of a column ``argmax``, ``argmax_paper``, ``p50``, ... is the accuracy of that name
    (`evaluate`), to the last bit: both are made of the same comparisons in float64.

    Parameters
    ----------
    layer, db, taus, over : optional
        As for `evaluate`.

    Returns
    -------
    pandas.DataFrame
        One row per fact, in the order of ``db.triples``: ``subject``, ``predicate`` and ``object``
        (their short names, `Database.name`); ``probability`` of the object; ``said``, the name of
        the likeliest candidate, the first of several, and ``said_probability``; ``margin``, the
        object's logit less the largest other, in nats; and True or False for ``argmax`` (the only
        largest logit), ``argmax_paper`` (a largest logit), ``p50`` (a probability above one half)
        and each tau, such as ``p95``.

    Raises
    ------
    MultiValuedError, InvalidTypeError
        As for `evaluate`.
    InvalidArgumentError
        As for `evaluate`, and for logits that aren't finite.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> table = fact_table(store_in_query_key(db, 0.95), db)
    >>> table[["subject", "predicate", "object", "said", "argmax", "p95"]]
      subject predicate object said  argmax   p95
    0       a         p      x    x    True  True
    1       a         q      y    y    True  True
    2       b         p      y    y    True  True
    """
    import pandas as pd

    from capacity.layer.model.tensor import require_same_vocabulary

    require_choice("`over`", over, get_args(Over))
    taus = tuple(taus)
    for tau in taus:
        check_tau(tau)
    db = require_same_vocabulary(layer, db)
    db.require_functional("A table of facts")
    logits, targets = pair_logits(layer, db.token_triples[:, :2]), db.token_triples[:, 2]
    candidates = np.arange(db.n_tokens)
    if over == "objects":
        logits, targets, candidates = logits[:, db.object_ids], db.triples[:, 2], db.object_ids
    if not np.isfinite(logits).all():
        raise InvalidArgumentError(
            "The layer's logits must be finite for a table of facts; it has diverged. Train it "
            "again, with a smaller learning rate."
        )
    names = np.array([db.name(token) for token in db.tokens], dtype=object)
    p, rows, said = (
        np.exp(log_probabilities(logits)),
        np.arange(len(targets)),
        logits.argmax(axis=1),
    )
    subject, predicate, object_ = names[db.token_triples].T
    return pd.DataFrame(
        {
            "subject": subject,
            "predicate": predicate,
            "object": object_,
            "probability": p[rows, targets],
            "said": names[candidates[said]],
            "said_probability": p[rows, said],
            "margin": margins(logits, targets),
            **{
                threshold_column(tau): right
                for tau, right in recalled(logits, targets, taus).items()
            },
        }
    )
