"""Facts decoded from a layer as a database: argmax(L) and softmax>=tau(L).

These are the 0/1 tensors of Wong 2025, equations (11) and (13). Equation (15) compares their ranks,
which can be certified, with rank(D); no bound of them by rank(L) is known.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.evaluator.beyond.nonsense import nonsense_pairs
from capacity.layer.recall.predictions import pair_logits
from capacity.layer.recall.threshold import Threshold, check_threshold

if TYPE_CHECKING:
    from capacity.layer.model.attention_layer import AttentionLayer


def decoded_facts(
    layer: AttentionLayer,
    db: Database,
    tau: Threshold = "argmax_paper",
    *,
    nonsense: bool = False,
) -> Database | None:
    """Decode the triples (k, q, v) that a layer asserts.

    Parameters
    ----------
    layer : AttentionLayer
        Layer with ``d_vocab == db.n_tokens``.
    db : Database
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
        layer that tau-memorises gives `db` itself, unless `nonsense` is set.

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
    require_same_vocabulary(layer, db)
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
