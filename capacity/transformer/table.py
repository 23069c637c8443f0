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
from torch import Tensor

from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.effective.attention import EffectiveAttention, effective_share
from capacity.transformer.identifiability.distinct_rows import unique_rows_of_checked
from capacity.transformer.identifiability.logit_rank import p4_excess
from capacity.transformer.identifiability.nullity import (
    checked_values,
    ranks_of_checked,
    value_ranks,
)

if TYPE_CHECKING:
    import pandas as pd


@torch.no_grad()
def identifiability_table(captured: ActivationCache) -> pd.DataFrame:
    """Tabulate how far from unique the attention of every head is.

    Parameters
    ----------
    captured : ActivationCache
        Activations of a model on some sentences, such as `capture` returns.

    Returns
    -------
    pandas.DataFrame
        One row for each sentence, layer and head, all counted from 0:

        ``sentence, layer, head, n_tokens, d_head_qk, d_head_vo``
            Indices and sizes; ``n_tokens`` is without padding.
        ``rank_values, nullity``
            rank(T), and n_tokens - rank(T) = dim LN(T).
        ``nullity_simplex``
            dim LN([T, 1]).
        ``joint_nullity``
            Dimension of the changes to one row in all heads that preserve the sum of their outputs
            and the sums of rows; one number for the layer. Generically max(0, n H - d_model - H).
            In a causal model it is that of the last token, which alone attends to all tokens; with
            gates, in any model, with those of the last token.
        ``identifiable_rows``
            Number of rows of A that are unique given P2 and P3. Bidirectional: all or none. Causal:
            the number of leading rows of [T, 1] that are independent, as a row depends on the
            tokens up to its own.
        ``p4_excess``
            Result of `p4_excess`: above 0, A is not unique under P1-P4. Missing for a causal model,
            for which no such count is known, for windows and for attention across sequences, and
            where the model adds biases of positions to logits, or caps them, as then A doesn't
            come from logits of that rank.
        ``threshold``
            Singular values up to this share of the largest count as 0.

        A sink (GPT-OSS) counts as one more column of A, with values of 0. The dimensions are
        those of a row that attends to all tokens, whatever windows there are;
        ``identifiable_rows`` goes by what each row may attend to.

    Raises
    ------
    InvalidArgumentError
        If the dtype is too coarse for ranks (a threshold of 1 or more).

    Examples
    --------
    >>> from capacity.transformer import EncoderClassifier, EncoderConfig
    >>> model = EncoderClassifier(EncoderConfig(20, 2, 16, 4, 2, 2, 8, "concatenate"))
    >>> table = identifiability_table(model.capture(torch.arange(3, 11)[None]))
    >>> table[["layer", "head", "rank_values", "nullity", "nullity_simplex"]].to_numpy().tolist()
    [[0, 0, 2, 6, 5], [0, 1, 2, 6, 5]]
    """
    import pandas as pd

    is_padded = not captured.key_mask.all()
    order = (~captured.key_mask).byte().argsort(dim=1, stable=True)
    n_tokens = torch.tensor(captured.n_tokens)
    tables: list[dict[str, Tensor]] = []
    excesses: list[int | None] = []
    thresholds: list[Tensor] = []
    for index, layer in enumerate(captured.layers):
        v = layer.v
        if is_padded:
            v = torch.take_along_dim(v, order[:, None, :, None], dim=2)
        batch, n_heads = v.shape[:2]
        columns_of_sink = 0 if layer.sink is None else 1
        if columns_of_sink:
            # before all tokens, so that every row attends to it
            v = torch.nn.functional.pad(v, (0, 0, 1, 0))
        m = n_tokens + columns_of_sink
        n = m[:, None].expand(batch, n_heads)
        checked = checked_values(v, layer.W_O, m)
        ranks = ranks_of_checked(checked)
        joint = ranks.joint
        if layer.gate is not None:
            joint = _joint_of_last(layer.gate, layer.W_O, v, m, captured.mask)
        rows = torch.tensor(captured.n_rows)[:, None].expand(batch, n_heads)
        unique = torch.where(ranks.simplex == n, rows, 0)
        excess: list[int | None] = [None] * (batch * n_heads)
        d_head_qk = layer.q.shape[-1]
        if layer.seen is not None:
            unique = _unique_within(layer, captured.mask, layer.seen)
        elif captured.causal and not (ranks.simplex == n).all():
            unique = unique_rows_of_checked(checked) - columns_of_sink
        if not captured.causal and layer.soft and layer.seen is None and captured.keys is None:
            sizes = zip(n.flatten().tolist(), ranks.simplex.flatten().tolist(), strict=True)
            excess = [p4_excess(m, d_head_qk, rank) for m, rank in sizes]
        columns = {
            "sentence": torch.arange(batch)[:, None],
            "layer": torch.tensor(captured.layer_numbers[index]),
            "head": torch.tensor(captured.head_numbers),
            "n_tokens": n_tokens[:, None],
            "d_head_qk": torch.tensor(d_head_qk),
            "d_head_vo": torch.tensor(v.shape[-1]),
            "rank_values": ranks.values,
            "nullity": n - ranks.values,
            "nullity_simplex": n - ranks.simplex,
            "joint_nullity": (n_heads * m - joint)[:, None],
            "identifiable_rows": unique,
        }
        tables.append(
            {name: column.expand(batch, n_heads).flatten() for name, column in columns.items()}
        )
        excesses += excess
        thresholds.append(ranks.threshold.repeat_interleave(n_heads))
    table = pd.DataFrame({name: torch.cat([t[name] for t in tables]) for name in tables[0]})
    table["p4_excess"] = pd.array(excesses, dtype="Int64")
    table["threshold"] = torch.cat(thresholds).numpy()
    return table.sort_values(["sentence", "layer", "head"], ignore_index=True)


def _joint_of_last(gate: Tensor, W_O: Tensor, v: Tensor, n: Tensor, mask: Tensor) -> Tensor:
    """Joint ranks of the last token's constraints, sum_h a^h V^h diag(g^h) W_O^h = 0."""
    joint = []
    for sentence, real in enumerate(mask):
        last = int(real.nonzero()[-1])
        only = slice(sentence, sentence + 1)
        gated = gate[sentence, :, last, :, None] * W_O
        joint.append(value_ranks(v[only], gated, n[only]).joint)
    return torch.cat(joint)


def _unique_within(layer: LayerActivations, mask: Tensor, seen: Tensor) -> Tensor:
    """Number of rows that are unique given what they may attend to, for each sentence and head."""
    found = torch.zeros(layer.v.shape[:2], dtype=torch.int64)
    for sentence, row in mask.nonzero().tolist():
        at = seen[sentence, row].nonzero().flatten()
        columns = len(at) + (layer.sink is not None)
        # [T, 1] has no larger rank
        if columns <= layer.v.shape[-1] + 1:
            v = layer.v[sentence : sentence + 1, :, at]
            v = v if layer.sink is None else torch.nn.functional.pad(v, (0, 0, 1, 0))
            found[sentence] += (value_ranks(v, layer.W_O).simplex[0] == columns).long()
    return found


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
