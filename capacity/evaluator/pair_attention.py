"""Attention of a layer's heads at pairs of a database, and how far the facts determine it.

A head attends from the predicate to the subject and to itself, in shares that sum to one, so that
its attention at a pair (k, q) is one number. `capacity.evaluator.logit_terms` has the sum
of a layer's logits that contains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from capacity.database.given_facts import DatabaseLike
from capacity.errors import InvalidArgumentError

if TYPE_CHECKING:
    import pandas as pd

    from capacity.layer.model.attention_layer import AttentionLayer


def attention_of_pairs(layer: AttentionLayer, db: DatabaseLike) -> pd.DataFrame:
    """Tabulate the attention of each head at each pair, and whether the output determines it.

    A head's attention after (k, q) is one number, a^h, and the output depends on it through
    a^h (W^h[k] - W^h[q]). The output determines all heads' numbers if and only if these vectors
    are linearly independent (`identifiable`); with a norm the output would determine less.

    Parameters
    ----------
    layer : AttentionLayer
        Layer without layer norm, with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database whose pairs (k, q) are queried.

    Returns
    -------
    pandas.DataFrame
        One row per pair and head: ``subject`` and ``predicate`` (indices), ``head``, ``to_subject``
        (a^h), ``effective_to_subject`` and ``effective_to_predicate`` (the causal effective
        attention of the last row), ``head_rank`` (numerical, of the vectors), ``identifiable``.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, or a layer with norms.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens)
    >>> attention_of_pairs(layer, db)["identifiable"].tolist()
    [True, True, True, True]
    """
    import pandas as pd
    import torch

    from capacity.layer.model.tensor import require_same_vocabulary
    from capacity.transformer.effective.attention import effective_attention

    db = require_same_vocabulary(layer, db)
    if layer.config.layer_norm:
        raise InvalidArgumentError(
            "Attention can be read off logits that are linear in it: the layer must have no norm; "
            f"got {layer.config.name}."
        )
    tokens = np.unique(db.token_triples[:, :2].astype(np.int64), axis=0)
    where = np.unique(db.triples[:, :2], axis=0)
    with torch.no_grad():
        captured = layer.capture(torch.as_tensor(tokens, device=layer.W_E.device))
        heads = captured.layers[0]
        effective = effective_attention(captured).layers[0].pattern[:, :, -1]
        apart = (heads.v[:, :, 0] - heads.v[:, :, 1]).double()
        vectors = torch.einsum("mhv,hvd->mhd", apart, heads.W_O.double()) @ layer.W_U.double()
        eps = max(vectors.shape[1:]) * torch.finfo(heads.v.dtype).eps
        s = torch.linalg.svdvals(vectors)
        rank = (s > eps * s[:, :1]).sum(-1)
    n_heads = heads.pattern.shape[1]
    return pd.DataFrame(
        {
            "subject": np.repeat(where[:, 0], n_heads),
            "predicate": np.repeat(where[:, 1], n_heads),
            "head": np.tile(np.arange(n_heads), len(where)),
            "to_subject": heads.pattern[:, :, -1, 0].flatten().cpu().numpy(),
            "effective_to_subject": effective[..., 0].flatten().cpu().numpy(),
            "effective_to_predicate": effective[..., 1].flatten().cpu().numpy(),
            "head_rank": rank.repeat_interleave(n_heads).cpu().numpy(),
            "identifiable": (rank == n_heads).repeat_interleave(n_heads).cpu().numpy(),
        }
    )


def query_key_freedom(layer: AttentionLayer, db: DatabaseLike) -> pd.DataFrame:
    """Count the directions of W_Q and W_K that change attention for nonsense queries alone.

    Attention after (k, q) depends on W_Q^h and W_K^h through x_q W_Q^h W_K^h (x_k - x_q)^T, with x
    the embeddings. The Jacobian's rank over all pairs of a subject and a predicate, less that over
    the pairs of the database, counts directions that change attention for nonsense queries alone.
    Where it is 0, and heads are identifiable (`attention_of_pairs`), the facts determine attention
    everywhere, locally: the answers to nonsense queries are then no accident of training.

    Parameters
    ----------
    layer : AttentionLayer
        Layer without norm, bias or positions, with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        The facts.

    Returns
    -------
    pandas.DataFrame
        One row per head: ``head``, ``rank_of_pairs`` (all pairs), ``rank_of_facts`` (the pairs of
        the database), ``free`` (the difference).

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, or a layer with norm, bias or positions.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> query_key_freedom(AttentionLayer(LayerConfig(4, 1, 2, 2), db.n_tokens), db)
       head  rank_of_pairs  rank_of_facts  free
    0     0              4              2     2
    """
    import pandas as pd
    import torch

    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_same_vocabulary(layer, db)
    layer.require_plain()
    inside = np.zeros(db.shape[:2], dtype=bool)
    inside[tuple(db.triples[:, :2].T)] = True
    rows = []
    with torch.no_grad():
        x = layer.W_E.double()
        k, q = (
            x[torch.as_tensor(ids.astype(np.int64))] for ids in (db.subject_ids, db.predicate_ids)
        )
        # derivatives of x_q W_Q W_K (x_k - x_q)^T: by W_Q the outer product of x_q and
        # W_K (x_k - x_q)^T, by W_K that of x_q W_Q and x_k - x_q
        apart = (k[:, None] - q[None]).flatten(0, 1)
        asked = q.repeat(len(k), 1)
        chosen = torch.as_tensor(inside.flatten())
        for head in range(layer.config.n_heads):
            keys = apart @ layer.W_K[head].double().T
            queries = asked @ layer.W_Q[head].double()
            J = torch.cat(
                [(asked[:, :, None] * keys[:, None]).flatten(1),
                 (queries[:, :, None] * apart[:, None]).flatten(1)], dim=1
            )  # fmt: skip
            ranks = [int(torch.linalg.matrix_rank(part, rtol=1e-9)) for part in (J, J[chosen])]
            rows.append({"head": head, "rank_of_pairs": ranks[0], "rank_of_facts": ranks[1],
                         "free": ranks[0] - ranks[1]})  # fmt: skip
    return pd.DataFrame(rows)
