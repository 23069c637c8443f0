"""Facts that a layer asserts: those it decodes to as a database, and artefacts of completion.

The decoded databases argmax(L) and softmax>=tau(L) are the 0/1 tensors of Wong 2025, equations (11)
and (13). Equation (15) compares their ranks, which can be certified, with rank(D); no bound of them
by rank(L) is known.

A layer trained on the facts of a database answers every pair of tokens, so it completes the tensor
of the database. A triple (k, q, v) that it asserts is an *artefact* if the pair (k, q) has no
object in the database, and *wrong* if the pair has another one. Some artefacts may turn out true:
they are then generalisations, and only facts outside the database can show it.

References
----------
L. Z. Wong, 'Generalization is hallucination' through the lens of tensor completions, 2025, arXiv
2502.17305, names them; the definition of a completion, agreement on the pairs of the database, is
that of arXiv 2502.05076, section 2.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_choice, shown
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.nonsense import nonsense_pairs
from capacity.layer.recall import Threshold, check_threshold, pair_logits

if TYPE_CHECKING:
    from capacity.layer.model.decoder import AnyLayer


def decoded_facts(
    layer: AnyLayer,
    db: DatabaseLike,
    tau: Threshold = "argmax_paper",
    *,
    nonsense: bool = False,
) -> Database | None:
    """Decode the triples (k, q, v) that a layer asserts.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database whose pairs (k, q) are queried.
    tau : float, 'argmax' or 'argmax_paper'
        Criterion for v: a probability of at least tau (above one half for 0.5), the only largest
        logit, or *a* largest logit, as in (11).
    nonsense : bool
        Query all pairs of a subject and a predicate, not only those in the domain.

    Returns
    -------
    Database or None
        The triples, over the tokens of `db`; an object can be any token. None if there are none. A
        layer that tau-memorises yields `db` itself, unless `nonsense` is set.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For a tau out of range, another number of tokens, or logits that aren't finite.

    Examples
    --------
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> layer = store_in_query_key(db, 0.9)
    >>> decoded_facts(layer, db, 0.9) == db
    True
    >>> decoded_facts(layer, db, nonsense=True).n_pairs
    4
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    check_threshold(tau)
    db = require_same_vocabulary(layer, db)
    pairs = np.unique(db.token_triples[:, :2].astype(np.int64), axis=0)
    if nonsense:
        pairs = np.concatenate([pairs, nonsense_pairs(db)])
    z = pair_logits(layer, pairs)
    if not np.isfinite(z).all():
        raise InvalidArgumentError("The layer's logits must be finite; it has diverged.")
    z -= z.max(axis=1, keepdims=True)
    if isinstance(tau, str):
        said = z == 0
        if tau == "argmax":
            said &= said.sum(axis=1, keepdims=True) == 1
    else:
        log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        said = log_p > math.log(tau) if tau == 0.5 else log_p >= math.log(tau)
    rows, objects = np.nonzero(said)
    if not len(rows):
        return None
    triples = np.column_stack([pairs[rows], objects])
    return Database.from_ids(db.tokens, triples, multi="keep")


Among: TypeAlias = Literal["roles", "tokens"]
THRESHOLDS: tuple[Threshold, ...] = ("argmax", 0.5, 0.75, 0.95, 0.99)
# logits that are held at once
LOGITS_A_BATCH = 2**22


@briefly_shown
@dataclass(frozen=True)
class CompletionArtefacts:
    """Exact numbers of triples that a layer asserts beside its facts, by threshold.

    Attributes
    ----------
    artefacts : mapping of threshold to int
        Triples asserted of pairs without an object; NaN if a logit isn't finite.
    wrong : mapping of threshold to int
        Triples asserted of pairs that have another object; NaN if a logit isn't finite.
    n_pairs : int
        Number of pairs without an object that were asked.
    n_facts : int
        Number of facts, those with the token for "unknown" omitted.
    """

    artefacts: Mapping[Threshold, float]
    wrong: Mapping[Threshold, float]
    n_pairs: int
    n_facts: int

    def ratio(self, threshold: Threshold) -> float:
        """Return the number of artefacts for each fact.

        Parameters
        ----------
        threshold : float, 'argmax' or 'argmax_paper'
            A threshold that was asked for.

        Raises
        ------
        InvalidArgumentError
            For another one.

        Examples
        --------
        >>> CompletionArtefacts({0.95: 12}, {0.95: 0}, n_pairs=20, n_facts=8).ratio(0.95)
        1.5
        """
        if threshold not in self.artefacts:
            raise InvalidArgumentError(
                "`threshold` must be one that was counted: "
                f"{', '.join(map(str, self.artefacts)) or 'none was'}; got {shown(threshold)}. "
                "Others are counted if `thresholds` has them."
            )
        return self.artefacts[threshold] / self.n_facts


def completion_artefacts(
    layer: AnyLayer,
    db: DatabaseLike,
    *,
    thresholds: Iterable[Threshold] = THRESHOLDS,
    among: Among = "roles",
    unknown: str | None = None,
) -> CompletionArtefacts:
    """Count the triples that a layer asserts and that aren't facts of the database.

    Only objects of the database are asserted: another token that is likeliest makes no triple.
    Pairs are answered by the forward pass.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Facts that the layer was taught.
    thresholds : iterable of float, 'argmax' or 'argmax_paper'
        A triple is asserted if its object passes: alone has the largest logit (``argmax``), has a
        logit that none exceeds (``argmax_paper``), has a probability above one half (0.5), or has
        at least the probability given.
    among : {'roles', 'tokens'}
        Pairs that are asked: each subject with each predicate, of which there are n_subjects
        n_predicates; or any two tokens, n_tokens^2, most of which are no question.
    unknown : str, optional
        Label of a token that asserts nothing, such as `with_unknown` adds. Its facts don't count as
        facts; an object asserted of a pair that has it is wrong.

    Returns
    -------
    CompletionArtefacts
        Exact numbers.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, a threshold or `among` out of range, a token `unknown` that
        the database lacks, or facts of another arity than 3.

    Examples
    --------
    Two facts, and a layer that answers every pair with the same probabilities:

    >>> import torch
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "x")])
    >>> layer = AttentionLayer(LayerConfig(1, 1, 1, 1), db.n_tokens)
    >>> with torch.no_grad():
    ...     layer.W_E.fill_(1), layer.W_V.zero_(), layer.W_U.zero_()
    ...     layer.W_U[0, db.object_ids[0]] = 9
    (...)
    >>> found = completion_artefacts(layer, db, thresholds=["argmax", 0.95])
    >>> found.n_pairs, found.artefacts["argmax"], found.wrong["argmax"], found.ratio(0.95)
    (2, 2, 0, 1.0)
    >>> completion_artefacts(layer, db, among="tokens").n_pairs
    23
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_triples(db, "completion_artefacts(layer, db)")
    require_choice("`among`", among, get_args(Among))
    asked = tuple(thresholds)
    for threshold in asked:
        check_threshold(threshold)
    db = require_same_vocabulary(layer, db)
    facts = db.token_triples.astype(np.int64)
    silent = _token(db, unknown)
    objects = db.object_ids[db.object_ids != silent]
    taught = np.unique(facts[:, :2], axis=0)
    outside = nonsense_pairs(db) if among == "roles" else _other_pairs(taught, db.n_tokens)
    said = _asserted(layer, outside, objects, asked)
    inside = _asserted(layer, taught, objects, asked, facts)
    return CompletionArtefacts(
        artefacts=said, wrong=inside, n_pairs=len(outside),
        n_facts=int((facts[:, 2] != silent).sum()),
    )  # fmt: skip


def _token(db: Database, unknown: str | None) -> int:
    """Id of the token for "unknown", -1 for none."""
    if unknown is None:
        return -1
    for i, term in enumerate(db.tokens):
        if term.text == unknown:
            return i
    raise InvalidArgumentError(
        f"`unknown` must be the label of a token of the database; it has no {shown(unknown)}. "
        "capacity.evaluator.with_unknown(db, share) adds one."
    )


def _other_pairs(taught: NDArray[np.int64], n_tokens: int) -> NDArray[np.int64]:
    codes = taught[:, 0] * n_tokens + taught[:, 1]
    others = np.setdiff1d(np.arange(n_tokens * n_tokens), codes)
    return np.stack(np.divmod(others, n_tokens), axis=1)


def _asserted(
    layer: AnyLayer,
    pairs: NDArray[np.int64],
    objects: NDArray[np.integer],
    thresholds: tuple[Threshold, ...],
    facts: NDArray[np.int64] | None = None,
) -> dict[Threshold, float]:
    """Count the triples asserted of pairs, without those that are facts."""
    n_tokens = layer.d_vocab
    counts: dict[Threshold, float] = dict.fromkeys(thresholds, 0)
    batch = max(1, LOGITS_A_BATCH // n_tokens)
    for start in range(0, len(pairs), batch):
        part = pairs[start : start + batch]
        z = pair_logits(layer, part)
        if not np.isfinite(z).all():
            return dict.fromkeys(thresholds, math.nan)
        may = np.zeros(z.shape, dtype=bool)
        may[:, objects] = True
        if facts is not None:
            row = {(k, q): i for i, (k, q) in enumerate(part.tolist())}
            for k, q, v in facts.tolist():
                if (k, q) in row:
                    may[row[k, q], v] = False
        best = z.max(axis=1, keepdims=True)
        log_p = z - best - np.log(np.exp(z - best).sum(axis=1, keepdims=True))
        for threshold in thresholds:
            counts[threshold] += int((_passes(z, best, log_p, threshold) & may).sum())
    return counts


def _passes(
    z: NDArray[np.float64],
    best: NDArray[np.float64],
    log_p: NDArray[np.float64],
    threshold: Threshold,
) -> NDArray[np.bool_]:
    """Mark the tokens that pass after each pair, shape (n_pairs, n_tokens)."""
    if isinstance(threshold, str):
        first = z == best
        return first if threshold == "argmax_paper" else first & (first.sum(1, keepdims=True) == 1)
    return log_p > math.log(0.5) if threshold == 0.5 else log_p >= math.log(threshold)
