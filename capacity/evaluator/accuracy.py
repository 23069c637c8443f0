"""Did the layer memorise the database? Accuracies by argmax and by softmax >= tau.

For the logits z of the sentence (k, q) and its object v (Wong 2025, equations (11) to (14)):

* `argmax_paper` counts v right if z_v is *a* maximum, as (11) does, so a constant layer scores 1;
* `argmax` asks for the *only* maximum; the facts between the two are `tied`;
* softmax >= tau asks for z_v - logsumexp(z) >= log(tau), with tau strictly between 0.5 and 1;
* `majority` asks for a probability above one half, above which at most one object can pass.

Softmax and argmax range over all tokens, as they do in the forward pass, or over the objects alone.
All tests are made in float64. A layer that has diverged has no accuracy: every number is NaN, for
an argmax over NaN would quietly name the first token.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.limits import shown

if TYPE_CHECKING:
    from capacity.layer.model import AttentionLayer

Over: TypeAlias = Literal["tokens", "objects"]
TAUS = (0.75, 0.95, 0.99)


@dataclass(frozen=True)
class Accuracy:
    """Shares of the facts that a layer recalls; all NaN if its logits aren't finite.

    Attributes
    ----------
    argmax : float
        The object alone has the largest logit.
    argmax_paper : float
        No token has a larger logit than the object (11).
    tied : float
        ``argmax_paper - argmax``: the object shares the largest logit.
    majority : float
        The object's probability exceeds one half.
    softmax : mapping of float to float
        For each tau the share of facts whose object has probability >= tau (14).
    n_facts : int
    """

    argmax: float
    argmax_paper: float
    tied: float
    majority: float
    softmax: Mapping[float, float]
    n_facts: int


def check_tau(tau: float) -> None:
    """Raise a ValueError unless tau lies strictly between 0.5 and 1."""
    if not 0.5 < tau < 1:
        advice = (
            "At 0.5 two objects can pass at once." if tau <= 0.5 else "No probability reaches 1."
        )
        raise InvalidArgumentError(
            f"`tau` must lie strictly between 0.5 and 1; got {tau}. {advice}"
        )


def accuracy_of_logits(
    logits: NDArray[np.floating], targets: NDArray[np.integer], taus: Iterable[float] = TAUS
) -> Accuracy:
    """Compute all accuracies from logits.

    Parameters
    ----------
    logits : ndarray, shape (n_facts, n_candidates)
    targets : integer ndarray, shape (n_facts,)
        Index of the right candidate.
    taus : iterable of float

    Raises
    ------
    ValueError
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
        raise InvalidArgumentError("Accuracy is a share of facts, and there are none.")
    z = np.asarray(logits, dtype=np.float64)
    n = len(targets)
    if not np.isfinite(z).all():
        nan = math.nan
        return Accuracy(nan, nan, nan, nan, dict.fromkeys(taus, nan), n)
    rows = np.arange(n)
    right = z[rows, targets]
    others = z.copy()
    others[rows, targets] = -np.inf
    rival = others.max(axis=1, initial=-np.inf)
    log_p = _log_probabilities(z)[rows, targets]
    paper, unique = float((right >= rival).mean()), float((right > rival).mean())
    return Accuracy(
        argmax=unique,
        argmax_paper=paper,
        tied=float((right == rival).mean()),
        majority=float((log_p > math.log(0.5)).mean()),
        softmax={tau: float((log_p >= math.log(tau)).mean()) for tau in taus},
        n_facts=n,
    )


def _log_probabilities(z: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = z - z.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def pair_logits(
    layer: AttentionLayer, pairs: NDArray[np.integer], *, batch_size: int = 4096
) -> NDArray[np.float64]:
    """Logits in float64 that the forward pass gives after each (subject, predicate) pair.

    Parameters
    ----------
    layer : AttentionLayer
    pairs : integer ndarray, shape (n_pairs, 2)
        Token ids.

    Returns
    -------
    ndarray, shape (n_pairs, d_vocab)
    """
    import torch

    device = layer.W_E.device
    sentences = torch.as_tensor(pairs.astype(np.int64), device=device)
    with torch.no_grad():
        parts = [layer(part)[:, -1].double().cpu() for part in sentences.split(batch_size)]
    return torch.cat(parts).numpy()


def evaluate(
    layer: AttentionLayer, db: Database, *, taus: Iterable[float] = TAUS, over: Over = "tokens"
) -> Accuracy:
    """Compute how many of its facts a layer recalls.

    Parameters
    ----------
    layer : AttentionLayer
        With ``d_vocab == db.n_tokens``.
    db : Database
        Functional.
    taus : iterable of float
        Strictly between 0.5 and 1.
    over : {'tokens', 'objects'}
        The candidates: all tokens, or the objects of the database alone.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    ValueError
        For another vocabulary, or a tau or `over` out of range.
    """
    from capacity.layer.tensor import require_same_vocabulary

    if over not in ("tokens", "objects"):
        raise InvalidArgumentError(f"`over` must be 'tokens' or 'objects'; got {shown(over)}.")
    db.require_functional("Accuracy")
    require_same_vocabulary(layer, db)
    logits = pair_logits(layer, db.token_triples[:, :2])
    if over == "objects":
        return accuracy_of_logits(logits[:, db.object_ids], db.triples[:, 2], taus)
    return accuracy_of_logits(logits, db.token_triples[:, 2], taus)


def memorises(layer: AttentionLayer, db: Database, tau: float) -> bool:
    """Whether every fact's object has probability >= tau: the layer tau-memorises the database.

    Wong 2025, below equation (14). Parameters and errors as in `evaluate`.
    """
    return evaluate(layer, db, taus=[tau]).softmax[tau] == 1.0
