"""The tensor L of an attention layer, and the tensors E, A^h and V^h that compose it.

    V^h[t, q, v] = (W_VO^h)[t, v]                                                      (4)
    A^h[k, q, t] = softmax over t in {k, q} of (W_QK^h)[q, t], on the domain, else 0   (5)
    (A^h V^h)[k, q, v] = sum_t A^h[k, q, t] V^h[t, q, v]                               (6)
    E[k, q, v] = (W_EU)[q, v]                                                          (7)
    L = E + sum_h A^h V^h                                                              (8)

with t in K union Q. On the domain of the database, and for k != q, the fiber L[k, q, :] holds the
logits of the objects after the sentence (k, q) (Proposition 3.1). Off the domain A^h = 0 by (5),
so L = E there, which is *not* the output of the layer: for such pairs use the forward pass.
The softmax in (5) runs over the *set* {k, q}. For k = q it has one element, so A^h = 1; the forward
pass attends to two positions with the same value, and Proposition 3.1 holds there too.

References
----------
Wong 2025, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.checks import shown
from capacity.converters import Converter
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_triples
from capacity.display import briefly_shown
from capacity.errors import InvalidArgumentError, InvalidTypeError, MemoryBudgetError
from capacity.layer.model.attention_layer import AttentionLayer
from capacity.layer.model.decoder import AnyLayer
from capacity.tensor.coordinates import BUDGET
from capacity.tensor.given_tensors import register_tensor_converter


@briefly_shown
@dataclass(frozen=True)
class LayerTensor:
    """L and its parts, over the subjects, predicates and objects of a database.

    Attributes
    ----------
    E : tensor, shape (n_subjects, n_predicates, n_objects)
        Direct path from embedding to unembedding, equation (7).
    A : tensor, shape (n_heads, n_subjects, n_predicates, n_keys)
        Attention of each head, equation (5); n_keys is the number of tokens in K union Q.
    V : tensor, shape (n_heads, n_keys, n_predicates, n_objects)
        Values of each head, equation (4).
    L : tensor, shape (n_subjects, n_predicates, n_objects)
        The sum, equation (8).
    keys : tensor of int64, shape (n_keys,)
        Token ids of K union Q, ascending.
    """

    E: Float[Tensor, "subjects predicates objects"]
    A: Float[Tensor, "heads subjects predicates keys"]
    V: Float[Tensor, "heads keys predicates objects"]
    L: Float[Tensor, "subjects predicates objects"]
    keys: Tensor


def _sum_of(parts: LayerTensor) -> Tensor:
    return parts.L


register_tensor_converter(Converter("LayerTensor", (LayerTensor,), _sum_of))


def layer_tensor(layer: AttentionLayer, db: DatabaseLike) -> LayerTensor:
    """Build L and its parts for a layer whose tokens are those of the database.

    Parameters
    ----------
    layer : AttentionLayer
        A plain layer with ``d_vocab == db.n_tokens``.
    db : Database
        Database that defines the tokens and the domain.

    Returns
    -------
    LayerTensor
        L and its parts, in the layer's dtype.

    Raises
    ------
    InvalidTypeError
        For arguments that aren't a layer and a database.
    InvalidArgumentError
        For another number of tokens, facts of another arity than 3, or a layer with norm, bias or
        positions.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> T = layer_tensor(AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens), db)
    >>> by_head = torch.einsum("kqt,tqv->kqv", T.A[0], T.V[0])    # equation (6)
    >>> T.L.shape, torch.allclose(T.L, T.E + by_head)             # equation (8)
    (torch.Size([2, 2, 2]), True)
    """
    db = require_same_vocabulary(layer, db)
    return tensor_of_circuits(layer.W_EU, layer.W_QK, layer.W_VO, db)


def tensor_of_circuits(
    W_EU: Float[Tensor, "tokens tokens"],
    W_QK: Float[Tensor, "heads tokens tokens"],
    W_VO: Float[Tensor, "heads tokens tokens"],
    db: DatabaseLike,
) -> LayerTensor:
    """Build L from the circuits of a layer.

    Parameters
    ----------
    W_EU : tensor, shape (n_tokens, n_tokens)
        Embed-unembed circuit; rows of predicates and columns of objects are used.
    W_QK : tensor, shape (n_heads, n_tokens, n_tokens)
        Query-key circuits; rows of predicates, and columns of subjects and predicates.
    W_VO : tensor, shape (n_heads, n_tokens, n_tokens)
        Value-output circuits; rows of subjects and predicates, and columns of objects.
    db : Database
        Database that defines the tokens and the domain.

    Returns
    -------
    LayerTensor
        L and its parts.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    InvalidArgumentError
        For facts of another arity than 3.

    Examples
    --------
    On the domain, L holds the logits of the objects (Proposition 3.1):

    >>> import numpy as np
    >>> from capacity.layer import LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "p", "y"), ("a", "q", "y")])
    >>> layer = AttentionLayer(LayerConfig(2, 1, 1, 2), db.n_tokens)
    >>> L = tensor_of_circuits(layer.W_EU, layer.W_QK, layer.W_VO, db).L.detach().numpy()
    >>> logits = layer(torch.tensor(db.token_triples[:, :2]))[:, -1].detach().numpy()
    >>> k, q, _ = db.triples.T
    >>> np.allclose(L[k, q], logits[:, db.object_ids], atol=1e-5)
    True
    """
    db = require_triples(db, "tensor_of_circuits(W_EU, W_QK, W_VO, db)")
    k, q, v = (
        torch.as_tensor(ids.astype("int64"), device=W_EU.device)
        for ids in (db.subject_ids, db.predicate_ids, db.object_ids)
    )
    keys = torch.cat([k, q]).unique()
    domain = torch.zeros(len(k), len(q), dtype=torch.bool, device=W_EU.device)
    domain[tuple(torch.as_tensor(db.triples[:, :2].astype("int64").T, device=W_EU.device))] = True

    E = W_EU[q][:, v].expand(len(k), -1, -1)
    V = W_VO[:, keys][..., v].unsqueeze(2).expand(-1, -1, len(q), -1)
    # attention goes to k and q alone; off the domain there is none
    allowed = (keys == k[:, None, None]) | (keys == q[None, :, None])
    scores = W_QK[:, q][..., keys].unsqueeze(1).expand(-1, len(k), -1, -1)
    A = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1) * domain[..., None]
    L = E + torch.einsum("hkqt,htqv->kqv", A, V)
    return LayerTensor(E, A, V, L, keys)


def whole_layer_tensor(layer: AttentionLayer) -> Float[Tensor, "tokens tokens tokens"]:
    """Build L over all tokens in each role, with every pair in the domain.

    Parameters
    ----------
    layer : AttentionLayer
        A plain layer.

    Returns
    -------
    tensor, shape (d_vocab, d_vocab, d_vocab)
        L[k, q, v], equation (8), the logit of v after the sentence (k, q).

    Raises
    ------
    InvalidArgumentError
        For a layer with norm, bias or positions.
    MemoryBudgetError
        If the tensor would take more than a gigabyte.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> layer = AttentionLayer(LayerConfig(2, 1, 1, 1), 4)
    >>> L = whole_layer_tensor(layer)
    >>> torch.allclose(L[3, 1], layer(torch.tensor([[3, 1]]))[0, -1])
    True
    """
    layer.require_plain()
    size = layer.d_vocab**3 * layer.W_E.element_size()
    if size > BUDGET:
        raise MemoryBudgetError(
            f"The tensor of a layer over all its tokens must fit {BUDGET:,} bytes; {layer.d_vocab} "
            f"tokens take {size:,}. Take the tensor over a database's tokens: "
            "layer_tensor(layer, db).L."
        )
    # attention to k beside q; for k = q the values are the same, whatever the attention
    scores = layer.W_QK
    to_subject = torch.sigmoid(scores - scores.diagonal(dim1=1, dim2=2).unsqueeze(2))
    L = layer.W_EU.expand(layer.d_vocab, -1, -1)
    L = L + torch.einsum("hqk,hkv->kqv", to_subject, layer.W_VO)
    return L + torch.einsum("hqk,hqv->kqv", 1 - to_subject, layer.W_VO)


def require_same_vocabulary(layer: AnyLayer, db: DatabaseLike) -> Database:
    """Return facts as a database, and refuse a layer of another number of tokens.

    Raises
    ------
    InvalidTypeError
        For arguments that aren't a layer and a database, in this order.
    InvalidArgumentError
        For another number of tokens, or facts of another arity than 3.
    """
    if not isinstance(layer, AnyLayer):
        raise InvalidTypeError(
            f"`layer` must be an AttentionLayer or a Decoder; got {shown(layer)}. The layer comes "
            "first, then the database."
        )
    db = require_triples(db, "Training or analysing a layer")
    if layer.d_vocab != db.n_tokens:
        raise InvalidArgumentError(
            f"The layer must have the database's {db.n_tokens} tokens; its d_vocab is "
            f"{layer.d_vocab}. Build it with {type(layer).__name__}(config, db.n_tokens)."
        )
    return db
