"""Losses and gradients of a batch of runs, written out; no autograd.

The formulas are those of `capacity.layer.engines.fused.attention`, as matrix products.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from capacity.layer.engines.padded.batch import Batch


def losses_and_gradients(
    w: Mapping[str, Tensor], g: Mapping[str, Tensor], batch: Batch, scale: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the losses of some facts of every run, and their gradients.

    Parameters
    ----------
    w : mapping of str to tensor
        Weights W_E (b, a, d), W_U (b, d, t), W_Q, W_K, W_V (b, h, d, e) and W_O (b, h, e, d), with
        keys x W_K.
    g : mapping of str to tensor
        Tensors of the same shapes, which the gradients are written to.
    batch : Batch
        The facts.
    scale : (b, 1, 1)
        Factor of the attention scores.
    columns : (b, 1, t)
        0 for tokens, -inf for padding.

    Returns
    -------
    losses : (b,)
        Mean loss of each run.
    log_p : (b, facts)
        Log-probability of each fact's object; 0 in padding.
    """
    E = w["W_E"]
    (b, _, d), (_, heads, _, e) = E.shape, w["W_Q"].shape

    def beside(name: str) -> Tensor:
        """Matrices of all heads side by side, (b, d, heads e)."""
        return w[name].transpose(1, 2).reshape(b, d, heads * e)

    Q, K, V, out = *map(beside, ("W_Q", "W_K", "W_V")), w["W_O"].reshape(b, heads * e, d)
    q, k, v = E @ Q, E @ K, E @ V
    queries, steps = batch.predicates @ q, batch.subjects - batch.predicates
    keys, values = steps @ k, steps @ v
    by_head = (b, -1, heads, e)
    scores = (queries * keys).view(by_head).sum(-1) * scale
    gates = torch.sigmoid(scores).repeat_interleave(e, dim=2)
    mixed = torch.addcmul(batch.predicates @ v, gates, values)
    first_values = batch.first @ v
    rows = torch.cat([batch.first @ E + first_values @ out, batch.predicates @ E + mixed @ out], 1)
    logits = rows @ w["W_U"] + columns
    log_p = logits.log_softmax(-1)
    hit = batch.targets > 0
    right = torch.where(hit, log_p, 0.0)
    losses = -(right * batch.targets).sum((1, 2))
    errors = log_p.exp() * batch.row_weights - batch.targets
    g["W_U"].copy_(rows.transpose(1, 2) @ errors)
    d_rows = errors @ w["W_U"].transpose(1, 2)
    m = batch.first.shape[1]
    d_first, d_facts = d_rows[:, :m], d_rows[:, m:]
    d_out = first_values.transpose(1, 2) @ d_first + mixed.transpose(1, 2) @ d_facts
    d_mixed = d_facts @ out.transpose(1, 2)
    d_gates = (d_mixed * values).view(by_head).sum(-1)
    share = gates.view(by_head)[..., 0]
    d_scores = (d_gates * share * (1 - share) * scale).repeat_interleave(e, dim=2)
    at_p, moved = batch.predicates.transpose(1, 2), steps.transpose(1, 2)
    at_first = batch.first.transpose(1, 2)
    d_q = at_p @ (d_scores * keys)
    d_k = moved @ (d_scores * queries)
    d_v = moved @ (gates * d_mixed) + at_p @ d_mixed + at_first @ (d_first @ out.transpose(1, 2))
    d_E = at_first @ d_first + at_p @ d_facts
    for d_x, W in ((d_q, Q), (d_k, K), (d_v, V)):
        d_E = d_E + d_x @ W.transpose(1, 2)
    g["W_E"].copy_(d_E)
    for name, d_x in (("W_Q", d_q), ("W_K", d_k), ("W_V", d_v)):
        g[name].copy_((E.transpose(1, 2) @ d_x).view(b, d, heads, e).transpose(1, 2))
    g["W_O"].copy_(d_out.view(b, heads, e, d))
    # a fact's row has one target; a padded row has none, and so log-probability 0
    return losses, right[:, m:].sum(-1)
