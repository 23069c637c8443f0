"""Sizes of the layers that facts are written into by hand, which are known before any weight is."""

from __future__ import annotations

import numpy as np

from capacity.database.facts import Database
from capacity.layer.model.config import LayerConfig


def query_key_config(db: Database) -> LayerConfig:
    """Sizes of the layer that `capacity.layer.store_in_query_key` makes.

    Parameters
    ----------
    db : Database
        A functional database of arity 3.

    Returns
    -------
    LayerConfig
        One head with ``d_model = |Q| + 1``, or, if some token is subject and predicate, two with
        ``d_model = 2 |Q| + 2``.

    Examples
    --------
    >>> query_key_config(Database.from_triples([("a", "p", "x"), ("b", "q", "y")])).name
    'd3-h1-qk2-vo1'
    """
    n = len(db.predicate_ids)
    if not np.intersect1d(db.subject_ids, db.predicate_ids).size:
        return LayerConfig(d_model=n + 1, n_heads=1, d_head_qk=n, d_head_vo=1)
    return LayerConfig(d_model=2 * n + 2, n_heads=2, d_head_qk=n, d_head_vo=1)
