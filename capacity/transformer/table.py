"""Table of a model's heads: uniqueness of their attention, and the share that has an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.effective.attention import EffectiveAttention
from capacity.transformer.effective.layer import effective_share
from capacity.transformer.identifiability.table import identifiability_table

if TYPE_CHECKING:
    import pandas as pd


def attention_table(captured: ActivationCache, effective: EffectiveAttention) -> pd.DataFrame:
    """Tabulate identifiability and effective share of every head.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.
    effective : EffectiveAttention
        Effective attention of the same activations.

    Returns
    -------
    pandas.DataFrame
        One row for each sentence, layer and head, all counted from 0: the columns of
        `identifiability_table`, and ``effective_share`` (see `effective_share`).

    Raises
    ------
    InvalidArgumentError
        If the model's numbers are too coarse for ranks.

    Examples
    --------
    >>> from capacity.layer import AttentionLayer, LayerConfig
    >>> from capacity.transformer import effective_attention
    >>> layer = AttentionLayer(LayerConfig(4, 2, 2, 2), d_vocab=10, seed=0)
    >>> captured = layer.capture(torch.tensor([[3, 7]]))
    >>> table = attention_table(captured, effective_attention(captured))
    >>> table[["layer", "head", "nullity"]].to_numpy().tolist()
    [[0, 0, 0], [0, 1, 0]]
    >>> table["effective_share"].tolist()
    [1.0, 1.0]
    """
    table = identifiability_table(captured)
    shares = torch.stack(
        [
            effective_share(layer.pattern, found)
            for layer, found in zip(captured.layers, effective.layers, strict=True)
        ]
    )
    layers, heads = (
        table[name].map({number: at for at, number in enumerate(numbers)}).to_numpy()
        for name, numbers in (("layer", captured.layer_numbers), ("head", captured.head_numbers))
    )
    at = layers, table["sentence"].to_numpy(), heads
    return table.assign(effective_share=shares.double().cpu().numpy()[at])
