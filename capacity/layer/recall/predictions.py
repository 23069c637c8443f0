"""Logits that a layer predicts after (subject, predicate) pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from capacity.checks import shown
from capacity.errors import InvalidTypeError
from capacity.layer.model.forward import PAIRS_A_BATCH, logits_of_pairs

if TYPE_CHECKING:
    from capacity.layer.model.attention_layer import AttentionLayer


def pair_logits(
    layer: AttentionLayer, pairs: NDArray[np.integer], *, batch_size: int = PAIRS_A_BATCH
) -> NDArray[np.float64]:
    """Return the logits that the forward pass predicts after each (subject, predicate) pair.

    Parameters
    ----------
    layer : AttentionLayer
        Layer to run.
    pairs : integer ndarray, shape (n_pairs, 2)
        Token ids of subject and predicate.
    batch_size : int
        Number of pairs per forward pass.

    Returns
    -------
    ndarray of float64, shape (n_pairs, d_vocab)
        Logits at the last position.

    Raises
    ------
    InvalidTypeError
        If `pairs` is not an array.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> layer = AttentionLayer(LayerConfig(4, 1, 2, 2), 5)
    >>> pair_logits(layer, np.array([[0, 1], [2, 1]])).shape
    (2, 5)
    """
    import torch

    if not hasattr(pairs, "astype"):
        raise InvalidTypeError(
            "`pairs` must be an array of token ids, shape (n_pairs, 2); got "
            f"{shown(pairs)}. The pairs of a database are db.token_triples[:, :2]."
        )
    if _is_of_weights_alone(layer):
        # as a sweep scores it
        weights = {name: p.detach().numpy() for name, p in layer.named_parameters()}
        return logits_of_pairs(layer.config, weights, pairs, batch_size=batch_size)
    device = layer.W_E.device
    sentences = torch.as_tensor(pairs.astype(np.int64), device=device)
    with torch.no_grad():
        parts = [layer(part)[:, -1].double().cpu() for part in sentences.split(batch_size)]
    return torch.cat(parts).numpy()


# methods that a layer's forward pass is made of
_FORWARD = ("forward", "embed", "attention", "queries_and_keys", "values")


def _is_of_weights_alone(layer: AttentionLayer) -> bool:
    """Return True if numpy can compute the forward pass: neither hook nor method is another's."""
    import torch
    from torch.nn.modules.module import _has_any_global_hook

    from capacity.layer.model.attention_layer import AttentionLayer

    return (
        type(layer) is AttentionLayer
        and layer.config.is_plain
        and all(p.device.type == "cpu" for p in layer.parameters())
        and {p.dtype for p in layer.parameters()} <= {torch.float32, torch.float64}
        and not (layer._forward_hooks or layer._forward_pre_hooks or _has_any_global_hook())
        and all(
            getattr(getattr(layer, name), "__module__", "") == AttentionLayer.__module__
            for name in _FORWARD
        )
    )
