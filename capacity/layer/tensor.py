"""The tensor L of an attention layer, and the tensors E, A^h and V^h that it is made of.

    V^h[t, q, v] = (W_VO^h)[t, v]                                                      (4)
    A^h[k, q, t] = softmax over t in {k, q} of (W_QK^h)[q, t], on the domain, else 0   (5)
    (A^h V^h)[k, q, v] = sum_t A^h[k, q, t] V^h[t, q, v]                               (6)
    E[k, q, v] = (W_EU)[q, v]                                                          (7)
    L = E + sum_h A^h V^h                                                              (8)

with t in K union Q. On the domain of the database, and for k != q, the fiber L[k, q, :] holds the
logits of the objects after the sentence (k, q) (Proposition 3.1). Off the domain A^h = 0 by (5),
so L = E there, which is *not* what the layer would answer: nonsense queries use the forward pass.
The sum in (5) runs over the *set* {k, q}. Where a token is asked about itself, k = q, it has one
element, so A^h = 1 there; the forward pass attends twice to the same value, and Proposition 3.1
holds too.

References
----------
Wong 2025, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.database.facts import Database
from capacity.errors import InvalidArgumentError
from capacity.layer.model import AttentionLayer


@dataclass(frozen=True)
class LayerTensor:
    """L and its parts, over the subjects, predicates and objects of a database.

    Attributes
    ----------
    E : tensor, shape (n_subjects, n_predicates, n_objects)
    A : tensor, shape (n_heads, n_subjects, n_predicates, n_keys)
        n_keys is the number of tokens in K union Q, in the order of `keys`.
    V : tensor, shape (n_heads, n_keys, n_predicates, n_objects)
    L : tensor, shape (n_subjects, n_predicates, n_objects)
    keys : tensor of int64, shape (n_keys,)
        Token ids of K union Q, ascending.
    """

    E: Float[Tensor, "subjects predicates objects"]
    A: Float[Tensor, "heads subjects predicates keys"]
    V: Float[Tensor, "heads keys predicates objects"]
    L: Float[Tensor, "subjects predicates objects"]
    keys: Tensor


def layer_tensor(layer: AttentionLayer, db: Database) -> LayerTensor:
    """Build L, and what it is made of, for a layer whose tokens are those of the database.

    Parameters
    ----------
    layer : AttentionLayer
        Plain, with ``d_vocab == db.n_tokens``.
    db : Database
        Any; of a multi-valued one only the domain is used.

    Raises
    ------
    ValueError
        For another vocabulary, or a layer with norm, bias or positions.
    """
    require_same_vocabulary(layer, db)
    return tensor_of_circuits(layer.W_EU, layer.W_QK, layer.W_VO, db)


def tensor_of_circuits(
    W_EU: Float[Tensor, "tokens tokens"],
    W_QK: Float[Tensor, "heads tokens tokens"],
    W_VO: Float[Tensor, "heads tokens tokens"],
    db: Database,
) -> LayerTensor:
    """Build L from the circuits themselves; entries between other roles are not used."""
    k, q, v = (
        torch.as_tensor(ids.astype("int64"), device=W_EU.device)
        for ids in (db.subject_ids, db.predicate_ids, db.object_ids)
    )
    keys = torch.cat([k, q]).unique()
    domain = torch.zeros(len(k), len(q), dtype=torch.bool, device=W_EU.device)
    domain[tuple(torch.as_tensor(db.triples[:, :2].astype("int64").T, device=W_EU.device))] = True

    E = W_EU[q][:, v].expand(len(k), -1, -1)
    V = W_VO[:, keys][..., v].unsqueeze(2).expand(-1, -1, len(q), -1)
    # t may be k or q and nothing else; off the domain it may be nothing
    allowed = (keys == k[:, None, None]) | (keys == q[None, :, None])
    scores = W_QK[:, q][..., keys].unsqueeze(1).expand(-1, len(k), -1, -1)
    A = scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1) * domain[..., None]
    L = E + torch.einsum("hkqt,htqv->kqv", A, V)
    return LayerTensor(E, A, V, L, keys)


def require_same_vocabulary(layer: AttentionLayer, db: Database) -> None:
    """Raise a ValueError unless the layer has one token for each token of the database."""
    if layer.d_vocab != db.n_tokens:
        raise InvalidArgumentError(
            f"The layer must have the database's {db.n_tokens} tokens; its d_vocab is "
            f"{layer.d_vocab}. Build it with AttentionLayer(config, db.n_tokens)."
        )
