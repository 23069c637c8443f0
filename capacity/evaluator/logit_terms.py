"""Logits of all pairs, the terms that they are sums of, and the facts that each term recalls.

After the sentence (k, q) a layer's logits are a sum (Wong 2025, equations (4) to (8)):

    L[k, q] = E[q] + sum_h a^h W^h[k] + (1 - a^h) W^h[q],    a^h = sigmoid(S^h[q, k] - S^h[q, q]),

with E = W_EU, W^h = W_VO^h and S^h = W_QK^h: the *embedding* term, and for each head a *subject*
and a *predicate* term. A layer with norm or biases has a *constant* term as well. The analyses
that `capacity.transformer` makes of pretrained models are made of these sums: here, which of them
recall the facts; in `capacity.evaluator.pair_attention`, whether the output determines
the heads' attention, and how far the facts determine W_QK.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.checks import require_integer
from capacity.database.given_facts import DatabaseLike
from capacity.display import brief, briefly_shown
from capacity.errors import InvalidArgumentError, MemoryBudgetError
from capacity.evaluator.accuracy import TAUS, accuracy_of_logits
from capacity.evaluator.columns import accuracy_column
from capacity.layer.model.forward import PAIRS_A_BATCH
from capacity.layer.recall import pair_logits
from capacity.tensor.coordinates import BUDGET

if TYPE_CHECKING:
    import pandas as pd

    from capacity.layer.model.attention_layer import AttentionLayer
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


# the accuracies of 2^12 partial sums take about a second
_MOST_TERMS = 12


@briefly_shown
@dataclass(frozen=True)
class LayerTerms:
    """Terms of a layer's logits after (subject, predicate) pairs.

    Attributes
    ----------
    embedding : ndarray, shape (n_pairs, d_vocab)
        Contribution of the residual connection, E[q].
    subject, predicate : ndarray, shape (n_heads, n_pairs, d_vocab)
        Contribution of each head's attention to the subject and to the predicate.
    constant : ndarray, shape (n_pairs, d_vocab), or None
        Contribution of biases and means; None for a plain layer.
    """

    embedding: NDArray[np.float64]
    subject: NDArray[np.float64]
    predicate: NDArray[np.float64]
    constant: NDArray[np.float64] | None

    def named(self, *, by_head: bool = False) -> dict[str, NDArray[np.float64]]:
        """Name the terms, each of shape (n_pairs, d_vocab); their sum is the layer's logits."""
        named = {"embedding": self.embedding}
        for name, of_heads in (("subject", self.subject), ("predicate", self.predicate)):
            if by_head:
                named |= {f"{name}_{h}": term for h, term in enumerate(of_heads)}
            else:
                named[name] = of_heads.sum(axis=0)
        return named if self.constant is None else {**named, "constant": self.constant}


def layer_terms(layer: AttentionLayer, pairs: NDArray[np.integer]) -> LayerTerms:
    """Decompose a layer's logits after (subject, predicate) pairs into terms.

    Parameters
    ----------
    layer : AttentionLayer
        Layer to analyse.
    pairs : integer ndarray, shape (n_pairs, 2)
        Token ids of subject and predicate.

    Returns
    -------
    LayerTerms
        Terms in float64 that sum to the layer's logits.

    Raises
    ------
    InvalidArgumentError
        For pairs that aren't integers of shape (n_pairs, 2), or tokens out of the vocabulary.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=5)
    >>> terms = layer_terms(layer, np.array([[0, 1], [2, 1]])).named()
    >>> {name: term.shape for name, term in terms.items()}
    {'embedding': (2, 5), 'subject': (2, 5), 'predicate': (2, 5)}
    """
    import torch

    from capacity.transformer.residual.additive_decomposition import (
        CONSTANT,
        INPUT,
        decompose,
        scales_after_heads,
    )

    if (
        not isinstance(pairs, np.ndarray)
        or not np.issubdtype(pairs.dtype, np.integer)
        or pairs.ndim != 2
        or pairs.shape[1] != 2
    ):
        raise InvalidArgumentError(
            f"`pairs` must be an array of integers, shape (n_pairs, 2); got {brief(pairs)}. The "
            "pairs of a database are db.token_triples[:, :2]."
        )
    with torch.no_grad():
        captured = layer.capture(torch.as_tensor(pairs.astype(np.int64), device=layer.W_E.device))
        heads, (kept,) = captured.layers[0], scales_after_heads(captured)
        out = layer.W_U.double()
        last = decompose(captured).terms[-1, :, :, -1].double()
        # by source token: (2, n_heads, n_pairs, d_vocab)
        weighed = heads.pattern[:, :, -1, :, None] * heads.v_unbiased
        written = torch.einsum("mhtv,hvd->thmd", weighed, heads.W_O)
        scale = kept if kept.dim() == 1 else kept[:, -1]
        subject, predicate = (written * scale).double() @ out
        constant = None
        if not layer.config.is_plain:
            constant = last[CONSTANT] @ out
            constant = constant + layer.b_U.double() if layer.config.bias else constant
        embedding = last[INPUT] @ out
    return LayerTerms(
        embedding.cpu().numpy(),
        subject.cpu().numpy(),
        predicate.cpu().numpy(),
        None if constant is None else constant.cpu().numpy(),
    )


def term_accuracy(
    layer: AttentionLayer, db: DatabaseLike, *, by_head: bool = False, taus: Iterable[float] = TAUS
) -> pd.DataFrame:
    """Measure the accuracy of every partial sum of a layer's terms.

    Parameters
    ----------
    layer : AttentionLayer
        Layer with ``d_vocab == db.n_tokens``.
    db : Database, or what `as_database` takes
        Functional database.
    by_head : bool
        Count each head's terms separately, not their sums over heads.
    taus : iterable of float
        Thresholds on the probability, strictly between 0.5 and 1.

    Returns
    -------
    pandas.DataFrame
        One row per nonempty subset of terms: a boolean column per term, ``accuracy_argmax``,
        ``accuracy_p50`` (a probability above one half) and a column for each tau
        (`accuracy_column`). The row with all terms has the accuracies of the layer in float64; in
        float32, ties can lead to others.

    Raises
    ------
    MultiValuedError
        If the database is multi-valued.
    InvalidTypeError
        If `layer` or `db` is of another type.
    InvalidArgumentError
        For another number of tokens, a tau out of range, or more than 12 terms.

    Examples
    --------
    >>> from capacity import Database
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> table = term_accuracy(store_in_query_key(db), db)
    >>> len(table), table["accuracy_p95"].iloc[-1].item()
    (7, 1.0)
    """
    import pandas as pd

    from capacity.layer.model.tensor import require_same_vocabulary
    from capacity.transformer.residual.partial_sums import subsets

    taus = tuple(taus)
    db = require_same_vocabulary(layer, db)
    db.require_functional("Accuracy")
    triples = db.token_triples
    terms = layer_terms(layer, triples[:, :2]).named(by_head=by_head)
    if len(terms) > _MOST_TERMS:
        raise InvalidArgumentError(
            f"At most {_MOST_TERMS} terms have their partial sums listed; got {len(terms)}. Omit "
            "`by_head`."
        )
    names, stacked = list(terms), np.stack(list(terms.values()))
    rows = []
    for chosen in subsets(len(names)):
        found = accuracy_of_logits(stacked[list(chosen)].sum(axis=0), triples[:, 2], taus)
        rows.append(
            {**{name: number in chosen for number, name in enumerate(names)},
             "accuracy_argmax": found.argmax, accuracy_column(0.5): found.majority,
             **{accuracy_column(tau): found.softmax[tau] for tau in taus}}
        )  # fmt: skip
    return pd.DataFrame(rows)
