"""Recall that is proved: every probability is enclosed by exact arithmetic and rounded outwards.

`evaluate` and `memorises` compute in floating point, so that a probability just above tau may be an
error of rounding. Here the same function of the weights is evaluated in ball arithmetic: every
number is a ball that contains the real one, and every operation rounds its ball outwards. The
weights of a layer are binary fractions, and enter exactly, with radius 0.

For the fact (k, q) -> v, with the embeddings e_k and e_q, the head h attends to k with

    a_h = 1 / (1 + exp(-d_h)),    d_h = scale * e_q W_Q^h W_K^h (e_k - e_q)^T,

so that the logits are z = (e_q + sum_h (a_h e_k + (1 - a_h) e_q) W_V^h W_O^h) W_U (Wong 2025,
equations (2) and (3), at the second of two positions). The fact is held at tau if

    z_v - logsumexp(z) - log tau = -log(1 + sum over w != v of exp(z_w - z_v)) - log tau >= 0.

If the ball of this *margin* has no negative number, that is proved; if it has negative numbers
alone, it is refuted; otherwise it is computed again with twice the bits. flint keeps the number of
bits for the whole process; `bits_set` sets it, and puts it back.

References
----------
F. Johansson, Arb: efficient arbitrary-precision midpoint-radius interval arithmetic, IEEE
Transactions on Computers 2017, arXiv 1611.02831.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import flint
import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_integer
from capacity.database.given_facts import DatabaseLike
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.layer.recall import check_tau

if TYPE_CHECKING:
    from capacity.layer.model.attention_layer import AttentionLayer

# logits of a batch, each of which takes about 200 bytes
LOGITS_AT_ONCE = 2**18


@contextmanager
def bits_set(bits: int) -> Iterator[None]:
    """Compute with this number of bits, which flint keeps for the whole process."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def difference_of_logs(a: float, b: float) -> tuple[float, float]:
    """Floats below and above log a - log b."""
    with bits_set(128):
        return _ends(flint.arb(a).log() - flint.arb(b).log())


def margins(
    scale: bool, weights: Mapping[str, NDArray[np.float64]], facts: NDArray[np.int64], tau: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the margins of facts by the precision that is set, two arrays of shape (n_facts,).

    Ends are infinite where nothing is known. `facts` has the tokens of each fact, (n_facts, 3).
    """
    # tokens with the same column have the same logit; most have that of tokens that aren't objects
    columns, column_of, counts = np.unique(
        weights["W_U"], axis=1, return_inverse=True, return_counts=True
    )
    unembedding, column_of = _matrix(columns), column_of.ravel()
    tokens = flint.arb_mat(len(counts), 1, counts.tolist())
    log_tau = flint.arb(float(tau)).log()
    ends: list[tuple[float, float]] = []
    step = max(1, LOGITS_AT_ONCE // len(counts))
    for start in range(0, len(facts), step):
        part = facts[start : start + step]
        logits = _residuals(scale, weights, part) * unembedding
        exps = list(map(flint.arb.exp, logits.entries()))
        own = column_of[part[:, 2]]
        places = (np.arange(len(part)) * len(counts) + own).tolist()
        mine = [exps[place] for place in places]
        for place in places:
            # omitted from the sum: to subtract it afterwards would lose digits
            exps[place] = flint.arb(0)
        others = (flint.arb_mat(len(part), len(counts), exps) * tokens).entries()
        # tokens with v's own column have its very logit
        equal = (counts[own] - 1).tolist()
        for e, rest, n in zip(mine, others, equal, strict=True):
            ends.append(_ends(-(rest / e + n).log1p() - log_tau))
    lower, upper = np.array(ends).T
    return lower, upper


def _residuals(
    scale: bool, weights: Mapping[str, NDArray[np.float64]], facts: NDArray[np.int64]
) -> flint.arb_mat:
    """Enclosures of the residual stream at the second position, shape (n_facts, d_model)."""
    heads, d_model, d_qk = weights["W_Q"].shape
    d_vo = weights["W_V"].shape[2]
    tokens, place = np.unique(facts[:, :2], return_inverse=True)
    place = place.reshape(-1, 2)
    embedded = _matrix(weights["W_E"][tokens])

    def rows_of(matrices: NDArray[np.float64]) -> list[list[Any]]:
        # all heads side by side
        return (embedded * _matrix(matrices.transpose(1, 0, 2).reshape(d_model, -1))).tolist()

    queries, values = rows_of(weights["W_Q"]), rows_of(weights["W_V"])
    keys = rows_of(weights["W_K"].transpose(0, 2, 1))
    factor = 1 / flint.arb(d_qk).sqrt() if scale else flint.arb(1)
    seen: list[Any] = []
    for k, q in place.tolist():
        query, of_k, of_q = queries[q], keys[k], keys[q]
        at_k, at_q = values[k], values[q]
        for h in range(heads):
            inner = range(h * d_qk, (h + 1) * d_qk)
            score = factor * sum((query[j] * (of_k[j] - of_q[j]) for j in inner), flint.arb(0))
            # each is computed by itself: 1 - a would lose a small number beside 1
            to_k, to_q = 1 / (1 + (-score).exp()), 1 / (1 + score.exp())
            seen += [to_k * at_k[j] + to_q * at_q[j] for j in range(h * d_vo, (h + 1) * d_vo)]
    outputs = _matrix(weights["W_O"].reshape(heads * d_vo, d_model))
    own = _matrix(weights["W_E"][facts[:, 1]])
    return own + flint.arb_mat(len(facts), heads * d_vo, seen) * outputs


def _matrix(array: NDArray[np.float64]) -> flint.arb_mat:
    """A matrix of floats, each of which is exact."""
    rows, columns = array.shape
    return flint.arb_mat(rows, columns, array.ravel().tolist())


def _ends(ball: Any) -> tuple[float, float]:
    """Floats below and above all of a ball."""
    if not ball.is_finite():
        return -math.inf, math.inf
    return _at_most(ball.lower()), -_at_most(-ball.upper())


def _at_most(number: Any) -> float:
    """A float next to an exact number, from below; the number itself if it is a float."""
    near = float(number)
    while not flint.arb(near) <= number:
        near = math.nextafter(near, -math.inf)
    return near


MOST_BITS = 2**16


@briefly_shown
@dataclass(frozen=True)
class CertifiedRecall:
    """Enclosures of the margins of a database's facts, in a layer.

    Attributes
    ----------
    tau : float
        Threshold on the probability, the real number that this float is.
    lower, upper : ndarrays of float64, shape (n_facts,)
        Ends of an interval that is proved to contain log p(v | k, q) - log tau, in nats, for the
        facts in the order of ``db.triples``.
    precision : int
        Largest number of bits that was computed with.
    """

    tau: float
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    precision: int

    @property
    def proved(self) -> NDArray[np.bool_]:
        """Facts whose object is proved to have probability >= tau, shape (n_facts,)."""
        return self.lower >= 0

    @property
    def refuted(self) -> NDArray[np.bool_]:
        """Facts whose object is proved to have a lower probability, shape (n_facts,)."""
        return self.upper < 0

    @property
    def n_proved(self) -> int:
        """Number of facts that are proved."""
        return int(self.proved.sum())

    @property
    def n_refuted(self) -> int:
        """Number of facts that are refuted."""
        return int(self.refuted.sum())

    @property
    def n_undecided(self) -> int:
        """Number of facts that the largest number of bits leaves open."""
        return len(self.lower) - self.n_proved - self.n_refuted

    @property
    def memorises(self) -> bool:
        """True if every fact is proved."""
        return self.n_proved == len(self.lower)

    @property
    def least_margin(self) -> float:
        """Least of the lower ends, in nats: no fact's log p(v | k, q) - log tau is below it."""
        return float(self.lower.min())

    def at(self, tau: float) -> CertifiedRecall:
        """The same facts at another threshold: log(old tau) - log(new tau) is added to each margin.

        No logit is computed again. Enclosures become wider by a rounding of float64 or two; where
        one then leaves its fact undecided, call `certified_recall` with the new threshold.

        Parameters
        ----------
        tau : float
            Threshold on the probability, strictly between 0.5 and 1.

        Returns
        -------
        CertifiedRecall
            Enclosures of log p(v | k, q) - log(new tau), with the same precision.

        Raises
        ------
        InvalidArgumentError
            If tau is out of range.

        Examples
        --------
        >>> from capacity import Database
        >>> from capacity.layer import store_in_query_key
        >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
        >>> recall = certified_recall(store_in_query_key(db, 0.95), db, 0.95)
        >>> recall.at(0.99).n_proved, recall.at(0.999).n_refuted
        (3, 3)
        """
        check_tau(tau)
        below, above = difference_of_logs(self.tau, float(tau))
        return replace(
            self,
            tau=float(tau),
            lower=np.nextafter(self.lower + below, -np.inf),
            upper=np.nextafter(self.upper + above, np.inf),
        )


def certified_recall(
    layer: AttentionLayer,
    db: DatabaseLike,
    tau: float,
    *,
    precision: int = 128,
    most_precision: int = 2048,
) -> CertifiedRecall:
    """Prove or refute, for each fact, that its object has probability >= tau in a layer.

    What is certified is the real-number function of the stored (rounded) weights, over all tokens:
    no rounding error of a forward pass enters. A forward pass in floating point computes something
    near it, how near depends on its type and on the order of its sums, and it may fall short of tau
    where the margin is small. The factor 1 / sqrt(d_head_qk), if the configuration has it, is the
    exact one.

    Parameters
    ----------
    layer : AttentionLayer
        A plain layer (no norm, bias or positions) with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Functional database.
    tau : float
        Threshold on the probability, strictly between 0.5 and 1; the real number that it is as a
        float64.
    precision : int
        Number of bits of the first attempt, at least 16.
    most_precision : int
        Facts that are undecided are tried again with twice the bits, up to this number.

    Returns
    -------
    CertifiedRecall
        Proved margins of all facts; the counts of those proved, refuted and undecided.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, a layer that isn't plain or has weights that aren't finite, no
        facts, or a tau or precision out of range.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> recall = certified_recall(store_in_query_key(db, 0.95), db, 0.95)
    >>> recall.memorises, recall.n_proved, recall.n_refuted, recall.n_undecided
    (True, 3, 0, 0)
    >>> bool(0 < recall.least_margin < 0.05)
    True
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_same_vocabulary(layer, db)
    if not layer.config.is_plain:
        raise InvalidArgumentError(
            "`layer` must be plain, without norm, bias and positions, to be certified; got "
            f"{layer.config.name}. Use evaluate(layer, db) for others."
        )
    db.require_functional("Certified recall")
    check_tau(tau)
    bits = require_integer("precision", precision, least=16, most=MOST_BITS)
    most = require_integer("most_precision", most_precision, least=bits, most=MOST_BITS)
    facts = db.token_triples.astype(np.int64)
    if not len(facts):
        raise InvalidArgumentError("There must be a fact to prove; got none.")
    weights = _exact_weights(layer)
    lower, upper = np.full(len(facts), -np.inf), np.full(len(facts), np.inf)
    todo = np.arange(len(facts))
    while True:
        with bits_set(bits):
            lower[todo], upper[todo] = margins(layer.config.scale, weights, facts[todo], tau)
        todo = np.flatnonzero((lower < 0) & (upper >= 0))
        if not len(todo) or bits == most:
            return CertifiedRecall(float(tau), lower, upper, bits)
        bits = min(2 * bits, most)


def _exact_weights(layer: AttentionLayer) -> dict[str, NDArray[np.float64]]:
    """Weights in float64, which holds every number of a shorter type."""
    weights = {
        name: tensor.detach().cpu().double().numpy() for name, tensor in layer.named_parameters()
    }
    for name, weight in weights.items():
        if not np.isfinite(weight).all():
            raise InvalidArgumentError(
                f"The weights must be finite to be certified; {name} has NaN or infinities."
            )
    return weights
