"""Logits and attention of a layer, decomposed into terms, and the facts that each term recalls.

After the sentence (k, q) a layer's logits are a sum (Wong 2025, equations (4) to (8)):

    L[k, q] = E[q] + sum_h a^h W^h[k] + (1 - a^h) W^h[q],    a^h = sigmoid(S^h[q, k] - S^h[q, q]),

with E = W_EU, W^h = W_VO^h and S^h = W_QK^h: the *embedding* term, and for each head a *subject*
and a *predicate* term. A layer with norm or biases has a *constant* term as well. The analyses
that `capacity.transformer` makes of pretrained models are made here of these sums: which of them
recall the facts, whether the output determines the heads' attention, and how far the facts
determine W_QK.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.database.facts import Database
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError
from capacity.evaluator.accuracy import TAUS, accuracy_of_logits
from capacity.evaluator.columns import accuracy_column

if TYPE_CHECKING:
    import pandas as pd

    from capacity.layer.model import AttentionLayer

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

    if not np.issubdtype(pairs.dtype, np.integer) or pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InvalidArgumentError(
            f"`pairs` must be integers of shape (n_pairs, 2); got {pairs.dtype} of shape "
            f"{pairs.shape}."
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
    layer: AttentionLayer, db: Database, *, by_head: bool = False, taus: Iterable[float] = TAUS
) -> pd.DataFrame:
    """Measure the accuracy of every partial sum of a layer's terms.

    Parameters
    ----------
    layer : AttentionLayer
        Layer with ``d_vocab == db.n_tokens``.
    db : Database
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
        (`accuracy_column`). The row with all terms has the layer's own accuracies.

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
    >>> from capacity.layer import store_in_query_key
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> table = term_accuracy(store_in_query_key(db), db)
    >>> len(table), table["accuracy_p95"].iloc[-1].item()
    (7, 1.0)
    """
    import pandas as pd

    from capacity.layer.tensor import require_same_vocabulary
    from capacity.transformer.residual.partial_sums import subsets

    taus = tuple(taus)
    require_same_vocabulary(layer, db)
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


def attention_of_pairs(layer: AttentionLayer, db: Database) -> pd.DataFrame:
    """Tabulate the attention of each head at each pair, and whether the output determines it.

    A head's attention after (k, q) is one number, a^h, and the output depends on it through
    a^h (W^h[k] - W^h[q]). The output determines all heads' numbers if and only if these vectors
    are linearly independent (`identifiable`); with a norm the output would determine less.

    Parameters
    ----------
    layer : AttentionLayer
        Layer without layer norm, with ``d_vocab == db.n_tokens``.
    db : Database
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
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y")])
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), db.n_tokens)
    >>> attention_of_pairs(layer, db)["identifiable"].tolist()
    [True, True, True, True]
    """
    import pandas as pd
    import torch

    from capacity.layer.tensor import require_same_vocabulary
    from capacity.transformer.effective.attention import effective_attention

    require_same_vocabulary(layer, db)
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


def query_key_freedom(layer: AttentionLayer, db: Database) -> pd.DataFrame:
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
    db : Database
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
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> query_key_freedom(AttentionLayer(LayerConfig(4, 1, 2, 2), db.n_tokens), db)
       head  rank_of_pairs  rank_of_facts  free
    0     0              4              2     2
    """
    import pandas as pd
    import torch

    from capacity.layer.tensor import require_same_vocabulary

    require_same_vocabulary(layer, db)
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
