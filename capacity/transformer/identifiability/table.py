"""Table of how far from unique the attention of every head is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from capacity.transformer.activations.records.cache import ActivationCache
from capacity.transformer.activations.records.heads import LayerActivations
from capacity.transformer.identifiability.logit_rank import p4_excess
from capacity.transformer.identifiability.nullity import unique_rows, value_ranks

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
            In a causal model it is that of the last token, which alone attends to all tokens.
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

    order = (~captured.key_mask).byte().argsort(dim=1, stable=True)
    n_tokens = torch.tensor(captured.n_tokens)
    tables = []
    for index, layer in enumerate(captured.layers):
        v = torch.take_along_dim(layer.v, order[:, None, :, None], dim=2)
        batch, n_heads = v.shape[:2]
        columns_of_sink = 0 if layer.sink is None else 1
        if columns_of_sink:
            # before all tokens, so that every row attends to it
            v = torch.nn.functional.pad(v, (0, 0, 1, 0))
        m = n_tokens + columns_of_sink
        n = m[:, None].expand(batch, n_heads)
        ranks = value_ranks(v, layer.W_O, m)
        rows = torch.tensor(captured.n_rows)[:, None].expand(batch, n_heads)
        unique = torch.where(ranks.simplex == n, rows, 0)
        excess: list[int | None] = [None] * (batch * n_heads)
        d_head_qk = layer.q.shape[-1]
        if layer.seen is not None:
            unique = _unique_within(layer, captured.mask, layer.seen)
        elif captured.causal:
            unique = unique_rows(v, layer.W_O, m) - columns_of_sink
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
            "joint_nullity": (n_heads * m - ranks.joint)[:, None],
            "identifiable_rows": unique,
        }
        table = pd.DataFrame(
            {name: column.expand(batch, n_heads).flatten() for name, column in columns.items()}
        )
        table["p4_excess"] = pd.array(excess, dtype="Int64")
        table["threshold"] = ranks.threshold.repeat_interleave(n_heads).numpy()
        tables.append(table)
    table = pd.concat(tables, ignore_index=True)
    return table.sort_values(["sentence", "layer", "head"], ignore_index=True)


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
