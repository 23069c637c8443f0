"""A row a fact: what a layer gives its object, what it says instead, and which tests it passes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

import numpy as np

from capacity.checks import require_choice
from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.evaluator.columns import threshold_column
from capacity.evaluator.recall.accuracy import TAUS, Over
from capacity.evaluator.recall.scale import margins
from capacity.layer.recall.predictions import pair_logits
from capacity.layer.recall.recalled import log_probabilities, recalled
from capacity.layer.recall.threshold import check_tau

if TYPE_CHECKING:
    import pandas as pd

    from capacity.layer.model.attention_layer import AttentionLayer


def fact_table(
    layer: AttentionLayer, db: Database, *, taus: Iterable[float] = TAUS, over: Over = "tokens"
) -> pd.DataFrame:
    """Tabulate how a layer recalls each fact of a database.

    The mean of a column ``argmax``, ``argmax_paper``, ``p50``, ... is the accuracy of that name
    (`evaluate`), to the last bit: both are made of the same comparisons in float64.

    Parameters
    ----------
    layer : AttentionLayer
        Layer with ``d_vocab == db.n_tokens``.
    db : Database
        Functional database.
    taus : iterable of float
        Thresholds on the probability, strictly between 0.5 and 1.
    over : {'tokens', 'objects'}
        Candidates of argmax and softmax: all tokens, or the objects of the database alone.

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
    MultiValuedError
        If the database is multi-valued.
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, logits that aren't finite, or a tau or `over` out of range.

    Examples
    --------
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
    require_same_vocabulary(layer, db)
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
