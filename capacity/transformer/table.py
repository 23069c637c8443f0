"""Table of a model's heads: uniqueness of their attention, the share that has an effect, and why.

The output of a head is A V, with V of shape (n_tokens, d_head_vo). Attention without effect is what
lies in the left null space of V, whose dimension is n_tokens - rank(V), and rank(V) <= d_head_vo.
So from d_head_vo + 1 tokens on there always is such a space. With fewer tokens there is none unless
values are linearly dependent by chance: A is then the only pattern with its output, and effective
attention is A itself, in every mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.effective.attention import EffectiveAttention, effective_share
from capacity.transformer.identifiability.nullity import identifiability_table

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


def on_few_tokens(table: pd.DataFrame) -> str | None:
    """State what follows from few tokens for the heads of a model.

    Parameters
    ----------
    table : DataFrame
        Rows of `attention_table` about one sentence.

    Returns
    -------
    str or None
        A sentence; None where some head has fewer dimensions than there are tokens.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"n_tokens": [3], "d_head_vo": [8], "rank_values": [3]})
    >>> print(on_few_tokens(table))
    The text has 3 tokens, and the values of a head 8 dimensions (d_head_vo): they are linearly
    independent in all heads, so that each pattern is the only one with its output, and all of
    attention is effective. From 9 tokens on a part of it can be without effect.
    >>> on_few_tokens(table.assign(d_head_vo=2, rank_values=2))
    """
    n, d = int(table["n_tokens"].iloc[0]), int(table["d_head_vo"].min())
    if n > d:
        return None
    tokens = "1 token" if n == 1 else f"{n} tokens"
    start = f"The text has {tokens}, and the values of a head {d} dimensions (d_head_vo): "
    end = f"From {d + 1} tokens on a part of it can be without effect."
    dependent = int((table["rank_values"] < n).sum())
    if not dependent:
        return (
            f"{start}they are linearly independent in all heads, so that each pattern is the only "
            f"one with its output, and all of attention is effective. {end}"
        )
    return (
        f"{start}so few could be linearly independent, and are so in {len(table) - dependent} of "
        f"{len(table)} heads, where all of attention is effective. {end}"
    )


def all_independent(table: pd.DataFrame) -> bool:
    """Return True if the values of all tokens are linearly independent in every head.

    Parameters
    ----------
    table : DataFrame
        Rows of `attention_table`.

    Returns
    -------
    bool

    Examples
    --------
    >>> import pandas as pd
    >>> all_independent(pd.DataFrame({"n_tokens": [3, 3], "rank_values": [3, 2]}))
    False
    """
    return bool((table["rank_values"] == table["n_tokens"]).all())
