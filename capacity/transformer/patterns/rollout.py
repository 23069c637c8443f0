"""Attention rollout: how much of each input reaches each token through all layers.

Abnar and Zuidema (2020, "Quantifying Attention Flow in Transformers", section 3): a layer passes on
half of what a token holds, and half of what its heads take, averaged over heads. With A_l the mean
pattern of layer l the matrix of a layer is (A_l + I) / 2, and that of layers 0 to l their product,
the last one first. It is a picture of patterns alone: values, feed-forwards and norms, which decide
what is passed on, have no part in it.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from capacity.errors import InvalidArgumentError
from capacity.transformer.activations.records.cache import ActivationCache, Written


@torch.no_grad()
def attention_rollout(
    captured: ActivationCache, *, residual: float = 0.5
) -> Float[Tensor, "layers batch n n"]:
    """Compute the rollout of attention after each layer.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns, with all layers.
    residual : float
        Share of a token that a layer passes on as it is; 1/2 in the paper.

    Returns
    -------
    (n_layers, batch, n, n)
        Share of each token before the first layer (column) in each one after a layer (row). Rows of
        tokens sum to 1, also where a layer has a weight on a sink, which is distributed in
        proportion. Rows and columns of padding are 0.

    Raises
    ------
    InvalidArgumentError
        If some layers weren't captured, if others mix tokens without attention, if tokens attend to
        another sequence, or if `residual` isn't from 0 to 1.

    Examples
    --------
    One layer of two heads, whose patterns are averaged:

    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> captured = layer.capture(torch.tensor([[3, 7]]))
    >>> rollout = attention_rollout(captured)
    >>> rollout.shape, rollout[0].sum(-1).tolist()
    (torch.Size([1, 1, 2, 2]), [[1.0, 1.0]])
    """
    if not 0 <= residual <= 1:
        raise InvalidArgumentError(f"`residual` must be from 0 to 1; got {residual}.")
    _require_whole(captured)
    tokens = captured.mask.to(captured.layers[0].pattern.dtype)
    same = torch.diag_embed(tokens)
    found, product = [], same
    for layer in captured.layers:
        mean = layer.pattern.mean(1)
        total = mean.sum(-1, keepdim=True)
        # rows of padding are 0
        mean = mean / torch.where(total > 0, total, 1.0)
        product = (residual * same + (1 - residual) * mean) @ product
        found.append(product)
    return torch.stack(found)


def _require_whole(captured: ActivationCache) -> None:
    if captured.keys is not None:
        why = "those of an attention across two sequences attend to another one"
    elif captured.chosen[1] is not None:
        why = f"the cache has heads {list(captured.head_numbers)} of each layer alone"
    elif _has_mixers(captured) or captured.layer_numbers != tuple(range(captured.n_layers)):
        why = f"the cache has those of layers {list(captured.layer_numbers)}"
    else:
        return
    raise InvalidArgumentError(
        "A rollout needs all that moves tokens in a model: all heads of all layers, attending to "
        f"their own sentence; {why}. Capture without `layers` and `heads`; a hybrid, some of whose "
        "layers mix tokens without attention, has no rollout."
    )


def _has_mixers(captured: ActivationCache) -> bool:
    return any(isinstance(step, Written) and step.term == "mixers" for step in captured.steps)
