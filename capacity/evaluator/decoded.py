"""What a layer says, as a database: argmax(L) and softmax>=tau(L), whose ranks can be certified.

These are the 0/1 tensors of Wong 2025, equations (11) and (13). Their ranks are what (15) compares
with rank(D), and nothing that is known of rank(L) bounds them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.evaluator.accuracy import check_tau, pair_logits
from capacity.evaluator.nonsense import nonsense_pairs

if TYPE_CHECKING:
    from capacity.layer.model import AttentionLayer


def decoded_facts(
    layer: AttentionLayer,
    db: Database,
    tau: float | Literal["argmax"] = "argmax",
    *,
    nonsense: bool = False,
) -> Database | None:
    """The triples (k, q, v) that a layer asserts.

    Parameters
    ----------
    layer : AttentionLayer
        With ``d_vocab == db.n_tokens``.
    db : Database
        Whose pairs (k, q) are asked.
    tau : float or 'argmax'
        v has a largest logit, as in (11), or probability tau or more.
    nonsense : bool
        Ask all pairs of a subject and a predicate, not those of the domain alone.

    Returns
    -------
    Database or None
        Over the tokens of `db`, with any token for an object; None if nothing is asserted. A layer
        that tau-memorises says just the facts, if it isn't asked for more.

    Raises
    ------
    ValueError
        For a tau out of range, another vocabulary, or logits that aren't finite.
    """
    from capacity.layer.tensor import require_same_vocabulary

    if tau != "argmax":
        check_tau(tau)
    require_same_vocabulary(layer, db)
    pairs = np.unique(db.token_triples[:, :2].astype(np.int64), axis=0)
    if nonsense:
        pairs = np.concatenate([pairs, nonsense_pairs(db)])
    z = pair_logits(layer, pairs)
    if not np.isfinite(z).all():
        raise InvalidArgumentError("The layer's logits must be finite; it has diverged.")
    z -= z.max(axis=1, keepdims=True)
    if tau == "argmax":
        said = z == 0
    else:
        said = z - np.log(np.exp(z).sum(axis=1, keepdims=True)) >= math.log(tau)
    rows, objects = np.nonzero(said)
    if not len(rows):
        return None
    triples = np.column_stack([pairs[rows], objects])
    return Database.from_ids(db.tokens, triples, multi="keep")
