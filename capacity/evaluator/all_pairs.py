"""The tensor of logits over all pairs: for any layer or decoder, where L isn't defined."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_integer
from capacity.database.given_facts import DatabaseLike
from capacity.errors import MemoryBudgetError
from capacity.layer.model.forward import PAIRS_A_BATCH
from capacity.layer.recall import pair_logits
from capacity.tensor.coordinates import BUDGET

if TYPE_CHECKING:
    from capacity.layer.model.decoder import AnyLayer


def logit_tensor(layer: AnyLayer, db: DatabaseLike) -> NDArray[np.float64]:
    """Compute the logits of all objects after all pairs of a subject and a predicate.

    For a plain `AttentionLayer` it is L (Wong 2025, Proposition 3.1) on the whole grid, and not on
    the domain of the database alone, off which `layer_tensor` has no attention. Its rank can be
    estimated (`numerical_rank_estimates`); what it predicts by argmax, or by softmax >= tau, is a
    0/1 tensor whose rank `capacity.rank.rank_interval` certifies (`decoded_facts`).

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database that defines the tokens.

    Returns
    -------
    ndarray of float64, shape (n_subjects, n_predicates, n_objects)
        The logits.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, or facts of another arity than 3.
    MemoryBudgetError
        If the tensor would take more than a gigabyte; `logit_blocks` has it in parts.

    Examples
    --------
    >>> from capacity.database import Database
    >>> from capacity.layer import Decoder, DecoderConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> logit_tensor(Decoder(DecoderConfig(4, mlp=8), db.n_tokens), db).shape
    (2, 2, 2)
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_same_vocabulary(layer, db)
    size = 8 * int(np.prod(db.shape, dtype=object))
    if size > BUDGET:
        raise MemoryBudgetError(
            f"The tensor of logits must fit {BUDGET:,} bytes; that of {db.shape} takes {size:,}. "
            "Go through logit_blocks(layer, db)."
        )
    blocks = [block for _, block in logit_blocks(layer, db)]
    return np.concatenate(blocks) if blocks else np.zeros(db.shape)


def logit_blocks(
    layer: AnyLayer, db: DatabaseLike, *, pairs: int = PAIRS_A_BATCH
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield the tensor of logits in blocks of some subjects each.

    Parameters
    ----------
    layer : AttentionLayer or Decoder
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Database that defines the tokens.
    pairs : int
        Most pairs in a block; at least those of one subject are.

    Yields
    ------
    subjects : slice
        Positions among the database's subjects.
    block : ndarray of float64, shape (n of them, n_predicates, n_objects)
        Their logits.

    Raises
    ------
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, facts of another arity than 3, or no pair in a block.

    Examples
    --------
    >>> from capacity.database import Database
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> layer = AttentionLayer(LayerConfig(2, 1), db.n_tokens)
    >>> [(subjects, block.shape) for subjects, block in logit_blocks(layer, db, pairs=2)]
    [(slice(0, 1, None), (1, 2, 2)), (slice(1, 2, None), (1, 2, 2))]
    """
    from capacity.layer.model.tensor import require_same_vocabulary

    db = require_same_vocabulary(layer, db)
    pairs = require_integer("pairs", pairs)
    k, q, v = (ids.astype(np.int64) for ids in (db.subject_ids, db.predicate_ids, db.object_ids))
    n = max(1, pairs // max(1, len(q)))
    for start in range(0, len(k), n):
        some = k[start : start + n]
        grid = np.stack(np.meshgrid(some, q, indexing="ij"), axis=-1).reshape(-1, 2)
        logits = pair_logits(layer, grid)[:, v]
        stop = start + len(some)
        yield slice(start, stop), logits.reshape(len(some), len(q), len(v))
