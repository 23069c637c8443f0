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

**Facts of any arity.** Of facts (x_1, ..., x_m, v) L has a mode for each column, and (8) its form:

    A^h[x_1, ..., x_m, t] = n_t exp (W_QK^h)[x_m, t] / sum_s n_s exp (W_QK^h)[x_m, s],
    E[x_1, ..., x_m, v] = (W_EU)[x_m, v],      L = E + sum_h sum_t A^h[..., t] (W_VO^h)[t, v],

where n_t is the number of i with x_i = t. *Proposition 3.1 for m tokens:* on the domain the fiber
L[x_1, ..., x_m, :] holds the logits of the objects after the sentence. *Proof.* At the last
position the forward pass attends from x_m to the positions 1, ..., m with the weights
exp (W_QK^h)[x_m, x_i] over their sum. Positions with one token t have one weight and one value
(W_VO^h)[t, :], so that together they count n_t times. The residual stream adds W_E[x_m], whose
logits are E. [] For m = 2 and k != q all n_t are 1, which is (5).

References
----------
Wong 2025, section 3.1; section 5.2 names n-tensors without defining L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.checks import shown
from capacity.converters import Converter
from capacity.database.facts import Database
from capacity.database.given_facts import DatabaseLike, require_database, require_triples
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
        Direct path from embedding to unembedding, equation (7); of facts of another arity of the
        shape of their tensor, as L.
    A : tensor, shape (n_heads, n_subjects, n_predicates, n_keys)
        Attention of each head, equation (5); n_keys is the number of tokens in K union Q. Of facts
        of another arity it has a mode for each column of the key.
    V : tensor, shape (n_heads, n_keys, n_predicates, n_objects)
        Values of each head, equation (4). Of facts of another arity it has a mode for each column
        but the first; the values depend on the key's token and the object alone.
    L : tensor, shape (n_subjects, n_predicates, n_objects)
        The sum, equation (8).
    keys : tensor of int64, shape (n_keys,)
        Token ids of K union Q, or of all columns of the key, ascending.
    """

    E: Float[Tensor, "*key objects"]
    A: Float[Tensor, "heads *key keys"]
    V: Float[Tensor, "heads keys *rest objects"]
    L: Float[Tensor, "*key objects"]
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
        Database that defines the tokens and the domain, of any arity.

    Returns
    -------
    LayerTensor
        L and its parts, in the layer's dtype.

    Raises
    ------
    InvalidTypeError
        For arguments that aren't a layer and a database.
    InvalidArgumentError
        For another number of tokens, or a layer with norm, bias or positions.
    MemoryBudgetError
        If attention would take more than a gigabyte.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> db = Database.from_triples([("a", "p", "x"), ("b", "q", "y")])
    >>> T = layer_tensor(AttentionLayer(LayerConfig(2, 1, 1, 1), db.n_tokens), db)
    >>> by_head = torch.einsum("kqt,tqv->kqv", T.A[0], T.V[0])    # equation (6)
    >>> T.L.shape, torch.allclose(T.L, T.E + by_head)             # equation (8)
    (torch.Size([2, 2, 2]), True)
    """
    db = require_same_vocabulary(layer, db, any_arity=True)
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
        Database that defines the tokens and the domain, of any arity. The last column of the key
        has the part of the predicate.

    Returns
    -------
    LayerTensor
        L and its parts.

    Raises
    ------
    InvalidTypeError
        If `db` isn't a database.
    MemoryBudgetError
        If attention would take more than a gigabyte.

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
    db = require_database(db, "tensor_of_circuits(W_EU, W_QK, W_VO, db)")
    device, sides, heads = W_EU.device, db.shape[:-1], len(W_QK)
    *columns, v = (torch.as_tensor(ids.astype("int64"), device=device) for ids in db.role_ids)
    keys = torch.cat(columns).unique()
    _require_affordable(heads * math.prod(sides) * len(keys) * W_EU.element_size())
    domain = torch.zeros(sides, dtype=torch.bool, device=device)
    domain[tuple(torch.as_tensor(db.tuples[:, :-1].astype("int64").T, device=device))] = True

    last, ones = columns[-1], [1] * (len(sides) - 1)
    E = W_EU[last][:, v].view(*ones, sides[-1], -1).expand(*sides, -1)
    V = W_VO[:, keys][..., v]
    # attention goes to the tokens of the key, to each as often as it is in it; off the domain there
    # is none
    counts = W_QK.new_zeros(*sides, len(keys))
    for mode, column in enumerate(columns):
        of = (keys == column[:, None]).to(W_QK.dtype)
        counts = counts + of.view(*ones[:mode], len(column), *ones[mode:], -1)
    scores = W_QK[:, last][..., keys].view(heads, *ones, sides[-1], -1) + counts.log()
    A = scores.softmax(dim=-1) * domain[..., None]
    L = E + torch.einsum("hat,htv->av", A.flatten(1, -2), V).view(*sides, -1)
    V = V.reshape(heads, len(keys), *ones, -1).expand(-1, -1, *sides[1:], -1)
    return LayerTensor(E, A, V, L, keys)


def _require_affordable(size: int) -> None:
    if size > BUDGET:
        raise MemoryBudgetError(
            f"The attention of a layer over all keys must fit {BUDGET:,} bytes; it takes {size:,}. "
            "Take a part of the facts, such as db.sample_subjects(n, seed)."
        )


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


def require_same_vocabulary(
    layer: AnyLayer, db: DatabaseLike, *, any_arity: bool = False
) -> Database:
    """Return facts as a database, and refuse a layer of another number of tokens.

    Raises
    ------
    InvalidTypeError
        For arguments that aren't a layer and a database, in this order.
    InvalidArgumentError
        For another number of tokens, or facts of another arity than 3, unless any will do.
    """
    if not isinstance(layer, AnyLayer):
        raise InvalidTypeError(
            f"`layer` must be an AttentionLayer or a Decoder; got {shown(layer)}. The layer comes "
            "first, then the database."
        )
    require = require_database if any_arity else require_triples
    db = require(db, "Training or analysing a layer")
    if layer.d_vocab != db.n_tokens:
        raise InvalidArgumentError(
            f"The layer must have the database's {db.n_tokens} tokens; its d_vocab is "
            f"{layer.d_vocab}. Build it with {type(layer).__name__}(config, db.n_tokens)."
        )
    return db
