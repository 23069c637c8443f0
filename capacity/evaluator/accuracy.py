"""Accuracies of a layer on a database, by argmax and by softmax >= tau, and one row per fact.

For the logits z of the sentence (k, q) and its object v (Wong 2025, equations (11) to (14)):

* `argmax_paper` counts v right if z_v is *a* maximum, as (11) does, so a constant layer scores 1;
* `argmax` requires the *unique* maximum; facts that `argmax_paper` alone counts are `tied`;
* softmax >= tau requires z_v - logsumexp(z) >= log(tau), with tau strictly between 0.5 and 1;
* `majority` requires a probability above one half, which at most one object can have.

Softmax and argmax range over all tokens, as they do in the forward pass, or over the objects alone.
All comparisons are made in float64. The accuracies of a diverged layer are NaN, because an argmax
over NaN would silently return the first token.
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
from capacity.evaluator.scale import margins
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
            "anew, with a smaller learning rate."
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
