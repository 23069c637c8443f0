"""One table of a model's heads: how unique their attention is, and how much of it has an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from capacity.transformer.activations.cache import ActivationCache
from capacity.transformer.effective.attention import EffectiveAttention, effective_share
from capacity.transformer.identifiability.nullity import identifiability_table

if TYPE_CHECKING:
    import pandas as pd


def attention_table(captured: ActivationCache, effective: EffectiveAttention) -> pd.DataFrame:
    """Tabulate each head as `identifiability_table` does, with its ``effective_share``.

    Parameters
    ----------
    captured : Captured
    effective : EffectiveAttention
        Of the same sentences.

    Returns
    -------
    pandas.DataFrame
        One row a sentence, layer and head.
    """
    table = identifiability_table(captured)
    shares = torch.stack(
        [
            effective_share(layer.pattern, found.pattern)
            for layer, found in zip(captured.layers, effective.layers, strict=True)
        ]
    )
    at = tuple(table[name].to_numpy() for name in ("layer", "sentence", "head"))
    return table.assign(effective_share=shares.double().cpu().numpy()[at])
