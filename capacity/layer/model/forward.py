"""The forward pass at sentences of two tokens, by numpy. No torch in here.

`AttentionLayer.forward` computes the same for sentences of any length, on any device. A sweep
scores a layer at the pairs of its facts alone, in processes that need torch for nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from capacity.errors import InvalidArgumentError
from capacity.layer.model.config import AnyConfig

# arrays with the names and shapes of LayerConfig.shapes
Weights: TypeAlias = Mapping[str, NDArray[Any]]

PAIRS_A_BATCH = 4096


def logits_of_pairs(
    config: AnyConfig,
    weights: Weights,
    pairs: NDArray[np.integer],
    *,
    batch_size: int = PAIRS_A_BATCH,
) -> NDArray[np.float64]:
    """Compute the logits after each (subject, predicate) pair, Z(k q) of Wong 2025, equation (2).

    Parameters
    ----------
    config : LayerConfig
        Sizes and scale of a plain layer: without norm, bias and positions.
    weights : mapping of str to ndarray
        Weights with the names and shapes of ``config.shapes(d_vocab)``, in whose dtype all is
        computed.
    pairs : integer ndarray, shape (n_pairs, 2)
        Token ids of subject and predicate.
    batch_size : int
        Number of pairs at a time.

    Returns
    -------
    ndarray of float64, shape (n_pairs, d_vocab)
        Logits at the last position.

    Raises
    ------
    InvalidArgumentError
        If the layer isn't plain.

    Examples
    --------
    >>> from capacity.layer import LayerConfig
    >>> from capacity.layer.model.initial import initial_weights
    >>> config = LayerConfig(4, 1, 2, 2)
    >>> logits_of_pairs(config, initial_weights(config, 5, 0), np.array([[0, 1], [2, 1]])).shape
    (2, 5)
    """
    if not config.is_plain:
        raise InvalidArgumentError(
            f"`config` must be of a layer without norm, bias and positions; got {config.name}. Run "
            "an AttentionLayer of these weights."
        )
    logits = np.empty((len(pairs), weights["W_U"].shape[1]))
    # the caller looks for logits that aren't finite
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, len(pairs), batch_size):
            part = slice(start, start + batch_size)
            logits[part] = _residuals(config, weights, pairs[part]) @ weights["W_U"]
    return logits


def _residuals(config: AnyConfig, weights: Weights, pairs: NDArray[np.integer]) -> NDArray[Any]:
    """The residual stream at the second position, before the unembedding."""
    first, second = (weights["W_E"][pairs[:, i]] for i in (0, 1))
    queries = second @ weights["W_Q"]
    W_K = weights["W_K"].transpose(0, 2, 1)
    scores = np.stack([(queries * (x @ W_K)).sum(axis=-1) for x in (first, second)])
    scores *= scores.dtype.type(config.attention_scale)
    powers = np.exp(scores - scores.max(axis=0))
    attention = powers / powers.sum(axis=0)
    # shape (heads, pairs, d_model)
    seen = attention[0][..., None] * first + attention[1][..., None] * second
    return second + (seen @ weights["W_V"] @ weights["W_O"]).sum(axis=0)
